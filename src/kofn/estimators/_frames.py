"""Data frames of any library that narwhals knows: pandas, polars, pyarrow, Modin, cuDF."""

from __future__ import annotations

from collections import Counter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe, is_into_series

Frame = nw.DataFrame[Any]
Series = nw.Series[Any]


def is_frame(values: Any) -> bool:
    """Whether these are columns with names.

    Raises:
        ValueError: they are, but were not computed yet.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> is_frame(pd.DataFrame({"a": [1]})), is_frame(np.ones((1, 1)))
        (True, False)
    """
    if is_into_dataframe(values):
        return True
    if isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame):
        raise ValueError("a data frame must be in memory; this one is lazy. Pass X.collect().")
    return False


def column_names(frame: Any) -> list[Any]:
    """The names of the columns of a data frame, as its library has them: of pandas any objects."""
    return list(getattr(frame, "column_names", frame.columns))  # those of pyarrow; its `columns` are their values


def frame_of(native: Any, *, name: str = "X") -> Frame:
    """A data frame whose columns are named by text: 3 becomes "3", and of a MultiIndex a tuple as Python writes it.

    Args:
        native: the data frame.
        name: what to call it in an error.

    Raises:
        ValueError: two columns of one name.
    """
    names = [str(column) for column in column_names(native)]
    twice = next((column for column, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"`{name}` must have columns of different names; two are named {twice!r}. Rename one of them.")
    if hasattr(native, "set_axis") and names != column_names(native):  # of pandas and its kin
        native = native.set_axis(names, axis=1)
    return nw.from_native(native, eager_only=True)


def column_of(values: Any) -> Any:
    """A column of a data frame as an array, NaN where a number is missing; anything else as it is.

    Examples:
        >>> import pandas as pd
        >>> column_of(pd.Series([0.5, None], dtype="Float32"))
        array([0.5, nan], dtype=float32)
    """
    if not is_into_series(values):
        return values
    series = nw.from_native(values, series_only=True)
    found = series.to_numpy()
    if found.dtype == object and series.dtype.is_numeric():
        found = found.astype(np.float32 if series.dtype == nw.Float32 else np.float64)
    return found
