"""Instances with their true labels, from which tasks are made, and by which predictions are scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from kofn import _require
from kofn.datasets._draws import permutation


@dataclass(frozen=True, eq=False)
class Labelled:
    """Instances and the label of each.

    Attributes:
        instances: (n, ...) rows of a table, float32, or images (n, channels, height, width), uint8.
        labels: (n,) int64, positions in `classes`.
        features: names of the table's columns; empty for images.
        classes: names of the classes.

    Raises:
        TypeError: labels that are not int64, instances that are no tensor.
        ValueError: another number of labels than instances, of names than columns; a label without a class.

    Examples:
        >>> import torch
        >>> from kofn.datasets import Labelled
        >>> data = Labelled(torch.tensor([[0.5], [1.5], [2.5]]), torch.tensor([0, 1, 1]), ("length",), ("no", "yes"))
        >>> len(data), len(data.select(data.labels == 1))
        (3, 2)
    """

    instances: Tensor
    labels: Tensor
    features: tuple[str, ...]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        x, y = _require.tensor("instances", self.instances), _require.tensor("labels", self.labels)
        if y.dtype != torch.int64:
            raise TypeError(f"`labels` must be int64; got {y.dtype}. Convert with labels.long().")
        if y.dim() != 1 or x.dim() < 1 or len(x) != len(y):
            raise ValueError(
                f"`labels` must be one for each instance, shape (n,); got {tuple(y.shape)} for instances of "
                f"{tuple(x.shape)}."
            )
        if self.features and tuple(x.shape[1:]) != (len(self.features),):
            raise ValueError(
                f"`features` must name each of the columns; got {len(self.features)} for instances of {tuple(x.shape)}."
            )
        if len(y) and not 0 <= int(y.min()) <= int(y.max()) < len(self.classes):
            raise ValueError(
                f"`labels` must be positions in `classes`, 0 to {len(self.classes) - 1}; got {int(y.min())} to "
                f"{int(y.max())}."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, which: Tensor) -> Labelled:
        """Some of the instances: by position, in the order asked for, or by a bool mask of (n,)."""
        return replace(self, instances=self.instances[which], labels=self.labels[which])

    def split(self, fraction: float, *, generator: torch.Generator) -> tuple[Labelled, Labelled]:
        """Two parts at random, round(fraction n) instances and the others; both keep the order.

        Examples:
            >>> import torch
            >>> from kofn.datasets import Labelled
            >>> data = Labelled(torch.rand(10, 2), torch.zeros(10, dtype=torch.int64), (), ("only",))
            >>> [len(part) for part in data.split(0.8, generator=torch.Generator().manual_seed(0))]
            [8, 2]
        """
        _require.fraction("fraction", fraction)
        order = permutation(len(self), generator)
        first = round(fraction * len(self))
        return self.select(order[:first].sort().values), self.select(order[first:].sort().values)


class Splits(NamedTuple):
    """The publisher's training and test sets.

    Attributes:
        train: the training set.
        test: the test set.
    """

    train: Labelled
    test: Labelled


def standardise(train: Labelled, *others: Labelled) -> tuple[Labelled, ...]:
    """Shift and scale every column by the mean and standard deviation that it has in the first set.

        z = (x - mean_train) / sd_train, and 0 where sd_train = 0.

    A column that is constant in the first set carries no information, so it is 0 in all sets.

    Args:
        train: the set whose statistics are taken, floating point, at least one row.
        others: sets with the same columns.

    Returns:
        As many sets as were given, in their order and dtype.

    Raises:
        TypeError: instances that are not floating point.
        ValueError: no rows to take statistics from; another shape of rows.

    Examples:
        >>> import torch
        >>> from kofn.datasets import Labelled, standardise
        >>> label = torch.zeros(2, dtype=torch.int64)
        >>> data = Labelled(torch.tensor([[1.0, 7.0], [3.0, 7.0]]), label, ("length", "constant"), ("only",))
        >>> standardise(data)[0].instances.tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
    """
    for data in (train, *others):
        _require_columns_of(train.instances, data.instances)
    x = train.instances.double()
    mean, sd = x.mean(0), x.std(0, correction=0)
    return tuple(
        replace(data, instances=torch.where(sd == 0, 0.0, (data.instances.double() - mean) / sd).to(data.instances))
        for data in (train, *others)
    )


def _require_columns_of(train: Tensor, instances: Tensor) -> None:
    """Require floating point rows with the columns of the training rows, of which there is at least one."""
    if not instances.is_floating_point():
        raise TypeError(
            f"instances must be floating point; got {instances.dtype}. Images convert with x.float() / 255."
        )
    if not len(train):
        raise ValueError(
            "`train` must have at least one row to take the mean and the standard deviation from; got none."
        )
    if instances.shape[1:] != train.shape[1:]:
        raise ValueError(
            f"`others` must have the columns of `train`, {tuple(train.shape[1:])}; got {tuple(instances.shape[1:])}."
        )
