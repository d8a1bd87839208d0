"""What is said of fits to random columns, of which nothing can be learned: verdicts and warnings.

``python -m bench.random_columns`` runs the fits that bench/random_columns.jsonl does not have and writes
bench/random_columns.md. ``--learners linear --again`` runs those of a learner anew; ``--seeds 5`` runs few.

A fit has 30 to 200 bags and 2 to 11 columns of normal noise. Bags have 8 rows, or 3 to 19; all bags have the same
expected share of positives, or each its own. The true classes of rows are drawn without a look at the columns, and
labels follow from them: counts; intervals, of which those of counts below four are 0 to 3; labelled positives, half of
them, among unlabelled rows, with the mixture given; whether a bag has at least one positive. The latter goes with the
size of the bag, which is no column: MIL is run a second time with labels that do not, half of them positive, and one
row in ten beside the first in a positive bag. Verdicts get the true classes of the rows, too.

"Good" is wrong of skill and of rows. Of calibration it may be right: a model that says the same of all rows is
calibrated if it says the right thing.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import kofn
from bench.record import commit, machine, markdown
from kofn._io.atomic_write import atomic_write
from kofn.estimators import FitWarning
from kofn.estimators._judged import judge
from kofn.estimators._trust import verdicts

Array = NDArray[Any]
KINDS = {
    "counts": "LLP counts",
    "interval": "LLP intervals",
    "mil": "MIL",
    "mil-by-size": "MIL, larger bags more often positive",
    "pu": "PU",
}
SEEDS = {"trees": 100, "linear": 100, "network": 20}
MARKS = ("good", "doubtful", "bad", "unknown")
ABOUT = ("skill", "calibration", "rows")
USELESS = "no better than a model without features"
LABELLED = 0.5  # of the positives, for PU
OTHERS = 0.1  # of the rows of a positive bag, beside one that is positive, for MIL


class Task(NamedTuple):
    """Columns of noise, what an estimator is given of rows, and the truth."""

    estimator: Any
    X: Array
    y: Array
    groups: Array | None
    truth: Array


def task(kind: str, learner: str, seed: int) -> Task:
    """A task of a kind; its bags depend on the seed alone."""
    rng = np.random.default_rng(seed)
    bags = int(rng.integers(30, 201))
    sizes = rng.integers(3, 20, bags) if seed % 2 else np.full(bags, 8)
    groups = np.repeat(np.arange(bags), sizes)
    X = rng.normal(size=(len(groups), int(rng.integers(2, 12))))
    # About half of the bags have a positive if each row is one with probability 1 - 0.5^(1 / size).
    share = 1 - 0.5 ** (1 / sizes.mean()) if kind == "mil-by-size" else 0.3
    shares = rng.uniform(0.2, 1.8, bags) * share if seed % 3 else np.full(bags, share)
    truth = (rng.random(len(groups)) < shares[groups]).astype(int)
    if kind == "mil":
        first = np.append(True, groups[1:] != groups[:-1])
        truth = ((rng.random(bags) < 0.5)[groups] & (first | (rng.random(len(groups)) < OTHERS))).astype(int)
    counts = np.bincount(groups, truth, minlength=bags).astype(int)
    if kind == "counts":
        return Task(kofn.LLPClassifier(learner, label="count", random_state=seed), X, counts[groups], groups, truth)
    if kind == "interval":
        few = counts < 4
        low, high = np.where(few, 0, counts), np.where(few, np.minimum(3, sizes), counts)
        estimator = kofn.LLPClassifier(learner, label="interval", random_state=seed)
        return Task(estimator, X, np.column_stack([low, high])[groups], groups, truth)
    if kind.startswith("mil"):
        return Task(kofn.MILClassifier(learner, random_state=seed), X, (counts > 0).astype(int)[groups], groups, truth)
    labelled = (truth == 1) & (rng.random(len(truth)) < LABELLED)
    mixture = float(truth[~labelled].mean())
    return Task(kofn.PUClassifier(learner, mixture=mixture, random_state=seed), X, labelled.astype(int), None, truth)


def one(kind: str, learner: str, seed: int) -> dict[str, Any]:
    """A fit: the marks of its verdicts, and whether it warned."""
    estimator, X, y, groups, truth = task(kind, learner, seed)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator.fit(X, y, **({} if groups is None else {"groups": groups}))
    seconds = time.perf_counter() - start
    judged = judge(estimator, X, groups)
    found = verdicts(estimator, judged, y[judged.rows], truth[judged.rows])
    return {
        "kind": kind,
        "learner": learner,
        "seed": seed,
        "source": judged.source,
        "warned": any(issubclass(each.category, FitWarning) and USELESS in str(each.message) for each in said),
        "validation_loss": estimator.validation_loss_,
        "baselines": estimator.baselines_,
        "seconds": round(seconds, 2),
        "marks": {each.about: each.mark for each in found},
        "commit": commit(),
    }


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """How often each mark was given, and how many fits warned."""
    marks = {about: Counter(each["marks"][about] for each in records) for about in ABOUT}
    return {
        "fits": len(records),
        "warned": sum(each["warned"] for each in records),
        "marks": {about: {mark: marks[about][mark] for mark in MARKS} for about in ABOUT},
    }


def by_task(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The summary of each learner and kind that has fits."""
    found = {}
    for learner, kind in product(SEEDS, KINDS):
        of = [each for each in records if (each["learner"], each["kind"]) == (learner, kind)]
        if of:
            found[f"{learner}, {kind}"] = summary(of)
    return found


