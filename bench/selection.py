"""False alarms and power of `kofn.metrics.selection_p_value` on simulated scores.

``python -m bench.selection`` draws scores of labelled positives and of unlabelled rows, with labels at random and with
labels that were selected by the score, and writes bench/selection.md and .json. Six minutes.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench.record import machine, markdown, write
from kofn.metrics import selection_p_value

GAPS, MIXTURES, SIZES = (2.0, 4.0, 6.0), (0.2, 0.5, 0.8), ((100, 1000), (500, 2000), (2000, 10_000))
LEVEL = 0.05


def alarms(gap: float, mixture: float, labelled: int, unlabelled: int, runs: int) -> tuple[float, float]:
    """The shares of runs with an alarm, of labels at random and of selected ones.

    Negatives score N(0, 1), positives N(gap, 1). Selected: a positive is labelled with chance sigmoid(score - gap).
    """
    rng = np.random.default_rng(1)
    found = np.zeros(2)
    for _ in range(runs):
        truth = rng.random(unlabelled) < mixture
        scores = rng.normal(0, 1, unlabelled) + gap * truth
        alike = rng.normal(gap, 1, labelled)
        pool = rng.normal(gap, 1, 8 * labelled)
        chance = 1 / (1 + np.exp(gap - pool))
        easy = rng.choice(pool, labelled, replace=False, p=chance / chance.sum())
        found += [selection_p_value(each, scores, mixture=mixture) < LEVEL for each in (alike, easy)]
    at_random, selected = (found / runs).tolist()
    return at_random, selected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("bench/selection"), help="without the suffix")
    options = parser.parse_args()
    settings: list[dict[str, Any]] = []
    for gap, mixture, (labelled, unlabelled) in product(GAPS, MIXTURES, SIZES):
        at_random, selected = alarms(gap, mixture, labelled, unlabelled, options.runs)
        settings.append(
            {"gap": gap, "mixture": mixture, "labelled": labelled, "unlabelled": unlabelled}
            | {"at random": at_random, "selected": selected}
        )
        print(settings[-1], flush=True)
    rows = [["gap", "mixture", "labelled", "unlabelled", "alarms, labels at random", "alarms, selected labels"]]
    for each in settings:
        sizes = [f"{each['gap']:g}", f"{each['mixture']:g}", f"{each['labelled']:,}", f"{each['unlabelled']:,}"]
        rows.append([*sizes, f"{each['at random']:.1%}", f"{each['selected']:.1%}"])
    text = (
        f"{machine()}.\n\n`selection_p_value` at the level of {LEVEL:.0%}, {options.runs} runs of each setting. Scores "
        f"of negatives are N(0, 1), of positives N(gap, 1); a selected positive was labelled with chance "
        f"sigmoid(score - gap).\n\n{markdown(rows)}\n"
    )
    record = {"machine": machine(), "level": LEVEL, "runs": options.runs, "settings": settings}
    for path in write(options.out, record, text):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
