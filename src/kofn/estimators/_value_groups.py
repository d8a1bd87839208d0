"""Groups of values that a reader would name: the values of a column themselves, or round bins of its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW = 12  # different numbers that are groups of their own
BINS = 8  # about so many, of more
MISSING = "(missing)"


def value_groups(column: Any, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """The group of each value, and the names of the groups in their order, the last of them for missing values.

    A group is a value of text, or of numbers of which there are few; of many numbers it is a bin of round ends, the
    first and the last of them open. Numbers come in their order, text sorted. A group may have no value.

    Args:
        column: (n,) a Series or an array.
        name: of the column.

    Raises:
        ValueError: values that are neither numbers nor text.

    Examples:
        >>> import pandas as pd
        >>> codes, names = value_groups(pd.Series(["red", None, "blue", "red"]), "colour")
        >>> codes.tolist(), names
        ([1, 2, 0, 1], ['blue', 'red', '(missing)'])
    """
    numbers = _as_numbers(column)
    if numbers is not None:
        missing = np.isnan(numbers)
        codes, names = _of_numbers(numbers)
    else:
        missing = column.isna().to_numpy() if hasattr(column, "isna") else np.array([one is None for one in column])
        values = [value for value, none in zip(column, missing, strict=True) if not none]
        odd = next((value for value in values if not isinstance(value, (str, bool, np.bool_, int, np.integer))), None)
        if odd is not None:
            raise ValueError(
                f"column {name!r} must be numbers or text to group rows by; it has a {type(odd).__name__}. Write it as "
                f"text."
            )
        texts = list(map(str, values))
        names = sorted(set(texts))
        places = {text: place for place, text in enumerate(names)}
        codes = np.zeros(len(missing), dtype=np.int64)
        codes[~missing] = [places[text] for text in texts]
    codes[missing] = len(names)
    return codes, [*names, MISSING]


def _as_numbers(column: Any) -> NDArray[np.float64] | None:
    """A column of numbers as float64, NaN where missing; None if it is something else."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column, dtype=np.float64) if column.dtype.kind in "iuf" else None
    from pandas.api import types

    if types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype):
        found: NDArray[np.float64] = column.to_numpy(np.float64, na_value=np.nan)
        return found
    return None


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
