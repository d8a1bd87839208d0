"""A report about a model, on a table."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kofn import _require
from kofn.estimators._columns import EncodedTable
from kofn.tables._evaluate_table import labels_as_trained, truth_of
from kofn.tables._label_columns import Column
from kofn.tables._reading import feature_chunks
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
    from kofn.report import Report, metrics_of, report_of  # and with it jinja2, which no other command needs

    training_data = model.data
    trained = f"{training_data['file']}: {training_data['rows']:,} rows" + (
        f" in {training_data['bags']:,} bags" if training_data.get("bags") else ""
    )
    facts = [("Trained on", trained), ("Columns", _some(model.columns.names))]
    estimator, sensitivity = model.estimator, model.validation.get("sensitivity", ())
    if data is None:
        facts.append(("Measured on", str(model.validation.get("on", "training data"))))
        heading = title or f"{type(estimator).__name__}: what was learned"
        metrics = metrics_of(model.validation)
        return Report(
            heading, model.task, facts, metrics, estimator.history_, estimator.best_step_, sensitivity=sensitivity
        )
    file = TableFile(data)
    there = set(file.columns)
    bag = model.bag if model.bag is not None and set(file.split_names(model.bag)) <= there else None
    labels = model.labels if set(model.labels) <= there and (bag or model.task == "pu") else []
    of_truth = [] if truth is None else [truth]
    metadata = model.metadata(file, bag=bag, labels=[*labels, *of_truth])
    y = labels_as_trained(model, metadata, labels, file) if labels else None
    where = Column(file.path, str(truth))
    classes = None if truth is None else truth_of(model, metadata.columns[truth], where, positive=positive)
    rows = _first_bags(metadata.bag_of, metadata.rows)
    scope = (
        f"{data}: {metadata.rows:,} rows"
        if rows.all()
        else f"{data}: the first {rows.sum():,} of {metadata.rows:,} rows"
    )
    encoded, shown = _read(model, file, rows)
    bags = None if metadata.bag_of is None else metadata.bag_of[rows]
    names = [name if isinstance(name, str) else ", ".join(map(str, np.atleast_1d(name))) for name in metadata.bag_names]
    report = report_of(
        estimator,
        encoded,
        None if y is None else y[rows],
        None if bags is None else np.array(names, object)[bags],
        copies=None if metadata.copies is None else metadata.copies[rows],
        truth=None if classes is None else classes[rows],
        table=shown,
        title=title,
        facts=[*facts, ("Looked at", scope)],
    )
    return replace(report, sensitivity=sensitivity)


def _some(names: list[str]) -> str:
    """The first names: a page has no room for thousands."""
    return ", ".join(names[:100]) + (f" and {len(names) - 100:,} more" if len(names) > 100 else "")


def _first_bags(bag_of: Any, rows: int) -> Any:
    """A mask of the rows of the first bags, as many as the limit allows; at least one bag."""
    if bag_of is None:
        return np.arange(rows) < LIMIT
    ends = np.cumsum(np.bincount(bag_of))
    return bag_of < max(int(np.searchsorted(ends, LIMIT, side="right")), 1)


def _read(model: TableModel, file: TableFile, rows: Any) -> tuple[EncodedTable, Any]:
    """The encoded rows of a mask, and the same rows as they stand in the table."""
    pandas = _require.package("pandas", extra="train")
    encoded, shown, at = [], [], 0
    for chunk, frame in feature_chunks(file, model.columns):
        kept = rows[at : at + len(frame)]
        encoded.append(chunk.values[kept])
        shown.append(frame[kept])
        at += len(frame)
    return EncodedTable(np.concatenate(encoded), model.columns), pandas.concat(shown, ignore_index=True)
