"""The columns of a table: which are numbers, which are categories, and their codes; learned chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from kofn._io.mapped import take
from kofn.estimators._fact_shapes import require_shape
from kofn.estimators._frames import Frame, Series, frame_of, is_frame

Floats: TypeAlias = NDArray[np.float32]
MAX_CATEGORIES = 256


class NotNumbersError(ValueError):
    """A column that was numbers so far, and has something else."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f"column {column!r} must be numbers, as it was in training; it has text. Correct it, or leave it empty "
            f"where the number is not known."
        )
        self.column = column


class Columns:
    """The columns of a table as float32: numbers as they are, NaN where missing, and the codes of categories.

    A category that is missing, or was not seen in training, is NaN. Whatever a learner needs beyond that (trees
    nothing, a network standardised numbers and a column for each category) it makes itself.

    Args:
        max_categories: a column with more is refused: it is likely an identifier.

    Attributes:
        names: of the columns, in their order.
        categories: the known categories by name of a column that has any.

    Examples:
        >>> import pandas as pd
        >>> from kofn.tables import Columns
        >>> frame = pd.DataFrame({"age": [20.0, 40.0, None], "sex": ["f", "m", "f"]})
        >>> columns = Columns().learn(frame)
        >>> columns.numeric, columns.categories
        (['age'], {'sex': ['f', 'm']})
        >>> columns(frame).tolist()
        [[20.0, 0.0], [40.0, 1.0], [nan, 0.0]]
    """

    def __init__(self, *, max_categories: int = MAX_CATEGORIES) -> None:
        self.max_categories = max_categories
        self.names: list[str] = []
        self.categories: dict[str, list[str]] = {}

    def learn(self, frames: Any) -> Columns:
        """Learn the columns of a data frame, or of an iterable of such: the chunks of a table.

        Raises:
            ValueError: two columns of one name; a column of dates or other objects, one without any value, with
                infinite ones, or with too many categories; no column; no row.
        """
        self.names, self.categories = [], {}
        found: dict[str, set[str]] = {}
        some = np.zeros(0, dtype=bool)  # of the columns of numbers: those that have a value
        for number, chunk in enumerate([frames] if is_frame(frames) else frames):
            frame = frame_of(chunk)
            if number == 0:
                self.names = frame.columns
                found = {name: set() for name, numeric in _are_numeric(frame).items() if not numeric}
                self.categories = {name: [] for name in found}  # so that the others are known to be numbers
                some = np.zeros(len(self.names) - len(found), dtype=bool)
            some |= ~np.isnan(self._numbers(frame)).all(0)
            for name, known in found.items():
                column = frame[name]
                some_of_each = column if column.dtype == nw.Object else column.unique()  # objects may have no hash
                known.update(text for text in _texts(some_of_each) if isinstance(text, str))
                self._require_few_categories(name, known)
        if not self.names:
            raise ValueError("there are no rows to learn from.")
        valued = {name for name, known in found.items() if known}
        valued |= {name for name, has in zip(self.numeric, some, strict=True) if has}
        empty = next((name for name in self.names if name not in valued), None)
        if empty is not None:
            raise ValueError(f"column {empty!r} has no value. Leave it out.")
        self.categories = {name: sorted(known) for name, known in found.items()}
        return self

    @property
    def numeric(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for name in self.names if name not in self.categories]

    @property
    def category_counts(self) -> dict[int, int]:
        """The number of categories by place of a column."""
        return {place: len(self.categories[n]) for place, n in enumerate(self.names) if n in self.categories}

    def __call__(self, frame: Any) -> Floats:
        """A chunk as numbers, (rows, columns) float32.

        Raises:
            ValueError: a column that is missing; text or infinity in a column of numbers.
        """
        frame = frame_of(frame)
        there = set(frame.columns)
        absent = [name for name in self.names if name not in there]
        if absent:
            raise ValueError(f"column {absent[0]!r} is missing, which the model was trained with.")
        result: Floats = np.empty((len(frame), len(self.names)), np.float32)
        result[:, [place for place, name in enumerate(self.names) if name not in self.categories]] = self._numbers(
            frame
        )
        for place, name in enumerate(self.names):
            if name in self.categories:
                codes = {text: float(code) for code, text in enumerate(self.categories[name])}
                result[:, place] = [codes.get(text, np.nan) for text in _texts(frame[name])]
        return result

    def unseen(self, frame: Any, encoded: Floats) -> dict[str, tuple[int, str]]:
        """Of columns with categories that were never seen in training: in how many rows, and the first of them.

        Args:
            frame: a chunk.
            encoded: the same as numbers.

        Examples:
            >>> import pandas as pd
            >>> from kofn.tables import Columns
            >>> columns = Columns().learn(pd.DataFrame({"sex": ["f", "m"]}))
            >>> new = pd.DataFrame({"sex": ["x", "m", None]})
            >>> columns.unseen(new, columns(new))
            {'sex': (1, 'x')}
        """
        frame, found = frame_of(frame), {}
        for place, name in enumerate(self.names):
            if name in self.categories:
                rows = np.flatnonzero(np.isnan(encoded[:, place]) & ~frame[name].is_null().to_numpy())
                if len(rows):
                    found[name] = (len(rows), str(frame[name][int(rows[0])]))
        return found

    def to_facts(self) -> dict[str, Any]:
        """All that was learned, as plain JSON."""
        return {"max_categories": self.max_categories, "names": self.names, "categories": self.categories}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Columns:
        """The columns whose facts these are.

        Raises:
            ValueError, TypeError: they are not those of columns.
        """
        require_shape("columns", facts, {"max_categories": int, "names": [str], "categories": {...: [str]}})
        columns = cls(max_categories=facts["max_categories"])
        columns.names, columns.categories = list(facts["names"]), dict(facts["categories"])
        lists = [columns.names, *columns.categories.values()]
        if any(len(set(texts)) < len(texts) for texts in lists) or not columns.categories.keys() <= set(columns.names):
            raise ValueError("the model's columns must have names and categories that differ.")
        return columns

    def _numbers(self, frame: Frame) -> NDArray[np.float64]:
        """The columns of numbers, all at once: a table may have thousands."""
        names, kinds = self.numeric, frame.schema
        whole = frame.select(names)
        if all(kinds[name].is_numeric() for name in names):
            values: NDArray[np.float64] = whole.to_numpy().astype(np.float64).reshape(len(frame), len(names))
        else:
            values = np.empty((len(frame), len(names)))
            for place, name in enumerate(names):
                values[:, place] = _numbers_of(whole[name])
        too_large = (abs(values) > np.finfo(np.float32).max).any(0)
        if too_large.any():
            raise ValueError(
                f"column {names[int(too_large.argmax())]!r} has an infinite value, or one too large for float32. Leave "
                f"such rows out, or the column."
            )
        return values

    def _require_few_categories(self, name: str, categories: set[str]) -> None:
        """Require no more categories than are allowed."""
        if len(categories) > self.max_categories:
            raise ValueError(
                f"column {name!r} is text with more than {self.max_categories} different values, "
                f"{_likely_cause(categories)} it out, or allow more categories (`max_categories`)."
            )


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """A table that was read and encoded already, as the estimators take it in place of a data frame.

    Attributes:
        values: (rows, columns) float32, as `columns` makes them.
        columns: what they are.
    """

    values: Floats
    columns: Columns

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> EncodedTable:
        return EncodedTable(take(self.values, rows), self.columns)


