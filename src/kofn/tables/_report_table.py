"""A report about a model, on a table."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kofn import _require
from kofn.estimators._columns import Columns
from kofn.tables._evaluate_table import labels_as_trained, truth_of
from kofn.tables._label_columns import Column
from kofn.tables._reading import RowMetadata, encode_table
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel

if TYPE_CHECKING:
    from kofn.report import Report

LIMIT = 100_000  # rows of the bags that are drawn
LEFT_OUT = 20  # columns beside those of the model that an opened bag shows


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
        data: a table with its columns; its bags and labels are used where it has them. Of the training table the
            bags are shown that were held out. Of a long table bags are drawn at random where bags are shown, up to
            100,000 rows; verdicts and measures are of all.
        truth: column of the rows' true classes; empty where they are not known.
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
    encoded = encode_table(file, model.columns, rows=metadata.rows)
    taken = {*model.columns.names, *labels, *of_truth, *([] if bag is None else file.split_names(bag))}
    left_out = [name for name in file.columns if name not in taken]
    beside = list(dict.fromkeys([*_picture_columns(file, left_out), *left_out[:LEFT_OUT]]))
    report = report_of(
        estimator,
        encoded,
        y,
        None if metadata.bag_of is None else np.array(bag_texts(metadata), object)[metadata.bag_of],
        copies=metadata.copies,
        truth=classes,
        table=lambda rows: _rows(file, model.columns, rows, beside),
        folder=file.path.parent,
        title=title,
        facts=[*facts, ("Looked at", f"{data}: {metadata.rows:,} rows")],
        limit=LIMIT,
    )
    return replace(report, sensitivity=sensitivity)


def bag_texts(metadata: RowMetadata) -> list[str]:
    """The names of bags as text; of several columns with commas."""
    names = metadata.bag_names
    return [name if isinstance(name, str) else ", ".join(map(str, np.atleast_1d(name))) for name in names]


def _some(names: list[str]) -> str:
    """The first names: a page has no room for thousands."""
    return ", ".join(names[:100]) + (f" and {len(names) - 100:,} more" if len(names) > 100 else "")


def _picture_columns(file: TableFile, candidates: list[str]) -> list[str]:
    """Columns that the model was not trained with and whose first values are names of image files."""
    from kofn.report._pictures import LOOKED_AT, name_pictures

    if not candidates:
        return []
    head = next(file.chunks(candidates, text=set(candidates), rows=LOOKED_AT))
    return [name for name in candidates if name_pictures(head[name])]


def _rows(file: TableFile, columns: Columns, rows: Any, beside: list[str]) -> Any:
    """Some rows as they stand in the table, in its order, with other columns beside those of the model, as text."""
    pandas = _require.package("pandas", extra="train")
    wanted = np.zeros(int(rows.max()) + 1 if len(rows) else 0, dtype=bool)
    wanted[rows] = True
    found, at = [], 0
    names = [*columns.names, *beside]
    for frame in file.chunks(names, text=set(names) - set(columns.numeric)):
        part = wanted[at : at + len(frame)]
        found.append(frame[: len(part)][part])
        at += len(frame)
    return pandas.concat(found, ignore_index=True)
