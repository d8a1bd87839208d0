"""A table to learn from: its features, bags and labels in memory, checked before the features are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._columns import EncodedTable
from kofn.tables._label_columns import Column, bag_values, binary, count_labels
from kofn.tables._reading import RowMetadata, encode_table, learn_columns, read_metadata
from kofn.tables._table_file import TableFile

Estimator = LLPClassifier | MILClassifier | PUClassifier


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """What an estimator learns from.

    Attributes:
        encoded: the features.
        y: (rows,) labels as the estimator's `fit` takes them.
        metadata: bags and labels as they stand in the file.
        labels: names of the columns of labels.
        label: of LLP: the kind that the labels are; None for other tasks.
    """

    encoded: EncodedTable
    y: NDArray[Any]
    metadata: RowMetadata
    labels: list[str]
    label: str | None

    def fit(self, estimator: Any, rows: Any = slice(None)) -> Any:
        """Fit an estimator to some rows, by default to all."""
        if self.metadata.bag_of is None:
            return estimator.fit(self.encoded[rows], self.y[rows])
        return estimator.fit(self.encoded[rows], self.y[rows], groups=self.metadata.bag_of[rows])


def read_training_table(
    path: str | os.PathLike[str],
    estimator: Estimator,
    *,
    label: str,
    bag: str | None = None,
    features: str | None = None,
    drop: Sequence[str] = (),
    label_kind: str | None = None,
    positive: str | None = None,
    max_categories: int = 256,
    on_stage: Callable[[str], None] = lambda _: None,
) -> TrainingTable:
    """Read a table to learn from; arguments as for `fit_table`, which explains them.

    The header is checked first, then bags and labels, and only then the features are read.
    """
    file = TableFile(path)
    labels = file.parse_columns(label)
    if bag is not None:
        file.require_columns(bag)
    names = _features(file, features, drop, [*labels, *([] if bag is None else [bag])])
    on_stage("reading bags and labels")
    metadata = read_metadata(file, bag, labels)
    if isinstance(estimator, LLPClassifier):
        noise, rounding = estimator.noise, estimator.rounding
        y, kind = count_labels(metadata, labels, file.path, kind=label_kind, noise=noise, rounding=rounding)
    else:
        y, kind = class_labels(estimator, metadata, labels, file, positive), None
    on_stage(f"looking at {len(names)} columns")
    columns = learn_columns(file, names, max_categories=max_categories)
    on_stage(f"reading {metadata.rows:,} rows")
    return TrainingTable(encode_table(file, columns, rows=metadata.rows), y, metadata, labels, kind)


def _features(file: TableFile, features: str | None, drop: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Columns to learn from: never a bag or a label."""
    dropped = {name for entry in drop for name in file.parse_columns(entry)}
    if features is not None:
        chosen = file.parse_columns(features)
        for name in chosen:
            if name in taken:
                raise ValueError(f"{file.path}: column {name!r} is the bag or the label, so it cannot be a feature.")
    else:
        chosen = [name for name in file.columns if name not in taken]
    columns = [name for name in chosen if name not in dropped]
    if not columns:
        raise ValueError(f"{file.path} has no column to learn from: all are bags, labels or dropped.")
    return columns


def class_labels(
    estimator: Any, metadata: RowMetadata, labels: list[str], file: TableFile, positive: str | None
) -> NDArray[np.int64]:
    """Labels 0 and 1 of MIL, the same on all rows of a bag, or of PU, where a missing label is none."""
    if len(labels) != 1:
        raise ValueError(f"--label must name one column; got {', '.join(labels)}.")
    where = Column(file.path, labels[0])
    of_bags = isinstance(estimator, MILClassifier)
    y = binary(metadata.columns[labels[0]], where, positive=positive, missing=not of_bags)
    if of_bags:
        bag_values(y, metadata, where)
    elif y.all() or not y.any():
        raise ValueError(
            f"{where} must have labelled positives (1) and unlabelled rows (0, -1 or empty); all {len(y)} rows are "
            f"{'labelled' if y.all() else 'unlabelled'}. Check the column, or say --positive VALUE."
        )
    return y