def _are_numeric(frame: Frame) -> dict[str, bool]:
    """Whether each column is numbers, or else text; other things are refused."""
    return {name: _is_numeric(frame, name, dtype) for name, dtype in frame.schema.items()}


def _is_numeric(frame: Frame, name: str, dtype: Any) -> bool:
    if dtype.is_numeric():
        return True
    if dtype.is_temporal():
        raise ValueError(
            f"column {name!r} is dates or times. Turn it into numbers, such as days since a day that matters, or leave "
            f"it out."
        )
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean):
        return False
    return all(_is_number(value) for value in _values(frame[name]))


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def _values(column: Series) -> list[Any]:
    """The values of a column that are there."""
    missing = column.is_null().to_list()
    return [value for value, absent in zip(column.to_list(), missing, strict=True) if not absent]


def _numbers_of(column: Series) -> Any:
    """A column of numbers, which may be Python objects; NaN where missing."""
    if column.dtype.is_numeric():
        return column.to_numpy().astype(np.float64)
    if not all(_is_number(value) for value in _values(column)):
        raise NotNumbersError(column.name)
    found = np.full(len(column), np.nan)
    found[~column.is_null().to_numpy()] = [float(value) for value in _values(column)]
    return found


def _texts(column: Series) -> Any:
    """Values as str, NaN where missing: an object array."""
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_list()
    is_missing = column.is_null().to_numpy()
    for place in np.flatnonzero([type(value) is not str for value in values]):
        if not is_missing[place] and not isinstance(values[place], (bool, np.bool_, int, np.integer)):
            raise ValueError(
                f"column {column.name!r} must be numbers or text; it has a {type(values[place]).__name__}. Leave "
                f"it out."
            )
        values[place] = np.nan if is_missing[place] else str(values[place])
    return values


def _likely_cause(categories: set[str]) -> str:
    """What a column of so many texts may be, numbers that are not written as numbers or an identifier, and the cure."""
    texts = sorted(categories)
    commas = [text for text in texts if re.fullmatch(r"\s*[-+]?[\d.]*,\d+\s*", text)]
    points = [text for text in texts if re.fullmatch(r"\s*[-+]?\d*\.?\d+([eE][-+]?\d+)?\s*", text)]
    words = sorted(set(texts) - {*commas, *points})
    if len(words) >= len(texts) / 2:
        return "so likely an identifier. Leave"
    written, options = "", ["..."]
    if commas:
        written += f", with a decimal comma as in {commas[0]!r}"
        options.append("decimal=','")
    if words:
        written += f", but not {words[0]!r}"
        options.append(f"na_values=[{words[0]!r}]")
    return f"most of them numbers{written}. Read them as numbers, pandas.read_csv({', '.join(options)}), or leave"
