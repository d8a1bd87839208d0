"""Groups of rows that a reader would name: the values of a column, or round bins of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn.estimators._columns import NotNumbersError
from kofn.estimators._value_groups import value_groups
from kofn.tables._reading import naming_file
from kofn.tables._table_file import TableFile


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
    read = [(_read(file, name), name) for name in columns]
    with naming_file(file):
        coded = [value_groups(*one) for one in read]
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
