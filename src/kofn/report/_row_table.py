"""The rows of a table that a page shows: which columns, in which order, how exact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.report._detail_contents import RowTable, Value
from kofn.report._pictures import MOST_PICTURES, PictureFiles
from kofn.report._plot import number

MOST_ROWS = 100  # of one bag
MOST_COLUMNS, FEWEST_COLUMNS = 40, 8
# A cell is nine bytes at most, so that the values of rows take 2 MB: a page of 4 MB can be sent, and opens in a second.
MOST_CELLS = 240_000


def row_table(
    columns: Sequence[tuple[str, Any]],
    rows: NDArray[np.int64],
    first: Sequence[int] = (),
    numbers: NDArray[np.int64] | None = None,
) -> RowTable:
    """Values of some rows, as many of the first columns as a page has room for.

    Args:
        columns: names and values, (n,) arrays, Series or `PictureFiles`, the most important first.
        rows: (r,) which rows.
        first: places among these rows, in the order in which they get pictures if there is no room for all.
        numbers: (n,) of all rows, their numbers in the data, from 1.
    """
    plain = [(name, column) for name, column in columns if not isinstance(column, PictureFiles)]
    pictures = {name: column for name, column in columns if isinstance(column, PictureFiles)}
    room = min(MOST_COLUMNS, max(FEWEST_COLUMNS, MOST_CELLS // max(len(rows), 1)))
    kept = plain[:room]
    notes = [] if len(kept) == len(plain) else [f"The {len(kept)} most important of {number(len(plain))} columns."]
    most = MOST_PICTURES // max(len(pictures), 1)
    if pictures and len(rows) > most:
        notes.append(f"Pictures of {number(most)} of the {number(len(rows))} rows on this page, the first of each bag.")
    with_picture = set(list(first or range(len(rows)))[:most])
    return RowTable(
        [name for name, _ in kept],
        [_values(column, rows) for _, column in kept],
        {name: _thumbnails(files, rows, with_picture) for name, files in pictures.items()},
        " ".join(notes),
        {name: [Path(files.paths[row]).name for row in rows.tolist()] for name, files in pictures.items()},
        () if numbers is None else numbers[rows].tolist(),
    )


def _thumbnails(files: PictureFiles, rows: NDArray[np.int64], chosen: set[int]) -> list[str]:
    """The picture of each row that has one, else its path, or that there is no such file."""
    return [files.thumbnail(row) if place in chosen else files.named(row) for place, row in enumerate(rows.tolist())]


def _values(column: Any, rows: NDArray[np.int64]) -> list[Value]:
    """What a column has in some rows, with None where that is missing."""
    if hasattr(column, "iloc"):
        part = column.iloc[rows].astype(object)
        return [_value(value) for value in part.where(part.notna(), None).tolist()]
    return [_value(value) for value in column[rows].tolist()]


def _value(value: Any) -> Value:
    """A number with seven digits, an integer, text or None."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return value
    return float(f"{value:.7g}") if np.isfinite(value) else str(value)
