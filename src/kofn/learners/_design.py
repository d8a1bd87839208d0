"""From the columns of a table to numbers for a linear model or a network: standardised, nothing missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn._io.mapped import blocks

Floats = NDArray[np.float32]
BLOCK = 1 << 20  # numbers that are made float64 at a time


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
    def columns(self) -> int:
        """Number of columns of the table."""
        return len(self.numeric) + len(self.categories)

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return len(self.numeric) + len(self.missing) + sum(self.categories.values())

    @property
    def dense_width(self) -> int:
        """Number of columns that are not of categories; they come first."""
        return len(self.numeric) + len(self.missing)

    def features(self, instances: Floats) -> Features:
        """The result for the columns (n, columns) of a table, with categories by their places."""
        numbers = (instances[:, self.numeric] - self.mean) / self.scale
        absent = np.isnan(numbers[:, self.missing]).astype(np.float32)
        dense = np.concatenate([np.nan_to_num(numbers, copy=False), absent], axis=1)
        none = self.width - self.dense_width  # the place behind the last category
        places = np.full((len(instances), len(self.categories)), none, dtype=np.int32)
        first = 0
        for column, (source, number) in enumerate(self.categories.items()):
            codes = instances[:, source]
            known = (codes >= 0) & (codes < number)  # NaN is neither
            places[known, column] = codes[known].astype(np.int32) + first
            first += number
        return Features(torch.from_numpy(dense), torch.from_numpy(places), self.width)

    def by_places(self, instances: Floats) -> Floats:
        """Numbers, and the places of categories beside them, (n, dense_width + k) float32: rows of a `TableLinear`."""
        rows = self.features(instances)
        found: Floats = torch.cat([rows.numbers, rows.places.float()], 1).numpy()
        return found

    def __call__(self, instances: Floats) -> Floats:
        """Numbers (n, width) float32 of the columns of a table."""
        dense: Floats = self.features(instances).dense().numpy()
        return dense

    def takes(self, shape: tuple[int, ...], categories: Mapping[int, int]) -> bool:
        """Whether it was learned on instances of this shape, with so many categories by column."""
        return shape == (self.columns,) and dict(categories) == self.categories

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
        kinds = [(part.dtype.str[1:], part.ndim) for part in (numeric, missing, mean, scale)]
        if kinds != [("i8", 1), ("i8", 1), ("f4", 1), ("f4", 1)] or not len(numeric) == len(mean) == len(scale):
            raise ValueError(
                f"the model must have a mean and a scale for each of its {len(numeric)} columns of numbers."
            )
        design = cls(numeric, mean, scale, missing, categories)
        if numeric.tolist() != [c for c in range(design.columns) if c not in categories]:
            raise ValueError(
                f"the model must have {design.columns} columns, of numbers or categories; others are named."
            )
        if not (np.diff(missing) > 0).all() or not ((missing >= 0) & (missing < len(numeric))).all():
            raise ValueError("the model's columns with missing values must be columns of numbers.")
        return design


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of numbers of which many are 0 or 1: a row has at most one 1 for each column of categories.

    A table of a million rows and thousands of categories would not fit into memory with a column for each of them.

    Attributes:
        numbers: (n, d) float32, the first columns.
        places: (n, k) int32, the places of the ones among the other columns; `width - d` where there is none.
        width: number of columns.

    Examples:
        >>> import torch
        >>> rows = Features(torch.tensor([[0.5], [2.0]]), torch.tensor([[1], [2]], dtype=torch.int32), 3)
        >>> rows.dense().tolist(), rows.times(torch.tensor([2.0, 3.0, 4.0]).double()).tolist()
        ([[0.5, 0.0, 1.0], [2.0, 0.0, 0.0]], [5.0, 4.0])
    """

    numbers: Tensor
    places: Tensor
    width: int

    def __len__(self) -> int:
        return len(self.numbers)

    def dense(self) -> Tensor:
        """(n, width) float32."""
        n, d = self.numbers.shape
        found = torch.zeros(n, self.width + 1)  # the last column takes the places of no category
        found[:, :d] = self.numbers
        if self.places.shape[1]:
            found.scatter_(1, self.places.long() + d, 1.0)
        return found[:, : self.width].contiguous()

    def times(self, weights: Tensor) -> Tensor:
        """The product (n,) or (n, C) with weights (width,) or (width, C), in float64.

        A bag of a million rows adds up what is lost of each: in float32 its loss would be noise to an optimiser.
        """
        d = self.numbers.shape[1]
        found = torch.cat([block.double() @ weights[:d] for block in self._blocks(self.numbers)])
        of_categories = torch.cat([weights[d:], weights.new_zeros(1, *weights.shape[1:])])
        for places in self.places.unbind(1):
            found += of_categories[places]
        return found

    def transposed_times(self, slope: Tensor) -> Tensor:
        """The product (width,) or (width, C) of the transpose with (n,) or (n, C), in float64."""
        d, rest = self.numbers.shape[1], slope.shape[1:]
        found = slope.new_zeros(d, *rest)
        for block, part in zip(self._blocks(self.numbers), self._blocks(slope), strict=True):
            found += block.double().T @ part
        of_categories = slope.new_zeros(self.width - d + 1, *rest)
        for places in self.places.unbind(1):
            of_categories.index_add_(0, places, slope)
        return torch.cat([found, of_categories[:-1]])

    def _blocks(self, rows: Tensor) -> tuple[Tensor, ...]:
        return torch.split(rows, max(BLOCK // max(self.numbers.shape[1], 1), 1))


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """A quotient of sums, 0 of nothing."""
    return above / np.where(below > 0, below, 1.0)
