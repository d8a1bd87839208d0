"""The share of positives among unlabelled rows: kofn's estimate beside best-bin estimation and those of pulearn.

``python -m bench.mixture`` runs the cells that bench/mixture.jsonl does not have, each written at once, then writes
bench/mixture.md. It needs the data in $KOFN_DATA and pulearn (``pip install -e .[bench]``).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d

import kofn
from bench.record import commit, machine, markdown
from kofn import datasets
from kofn._io.atomic_write import atomic_write
from kofn.estimators._label_scores import label_scores

Array = NDArray[Any]
LABELED, UNLABELED, TEST = 1000, 6000, 1000
MIXTURES = (0.2, 0.5, 0.8)
SEEDS = (0, 1, 2)  # settings were chosen with seeds from 100 on
ASKED = ("adult", "magic", "mnist 1 or 7", "mnist odd or even")
FRESH = ("adult, turned", "magic, turned", "mnist 4 or 9", "mnist 0-4 or 5-9")  # tasks that nothing was chosen on


class Cell(NamedTuple):
    """A task, the true mixture and a seed."""

    task: str
    mixture: float
    seed: int


def cells() -> Iterator[Cell]:
    """The cells that were asked for, then some of tasks that nothing was chosen on."""
    yield from (Cell(*each) for each in product(ASKED, MIXTURES, SEEDS))
    yield from (Cell(*each) for each in product(FRESH, MIXTURES, SEEDS[:1]))


@cache
def mnist() -> tuple[Tensor, Tensor]:
    """All digits as 14 x 14 pixels."""
    found = datasets.load_mnist()
    images = torch.cat([part.instances for part in found]).float().reshape(-1, 1, 28, 28) / 255
    return avg_pool2d(images, 2).flatten(1), torch.cat([part.labels for part in found])


@cache
def labelled(task: str) -> tuple[Tensor, Tensor]:
    """Rows and whether they are positive."""
    if not task.startswith("mnist"):
        parts = datasets.load_adult() if task.startswith("adult") else (datasets.load_magic(),)
        x, y = torch.cat([part.instances for part in parts]), torch.cat([part.labels for part in parts])
        return x.float(), 1 - y if task.endswith("turned") else y
    x, digits = mnist()
    if task.endswith("odd or even"):
        return x, digits % 2
    if task.endswith("0-4 or 5-9"):
        return x, (digits < 5).long()
    first, second = (int(word) for word in task.split() if word.isdigit())
    kept = (digits == first) | (digits == second)
    return x[kept], (digits[kept] == first).long()


def best_bin(positive: Array, unlabeled: Array, *, delta: float = 0.1, gamma: float = 0.01) -> float:
    """Best-bin estimation (Garg et al. 2021, Algorithm 1).

    With the shares q_P(c), q_U(c) of scores at least c, the mixture is at most q_U(c) / q_P(c) for every c. The
    estimate is this ratio at the c that minimises its upper confidence bound,

        q_U(c) / q_P(c) + (1 + gamma) / q_P(c) * (sqrt(log(4 / delta) / (2 n_U)) + sqrt(log(4 / delta) / (2 n_P))).
    """
    cuts = np.concatenate([positive, unlabeled])
    shares = [1 - np.searchsorted(np.sort(scores), cuts) / len(scores) for scores in (positive, unlabeled)]
    there = shares[0] > 0
    q_p, q_u = (share[there] for share in shares)
    width = sum(np.sqrt(np.log(4 / delta) / (2 * len(scores))) for scores in (positive, unlabeled))
    best = np.argmin((q_u + (1 + gamma) * width) / q_p)
    return min(float(q_u[best] / q_p[best]), 1.0)


def of_pulearn(cell: Cell) -> dict[str, Any]:
    """Its estimators of the prior that learn, with its default learner or LightGBM, and its Elkan-Noto classifier."""
    from lightgbm import LGBMClassifier
    from pulearn import ElkanotoPuClassifier
    from pulearn.priors import HistogramMatchPriorEstimator, ScarEMPriorEstimator
    from sklearn.linear_model import LogisticRegression

    x, labels = scaled(cell)
    linear = LogisticRegression(max_iter=300)
    trees = LGBMClassifier(n_estimators=100, num_leaves=15, verbose=-1, n_jobs=1)
    tried = {
        "pulearn histogram": HistogramMatchPriorEstimator(linear),
        "pulearn histogram, trees": HistogramMatchPriorEstimator(trees),
        "pulearn SCAR-EM": ScarEMPriorEstimator(linear),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        priors = {name: each.estimate(x, labels).pi for name, each in tried.items()}
        # It divides probabilities by the chance c of a positive to be labelled; the prior is the share labelled / c.
        priors["pulearn Elkan-Noto, trees"] = (
            labels.mean() / ElkanotoPuClassifier(trees, random_state=cell.seed).fit(x, labels).c
        )
    return {"estimates": {name: among_unlabeled(prior, labels) for name, prior in priors.items()}}


def scaled(cell: Cell) -> tuple[Array, Array]:
    """Standardised rows, and 1 where they are labelled, else 0."""
    from sklearn.preprocessing import StandardScaler

    drawn = draw(cell)
    return StandardScaler().fit_transform(drawn.instances), drawn.known.long().numpy()


def among_unlabeled(prior: float, labels: Array) -> float:
    """The mixture that a prior of all rows gives, 0 to 1."""
    return min(max(float((prior - labels.mean()) / (1 - labels.mean())), 0.0), 1.0)


class Drawn(NamedTuple):
    """The rows of a cell: labelled ones first, then unlabelled ones, and others for the test."""

    instances: Array
    known: Tensor
    truth: float
    test: tuple[Array, Tensor]


def draw(cell: Cell) -> Drawn:
    """The unlabelled are in random order, and the last ones are for the test: what is to be found is the others'."""
    x, y = labelled(cell.task)
    task = datasets.make_pu_split(
        y,
        positives=LABELED,
        unlabeled=UNLABELED + TEST,
        mixture=cell.mixture,
        generator=torch.Generator().manual_seed(cell.seed),
    )
    rows, test = torch.cat([task.positive, task.unlabeled[:UNLABELED]]), task.unlabeled[UNLABELED:]
    truth = float(y[rows[LABELED:]].double().mean())
    return Drawn(x[rows].numpy(), torch.arange(len(rows)) < LABELED, truth, (x[test].numpy(), y[test]))


