"""The main job on data that come with scikit-learn: three kinds of counts, their baselines, and full supervision."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kofn import metrics
from kofn.datasets import BundledTask, load_digits_task
from kofn.estimators import FitWarning, LLPClassifier, MILClassifier, PUClassifier
from kofn.learners import Learner
from kofn.report import Comparison, Method, Report, report_of

TITLE = "Learning from counts: handwritten digits"
TASKS = ("proportions", "at least one", "unlabelled")
METHODS: dict[str, tuple[tuple[Any, Any, Any], Any]] = {  # name of a method: its loss in each task, and its role
    "count loss": (("count", "count", "count"), "count"),
    "proportion loss": (("proportion", None, None), "baseline"),
    "mutual contamination": (("mutual-contamination", None, None), "baseline"),
    "instance max": ((None, "max", None), "baseline"),
    "mean pooling": ((None, "mean", None), "baseline"),
    "nnPU": ((None, None, "nnpu"), "baseline"),
    "uPU": ((None, None, "upu"), "baseline"),
    "every instance labelled": (("", "", ""), "bound"),
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """One fit: what it is called, which task of `TASKS`, the model and its AUC on held-out instances."""

    method: str
    task: int
    model: Any
    auc: float

    @property
    def role(self) -> str:
        """The role of the method: "count" for the count loss, "baseline", or "bound" for full supervision."""
        role: str = METHODS[self.method][1]
        return role


def fits(learner: str | Learner = "network", *, seed: int = 0) -> Iterator[Callable[[], Fitted]]:
    """All fits of the demo, to be called one after the other, the count losses first.

    Every method has the same learner; nothing is tuned.

    Args:
        learner: as the estimators take it.
        seed: random seed of the tasks and of the fits.
    """
    for method, (losses, _) in METHODS.items():
        for task, loss in enumerate(losses):
            if loss is not None:
                yield _fit(method, task, loss, {"learner": learner, "random_state": seed}, seed)


def _fit(method: str, task: int, loss: Any, options: dict[str, Any], seed: int) -> Callable[[], Fitted]:
    def run() -> Fitted:
        data = _data(task, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # a baseline may be as bad as it is
            model = _model(data, task, loss, options)
        return Fitted(method, task, model, metrics.auc(data.test.labels, model.decision_function(data.test.instances)))

    return run


def _model(data: BundledTask[Any], task: int, loss: Any, options: dict[str, Any]) -> Any:
    if not loss:  # every label known: bags of one instance
        return LLPClassifier(**options).fit(*_distinct(data))
    if task == 2:
        return PUClassifier(mixture=0.5, loss=loss, **options).fit(*data.task.rows(data.train.instances))
    x, y, groups = data.task.rows(data.train.instances)
    kind = LLPClassifier if task == 0 else MILClassifier
    return kind(loss=loss, **options).fit(x, y, groups=groups)


def _distinct(data: BundledTask[Any]) -> tuple[Any, Any]:
    """The instances that the task knows of, each once, with their true labels."""
    index = data.task.bags.index if hasattr(data.task, "bags") else data.task.index
    known = index.unique()
    return data.train.instances[known].numpy(), data.train.labels[known].numpy()


def _data(task: int, seed: int) -> BundledTask[Any]:
    names: tuple[Literal["llp"], Literal["mil"], Literal["pu"]] = ("llp", "mil", "pu")
    data: BundledTask[Any] = load_digits_task(names[task], seed=seed)
    return data


def compare(done: list[Fitted]) -> Comparison:
    """The AUC of each method on each task."""
    found = {(fit.method, fit.task): fit.auc for fit in done}
    methods = [
        Method(name, [found.get((name, task)) for task in range(len(TASKS))], role)
        for name, (_, role) in METHODS.items()
    ]
    return Comparison(TASKS, methods, "AUC on held-out digits")


def report(done: list[Fitted], *, seed: int = 0) -> Report:
    """One page: the comparison, then what the count loss learned in each task."""
    llp, mil, pu = (fit.model for fit in done if fit.role == "count")
    parts = []
    data = _data(0, seed)
    x, y, groups = data.task.rows(data.train.instances)
    truth = data.train.labels[data.task.bags.index]
    parts.append(
        report_of(llp, x, y, _names(groups), truth=truth, images=_images(x),
                  title="Digits 5 to 9, from the proportion of each bag", facts=[("Looked at", "the training bags")])
    )  # fmt: skip
    data = _data(1, seed)
    held: Any = data.test_task
    x, y, groups = held.rows(data.test.instances)
    parts.append(
        report_of(mil, x, y, _names(groups), truth=held.instance_labels[held.bags.index], images=_images(x),
                  title="Which digit is the 9? From bags with and without one", facts=[("Looked at", "held-out bags")])
    )  # fmt: skip
    data = _data(2, seed)
    x, y = data.task.rows(data.train.instances)
    parts.append(
        report_of(pu, x, y, truth=data.task.truth, title="Ones among sevens, from a few labelled ones",
                  facts=[("Looked at", "the training rows")])
    )  # fmt: skip
    return Report(TITLE, comparison=compare(done), parts=parts)


def _names(groups: Any) -> Any:
    return np.array([str(bag + 1) for bag in groups])


def _images(x: Any) -> Any:
    return x.reshape(-1, 8, 8)
