"""A table in memory: one matrix of float32, numbers of the bags, and the columns that are no features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn._io.mapped import new_array, release
from kofn.bags import Bags
from kofn.estimators._columns import Columns, EncodedTable, Floats, NotNumbersError
from kofn.estimators._row_labels import bags_of
from kofn.tables._table_file import TableError, TableFile
from kofn.tables._table_warning import TableWarning

Told: TypeAlias = Callable[[int, int], None] | None
Chunk = TypeVar("Chunk", Any, EncodedTable)


@dataclass(frozen=True, eq=False)
class RowMetadata:
    """Bags and labels of the rows of a table: what it has beside its features.

    Attributes:
        rows: how many there are.
        bag_of: (rows,) number of each row's bag, from 0 in the order of first appearance; None without bags.
        bag_names: names of the bags; where several columns make a bag, tuples.
        columns: other columns by name, as a Series; of a CSV as text.
        copies: (rows,) how many instances each row stands for; None for one each.
    """

    rows: int
    bag_of: NDArray[np.int64] | None
    bag_names: list[Any]
    columns: dict[str, Any]
    copies: NDArray[np.int64] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Instances of each bag."""
        sizes: NDArray[np.int64] = np.bincount(self._bags(), weights=self.copies, minlength=len(self.bag_names))
        return sizes.astype(np.int64)

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each bag."""
        # Bags are numbered in the order in which they appear: a new one has a larger number than all before it.
        largest = np.maximum.accumulate(self._bags())
        return np.flatnonzero(np.append(True, largest[1:] != largest[:-1])[: len(largest)])

    def bags(self, rows: Any = slice(None)) -> Bags:
        """The bags of some rows, by default of all, with each row as often as it has copies."""
        bag_of = None if self.bag_of is None else self.bag_of[rows]
        copies = None if self.copies is None else self.copies[rows]
        return bags_of(bag_of, len(np.arange(self.rows)[rows]), copies).repeated()

    def _bags(self) -> NDArray[np.int64]:
        if self.bag_of is None:
            raise ValueError("there are no bags: name their column with `bag`.")
        return self.bag_of


def read_metadata(
    file: TableFile,
    bag: str | None,
    others: Sequence[str] = (),
    *,
    copies: str | None = None,
    told: Told = None,
) -> RowMetadata:
    """Read the bags and other columns, and nothing else. Names of bags are kept once, not on every row.

    Args:
        file: the table.
        bag: the column of bags, or several with commas; None where there are none.
        others: further columns.
        copies: the column that says how many instances a row stands for.
        told: called with how many rows were read, of how many.

    Raises:
        ValueError: a row without a bag; bags that are lists; copies that are no integers, or none in a bag.
    """
    pandas = _require.package("pandas", extra="train")
    of_bag = [] if bag is None else file.parse_columns(bag)
    kept = list(dict.fromkeys([*others, *([] if copies is None else [copies])]))
    columns = list(dict.fromkeys([*of_bag, *kept])) or file.columns[:1]
    known: dict[Any, int] = {}
    numbers: list[NDArray[np.int64]] = []
    parts: dict[str, list[Any]] = {name: [] for name in kept}
    rows = 0
    for frame in counted(file.chunks(columns, text=columns), file.rows, told):
        if bag is not None:
            codes, names = _bag_codes(frame[of_bag], file, rows)
            numbers.append(np.array([known.setdefault(name, len(known)) for name in names], np.int64)[codes])
        for name in kept:
            parts[name].append(frame[name])
        rows += len(frame)
    together = {name: pandas.concat(chunks, ignore_index=True) for name, chunks in parts.items()}
    bag_of = None if bag is None else np.concatenate(numbers)
    if copies is None:
        return RowMetadata(rows, bag_of, list(known), together)
    found = RowMetadata(rows, bag_of, list(known), together, _whole_copies(together[copies], file, copies))
    if bag is not None and not found.sizes.all():
        name = found.bag_names[int(found.sizes.argmin())]
        raise ValueError(f"{file.path}, column {copies!r}: bag {name!r} has 0 copies of every row. Leave it out.")
    return found


def _bag_codes(frame: Any, file: TableFile, before: int) -> tuple[NDArray[np.int64], list[Any]]:
    """The number of each row's bag in this chunk, and the bags' names; `before` rows came before it."""
    pandas = _require.package("pandas", extra="train")
    missing = frame.isna().to_numpy()
    if missing.any():
        row = int(missing.any(1).argmax())
        raise ValueError(
            f"{file.path}, column {frame.columns[int(missing[row].argmax())]!r}: row {before + row + 1} has no bag. "
            f"Leave such rows out, or give each a bag of its own."
        )
    column = frame.iloc[:, 0]
    try:
        codes, names = pandas.factorize(column if frame.shape[1] == 1 else pandas.MultiIndex.from_frame(frame))
    except TypeError:  # lists and dicts have no hash
        raise ValueError(
            f"{file.path}, column {', '.join(map(repr, frame.columns))} must name bags by text or numbers; row "
            f"{before + 1} has a {type(column.iloc[0]).__name__}. Write it as text."
        ) from None
    return codes, names.tolist()


def _whole_copies(column: Any, file: TableFile, name: str) -> NDArray[np.int64]:
    """Copies as integers."""
    pandas = _require.package("pandas", extra="train")
    try:
        values = pandas.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    except TypeError:  # lists and the like
        values = np.full(len(column), np.nan)
    with np.errstate(invalid="ignore"):
        odd = np.flatnonzero(~((values >= 0) & (values < 2**31) & (values == np.round(values))))
    if len(odd):
        row = int(odd[0])
        raise ValueError(
            f"{file.path}, column {name!r}: row {row + 1} has {column.iloc[row]!r}, which must be the number of "
            f"instances that it stands for, an integer of at least 0. Correct it, or leave the row out."
        )
    return np.asarray(values.astype(np.int64))


def learn_columns(
    file: TableFile, features: Sequence[str], *, max_categories: int, rows: int | None = None, told: Told = None
) -> Columns:
    """Learn which columns of a table are numbers and which are categories, chunk by chunk."""
    text = file.text_columns(features)
    with naming_file(file):
        while True:
            columns = Columns(max_categories=max_categories)
            try:
                return columns.learn(counted(file.chunks(features, text=text), rows, told))
            except NotNumbersError as found:  # deep in a CSV: what looked like numbers is text after all
                text.add(found.column)


def feature_chunks(
    file: TableFile, columns: Columns, *, others: Sequence[str] = ()
) -> Iterator[tuple[EncodedTable, Any]]:
    """The features of a table, chunk by chunk: encoded, and as a DataFrame with the columns `others` beside them.

    Categories that were never seen in training are told of in a warning, once all is read.
    """
    file.require_columns(*columns.names, *others)
    names = list(dict.fromkeys([*columns.names, *others]))
    text = set(names) - set(columns.numeric)
    unseen: dict[str, tuple[int, str]] = {}
    with naming_file(file):
        for frame in file.chunks(names, text=text):
            values = columns(frame)
            for name, (rows, example) in columns.unseen(frame, values).items():
                before, first = unseen.get(name, (0, example))
                unseen[name] = (before + rows, first)
            yield EncodedTable(values, columns), frame
    if unseen:
        told = [f"column {name!r} in {rows:,} rows, such as {one!r}" for name, (rows, one) in unseen.items()]
        more = f"; and {len(told) - 5} more columns" if len(told) > 5 else ""
        warnings.warn(
            f"{file.path} has categories that were never seen in training, and are treated as missing: "
            f"{'; '.join(told[:5])}{more}.",
            TableWarning,
            stacklevel=3,
        )


def encode_table(
    file: TableFile, columns: Columns, *, rows: int, folder: Path | None = None, told: Told = None
) -> EncodedTable:
    """All columns of a table, (rows, columns): one array, filled chunk by chunk, in a file if it is large.

    Args:
        file: the table.
        columns: what they are.
        rows: how many there are.
        folder: where that file is made; by default where temporary files are.
        told: called with how many rows were read.
    """
    matrix: Floats = new_array((rows, len(columns.names)), np.float32, folder)
    at = 0
    for chunk in counted((chunk for chunk, _ in feature_chunks(file, columns)), rows, told):
        matrix[at : at + len(chunk)] = chunk.values
        at += len(chunk)
        release(matrix)
    return EncodedTable(matrix, columns)


def counted(chunks: Iterable[Chunk], rows: int | None, told: Told) -> Iterator[Chunk]:
    """The chunks of a table, telling after each how many of the rows have been read, if their number is known."""
    done = 0
    for chunk in chunks:
        yield chunk
        done += len(chunk)
        if told is not None and rows is not None:
            told(done, rows)


@contextmanager
def naming_file(file: TableFile) -> Iterator[None]:
    """Errors about a column name the file too."""
    try:
        yield
    except TableError:
        raise
    except ValueError as error:
        raise TableError(f"{file.path}: {error}") from error
