"""What is shown of a bag when a reader opens it, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Value = float | int | str | None
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowTable:
    """Some rows of the data, as they stand in the table.

    Attributes:
        columns: names of the columns, the most important first.
        values: of each column a number, text or None (missing) for each row.
        thumbnails: of columns of image files, by name, what each row has: the data address of a small picture, or why
            there is none.
        note: which columns and pictures were left out, if any.
        files: of the same columns the name of each row's file.
        numbers: of each row its number in the data, from 1; empty if that is not known.
    """

    columns: Sequence[str] = ()
    values: Sequence[Sequence[Value]] = ()
    thumbnails: Mapping[str, Sequence[str]] = field(default_factory=dict)
    note: str = ""
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    numbers: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class BagDetail:
    """One bag: the distribution of its count, and its rows.

    Attributes:
        bag: its place in the report's `bags`.
        distribution: (n + 1,) P(S = k).
        rows: (r,) places of its rows in the table of rows, the most probable first; those shown may be fewer.
        probability: (r,) P(positive).
        posterior: (r,) P(positive | label of the bag); None without a label.
        copies: (r,) how many times each row is in the bag.
        truth: (r,) whether each row is positive; None if that is not known.
        label: what the bag's label says, in words.
        bounds: the lowest and the highest count that the label allows; None if it names no bounds.
    """

    bag: int
    distribution: Numbers
    rows: NDArray[np.int64]
    probability: Numbers
    posterior: Numbers | None = None
    copies: NDArray[np.int64] | None = None
    truth: NDArray[np.bool_] | None = None
    label: str = ""
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class BagDetails:
    """The bags of a report that can be opened.

    Attributes:
        bags: in any order.
        table: their rows; chapters of one page may share it.
        given: what a posterior knows, in words, such as "label".
        positive: what a positive instance is called.

    Examples:
        >>> import numpy as np
        >>> from kofn.report import BagDetail, BagDetails, BagTable, Report, RowTable, render
        >>> one = np.ones(1, dtype=np.int64)
        >>> bags = BagTable(["ward 7"], 2 * one, np.array([1.0]), 0 * one, 2 * one, np.array([0.75]))
        >>> detail = BagDetail(0, np.array([0.25, 0.5, 0.25]), np.array([0, 1]), np.array([0.5, 0.5]))
        >>> details = BagDetails([detail], RowTable(["age"], [[41, 29]]))
        >>> "#bag-ward%207" in render(Report("One bag", task="llp", bags=bags, details=details))
        True
    """

    bags: Sequence[BagDetail]
    table: RowTable
    given: str = "label"
    positive: str = "positive"
