"""From the columns of a table to numbers for a linear model or a network: standardised, nothing missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn._mapped import blocks

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Design:
    """Standardises numbers, fills in what is missing and says so, gives each category a column of 0 and 1.

    A missing number becomes the mean, and a further column says that it was missing if any was in training. A category
    that is missing or was not seen in training is none of the known ones. Numbers come first, then what is missing,
    then categories.

    Attributes:
        numeric: columns of numbers.
        mean: of these columns.
        scale: of these columns: the standard deviation, 1 where that is 0.
        missing: places in `numeric` of columns that had missing values.
        categories: number of categories by column.
    """

    numeric: NDArray[np.int64]
    mean: Floats
    scale: Floats
    missing: NDArray[np.int64]
    categories: Mapping[int, int]

    @classmethod
    def learn(cls, instances: Floats, categories: Mapping[int, int], weight: Tensor | None = None) -> Design:
        """The design of the columns (n, features) of a table, whose rows count `weight` times, (n,), or once.

        Examples:
            >>> import numpy as np
            >>> table = np.array([[20.0, 0.0], [40.0, 1.0], [np.nan, 0.0]], dtype=np.float32)
            >>> Design.learn(table, {1: 2})(table).tolist()
            [[-1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
        """
        numeric = np.array([c for c in range(instances.shape[1]) if c not in categories], dtype=np.int64)
        times = np.broadcast_to(1.0, len(instances)) if weight is None else weight.numpy()
        total, mean, squares = np.zeros((3, len(numeric)))  # weights, their mean, and the sum of squares around it
        gaps = np.zeros(len(numeric), dtype=bool)
        origin = np.zeros(len(numeric))
        for rows in blocks(instances):
            values, each = instances[rows][:, numeric].astype(np.float64), times[rows, None]
            absent = np.isnan(values)
            gaps |= (absent & (each > 0)).any(0)
            if rows.start == 0:  # from a value of its own a column of equal values differs by 0, not by rounding errors
                origin = np.nan_to_num(values[absent.argmin(0), np.arange(len(numeric))])
            known = np.where(absent, 0.0, each)
            values = np.where(absent, 0.0, values - origin)
            # Of two parts with weights a and b the mean moves by b / (a + b) of the distance d of their means, and the
            # squares around it grow by d^2 a b / (a + b) (Chan, Golub and LeVeque 1979).
            part = known.sum(0)
            part_mean = _ratio((known * values).sum(0), part)
            share = _ratio(part, total + part)
            distance = part_mean - mean
            squares += (known * (values - part_mean) ** 2).sum(0) + distance**2 * total * share
            mean, total = mean + distance * share, total + part
        mean = np.where(total > 0, mean + origin, 0.0)
        scale = np.sqrt(_ratio(squares, total))
        scale[scale == 0] = 1.0
        missing = np.flatnonzero(gaps)
        return cls(numeric, mean.astype(np.float32), scale.astype(np.float32), missing, dict(categories))

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return len(self.numeric) + len(self.missing) + sum(self.categories.values())

    def __call__(self, instances: Floats) -> Floats:
        """Numbers (n, width) float32 of the columns of a table."""
        numbers = (instances[:, self.numeric] - self.mean) / self.scale
        absent = np.isnan(numbers[:, self.missing]).astype(np.float32)
        codes = [(instances[:, [c]] == np.arange(k)).astype(np.float32) for c, k in self.categories.items()]
        return np.concatenate([np.nan_to_num(numbers, copy=False), absent, *codes], axis=1)

    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What a model file keeps of it: plain facts and tensors."""
        tensors = {
            "design.numeric": torch.from_numpy(self.numeric),
            "design.mean": torch.from_numpy(self.mean),
            "design.scale": torch.from_numpy(self.scale),
            "design.missing": torch.from_numpy(self.missing),
        }
        return {"categories": [[column, number] for column, number in self.categories.items()]}, tensors

    @classmethod
    def from_model(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Design:
        """The design that a model file kept."""
        numeric, mean, scale, missing = (
            tensors[f"design.{name}"].numpy() for name in ("numeric", "mean", "scale", "missing")
        )
        categories = dict(facts["categories"])
        # Each by itself: counts of which some are negative could add up to a width that is right.
        if not all(type(column) is int and type(k) is int and k >= 0 for column, k in categories.items()):
            raise ValueError("the model's columns must have numbers of categories, 0 or more.")
        if {part.ndim for part in (numeric, mean, scale, missing)} != {1} or not len(numeric) == len(mean) == len(
            scale
        ):
            raise ValueError(
                f"the model must have a mean and a scale for each of its {len(numeric)} columns of numbers."
            )
        return cls(numeric, mean, scale, missing, categories)


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """A quotient of sums, 0 of nothing."""
    return above / np.where(below > 0, below, 1.0)
