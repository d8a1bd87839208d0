"""From the columns of a table to numbers: scikit-learn's transformers, fitted chunk by chunk, kept as plain facts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kofn.tables._table_file import NotNumbersError

Floats: TypeAlias = NDArray[np.float32]


class TableEncoder:
    """Standardises numeric columns, gives each category of the others a column of 0 and 1.

    A missing number becomes the mean, and a column "age is missing" says so if any was missing in training. A missing
    category is a category of its own; one that was not seen in training is none of the known ones. Numbers of the
    result come first, then what is missing, then categories.

    Args:
        max_categories: a column with more is refused: it is likely an identifier, and would become as many columns.

    Attributes:
        numeric: names of the numeric columns.
        categorical: names of the others.
        feature_names: of the columns of the result.

    Examples:
        >>> import pandas as pd
        >>> from kofn.tables import TableEncoder
        >>> frame = pd.DataFrame({"age": [20.0, 40.0, None], "sex": ["f", "m", "f"]})
        >>> encoder = TableEncoder().fit(frame)
        >>> encoder.feature_names
        ['age', 'age is missing', 'sex=f', 'sex=m']
        >>> encoder.transform(frame).tolist()
        [[-1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
    """

    def __init__(self, *, max_categories: int = 256) -> None:
        self.max_categories = max_categories
        self.numeric: list[str] = []
        self.categorical: list[str] = []
        self.missing: list[str] = []  # numeric columns of which some were missing in training
        self._scalers: dict[str, StandardScaler] = {}
        self._encoders: dict[str, OneHotEncoder] = {}

    def fit(self, frames: Any) -> TableEncoder:
        """Learn the means, scales and categories of a DataFrame, or of an iterable of such: the chunks of a table.

        Raises:
            ValueError: a column of dates or other objects, one without any value, with infinite ones, or with too many
                categories; no column; no row.
        """
        self.numeric, self.categorical, self.missing = [], [], []
        self._scalers, self._encoders = {}, {}
        seen: dict[str, set[Any]] = {}
        for number, frame in enumerate([frames] if hasattr(frames, "columns") else frames):
            if number == 0:
                self._split_columns(frame)
                seen = {name: set() for name in self.categorical}
            self._learn_numbers(frame)
            for name in self.categorical:
                seen[name].update(_texts(frame[name].drop_duplicates()))
                self._require_few_categories(name, seen[name])
        self._require_values()
        for name in self.categorical:
            # Sorted text, then what is missing, as scikit-learn wants it.
            known = sorted(value for value in seen[name] if isinstance(value, str))
            self._encoders[name] = _one_hot(known + ([np.nan] if len(known) < len(seen[name]) else []))
        return self

    def _split_columns(self, frame: Any) -> None:
        """Which columns are numbers, and which are text."""
        for name in frame.columns:
            (self.numeric if _is_numeric(frame[name]) else self.categorical).append(name)
        if not self.numeric and not self.categorical:
            raise ValueError("there is no column to learn from: all are bags, labels or dropped.")

    def _learn_numbers(self, frame: Any) -> None:
        if not self.numeric:
            return
        found = set(self.missing)
        for name, values in zip(self.numeric, self._numbers(frame).T, strict=True):
            there = values[~np.isnan(values)]
            if len(there):  # a chunk without any value would make NaN of what was learned before
                self._scalers.setdefault(name, StandardScaler()).partial_fit(there[:, None])
            if len(there) < len(values):
                found.add(name)
        self.missing = [name for name in self.numeric if name in found]

    def _require_few_categories(self, name: str, categories: set[Any]) -> None:
        """Require no more categories than are allowed."""
        if len(categories) > self.max_categories:
            raise ValueError(
                f"column {name!r} is text with more than {self.max_categories} different values, "
                f"{_likely_cause(categories)} it out with --drop {_quoted(name)}, or allow more with --max-categories."
            )

    def _require_values(self) -> None:
        """Require rows, and a value in every numeric column."""
        if not self.numeric and not self.categorical:
            raise ValueError("there are no rows to learn from.")
        for name in self.numeric:
            if name not in self._scalers:
                raise ValueError(f"column {name!r} has no value. Leave it out with --drop {_quoted(name)}.")

    @property
    def columns(self) -> list[str]:
        """Columns that a table must have."""
        return self.numeric + self.categorical

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the result."""
        one_hot = [
            f"{name}={category}" if isinstance(category, str) else f"{name} is missing"
            for name in self.categorical
            for category in self._encoders[name].categories_[0]
        ]
        return self.numeric + [f"{name} is missing" for name in self.missing] + one_hot

    def transform(self, frame: Any, *, out: Floats | None = None) -> Floats:
        """Numbers of a chunk, (rows, features) float32, written to `out` if that is given.

        Raises:
            ValueError: text or infinity in a numeric column.
        """
        width = len(self.feature_names)
        result: Floats = np.empty((len(frame), width), np.float32) if out is None else out
        at = len(self.numeric)
        if self.numeric:
            values = self._numbers(frame)
            is_missing = np.isnan(values)
            for column, name in enumerate(self.numeric):
                scaled = self._scalers[name].transform(values[:, column, None])[:, 0]
                result[:, column] = np.where(is_missing[:, column], 0.0, scaled)  # the mean is 0
            for name in self.missing:
                result[:, at] = is_missing[:, self.numeric.index(name)]
                at += 1
        for name in self.categorical:
            ones = self._encoders[name].transform(_texts(frame[name]).reshape(-1, 1))
            result[:, at : at + ones.shape[1]] = ones
            at += ones.shape[1]
        return result

    def to_facts(self) -> dict[str, Any]:
        """All that was learned, as plain JSON."""
        learned = {name: (float(s.mean_[0]), float(s.scale_[0])) for name, s in self._scalers.items()}
        return {
            "max_categories": self.max_categories,
            "numeric": [
                {"name": name, "mean": learned[name][0], "scale": learned[name][1], "missing": name in self.missing}
                for name in self.numeric
            ],
            "categorical": [
                {
                    "name": name,
                    "categories": [c if isinstance(c, str) else None for c in self._encoders[name].categories_[0]],
                }
                for name in self.categorical
            ],
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> TableEncoder:
        """The encoder whose facts these are."""
        encoder = cls(max_categories=facts["max_categories"])
        numeric: Sequence[Mapping[str, Any]] = facts["numeric"]
        encoder.numeric = [column["name"] for column in numeric]
        encoder.missing = [column["name"] for column in numeric if column["missing"]]
        for column in numeric:
            scaler = encoder._scalers[column["name"]] = StandardScaler()
            scaler.mean_, scaler.scale_ = np.array([column["mean"]]), np.array([column["scale"]])
            scaler.n_features_in_ = 1
        for column in facts["categorical"]:
            encoder.categorical.append(column["name"])
            encoder._encoders[column["name"]] = _one_hot([np.nan if c is None else c for c in column["categories"]])
        return encoder

    def _numbers(self, frame: Any) -> NDArray[np.float64]:
        for name in self.numeric:
            if not _is_numeric(frame[name]):
                raise NotNumbersError(name)
        values: NDArray[np.float64] = frame[self.numeric].to_numpy(np.float64, na_value=np.nan)
        infinite = np.isinf(values).any(0)
        if infinite.any():
            name = self.numeric[int(infinite.argmax())]
            raise ValueError(
                f"column {name!r} has an infinite value. Leave such rows out, or the column: --drop {_quoted(name)}."
            )
        return values


def _is_numeric(column: Any) -> bool:
    """Whether a column is numbers, or else text; other things are refused."""
    from pandas.api import types

    dtype = column.dtype
    if types.is_bool_dtype(dtype):
        return False
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return True
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        raise ValueError(
            f"column {column.name!r} is dates or times. Turn it into numbers, such as days since a day that matters, "
            f"or leave it out with --drop {_quoted(column.name)}."
        )
    return False


def _texts(column: Any) -> Any:
    """Values as str, NaN where missing: an object array."""
    values = column.astype(object).to_numpy(copy=True)
    is_missing = column.isna().to_numpy()
    for place in np.flatnonzero([type(value) is not str for value in values]):
        if not is_missing[place] and not isinstance(values[place], (bool, np.bool_, int)):
            raise ValueError(
                f"column {column.name!r} must be numbers or text; it has a {type(values[place]).__name__}. Leave it "
                f"out with --drop {_quoted(column.name)}."
            )
        values[place] = np.nan if is_missing[place] else str(values[place])
    return values


def _likely_cause(categories: set[Any]) -> str:
    """What a column of so many texts may be, numbers that are not written as numbers or an identifier, and the cure."""
    texts = sorted(value for value in categories if isinstance(value, str))
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


def _one_hot(categories: list[Any]) -> OneHotEncoder:
    """scikit-learn's encoder of one column with these categories."""
    known = np.array(categories, dtype=object)
    encoder = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    return encoder.fit(known[:, None])


def _quoted(name: object) -> str:
    text = str(name)
    return text if text.replace("_", "").replace("-", "").isalnum() else f'"{text}"'