def of_kofn(cell: Cell) -> dict[str, Any]:
    """kofn's estimate and best-bin's, and how good PU learning is with ours and with the true mixture."""
    drawn = draw(cell)
    labels = np.where(drawn.known, 1, -1)
    clock = time.monotonic()
    ours = kofn.PUClassifier(random_state=cell.seed).fit(drawn.instances, labels)
    seconds = time.monotonic() - clock
    given = kofn.PUClassifier(mixture=drawn.truth, random_state=cell.seed).fit(drawn.instances, labels)
    # The same seed gives the scores that the estimate was made from.
    scores, _ = label_scores(drawn.instances, drawn.known, categories={}, seed=ours.seed_)
    x, y = drawn.test
    return {
        "truth": drawn.truth,
        "estimates": {"kofn": float(ours.mixture_), "best bin": best_bin(scores[:LABELED], scores[LABELED:])},
        "interval": list(ours.mixture_interval_ or ()),
        "accuracy": {
            name: kofn.metrics.accuracy(y, model.decision_function(x))
            for name, model in {"estimated": ours, "true": given}.items()
        },
        "seconds": seconds,
    }


RUNS: dict[str, Callable[[Cell], dict[str, Any]]] = {
    "kofn": of_kofn,
    "pulearn": of_pulearn,
}