def page(records: list[dict[str, Any]]) -> str:
    rows = [["learner", "labels", "fits", *ABOUT, "warned"]]
    for name, found in by_task(records).items():
        learner, kind = name.split(", ")
        marks = [" / ".join(str(found["marks"][about][mark]) for mark in MARKS) for about in ABOUT]
        rows.append([learner, KINDS[kind], str(found["fits"]), *marks, str(found["warned"])])
    text = (
        f"Fits to columns of normal noise, which tell nothing. Of each verdict how many fits have the mark "
        f"{' / '.join(MARKS)}; true classes of the rows are given. Skill and rows should never be good; calibration "
        f'may be. The last column is the number of fits that warned of being "{USELESS}".'
    )
    good = [
        f"- {about}: {each['learner']}, {KINDS[each['kind']]}, seed {each['seed']}"
        for about in ("skill", "rows")
        for each in records
        if each["marks"][about] == "good"
    ]
    listed = "\n".join(["Good, and wrong:" if good else "None was good.", "", *good]).strip()
    return f"{machine()}.\n\n{text}\n\n{markdown(rows)}\n\n{listed}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", nargs="+", choices=SEEDS, default=list(SEEDS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, help="at most so many")
    parser.add_argument("--again", action="store_true", help="run fits anew that have a record")
    parser.add_argument("--out", type=Path, default=Path("bench/random_columns"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    kept = asked.out.with_suffix(".jsonl")
    records = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    if asked.again:
        chosen = set(product(asked.learners, asked.kinds))
        records = [each for each in records if (each["learner"], each["kind"]) not in chosen]
    there = {(each["learner"], each["kind"], each["seed"]) for each in records}
    for learner, kind in product(asked.learners, asked.kinds):
        seeds = range(min(SEEDS[learner], asked.seeds or SEEDS[learner]))
        records += [one(kind, learner, seed) for seed in seeds if (learner, kind, seed) not in there]
        for path, text in (
            (kept, "".join(json.dumps(each) + "\n" for each in records)),
            (asked.out.with_suffix(".md"), page(records)),
        ):
            with atomic_write(path) as part:
                part.write_text(text)
        print(learner, kind, by_task(records)[f"{learner}, {kind}"], flush=True)


if __name__ == "__main__":
    main()
