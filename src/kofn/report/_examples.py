"""Bags shown as examples: which instances, their pictures or values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.report._contents import BagDistribution, BagTable, ExampleBag, Image, Instance
from kofn.report._pictures import PictureFiles
from kofn.report._plot import number

BAGS, INSTANCES, COLUMNS, WHOLE = 6, 8, 6, 40


def is_known(truth: NDArray[Any]) -> NDArray[np.bool_]:
    """Which true classes are neither NaN nor None."""
    return np.array([value is not None and value == value for value in truth.tolist()], dtype=bool)


def is_positive(truth: Any, classes: Any) -> NDArray[np.int64]:
    """Whether each instance is positive, 1 or 0, from labels 0 and 1 or the estimator's classes; -1 if NaN or None.

    Raises:
        ValueError: other labels.
    """
    given = np.asarray(truth)
    known = is_known(given)
    values, result = given[known], np.full(len(given), -1)
    if values.dtype.kind in "biuf" and np.isin(values, (0, 1)).all():
        result[known] = values == 1
        return result
    odd = values[~np.isin(values, classes)]
    if len(odd):
        raise ValueError(f"`truth` must be 0 and 1, or the classes {np.asarray(classes).tolist()}; got {odd[0]!r}.")
    result[known] = values == classes[1]
    return result


@dataclass(frozen=True, eq=False)
class BagExamples:
    """What is needed to show instances of bags."""

    columns: dict[str, Any]
    bags: Bags
    table: BagTable
    label_texts: list[str] | None
    probabilities: Tensor
    positive: NDArray[np.bool_] | None
    pixels: Image | PictureFiles | None

    def typical_bag(self, counts: Tensor | None) -> int | None:
        """A bag to show in full: of 2 to 40 instances, about half of them positive; None if there is none.

        Without known counts, by the expected ones.
        """
        counted = self.table.expected if counts is None else counts.numpy()
        distance = np.abs(counted / np.maximum(self.table.sizes, 1) - 0.5)
        distance[(self.table.sizes > WHOLE) | (self.table.sizes < 2)] = np.inf
        if not len(distance) or not np.isfinite(distance.min()):
            return None
        return int(distance.argmin())

    def most_positive(self) -> list[ExampleBag]:
        """The most positive instances of a few bags: of those that are positive, if labels say so, spread evenly."""
        there = np.arange(len(self.table)) if self.table.positive is None else np.flatnonzero(self.table.positive)
        if not len(there):
            return []
        steps = np.unique(np.linspace(0, len(there) - 1, min(BAGS, len(there))).round().astype(int))
        return [self.example(int(bag), INSTANCES) for bag in there[steps]]

    def example(self, bag: int, most: int, *, distribution: BagDistribution | None = None) -> ExampleBag:
        """The most positive instances of one bag."""
        rows = self.bags[bag]
        order = rows[self.probabilities[rows].argsort(descending=True, stable=True)][:most].tolist()
        label = "" if self.label_texts is None else self.label_texts[bag]
        shown = [self.instance(row) for row in order]
        return ExampleBag(self.table.names[bag], len(rows), shown, label, list(self.columns), distribution)

    def instance(self, row: int) -> Instance:
        """One row of the data."""
        return Instance(
            float(self.probabilities[row]),
            None if self.pixels is None else self.pixels[row],
            [_cell(column[row]) for column in self.columns.values()],
            None if self.positive is None else bool(self.positive[row]),
        )


def bag_examples(
    shown: list[tuple[str, Any]],
    bags: Bags,
    table: BagTable,
    label_texts: Any,
    logits: Tensor,
    positive: Any,
    pixels: Image | PictureFiles | None,
) -> BagExamples:
    """Get ready to show instances: by their images, or by the first six of some columns."""
    files = [column for _, column in shown if isinstance(column, PictureFiles)]
    if pixels is None and files:
        pixels = files[0]
    columns = {} if pixels is not None else {name: np.asarray(column) for name, column in shown[:COLUMNS]}
    return BagExamples(columns, bags, table, label_texts, torch.sigmoid(logits), positive, pixels)


def leading_columns(shown: Any, scores: NDArray[np.float64]) -> list[tuple[str, Any]]:
    """The columns of a table, (n,) each, with their names: those first that go most with the scores.

    Args:
        shown: (n, columns) a DataFrame or an array; of anything else there are no columns.
        scores: (n,).
    """
    if np.ndim(shown) != 2:
        return []
    names = getattr(shown, "columns", range(np.shape(shown)[1]))
    titles = [str(name) if isinstance(name, str) else f"x{name}" for name in names]
    table = hasattr(shown, "iloc")
    columns = [shown.iloc[:, place] if table else np.asarray(shown)[:, place] for place in range(len(titles))]
    strength = np.array([_strength(np.asarray(column), scores) for column in columns])
    return [(titles[place], columns[place]) for place in np.argsort(-strength, kind="stable").tolist()]


def _strength(column: Any, scores: NDArray[np.float64]) -> float:
    """How much a column goes with the scores, from 0 to 1: correlation of numbers, correlation ratio of a few words."""
    spread = float(scores.std())
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError):
        _, code = np.unique(column.astype(str), return_inverse=True)
        if code.max() >= 50 or spread == 0:  # so many words are names, which tell all and explain nothing
            return 0.0
        means = np.bincount(code, scores) / np.bincount(code)
        return float(means[code].std()) / spread
    if not np.isfinite(values).all() or values.std() * spread == 0:
        return 0.0
    return abs(float(np.mean((values - values.mean()) * (scores - scores.mean())))) / (float(values.std()) * spread)


def _cell(value: Any) -> str:
    return number(float(value)) if isinstance(value, int | float | np.number) else str(value)
