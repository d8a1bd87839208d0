"""What the label columns of a table say, checked with the file, the column and the bag at hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from kofn import _require
from kofn.estimators._class_table import ClassTable
from kofn.tables._reading import RowMetadata
from kofn.targets import (
    class_counts_of_proportions,
    from_bounds,
    from_counts,
    from_proportions,
    require_class_counts,
)

Kind = Literal["proportion", "count", "interval"]
KINDS = ("proportion", "count", "interval", "classes")
Array = NDArray[Any]
LARGEST = 2.0**53  # beyond it a float has no whole numbers to tell apart
NOT_COUNTS = {"share", "shares", "percent", "percentage", "pct", "%", "proportion", "proportions", "fraction"}
TRUE, FALSE = ("true", "yes", "y", "t"), ("false", "no", "n", "f")


@dataclass(frozen=True)
class Column:
    """A column of a file, to be named in an error."""

    path: Any
    name: str

    def __str__(self) -> str:
        return f"{self.path}, column {self.name!r}"


def numbers(values: Any, where: Column, metadata: RowMetadata, *, missing: bool = False) -> NDArray[np.float64]:
    """A column as numbers, none missing unless `missing` may be NaN; "37 %" is 0.37.

    Raises:
        ValueError: text, or a missing value.
    """
    result: NDArray[np.float64] = _to_numbers(values)
    if np.isnan(result).any():
        texts = values.astype(str).str.strip()
        hundredths = _to_numbers(texts.str.removesuffix("%")) / 100
        result = np.where(texts.str.endswith("%").to_numpy(), hundredths, result)
    odd = np.flatnonzero(~np.isfinite(result) & ~(values.isna().to_numpy() & missing))
    if len(odd):
        row = int(odd[0])
        raise ValueError(
            f"{where}: {_place(row, metadata)} has {_format_value(values.iloc[row])}, which must be a number, such as "
            f"0.37 or 37 %. Correct it, or leave its bag out."
        )
    return result


def binary(values: Any, where: Column, *, positive: str | None, missing: bool = False) -> NDArray[np.int64]:
    """A column of two values as 0 and 1.

    Args:
        values: the column.
        where: its name in errors.
        positive: the value that means 1; by default 1 of 0 and 1, 1 of -1 and 1, true of true and false, yes of yes
            and no.
        missing: whether a missing value means 0; else it is an error.

    Raises:
        ValueError: other values; a missing one.
    """
    is_missing = values.isna().to_numpy()
    if is_missing.any() and not missing:
        raise ValueError(f"{where}: row {int(is_missing.argmax()) + 1} has no value. Leave such rows out.")
    texts = values.astype(str).str.strip()
    if positive is not None:
        chosen = (texts == positive).to_numpy() & ~is_missing
        if not chosen.any():
            seen = ", ".join(repr(text) for text in texts[~is_missing].unique()[:5])
            raise ValueError(f"{where} never has the value {positive!r} that `positive` names; it has {seen}.")
        return np.asarray(chosen, np.int64)
    coded = _to_numbers(values)
    lower = texts.str.lower()
    coded = np.where(lower.isin(TRUE).to_numpy(), 1.0, np.where(lower.isin(FALSE).to_numpy(), 0.0, coded))
    coded[is_missing] = 0.0
    odd = np.flatnonzero(~np.isin(coded, (-1.0, 0.0, 1.0)))
    if len(odd) or {-1.0, 0.0} <= set(np.unique(coded[~is_missing])):
        given = [_format_value(value) for value in values[~is_missing].drop_duplicates()[:5]]
        raise ValueError(
            f"{where} must have two values, 0 and 1; it has {_listed(given)}. Say which value is the positive one: "
            f"`positive`."
        )
    return np.asarray(coded == 1.0, np.int64)


def bag_values(values: Array, metadata: RowMetadata, where: Column, texts: Any = None) -> Array:
    """The value of each bag, from the one that all its rows repeat: (rows, ...) to (bags, ...).

    Args:
        values: of the rows.
        metadata: the bags.
        where: the column in errors.
        texts: the values as they stand in the file, for errors; by default `values`.

    Raises:
        ValueError: a bag with two.
    """
    of_bag: Array = values[metadata.first_rows]
    differ = (values != of_bag[metadata.bag_of]).reshape(len(values), -1).any(1)
    if differ.any():
        row = int(differ.argmax())
        bag = int(metadata.bag_of[row]) if metadata.bag_of is not None else 0
        one, other = (
            _format_labels(np.atleast_1d(values[at]).tolist()) if texts is None else _format_value(texts.iloc[at])
            for at in (int(metadata.first_rows[bag]), row)
        )
        raise ValueError(
            f"{where}: bag {metadata.bag_names[bag]!r} has two labels, {one} and {other} (row {row + 1}). A label "
            f"says something of its whole bag, and all rows of the bag repeat it."
        )
    return of_bag


def count_labels(
    metadata: RowMetadata, columns: list[str], path: Any, *, kind: str | None, noise: Any, rounding: Any
) -> tuple[Array | ClassTable, Kind]:
    """The label of each row's bag for `LLPClassifier`, and of what kind it is.

    Args:
        metadata: the label columns and the bags.
        columns: names of the label columns, two for an interval, one for each class of several.
        path: of the file, for errors.
        kind: "proportion", "count", "interval" or "classes"; None where the values tell.
        noise: the distribution of the noise that was added, or None.
        rounding: as for `LLPClassifier`.

    Raises:
        ValueError: labels that their bags cannot have; two in one bag; values that may be of two kinds.
    """
    if kind is not None:
        _require.option("label_kind", kind, KINDS)
    interval = len(columns) == 2 and kind in (None, "interval")
    if (len(columns) == 1 and kind in ("interval", "classes")) or (len(columns) > 2 and kind == "interval"):
        raise ValueError(
            f"`label` must name one column, two for an interval, `label='LOW,HIGH'`, or one for each class with "
            f"`label_kind='classes'`; got {', '.join(columns)}."
        )
    if len(columns) > 1 and not interval:
        return _class_labels(metadata, columns, path, kind=kind, rounding=rounding)
    where = Column(path, ",".join(columns))
    each = [numbers(metadata.columns[name], Column(path, name), metadata) for name in columns]
    y = np.column_stack(each) if interval else each[0][:, None]
    labels = bag_values(y, metadata, where)
    if interval:
        _require_possible(partial(from_bounds, torch.from_numpy(labels)), metadata, where)
        return y, "interval"
    found: Kind = "count" if kind == "count" else "proportion"
    if kind is None:
        found = "count" if noise is not None else _infer_kind(labels[:, 0], metadata, where)
    if noise is not None and abs(labels).max() > LARGEST:
        bag = metadata.bag_names[int(abs(labels[:, 0]).argmax())]
        raise ValueError(
            f"{where}: bag {bag!r} has the label {abs(labels).max():g}, which no noise explains. Correct it."
        )
    if noise is None and found == "proportion" and 2 <= labels.max() <= 100:
        bag, most = metadata.bag_names[int(labels[:, 0].argmax())], f"{labels.max():g}"
        raise ValueError(
            f"{where}: bag {bag!r} has the proportion {most}; proportions are from 0 to 1. If these are percentages, "
            f"divide by 100, or write {most} %; if they are counts, say `label_kind='count'`."
        )
    if noise is None:
        values = torch.from_numpy(labels[:, 0])
        as_target = partial(from_counts if found == "count" else partial(from_proportions, rounding=rounding), values)
        _require_possible(as_target, metadata, where)
    return y[:, 0], found


def _class_labels(
    metadata: RowMetadata, columns: list[str], path: Any, *, kind: str | None, rounding: Any
) -> tuple[ClassTable, Kind]:
    """Counts or proportions of classes, a column for each; an empty cell is an unknown one."""
    where = Column(path, ",".join(columns))
    y = np.column_stack(
        [numbers(metadata.columns[name], Column(path, name), metadata, missing=True) for name in columns]
    )
    labels = torch.from_numpy(bag_values(np.nan_to_num(y, nan=-1.0), metadata, where))
    shares = labels.masked_fill(labels == -1, torch.nan)
    whole = bool((labels == labels.round()).all())
    complete = (labels >= 0).all(1)
    sums = labels[complete].sum(1)
    sizes = torch.from_numpy(metadata.sizes)
    found: Kind = "count" if kind == "count" else "proportion"
    if kind in (None, "classes") and whole and (bool((labels > 1).any()) or bool((sums == sizes[complete]).all())):
        found = "count"
    as_counts = require_class_counts if found == "count" else partial(class_counts_of_proportions, rounding=rounding)
    _require_possible(partial(as_counts, shares), metadata, where)
    return ClassTable(np.array(columns), y), found


def true_classes(values: Any, where: Column, classes: list[str]) -> NDArray[np.int64]:
    """A column of true classes as 0 to C - 1.

    A class is called as its column of labels is, with or without the beginning that all of them have in common, up to
    an underscore, a space, a dot or a hyphen: of votes_red and votes_blue also red and blue.

    Raises:
        ValueError: another value; a missing one.
    """
    first, last = min(classes), max(classes)  # what these two share, all share
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    start = max(first[:same].rfind(sign) for sign in "_ .-") + 1
    codes = {name[start:]: code for code, name in enumerate(classes)}
    codes |= {name: code for code, name in enumerate(classes)}
    result = values.astype(str).str.strip().map(codes).to_numpy(np.float64, na_value=np.nan)
    if np.isnan(result).any():
        row = int(np.isnan(result).argmax())
        raise ValueError(
            f"{where}: row {values.index[row] + 1} has {_format_value(values.iloc[row])}, which must be one of "
            f"the classes {', '.join(name[start:] for name in classes)}. Correct it, or leave the row out."
        )
    return np.asarray(result, np.int64)


def _require_possible(target: Callable[..., Any], metadata: RowMetadata, where: Column) -> None:
    """Require labels that their bags can have: what `kofn.targets` says of them, with the file and the column."""
    try:
        target(torch.from_numpy(metadata.sizes), names=metadata.bag_names)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _infer_kind(labels: Array, metadata: RowMetadata, where: Column) -> Kind:
    """Whether labels are proportions or counts."""
    whole = labels == np.round(labels)
    if (whole & (labels > 1)).any() and whole.all():
        if NOT_COUNTS & set(re.split(r"[^a-z%]+", where.name.lower())):
            raise ValueError(
                f"{where} has integers up to {labels.max():g}, and a name of proportions: counts or percentages? Say "
                f"`label_kind='count'`, or divide by 100 (or write the sign: {labels.max():g} %)."
            )
        if labels.max() <= 100 < metadata.sizes.min():  # as counts they would pass, and teach something else
            raise ValueError(
                f"{where} has integers up to {labels.max():g}, and every bag has more than 100 rows: counts or "
                f"percentages? Say `label_kind='count'`, or divide by 100 (or write the sign: 37 %)."
            )
        return "count"
    if (labels <= 1).all() and (not whole.all() or (metadata.sizes == 1).all()):
        return "proportion"
    if whole.all():
        if (labels < 0).any():
            raise ValueError(
                f"{where}: bag {metadata.bag_names[int(labels.argmin())]!r} has the label {labels.min():g}; a "
                f"proportion or a count is at least 0. If noise was added, say which: `noise`."
            )
        raise ValueError(
            f"{where} has only {' and '.join(f'{value:g}' for value in np.unique(labels))}, which may be counts or "
            f"proportions. Say `label_kind='count'` or `label_kind='proportion'`."
        )
    return "proportion"  # which says what is wrong with it


def _to_numbers(values: Any) -> NDArray[np.float64]:
    """Numbers, NaN for all else."""
    pandas = _require.package("pandas", extra="train")
    try:
        result: NDArray[np.float64] = pandas.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    except TypeError:  # lists and the like
        result = np.full(len(values), np.nan)
    return result.copy()


def _format_value(value: Any) -> str:
    pandas = _require.package("pandas", extra="train")
    if pandas.api.types.is_scalar(value) and pandas.isna(value):  # of a list it would be asked of each entry
        return "no value"
    return repr(value) if isinstance(value, str) else f"{value}"


def _place(row: int, metadata: RowMetadata) -> str:
    """A row, counted from 1 after the header, and its bag."""
    if metadata.bag_of is None:
        return f"row {row + 1}"
    return f"bag {metadata.bag_names[int(metadata.bag_of[row])]!r} (row {row + 1}, without the header)"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _format_labels(values: list[Any]) -> str:
    return " to ".join(f"{value:g}" for value in values)
