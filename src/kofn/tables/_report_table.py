"""A report about a model, on a table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from kofn import _require
from kofn.estimators._columns import EncodedTable
from kofn.tables._evaluate_table import labels_as_trained
from kofn.tables._label_columns import Column, binary
from kofn.tables._measures import MEASURE_NAMES
from kofn.tables._reading import read_metadata
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel

if TYPE_CHECKING:
    from kofn.report import Report

LIMIT = 100_000  # rows that a page is made of: it shows no more bags than a reader can take in


def report_table(
    model: TableModel,
    data: str | os.PathLike[str] | None = None,
    *,
    truth: str | None = None,
    positive: str | None = None,
    title: str | None = None,
) -> Report:
    """What a model learned and, with data, what it says of their bags.

    Args:
        model: the model.
        data: a table with its columns; its bags and labels are used where it has them. Of a long table the first bags
            are taken, whole, up to 100,000 rows.
        truth: column of the rows' true classes, where they are known.
        positive: the value of `truth` that means positive, if it is not 1, true or yes.
        title: heading of the page.

    Raises:
        FileNotFoundError, ValueError: bad input, which the message names with its file and column.
    """
    from kofn.report import Metric, Report, report_of  # and with it jinja2, which no other command needs

    training_data = model.data
    trained = f"{training_data['file']}: {training_data['rows']:,} rows" + (
        f" in {training_data['bags']:,} bags" if training_data.get("bags") else ""
    )
    facts = [("Trained on", trained), ("Columns", ", ".join(model.columns.names))]
    estimator = model.estimator
    if data is None:
        where = str(model.validation.get("on", "training data"))
        metrics = [
            Metric(words[0].upper() + words[1:], float(model.validation[name]), f"On {where}.")
            for name, words in MEASURE_NAMES.items()
            if name in model.validation
        ]
        heading = title or f"{type(estimator).__name__}: what was learned"
        return Report(heading, model.task, facts, metrics, estimator.history_, estimator.best_step_)
    file = TableFile(data)
    bag = model.bag if model.bag in file.columns else None
    labels = model.labels if set(model.labels) <= set(file.columns) else []
    file.require_columns(*model.columns.names, *([] if truth is None else [truth]))
    metadata = read_metadata(file, bag, [*labels, *([] if truth is None else [truth])])
    y = labels_as_trained(model, metadata, labels, file) if labels and (bag or model.task == "pu") else None
    classes = None if truth is None else binary(metadata.columns[truth], Column(file.path, truth), positive=positive)
    rows = _first_bags(metadata.bag_of, metadata.rows)
    scope = (
        f"{data}: {metadata.rows:,} rows"
        if rows.all()
        else f"{data}: the first {rows.sum():,} of {metadata.rows:,} rows"
    )
    encoded, shown = _read(model, file, rows)
    names = (
        None
        if metadata.bag_of is None
        else np.array([str(name) for name in metadata.bag_names], object)[metadata.bag_of[rows]]
    )
    return report_of(
        estimator,
        encoded,
        None if y is None else y[rows],
        names,
        truth=None if classes is None else classes[rows],
        table=shown,
        title=title,
        facts=[*facts, ("Looked at", scope)],
    )


def _first_bags(bag_of: Any, rows: int) -> Any:
    """A mask of the rows of the first bags, as many as the limit allows; at least one bag."""
    if bag_of is None:
        return np.arange(rows) < LIMIT
    ends = np.cumsum(np.bincount(bag_of))
    return bag_of < max(int(np.searchsorted(ends, LIMIT, side="right")), 1)


def _read(model: TableModel, file: TableFile, rows: Any) -> tuple[EncodedTable, Any]:
    """The encoded rows of a mask, and the same rows as they stand in the table."""
    pandas = _require.package("pandas", extra="train")
    parts, at = [], 0
    for frame in file.chunks(model.columns.names, text=list(model.columns.categories)):
        parts.append(frame[rows[at : at + len(frame)]])
        at += len(frame)
    table = pandas.concat(parts, ignore_index=True)
    return EncodedTable(model.columns(table), model.columns), table
