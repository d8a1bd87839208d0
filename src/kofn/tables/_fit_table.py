"""Train a classifier on a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.tables._label_columns import Column, bag_values, binary, count_labels
from kofn.tables._measures import measure
from kofn.tables._reading import RowMetadata, encode_table, fit_encoder, read_metadata
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel, Task


def fit_table(
    path: str | os.PathLike[str],
    estimator: LLPClassifier | MILClassifier | PUClassifier,
    *,
    label: str,
    bag: str | None = None,
    features: str | None = None,
    drop: Sequence[str] = (),
    label_kind: str | None = None,
    positive: str | None = None,
    max_categories: int = 256,
    on_stage: Callable[[str], None] = lambda _: None,
) -> TableModel:
    """Train an estimator on a CSV or Parquet file.

    The header is checked first, then bags and labels, and only then the features are read. In memory there is one
    float32 matrix of all features, and some rows at a time beside it.

    Args:
        path: the file.
        estimator: with its options; for LLP the kind of label is set here.
        label: column of the label, or two with a comma for an interval.
        bag: column of the bag; None for PU.
        features: columns to learn from, with commas; by default all others.
        drop: columns to leave out, with or without commas.
        label_kind: of LLP: "proportion", "count", "interval"; None where the values tell.
        positive: the value of a label that means positive, for MIL and PU.
        max_categories: a text column with more is refused.
        on_stage: called with what is being done.

    Returns:
        The model, not yet saved.

    Raises:
        FileNotFoundError, ValueError: bad input, which the message names with its file, column and bag.

    Examples:
        >>> import kofn
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.tables import (
        ...     TableFile, TableModel, evaluate_bags, evaluate_rows, fit_table, predict_bags, predict_rows,
        ...     report_table, write_table,
        ... )
        >>> here = TemporaryDirectory()
        >>> model = Path(here.name) / "model"
        >>> votes, rows, wards = (Path(here.name) / f"{name}.csv" for name in ("votes", "rows", "wards"))
        >>> columns = {"ward": [1, 1, 2, 2], "share": [0.5, 0.5, 1.0, 1.0]}
        >>> write_table(votes, [columns | {"age": [30, 60, 50, 70], "voted": [0, 1, 1, 1]}])
        4
        >>> estimator = kofn.LLPClassifier(hidden=(), epochs=2, random_state=0)
        >>> fitted = fit_table(votes, estimator, bag="ward", label="share", drop=["voted"])
        >>> fitted.save(model)
        >>> again = TableModel.load(model)
        >>> predict_rows(again, votes, rows, keep="age"), TableFile(rows).columns
        (4, ['age', 'probability'])
        >>> predict_bags(again, votes, wards, bag="ward"), TableFile(wards).columns
        (2, ['ward', 'size', 'mean', 'low', 'high', 'at_least_one'])
        >>> evaluate_rows(again, votes, truth="voted")["rows"], evaluate_bags(again, votes)["bags"]
        (4, 2)
        >>> report_table(again, votes, title="Votes").title
        'Votes'
        >>> here.cleanup()
    """
    file = TableFile(path)
    labels = file.parse_columns(label)
    if bag is not None:
        file.require_columns(bag)
    columns = _features(file, features, drop, [*labels, *([] if bag is None else [bag])])
    on_stage("reading bags and labels")
    metadata = read_metadata(file, bag, labels)
    y = _labels(estimator, metadata, labels, file, label_kind, positive)
    on_stage(f"looking at {len(columns)} columns")
    encoder = fit_encoder(file, columns, max_categories=max_categories)
    on_stage(f"encoding {metadata.rows:,} rows")
    matrix = encode_table(file, encoder, rows=metadata.rows)
    on_stage("training")
    start = time.monotonic()
    if isinstance(estimator, PUClassifier):
        estimator.fit(matrix, y)
    else:
        estimator.fit(matrix, y, groups=metadata.bag_of)
    seconds = time.monotonic() - start
    on_stage("measuring")
    rows, on = _held_out(estimator, metadata)
    validation: dict[str, Any] = {"on": on, "rows": int(rows.sum())}
    bag_of = None if metadata.bag_of is None else metadata.bag_of[rows]
    if bag_of is not None:
        validation["bags"] = len(np.unique(bag_of))
    validation |= measure(estimator, matrix[rows], y[rows], bag_of)
    data = {
        "file": str(path),
        "rows": metadata.rows,
        "bags": len(metadata.bag_names) or None,
        "sizes": [int(metadata.sizes.min()), int(metadata.sizes.max())] if bag is not None else None,
        "columns": columns,
    }
    return TableModel(estimator, encoder, _task(estimator), bag, labels, positive, data, validation, seconds)


def _task(estimator: LLPClassifier | MILClassifier | PUClassifier) -> Task:
    if isinstance(estimator, LLPClassifier):
        return "llp"
    return "mil" if isinstance(estimator, MILClassifier) else "pu"


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


def _labels(
    estimator: Any, metadata: RowMetadata, labels: list[str], file: TableFile, kind: str | None, positive: str | None
) -> NDArray[Any]:
    """Labels of the rows as the estimator's `fit` takes them."""
    if isinstance(estimator, LLPClassifier):
        y, found = count_labels(
            metadata, labels, file.path, kind=kind, noise=estimator.noise, rounding=estimator.rounding
        )
        estimator.set_params(label=found)
        return y
    return class_labels(estimator, metadata, labels, file, positive)


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


def _held_out(estimator: Any, metadata: RowMetadata) -> tuple[NDArray[np.bool_], str]:
    """The rows to measure on."""
    held = np.zeros(metadata.rows if metadata.bag_of is None else len(metadata.bag_names), dtype=bool)
    held[estimator.held_out_] = True
    if not held.any():
        return np.ones(metadata.rows, dtype=bool), "training data"
    return held if metadata.bag_of is None else held[metadata.bag_of], "held-out data"
