"""How often bootstrap intervals hold the truth, on simulated votes where it is known.

``python -m bench.intervals`` simulates elections (`bench/simulated_votes.py`), fits a linear model with
``bootstrap=50`` to the counts of ballot boxes, and asks for 90 % intervals of P(vote | age group), of P(vote) of voters
and of the expected count of boxes. Each election is written to bench/intervals.jsonl at once, and none is run twice;
bench/intervals.md and .json have the summary.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit

import kofn
from bench.record import Rows, commit, machine, markdown, write
from bench.simulated_votes import AGES, election

LEVEL, MEMBERS = 0.9, 50
Array = NDArray[np.float64]

#: Name, number of boxes, seed of the first election and how many, and the penalty of the members as a multiple of the
#: chosen one; None for what the library does. Seeds below 10,000 were used to find that percentiles and the chosen
#: penalty are too narrow, those from 10,000 to find that a tenth of it is, with few boxes; the others for nothing else.
DESIGNS: tuple[tuple[str, int, int, int, float | None], ...] = (
    ("60 boxes", 60, 20_000, 80, None),
    ("150 boxes", 150, 20_000, 120, None),
    ("60 boxes, a tenth of the penalty", 60, 10_000, 100, 0.1),
    ("150 boxes, a tenth of the penalty", 150, 10_000, 200, 0.1),
    ("150 boxes, the chosen penalty", 150, 10_000, 60, 1.0),
)


class Multiple(kofn.Linear):
    """A linear learner whose members have a multiple of the chosen penalty."""

    factor = 1.0

    def settled(self, fitted: Any, problem: Any) -> kofn.Linear:
        l2 = self.factor * fitted.history[-1 if fitted.best is None else fitted.best]["l2"]
        return kofn.Linear(l2=l2, penalties=(l2,))


def run(seed: int, boxes: int, factor: float | None) -> dict[str, Any]:
    """One election: for each question the truth and both ends of its intervals."""
    votes = election(seed, boxes=boxes)
    learner = kofn.Linear() if factor is None else Multiple()
    if factor is not None:
        learner.factor = factor
    start = time.monotonic()
    model = kofn.LLPClassifier(learner, label="count", bootstrap=MEMBERS, random_state=seed)
    model.fit(votes.X, votes.votes, groups=votes.box, copies=votes.voters)
    seconds = time.monotonic() - start
    ages = votes.X["age"].to_numpy()
    of_age = votes.truth(ages)
    order = list(dict.fromkeys(ages))  # in which groups are answered
    low, high = model.predict_interval(votes.X, LEVEL, groups=ages, copies=votes.voters, mean=True)
    # The percentile interval of the same members, for comparison.
    each = np.stack([[_mean(p, ages == age, votes.voters) for age in order] for p in _members(model, votes.X)])
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    percentile = expit(np.quantile(logit(each), tails, axis=0))
    row_low, row_high = model.predict_interval(votes.X, LEVEL)
    box_low, box_high = model.predict_interval(votes.X, LEVEL, groups=votes.box, copies=votes.voters)
    expected = np.bincount(votes.box, weights=votes.probability * votes.voters)
    first = ~votes.X.duplicated().to_numpy()  # each kind of voter once
    held = (row_low <= votes.probability) & (votes.probability <= row_high)
    return {
        "age": {
            age: {"truth": of_age[age], "low": low[i], "high": high[i], "percentile": percentile[:, i].tolist()}
            for i, age in enumerate(order)
        },
        "rows_held": float(held[first].mean()),
        "rows_width": float((row_high - row_low)[first].mean()),
        "boxes_held": float(((box_low <= expected) & (expected <= box_high)).mean()),
        "boxes_width": float((box_high - box_low).mean()),
        "steps": len(model.history_),
        "chosen": model.history_[-1 if model.best_step_ is None else model.best_step_ - 1].get("l2"),
        "seconds": seconds,
    }


def _members(model: Any, frame: Any) -> Iterator[Array]:
    yield from torch.sigmoid(model._member_logits(frame)).numpy()


def _mean(p: Array, there: Any, voters: Any) -> float:
    return float(np.average(p[there], weights=voters[there]))


def _rounded(value: Any) -> Any:
    """Floats to six digits, so that a record of hundreds of elections stays small."""
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage and width over elections and groups; errors are those of a mean over independent elections."""
    groups = [run["age"] for run in runs]
    held = np.array([[g["low"] <= g["truth"] <= g["high"] for g in (group[a] for a in AGES)] for group in groups])
    width = np.array([[group[a]["high"] - group[a]["low"] for a in AGES] for group in groups])
    percentile = np.array(
        [
            [group[a]["percentile"][0] <= group[a]["truth"] <= group[a]["percentile"][1] for a in AGES]
            for group in groups
        ]
    )
    return {
        "elections": len(runs),
        "coverage": float(held.mean()),
        "standard_error": float(held.mean(1).std(ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else None,
        "by_age": dict(zip(AGES, held.mean(0).tolist(), strict=True)),
        "width": float(width.mean()),
        "percentile_coverage": float(percentile.mean()),
        "rows_coverage": float(np.mean([run["rows_held"] for run in runs])),
        "rows_width": float(np.mean([run["rows_width"] for run in runs])),
        "boxes_coverage": float(np.mean([run["boxes_held"] for run in runs])),
        "boxes_width": float(np.mean([run["boxes_width"] for run in runs])),
        "seconds": float(np.median([run["seconds"] for run in runs])),
    }


def tables(found: dict[str, dict[str, Any]]) -> tuple[Rows, Rows]:
    """Of all questions, and of each age group."""
    overall: Rows = [
        ["election", "number", "P(vote given age)", "width", "percentile interval", "P(vote) of a voter", "boxes"]
    ]
    by_age: Rows = [["election", *AGES]]
    for name, one in found.items():
        error = "" if one["standard_error"] is None else f" ± {100 * one['standard_error']:.1f}"
        shares = [f"{100 * one[key]:.1f} %" for key in ("percentile_coverage", "rows_coverage", "boxes_coverage")]
        overall.append(
            [name, str(one["elections"]), f"{100 * one['coverage']:.1f}{error} %", f"{one['width']:.3f}", *shares]
        )
        by_age.append([name, *(f"{100 * share:.1f} %" for share in one["by_age"].values())])
    return overall, by_age


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench/intervals"), help="where .jsonl, .md and .json go")
    parser.add_argument("--only", default="", help="run only the designs whose name contains this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", kofn.estimators.FitWarning)
    lines = options.out.with_suffix(".jsonl")
    done = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    there = {(entry["design"], entry["seed"]) for entry in done}
    for number in range(max(elections for *_, elections, _ in DESIGNS)):  # so that a part has all designs
        for name, boxes, first, elections, factor in DESIGNS:
            seed = first + number
            if number >= elections or options.only not in name or (name, seed) in there:
                continue
            entry = {"design": name, "seed": seed, "commit": commit()} | _rounded(run(seed, boxes, factor))
            done.append(entry)
            with lines.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")
    found = {}
    for name, *_ in DESIGNS:
        runs = [entry for entry in done if entry["design"] == name]
        if runs:
            found[name] = summary(runs)
    overall, by_age = tables(found)
    text = "\n\n".join(
        [
            f"{machine()}.",
            f"How often {100 * LEVEL:g} % intervals of `predict_interval` hold the truth; bootstrap={MEMBERS}. Boxes: "
            f"the interval of the expected count. ± is a standard error.",
            markdown(overall),
            "The same of P(vote given age), by age group:",
            markdown(by_age),
        ]
    )
    for target in write(options.out, {"machine": machine(), "level": LEVEL, "designs": found}, text + "\n"):
        print(f"wrote {target}")


if __name__ == "__main__":
    main()
