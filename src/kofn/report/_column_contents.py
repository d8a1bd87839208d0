"""What a report says of the columns of a table and of rows whose truth is known, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Importance:
    """How much worse labels are predicted when a column is shuffled.

    Attributes:
        columns: names, the most important first.
        drops: (columns,) how much the score fell.
        low, high: (columns,) the ends of its 90 % confidence interval, over bags or rows; infinite if one bag is all.
        measure: what the score is, in words.
        note: on how much it was measured, and what was left out.
        seen: whether the model was fitted to the rows that it was measured on.

    Examples:
        >>> import numpy as np
        >>> from kofn.report import Importance, Report, render
        >>> drop, low, high = np.array([0.3]), np.array([0.2]), np.array([0.4])
        >>> importance = Importance(["age"], drop, low, high, "log-likelihood of a bag's label", "On 20 bags.")
        >>> "On 20 bags." in render(Report("Columns", task="llp", importance=importance))
        True
    """

    columns: Sequence[str]
    drops: Numbers
    low: Numbers
    high: Numbers
    measure: str
    note: str = ""
    seen: bool = False


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """The mean probability of rows by the value of one column.

    Attributes:
        column: its name.
        groups: names of its values, or of bins of them.
        rows: (g,) how many rows each group has.
        probability: (g,) mean P(positive).
        low, high: (g,) the ends of its 90 % confidence interval; None without a bootstrap.
        observed: (g,) the share that is truly positive; None if that is not known.
        note: what was left out.

    Examples:
        >>> import numpy as np
        >>> from kofn.report import ColumnEffect, Report, render
        >>> effect = ColumnEffect("age", ["below 30", "30 and above"], np.array([40, 60]), np.array([0.2, 0.7]))
        >>> "30 and above" in render(Report("Columns", task="llp", effects=[effect]))
        True
    """

    column: str
    groups: Sequence[str]
    rows: NDArray[np.int64]
    probability: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    observed: Numbers | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class RowCurves:
    """Probabilities of rows against their true classes.

    Attributes:
        rows: how many there are.
        share: of them that is positive.
        expected, observed, members: (k,) of groups of rows of like probability the mean probability, the share that is
            positive, and how many rows.
        taken: (f,) fractions of the rows, those with the highest probabilities.
        lift: (f,) how many times as many positives they hold as a random part of that size.
        recall: (f,) the share of all positives that they hold.
        precision: (f,) the share of them that is positive.
    """

    rows: int
    share: float
    expected: Numbers
    observed: Numbers
    members: NDArray[np.int64]
    taken: Numbers
    lift: Numbers
    recall: Numbers
    precision: Numbers
