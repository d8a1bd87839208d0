"""Groups of rows that a reader would name: the values of a column, or round bins of its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn.estimators._columns import NotNumbersError
from kofn.tables._table_file import TableFile

FEW = 12  # different numbers that are groups of their own
BINS = 8  # about so many, of more
MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Which group each row of a table is in.

    Attributes:
        of: (rows,) the number of each row's group.
        names: of each group its names, one for each column, in the order in which they are shown.
    """

    of: NDArray[np.int64]
    names: list[tuple[str, ...]]


def row_groups(file: TableFile, columns: Sequence[str]) -> RowGroups:
    """The groups of the rows of a table by one column, or by all combinations of several that occur.

    A group is a value of text, or of numbers of which there are few; of many numbers it is a bin of round ends, the
    first and the last of them open. Rows without a value are a group too. Numbers come in their order, text sorted.

    Raises:
        ValueError: a column that is missing, or is neither numbers nor text.
    """
    coded = [_coded(_read(file, name), name, file) for name in columns]
    together = np.zeros(len(coded[0][0]), dtype=np.int64)
    for codes, names in coded:
        together = together * len(names) + codes
    found, of = np.unique(together, return_inverse=True)
    names_of = []
    for group in found.tolist():
        parts = []
        for _, names in reversed(coded):
            group, place = divmod(group, len(names))
            parts.append(names[place])
        names_of.append(tuple(reversed(parts)))
    return RowGroups(of.astype(np.int64), names_of)


def _read(file: TableFile, name: str) -> Any:
    """One column, as numbers or as text."""
    pandas = _require.package("pandas", extra="train")
    text = file.text_columns([name])
    try:
        parts = [frame[name] for frame in file.chunks([name], text=text)]
    except NotNumbersError:  # deep in a CSV: what looked like numbers is text after all
        parts = [frame[name] for frame in file.chunks([name], text={name})]
    return pandas.concat(parts, ignore_index=True)


def _coded(column: Any, name: str, file: TableFile) -> tuple[NDArray[np.int64], list[str]]:
    """The number of each row's value, and the values' names in their order."""
    from pandas.api import types

    missing = column.isna().to_numpy()
    if types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype):
        codes, names = _of_numbers(column.to_numpy(np.float64, na_value=np.nan))
    else:
        values = column[~missing]
        odd = next((value for value in values if not isinstance(value, (str, bool, np.bool_, int, np.integer))), None)
        if odd is not None:
            raise ValueError(
                f"{file.path}: column {name!r} must be numbers or text to group rows by; it has a "
                f"{type(odd).__name__}. Write it as text."
            )
        texts = np.array(list(map(str, values)), dtype=object)
        names = sorted(set(texts.tolist()))
        places = {text: place for place, text in enumerate(names)}
        codes = np.zeros(len(column), dtype=np.int64)
        codes[~missing] = [places[text] for text in texts.tolist()]
    codes[missing] = len(names)
    return codes, [*names, MISSING]


def _of_numbers(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], list[str]]:
    """Numbers themselves if there are few of them, else bins; rows without a number are to be coded by the caller."""
    known = values[~np.isnan(values)]
    different = np.unique(known)
    if len(different) <= FEW or not np.isfinite(different).all():
        codes = np.searchsorted(different, values).clip(max=max(len(different) - 1, 0))
        return codes.astype(np.int64), [f"{value:.12g}" for value in different.tolist()]
    edges = bin_edges(known)
    codes = np.digitize(values, edges).astype(np.int64)
    return codes, bin_names(edges, whole=bool((known == np.round(known)).all()))


def bin_edges(values: NDArray[np.float64]) -> list[float]:
    """Round inner edges of about eight bins of numbers, of which the outermost hold what is rare.

    Examples:
        >>> bin_edges(np.arange(18.0, 95.0))
        [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    """
    low, high = np.quantile(values, [0.01, 0.99]).tolist()
    if high <= low:
        low, high = float(values.min()), float(values.max())
    rough = (high - low) / BINS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    if bool((values == np.round(values)).all()):
        step = max(step, 1.0)
    first, last = math.floor(low / step) + 1, math.ceil(high / step) - 1
    return [round(place * step, 12) for place in range(first, max(first, last) + 1)]


def bin_names(edges: Sequence[float], *, whole: bool) -> list[str]:
    """What the bins below, between and above some edges are called; a bin holds its lower edge.

    Examples:
        >>> bin_names([20.0, 30.0], whole=True), bin_names([0.5, 1.0], whole=False)
        (['below 20', '20 to 29', '30 and above'], ['below 0.5', '0.5 to below 1', '1 and above'])
    """
    between = []
    for low, high in pairwise(edges):
        if whole:
            between.append(f"{low:.12g}" if high - low == 1 else f"{low:.12g} to {high - 1:.12g}")
        else:
            between.append(f"{low:.12g} to below {high:.12g}")
    return [f"below {edges[0]:.12g}", *between, f"{edges[-1]:.12g} and above"]
