"""A table in memory: one matrix of float32, numbers of the bags, and the columns that are no features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn.estimators._columns import Columns, EncodedTable, Floats, NotNumbersError
from kofn.tables._table_file import TableFile


@dataclass(frozen=True, eq=False)
class RowMetadata:
    """Bags and labels of the rows of a table: what it has beside its features.

    Attributes:
        rows: how many there are.
        bag_of: (rows,) number of each row's bag, from 0 in the order of first appearance; None without bags.
        bag_names: names of the bags.
        columns: other columns by name, as a Series; of a CSV as text.
    """

    rows: int
    bag_of: NDArray[np.int64] | None
    bag_names: list[Any]
    columns: dict[str, Any]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each bag."""
        sizes: NDArray[np.int64] = np.bincount(self._bags(), minlength=len(self.bag_names))
        return sizes

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each bag."""
        first: NDArray[np.int64] = np.unique(self._bags(), return_index=True)[1]
        return first

    def _bags(self) -> NDArray[np.int64]:
        if self.bag_of is None:
            raise ValueError("there are no bags: name their column with --bag.")
        return self.bag_of


def read_metadata(file: TableFile, bag: str | None, others: Sequence[str] = ()) -> RowMetadata:
    """Read the bags and other columns, and nothing else. Names of bags are kept once, not on every row.

    Raises:
        ValueError: a row without a bag.
    """
    pandas = _require.package("pandas", extra="train")
    columns = list(dict.fromkeys(([] if bag is None else [bag]) + list(others)))
    known: dict[Any, int] = {}
    numbers: list[NDArray[np.int64]] = []
    parts: dict[str, list[Any]] = {name: [] for name in others}
    rows = 0
    for frame in file.chunks(columns or file.columns[:1], text=columns or file.columns[:1]):
        if bag is not None:
            codes, names = pandas.factorize(frame[bag])
            if (codes < 0).any():
                raise ValueError(
                    f"{file.path}, column {bag!r}: row {rows + int((codes < 0).argmax()) + 1} has no bag. Leave such "
                    f"rows out, or give each a bag of its own."
                )
            here = [known.setdefault(name, len(known)) for name in names.tolist()]
            numbers.append(np.array(here, np.int64)[codes])
        for name in others:
            parts[name].append(frame[name])
        rows += len(frame)
    together = {name: pandas.concat(chunks, ignore_index=True) for name, chunks in parts.items()}
    return RowMetadata(rows, None if bag is None else np.concatenate(numbers), list(known), together)


def learn_columns(file: TableFile, features: Sequence[str], *, max_categories: int) -> Columns:
    """Learn which columns of a table are numbers and which are categories, chunk by chunk."""
    text = file.text_columns(features)
    while True:
        columns = Columns(max_categories=max_categories)
        try:
            with naming_file(file):
                return columns.learn(file.chunks(features, text=text))
        except NotNumbersError as found:  # deep in a CSV: what looked like numbers is text after all
            text.add(found.column)


def encode_table(file: TableFile, columns: Columns, *, rows: int) -> EncodedTable:
    """All columns of a table, (rows, columns): one array, filled chunk by chunk."""
    matrix: Floats = np.empty((rows, len(columns.names)), np.float32)
    at = 0
    with naming_file(file):
        for frame in file.chunks(columns.names, text=list(columns.categories)):
            columns(frame, out=matrix[at : at + len(frame)])
            at += len(frame)
    return EncodedTable(matrix, columns)


@contextmanager
def naming_file(file: TableFile) -> Iterator[None]:
    """Errors about a column name the file too."""
    try:
        yield
    except NotNumbersError:
        raise
    except ValueError as error:
        if str(file.path) in str(error):
            raise
        raise ValueError(f"{file.path}: {error}") from error
