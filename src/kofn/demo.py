"""The main job on data that come with scikit-learn: three kinds of counts, their baselines, and full supervision.

Each task is a table for training and one for testing, in CSV, so that everything can be done again from the command
line. The count loss is learned by a network and by boosted trees; the baselines have the network.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kofn import _require, metrics
from kofn.datasets import BundledTask, load_digits_task, make_llp_bags, make_pu_split
from kofn.estimators import FitWarning, LLPClassifier, MILClassifier, PUClassifier
from kofn.report import Comparison, Method, Report, report_of
from kofn.tables import TableModel, fit_table, write_table

TITLE = "Learning from counts: handwritten digits"
TASKS = {  # name of the files: the task, and what the report says of it
    "llp": ("proportions", "Digits 5 to 9, from the proportion of each bag"),
    "mil": ("at least one", "Which digit is the 9? From bags with and without one"),
    "pu": ("unlabelled", "Ones among eights, from a few labelled ones"),
}
LOSSES: dict[str, tuple[dict[str, Any], Any]] = {  # name of a method: its loss in each task, and its role
    "count loss": (dict.fromkeys(TASKS, "count"), "count"),
    "proportion loss": ({"llp": "proportion"}, "baseline"),
    "mutual contamination": ({"llp": "mutual-contamination"}, "baseline"),
    "instance max": ({"mil": "max"}, "baseline"),
    "mean pooling": ({"mil": "mean"}, "baseline"),
    "nnPU": ({"pu": "nnpu"}, "baseline"),
    "uPU": ({"pu": "upu"}, "baseline"),
    "every instance labelled": (dict.fromkeys(TASKS), "bound"),
}
ESTIMATORS: dict[str, Any] = {"llp": LLPClassifier, "mil": MILClassifier, "pu": PUClassifier}


@dataclass(frozen=True, eq=False)
class Fitted:
    """One fit.

    Attributes:
        method: a key of `LOSSES`.
        learner: its name.
        task: a key of `TASKS`.
        auc: of held-out instances.
        model: what can be saved, of the count loss; else None.
    """

    method: str
    learner: str
    task: str
    auc: float
    model: TableModel | None = None


def write_tables(folder: Path, *, seed: int = 0) -> None:
    """Write TASK.csv and TASK-test.csv: 64 pixels, the bag, its label, and the truth, which is not learned from."""
    for task in TASKS:
        data = _data(task, seed)
        for name, columns in (("", _training_rows(data)), ("-test", _test_rows(task, data, seed))):
            x, y, truth, *bags = columns
            known = {"label": y, "truth": truth} | ({"bag": bags[0]} if bags else {})
            write_table(folder / f"{task}{name}.csv", [dict(x.items()) | known])


def _training_rows(data: BundledTask[Any]) -> tuple[Any, ...]:
    """Pixels, label and truth of each row, and its bag if there are bags."""
    task = data.task
    x, y, *bags = task.rows(data.train.instances)
    index = task.bags.index if hasattr(task, "bags") else task.index
    return _frame(data, x), y, data.train.labels[index].numpy(), *bags


def _frame(data: BundledTask[Any], x: Any) -> Any:
    """Rows of pixels with the names of their columns, as in the tables."""
    return _require.package("pandas", extra="train").DataFrame(x, columns=list(data.train.features))


def _test_rows(task: str, data: BundledTask[Any], seed: int) -> tuple[Any, ...]:
    """The same of held-out rows, in bags like those of training."""
    held, generator = data.test, torch.Generator().manual_seed(seed + 1)
    if task == "llp":
        bags: Any = make_llp_bags(held.labels, bag_size=16, generator=generator)
    elif task == "mil":
        bags = data.test_task
    else:
        bags = make_pu_split(held.labels, positives=15, unlabeled=40, mixture=0.5, generator=generator)
    return _training_rows(BundledTask(held, bags, held))


def fits(folder: Path, learners: Mapping[str, Any], *, seed: int = 0) -> Iterator[Callable[[], Fitted]]:
    """All fits of the demo, to be called one after the other, the count losses first.

    The first learner has all methods; the others have the count loss, and full supervision to compare it with. Nothing
    is tuned.

    Args:
        folder: with the tables that `write_tables` wrote.
        learners: by name.
        seed: random seed of the tasks and of the fits.
    """
    first = next(iter(learners))
    for method, (losses, role) in LOSSES.items():
        for name, learner in learners.items():
            if name == first or role != "baseline":
                for task, loss in losses.items():
                    yield _fit(method, name, task, loss, {"learner": learner, "random_state": seed}, folder, seed)


def _fit(
    method: str, learner: str, task: str, loss: Any, options: dict[str, Any], folder: Path, seed: int
) -> Callable[[], Fitted]:
    def run() -> Fitted:
        data, model = _data(task, seed), None
        if loss is not None and task == "pu":
            options["mixture"] = 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # a baseline may be as bad as it is
            if loss == "count":
                model = fit_table(
                    folder / f"{task}.csv",
                    ESTIMATORS[task](loss=loss, **options),
                    label="label",
                    bag=None if task == "pu" else "bag",
                    drop=["truth"],
                )
                estimator = model.estimator
            elif loss is None:  # every label known: bags of one instance
                x, _, truth, *_ = _training_rows(data)
                estimator = LLPClassifier(**options).fit(*_distinct(x, truth))
            else:
                x, y, _, *bags = _training_rows(data)
                estimator = ESTIMATORS[task](loss=loss, **options).fit(x, y, *bags)
        scores = estimator.decision_function(_frame(data, data.test.instances.numpy()))
        return Fitted(method, learner, task, metrics.auc(data.test.labels, scores), model)

    return run


def _distinct(x: Any, truth: Any) -> tuple[Any, Any]:
    """Each instance once, though it may be in several bags."""
    _, first = np.unique(x.to_numpy(), axis=0, return_index=True)
    return x.iloc[first], truth[first]


def _data(task: str, seed: int) -> BundledTask[Any]:
    name: Any = task
    data: BundledTask[Any] = load_digits_task(name, seed=seed)
    return data


def compare(done: list[Fitted]) -> Comparison:
    """The AUC of each method on each task."""
    found = {(fit.method, fit.learner, fit.task): fit.auc for fit in done}
    rows = dict.fromkeys((fit.method, fit.learner) for fit in done)
    methods = [
        Method(f"{method}, {learner}", [found.get((method, learner, task)) for task in TASKS], LOSSES[method][1])
        for method, learner in rows
    ]
    return Comparison([name for name, _ in TASKS.values()], methods, "AUC on held-out digits")


def report(done: list[Fitted], *, seed: int = 0) -> Report:
    """One page: the comparison, then what the count loss learned in each task, on held-out bags."""
    first = {fit.task: fit.model for fit in reversed(done) if fit.model is not None}  # of the first learner
    parts = []
    for task, (_, title) in TASKS.items():
        x, y, truth, *bags = _test_rows(task, _data(task, seed), seed)
        groups = np.array([str(bag + 1) for bag in bags[0]]) if bags else None
        model: Any = first[task]
        images = x.to_numpy().reshape(-1, 8, 8)
        facts = [("Looked at", "held-out digits")]
        parts.append(report_of(model.estimator, x, y, groups, truth=truth, images=images, title=title, facts=facts))
    return Report(TITLE, comparison=compare(done), parts=parts)


def next_commands(folder: Path, learners: Mapping[str, Any]) -> list[str]:
    """What to try with the tables and models of the demo."""
    first, *_, last = [*learners, *learners]
    said = [
        f"info llp-{last}",
        f"predict mil-{first} mil-test.csv --bag bag -o bags.csv",
        f"evaluate pu-{first} pu-test.csv --truth truth",
        f"report llp-{first} llp-test.csv --truth truth -o llp.html",
    ]
    return [_in_folder(folder, command.split()) for command in said]


def _in_folder(folder: Path, words: list[str]) -> str:
    """A command whose files are in the folder; as a shell wants it, where the folder has a space."""
    names = [str(folder / word) if "." in word or word.split("-")[0] in TASKS else word for word in words]
    return shlex.join(["kofn", *names])
