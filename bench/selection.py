"""False alarms and power of `kofn.metrics.selection_p_value` on simulated scores: python -m bench.selection [RUNS]."""

from __future__ import annotations

import sys

import numpy as np

from kofn.metrics import selection_p_value

GAPS, MIXTURES, SIZES = (2.0, 4.0, 6.0), (0.2, 0.5, 0.8), ((100, 1000), (500, 2000), (2000, 10_000))


def main(runs: int) -> None:
    """Negatives score N(0, 1), positives N(gap, 1). Selected: labelled with chance sigmoid(score - gap)."""
    print("gap mixture labelled unlabelled  alarms at 5 %: at random  selected")
    for gap in GAPS:
        for mixture in MIXTURES:
            for labelled, unlabelled in SIZES:
                rng = np.random.default_rng(1)
                alarms = np.zeros(2)
                for _ in range(runs):
                    truth = rng.random(unlabelled) < mixture
                    scores = rng.normal(0, 1, unlabelled) + gap * truth
                    alike = rng.normal(gap, 1, labelled)
                    pool = rng.normal(gap, 1, 8 * labelled)
                    chance = 1 / (1 + np.exp(gap - pool))
                    easy = rng.choice(pool, labelled, replace=False, p=chance / chance.sum())
                    alarms += [selection_p_value(each, scores, mixture=mixture) < 0.05 for each in (alike, easy)]
                shares = alarms / runs
                print(
                    f"{gap:3g} {mixture:7g} {labelled:8} {unlabelled:10}  {shares[0]:24.4f}  {shares[1]:8.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
