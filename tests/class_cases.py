"""A small task of several classes for learners, estimators and tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from kofn import Bags
from kofn.learners import CountObjective, Problem
from kofn.targets import ClassCounts


class ClassTask(NamedTuple):
    """Rows of three classes, the largest of three noisy columns, in bags.

    Attributes:
        X: (n, 4) of which the last column says nothing.
        truth: (n,) classes 0, 1, 2.
        groups: (n,) bags.
        counts: (n, 3) of each class in the row's bag.
    """

    X: NDArray[np.float64]
    truth: NDArray[np.int64]
    groups: NDArray[np.int64]
    counts: NDArray[np.float64]

    @property
    def shares(self) -> NDArray[np.float64]:
        shares: NDArray[np.float64] = self.counts / self.counts.sum(1, keepdims=True)
        return shares


def class_task(bags: int = 100, size: int = 6, *, classes: int = 3, seed: int = 0) -> ClassTask:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(bags * size, classes + 1))
    truth = np.argmax(2 * X[:, :classes] + 0.3 * rng.normal(size=(len(X), classes)), 1)
    counts = np.eye(classes)[truth].reshape(bags, size, classes).sum(1)
    return ClassTask(X, truth, np.arange(bags).repeat(size), counts.repeat(size, 0))


def class_problem(bags: int = 60, *, classes: int = 3, target: Any = ClassCounts) -> Problem:
    """Bags of one to five instances, of which the counts of classes are known."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, size=bags)
    where = Bags.from_sizes(sizes)
    x = rng.normal(size=(int(sizes.sum()), classes + 1)).astype(np.float32)
    counts = where.sum(torch.eye(classes, dtype=torch.int64)[torch.from_numpy(x[:, :classes].argmax(1))])
    return Problem(
        instances=x,
        bags=where,
        labels=counts,
        objective=CountObjective(target),
        rate=counts.double().sum(0) / counts.sum(),
        proportions=counts / where.sizes.unsqueeze(1),
    )
