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
from bench.record import machine, markdown
from kofn import datasets
from kofn._atomic_write import atomic_write
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


def of_pulearn(x: Array, labels: Array) -> dict[str, float]:
    """Its two estimators of the prior that learn: with its default, a logistic regression, and one with LightGBM."""
    from lightgbm import LGBMClassifier
    from pulearn.priors import HistogramMatchPriorEstimator, ScarEMPriorEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    x = StandardScaler().fit_transform(x)
    linear = LogisticRegression(max_iter=300)
    trees = LGBMClassifier(n_estimators=100, num_leaves=15, verbose=-1, n_jobs=1)
    tried = {
        "pulearn histogram": HistogramMatchPriorEstimator(linear),
        "pulearn histogram, trees": HistogramMatchPriorEstimator(trees),
        "pulearn SCAR-EM": ScarEMPriorEstimator(linear),
    }
    share = labels.mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: float((each.estimate(x, labels).pi - share) / (1 - share)) for name, each in tried.items()}


def run(cell: Cell) -> dict[str, Any]:
    """All estimates of one cell, and how good PU learning is with ours and with the true mixture."""
    x, y = labelled(cell.task)
    generator = torch.Generator().manual_seed(cell.seed)
    task = datasets.make_pu_split(
        y, positives=LABELED, unlabeled=UNLABELED + TEST, mixture=cell.mixture, generator=generator
    )
    # The unlabelled are in random order: the last ones are for the test. Their own share of positives is what is
    # estimated.
    rows, test = torch.cat([task.positive, task.unlabeled[:UNLABELED]]), task.unlabeled[UNLABELED:]
    known = torch.arange(len(rows)) < LABELED
    instances, labels = x[rows].numpy(), np.where(known, 1, -1)
    truth = float(y[rows[LABELED:]].double().mean())
    clock = time.monotonic()
    ours = kofn.PUClassifier(random_state=cell.seed).fit(instances, labels)
    seconds = time.monotonic() - clock
    given = kofn.PUClassifier(mixture=truth, random_state=cell.seed).fit(instances, labels)
    # The same seed gives the scores that the estimate was made from.
    scores, _ = label_scores(instances, known, categories={}, seed=ours.seed_)
    estimates = {"kofn": float(ours.mixture_), "best bin": best_bin(scores[:LABELED], scores[LABELED:])}
    accuracy = {
        name: kofn.metrics.accuracy(y[test], model.decision_function(x[test].numpy()))
        for name, model in {"estimated": ours, "true": given}.items()
    }
    return {
        **cell._asdict(),
        "truth": truth,
        "estimates": estimates | of_pulearn(instances, known.long().numpy()),
        "interval": list(ours.mixture_interval_ or ()),
        "accuracy": accuracy,
        "seconds": seconds,
    }


def summary(records: list[dict[str, Any]]) -> str:
    """Two tables of some cells: errors of the estimates, and a line for each cell."""
    names = list(records[0]["estimates"])
    errors = {name: np.array([each["estimates"][name] - each["truth"] for each in records]) for name in names}
    table = [["estimate of the mixture", "mean absolute error", "bias", "largest error"]]
    table += [[name, f"{abs(e).mean():.3f}", f"{e.mean():+.3f}", f"{abs(e).max():.3f}"] for name, e in errors.items()]
    held = [each["interval"][0] <= each["truth"] <= each["interval"][1] for each in records]
    width = np.mean([each["interval"][1] - each["interval"][0] for each in records])
    lost = [each["accuracy"]["true"] - each["accuracy"]["estimated"] for each in records]
    accuracies = [np.mean([each["accuracy"][name] for each in records]) for name in ("estimated", "true")]
    lines = [["task", "true mixture", "seed", "kofn, 90 % interval", *names[1:], "accuracy", "with the true mixture"]]
    for each in records:
        low, high = each["interval"]
        mine = f"{each['estimates']['kofn']:.3f}, {low:.3f} to {high:.3f}"
        others = [f"{each['estimates'][name]:.3f}" for name in names[1:]]
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
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = {Cell(each["task"], each["mixture"], each["seed"]) for each in records}
    for cell in [*(cell for cell in cells() if cell not in done), None]:
        if cell is not None:
            records.append(run(cell))
            with log.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
            print(records[-1], flush=True)
        with atomic_write(out.with_suffix(".md")) as part:
            part.write_text(page(records))


if __name__ == "__main__":
    main()