def gathered(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is known of each cell, those without an estimate of ours left out; several lines tell of one."""
    found: dict[Cell, dict[str, Any]] = {}
    for line in lines:
        cell = Cell(line["task"], line["mixture"], line["seed"])
        before = found.get(cell, {"estimates": {}})
        found[cell] = before | line | {"estimates": before["estimates"] | line["estimates"]}
    return [found[cell] for cell in cells() if "interval" in found.get(cell, {})]


def summary(records: list[dict[str, Any]]) -> str:
    """Two tables of some cells: errors of the estimates, and a line for each cell."""
    names = list(dict.fromkeys(name for each in records for name in each["estimates"]))
    table = [["estimate of the mixture", "cells", "mean absolute error", "bias", "largest error"]]
    for name in names:
        e = np.array([each["estimates"][name] - each["truth"] for each in records if name in each["estimates"]])
        table.append([name, str(len(e)), f"{abs(e).mean():.3f}", f"{e.mean():+.3f}", f"{abs(e).max():.3f}"])
    held = [each["interval"][0] <= each["truth"] <= each["interval"][1] for each in records]
    width = np.mean([each["interval"][1] - each["interval"][0] for each in records])
    lost = [each["accuracy"]["true"] - each["accuracy"]["estimated"] for each in records]
    accuracies = [np.mean([each["accuracy"][name] for each in records]) for name in ("estimated", "true")]
    lines = [["task", "true mixture", "seed", "kofn, 90 % interval", *names[1:], "accuracy", "with the true mixture"]]
    for each in records:
        low, high = each["interval"]
        mine = f"{each['estimates']['kofn']:.3f}, {low:.3f} to {high:.3f}"
        others = [f"{each['estimates'][name]:.3f}" if name in each["estimates"] else "not run" for name in names[1:]]
        shares = [f"{each['accuracy'][name]:.3f}" for name in ("estimated", "true")]
        lines.append([each["task"], f"{each['truth']:.3f}", str(each["seed"]), mine, *others, *shares])
    return (
        f"{markdown(table)}\n\nThe 90 % interval holds the truth in {sum(held)} of {len(held)} cells; its mean width "
        f"is {width:.3f}. Accuracy of PU learning on {TEST:,} fresh rows: {accuracies[0]:.4f} with the estimate, "
        f"{accuracies[1]:.4f} with the true mixture; the largest loss in a cell is {max(lost):.3f}.\n\n"
        f"{markdown(lines)}"
    )


def page(records: list[dict[str, Any]]) -> str:
    """The tables of the tasks that were asked for, and of the others."""
    parts = [
        f"{machine()}.\n\n{LABELED:,} labelled positives, {UNLABELED:,} unlabelled rows. Best-bin estimation has the "
        "out-of-fold scores that kofn's estimate is made from; the estimators of pulearn fit their own. The number of "
        "trees, their out-of-fold use and the sigmoid were chosen on other draws of the first four tasks (seeds 100 to "
        "104); nothing was chosen on the others."
    ]
    titles: dict[str, Callable[[str], bool]] = {
        "The tasks": lambda task: task in ASKED,
        "Tasks that nothing was chosen on": lambda task: task in FRESH,
    }
    for title, belongs in titles.items():
        some = [each for each in records if belongs(each["task"])]
        if some:
            parts.append(f"### {title}\n\n{summary(some)}")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench/mixture"), help="without the suffix")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    log = out.with_suffix(".jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = {(Cell(each["task"], each["mixture"], each["seed"]), each["run"]) for each in lines}
    runs = [(cell, name) for tasks in (ASKED, FRESH) for name in RUNS for cell in cells() if cell.task in tasks]
    for cell, name in runs:
        if (cell, name) in done:
            continue
        lines.append(cell._asdict() | {"run": name, "commit": commit()} | RUNS[name](cell))
        with log.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        print(lines[-1], flush=True)
    with atomic_write(out.with_suffix(".md")) as part:
        part.write_text(page(gathered(lines)))


if __name__ == "__main__":
    main()
