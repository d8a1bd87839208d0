"""A table to learn from: its features, bags and labels in memory, checked before the features are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn._io.mapped import beside
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._class_table import ClassTable
from kofn.estimators._columns import EncodedTable
from kofn.tables._label_columns import Column, bag_values, binary, count_labels
from kofn.tables._reading import RowMetadata, Told, encode_table, learn_columns, read_metadata
from kofn.tables._suspicions import warn_of_missing_header, warn_of_true_classes, warn_of_truth
from kofn.tables._table_file import TableFile

Estimator = LLPClassifier | MILClassifier | PUClassifier


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """What an estimator learns from.

    Attributes:
        encoded: the features.
        y: (rows,) labels as the estimator's `fit` takes them, or a table of several classes.
        metadata: bags and labels as they stand in the file.
        labels: names of the columns of labels.
        label: of LLP: the kind that the labels are; None for other tasks.
        fold_by: (rows,) integers of what each row belongs to, such as the patient; None where nothing was named.
    """

    encoded: EncodedTable
    y: NDArray[Any] | ClassTable
    metadata: RowMetadata
    labels: list[str]
    label: str | None
    fold_by: NDArray[np.int64] | None = None

    def arguments(self, rows: Any = slice(None)) -> dict[str, Any]:
        """What an estimator's `fit` takes, of some rows; by default of all."""
        found = {"X": self.encoded[rows], "y": self.y[rows]}
        if self.metadata.bag_of is not None:
            found["groups"] = self.metadata.bag_of[rows]
        if self.metadata.copies is not None:
            found["copies"] = self.metadata.copies[rows]
        if self.fold_by is not None:
            found["fold_by"] = self.fold_by[rows]
        return found


def read_training_table(
    path: str | os.PathLike[str],
    estimator: Estimator,
    *,
    label: str,
    bag: str | None = None,
    copies: str | None = None,
    fold_by: str | None = None,
    features: str | None = None,
    drop: Sequence[str] = (),
    label_kind: str | None = None,
    positive: str | None = None,
    max_categories: int = 256,
    scratch: Path | None = None,
    on_stage: Callable[[str], None] = lambda _: None,
) -> TrainingTable:
    """Read a table to learn from; arguments as for `fit_table`, which explains them.

    The header is checked first, then bags and labels, and only then the features are read.
    """
    file = TableFile(path)
    labels = file.parse_columns(label)
    of_bag = [] if bag is None else file.parse_columns(bag)
    owners = [] if fold_by is None else file.parse_columns(fold_by)
    taken = {"bag": of_bag, "label": labels, "copies": [] if copies is None else [copies]}
    file.require_columns(*taken["copies"])
    _require_different(file, taken)
    # A column that names the bag may do so together with another, and then says what bags belong together.
    _require_different(file, {"label": labels, "copies": taken["copies"], "fold_by": owners})
    if bag is None and isinstance(estimator, MILClassifier):
        raise ValueError("`bag` must name the column with the bag of each row for MILClassifier; got None.")
    if copies is not None and not isinstance(estimator, LLPClassifier):
        raise ValueError("`copies` goes with proportions and counts (LLP): other labels do not tell them apart.")
    names = _features(file, features, drop, [*of_bag, *owners], [*labels, *taken["copies"]])
    warn_of_missing_header(file)

    def stage(what: str) -> Told:
        on_stage(what)
        progress = estimator.progress
        return None if progress is None else lambda done, rows: progress(what, done, rows, {})

    metadata = read_metadata(file, bag, [*labels, *owners], copies=copies, told=stage("reading bags and labels"))
    held_together = _held_together(metadata, owners, file) if owners else None
    if isinstance(estimator, LLPClassifier):
        noise, rounding = estimator.noise, estimator.rounding
        y: NDArray[Any] | ClassTable
        y, kind = count_labels(metadata, labels, file.path, kind=label_kind, noise=noise, rounding=rounding)
    else:
        y, kind = class_labels(estimator, metadata, labels, file, positive), None
        if isinstance(estimator, PUClassifier):
            _require_both(y, Column(file.path, labels[0]))
    rows, told = metadata.rows, stage(f"looking at {len(names)} columns")
    columns = learn_columns(file, names, max_categories=max_categories, rows=rows, told=told)
    encoded = encode_table(file, columns, rows=rows, folder=scratch, told=stage(f"reading {rows:,} rows"))
    table = _beside_features(TrainingTable(encoded, y, metadata, labels, kind, held_together))
    if isinstance(y, ClassTable):
        counts = y.counts(metadata.bags(), label=str(kind), rounding=estimator.rounding)
        warn_of_true_classes(table.encoded, counts.numpy(), metadata.bags(), file)
    elif not isinstance(estimator, PUClassifier):
        warn_of_truth(table.encoded, _counts(table, estimator), metadata.bags(), file)
    return table


