"""Weakly labelled tasks: bags with counts, bags with labels, positives among unlabelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from kofn.bags import Bags

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


@dataclass(frozen=True, eq=False)
class LLPTask:
    """Bags of which the number of positives is known.

    Attributes:
        bags: positions of rows; no row is in two bags.
        counts: (b,) int64 positives in each bag.
        proportions: (b,) float64, counts / sizes.
    """

    bags: Bags
    counts: Tensor
    proportions: Tensor

    def rows(self, instances: Tensor) -> tuple[Array, Array, Array]:
        """What an `LLPClassifier` is fitted with: X, y (the bag's proportion on each row) and groups.

        Examples:
            >>> from kofn.datasets import load_digits_task
            >>> data = load_digits_task("llp")
            >>> X, y, groups = data.task.rows(data.train.instances)
            >>> X.shape, y[:3].tolist(), groups[:3].tolist()
            ((1328, 64), [0.0625, 0.0625, 0.0625], [0, 0, 0])
        """
        return _rows(instances, self.bags, self.proportions)


@dataclass(frozen=True, eq=False)
class MILTask:
    """Bags of which it is known whether they have a positive instance.

    Attributes:
        bags: positions of rows; bags may share rows.
        bag_labels: (b,) int64, 1 where the bag has a positive instance.
        instance_labels: (n,) int64 true label of every row, in a bag or not: 1 for the target class. For scoring only.
    """

    bags: Bags
    bag_labels: Tensor
    instance_labels: Tensor

    def rows(self, instances: Tensor) -> tuple[Array, Array, Array]:
        """What a `MILClassifier` is fitted with: X, y (the bag's label on each row) and groups."""
        return _rows(instances, self.bags, self.bag_labels)


@dataclass(frozen=True, eq=False)
class PUTask:
    """Labelled positives and unlabelled rows.

    Attributes:
        positive: (p,) int64 positions of the labelled positives.
        unlabeled: (u,) int64 positions of the unlabelled rows.
        y: (p + u,) int64, 1 for each labelled positive, then -1 for each unlabelled row.
        truth: (p + u,) int64, the labels 0 and 1 of the same rows. For scoring only.
    """

    positive: Tensor
    unlabeled: Tensor
    y: Tensor
    truth: Tensor

    def rows(self, instances: Tensor) -> tuple[Array, Array]:
        """What a `PUClassifier` is fitted with: X and y."""
        return instances[self.index].numpy(), self.y.numpy()

    @property
    def index(self) -> Tensor:
        """Positions of all rows of the task, (p + u,), the labelled positives first."""
        return torch.cat([self.positive, self.unlabeled])


def _rows(instances: Tensor, bags: Bags, labels: Tensor) -> tuple[Array, Array, Array]:
    bag = bags.bag_of()
    return instances[bags.index].numpy(), labels[bag].numpy(), bag.numpy()
