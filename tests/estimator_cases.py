"""Small tasks that a linear network learns in a second, and how to train on them quickly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import kofn
from kofn.learners import Learner

Array = np.ndarray[Any, np.dtype[Any]]

#: So quick that a fit may well be no better than one without features.
UNLEARNT = pytest.mark.filterwarnings("ignore:this fit is no better than a model without features")


def quick(**options: Any) -> dict[str, Any]:
    """Parameters of an estimator with a small network, trained shortly; options are of either."""
    chosen: dict[str, Any] = {"epochs": 4, "lr": 0.1, "batch_size": 16, "random_state": 0} | options
    if "module" not in options:
        chosen = {"hidden": ()} | chosen
    of_network = {name: chosen.pop(name) for name in kofn.Network().get_params() if name in chosen}
    return {"learner": kofn.Network(**of_network)} | chosen


def learns(**options: Any) -> dict[str, Any]:
    """The same, trained long enough."""
    return quick(**({"epochs": 12} | options))


def short_network(module: Any = "mlp", **options: Any) -> kofn.Network:
    """A network trained shortly with nothing held out, so that no warning comes of it."""
    short: dict[str, Any] = {"epochs": 1, "validation_fraction": 0.0, "patience": None}
    if module == "mlp":
        short["hidden"] = ()
    return kofn.Network(module, **(short | options))


#: Learners with options that are quick on a small table.
LEARNERS: dict[str, Callable[[], Learner]] = {
    "trees": lambda: kofn.Trees(max_rounds=60, patience=10, learning_rate=0.2, leaves=4),
    "linear": lambda: kofn.Linear(penalties=(0.1, 0.01, 0.001)),
    "network": lambda: kofn.Network(hidden=(8,), epochs=40, lr=0.03, batch_size=16),
    "em": lambda: kofn.EM(LogisticRegression(), rounds=10),
}


class Task(NamedTuple):
    X: Array  # (n, 2), of which the first column decides
    truth: Array  # (n,) 0 or 1
    groups: Array  # (n,)
    counts: Array  # (bags,) positives

    def repeated(self, values: Array) -> Array:
        """Labels of the bags on each of their rows."""
        return values[self.groups]

    @property
    def y(self) -> Array:
        """Proportions on rows."""
        return self.repeated(self.counts / np.bincount(self.groups))

    @property
    def any(self) -> Array:
        """Whether there is a positive in the bag, on rows."""
        return self.repeated((self.counts > 0).astype(np.int64))


def bags_task(*, bags: int = 48, size: int = 4, threshold: float = 0.0, seed: int = 0) -> Task:
    rows = np.random.default_rng(seed).normal(size=(bags * size, 2))
    truth = (rows[:, 0] > threshold).astype(np.int64)
    return Task(rows, truth, np.repeat(np.arange(bags), size), truth.reshape(bags, size).sum(1))


def pu_task(*, rows: int = 400, seed: int = 0) -> tuple[Array, Array, Array]:
    """Features, truth 1 or -1, and labels of which half of the positives' are known."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 2))
    features[:, 0] += np.where(rng.random(rows) < 0.5, 1.5, -1.5)
    truth = np.where(features[:, 0] > 0, 1, -1)
    return features, truth, np.where((truth == 1) & (rng.random(rows) < 0.5), 1, -1)