def _beside_features(table: TrainingTable) -> TrainingTable:
    """The table without columns of labels, which `y` has; bags and labels of the rows lie where the features lie."""
    values, metadata, y = table.encoded.values, table.metadata, table.y
    bag_of = None if metadata.bag_of is None else beside(values, metadata.bag_of)
    y = ClassTable(y.names, beside(values, y.values)) if isinstance(y, ClassTable) else beside(values, y)
    fold_by = None if table.fold_by is None else beside(values, table.fold_by)
    return replace(table, y=y, metadata=replace(metadata, bag_of=bag_of, columns={}), fold_by=fold_by)


def _held_together(metadata: RowMetadata, columns: list[str], file: TableFile) -> NDArray[np.int64]:
    """Integers (rows,) of what each row belongs to by some columns, the same on all rows of a bag.

    Raises:
        ValueError: a row without a value; a bag with two.
    """
    pandas = _require.package("pandas", extra="train")
    where = Column(file.path, ",".join(columns))
    frame = pandas.DataFrame({name: metadata.columns[name] for name in columns})
    missing = frame.isna().to_numpy()
    if missing.any():
        row = int(missing.any(1).argmax())
        raise ValueError(
            f"{Column(file.path, columns[int(missing[row].argmax())])}: row {row + 1} has no value, which `fold_by` "
            f"needs of each row. Give such rows a value of their own, or leave them out."
        )
    try:
        numbers: NDArray[np.int64] = frame.groupby(columns, sort=False).ngroup().to_numpy(np.int64)
    except TypeError:  # lists and dicts have no hash
        raise ValueError(f"{where} must be text or numbers. Write it as text.") from None
    if metadata.bag_of is not None:
        first = metadata.first_rows[metadata.bag_of]
        differ = numbers != numbers[first]
        if differ.any():
            row = int(differ.argmax())
            one, other = (", ".join(map(str, frame.iloc[at])) for at in (int(first[row]), row))
            raise ValueError(
                f"{where}: bag {metadata.bag_names[int(metadata.bag_of[row])]!r} has two values, {one} and {other} "
                f"(row {row + 1}). A bag is held out as a whole, with all bags of the same `fold_by`: correct the "
                f"rows, or name the bags by both columns."
            )
    return numbers


def _require_different(file: TableFile, taken: dict[str, list[str]]) -> None:
    """Require that no column is two things at once."""
    owner: dict[str, str] = {}
    for role, names in taken.items():
        for name in names:
            if name in owner:
                what = f"twice in `{role}`" if owner[name] == role else f"both `{owner[name]}` and `{role}`"
                raise ValueError(f"{file.path}: column {name!r} is named {what}. Name different columns.")
            owner[name] = role


def _features(
    file: TableFile, features: str | None, drop: Sequence[str], on_request: Sequence[str], taken: Sequence[str]
) -> list[str]:
    """Columns to learn from: never a label or copies, and those of bags and of what they belong to only on request."""
    dropped = {name for entry in drop for name in file.parse_columns(entry)}
    if features is not None:
        chosen = file.parse_columns(features)
        for name in chosen:
            if name in taken:
                raise ValueError(
                    f"{file.path}: column {name!r} is the label or the copies, so it cannot be a feature. Take it out "
                    f"of `features`."
                )
    else:
        chosen = [name for name in file.columns if name not in {*taken, *on_request}]
    columns = [name for name in chosen if name not in dropped]
    if not columns:
        raise ValueError(f"{file.path} has no column to learn from: all are bags, labels or dropped.")
    return columns


def class_labels(
    estimator: Any, metadata: RowMetadata, labels: list[str], file: TableFile, positive: str | None
) -> NDArray[np.int64]:
    """Labels 0 and 1 of MIL, the same on all rows of a bag, or of PU, where a missing label is none."""
    if len(labels) != 1:
        raise ValueError(f"`label` must name one column; got {', '.join(labels)}.")
    where = Column(file.path, labels[0])
    of_bags = isinstance(estimator, MILClassifier)
    y = binary(metadata.columns[labels[0]], where, positive=positive, missing=not of_bags)
    if of_bags:
        bag_values(y, metadata, where, metadata.columns[labels[0]])
    return y


def _require_both(y: NDArray[np.int64], where: Column) -> None:
    """Require labelled and unlabelled rows to learn from."""
    if y.all() or not y.any():
        raise ValueError(
            f"{where} must have labelled positives (1) and unlabelled rows (0, -1 or empty); all {len(y)} rows are "
            f"{'labelled' if y.all() else 'unlabelled'}. Check the column, or say which value means labelled: "
            f"`positive`."
        )


def _counts(table: TrainingTable, estimator: Estimator) -> NDArray[np.float64] | None:
    """The number of positives in each bag as labels tell it; infinite where they say "at least one"."""
    if isinstance(table.y, ClassTable):
        return None
    labels = table.y[table.metadata.first_rows].astype(np.float64)
    if isinstance(estimator, MILClassifier):
        return np.where(labels == 1, np.inf, 0.0)
    if table.label == "interval" or estimator.noise is not None:
        return None
    return labels if table.label == "count" else np.round(labels * table.metadata.sizes)
