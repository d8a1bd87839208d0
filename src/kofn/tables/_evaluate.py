"""Measure a model on a table with labels."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.estimators import LLPClassifier, PUClassifier
from kofn.tables._files import TableFile
from kofn.tables._fit import class_labels
from kofn.tables._labels import Column, binary, count_labels
from kofn.tables._measures import measure, measure_rows
from kofn.tables._model import TableModel
from kofn.tables._reading import Side, encoded, read_side


def evaluate_rows(
    model: TableModel, data: str | os.PathLike[str], *, truth: str, positive: str | None = None
) -> dict[str, Any]:
    """Measures of a model's rows against their true classes.

    Args:
        model: the model.
        data: a table with its columns.
        truth: the column of true classes.
        positive: the value that means positive, if it is not 1, true or yes.

    Raises:
        FileNotFoundError, ValueError: bad input.
    """
    file = TableFile(data)
    file.need(truth, *model.encoder.columns)
    side = read_side(file, None, [truth])
    classes = binary(side.columns[truth], Column(file.path, truth), positive=positive)
    logits = np.concatenate([part for part, _ in model.scores(file)])
    return {"on": "rows", "rows": side.rows} | measure_rows(logits, classes)


def evaluate_bags(
    model: TableModel, data: str | os.PathLike[str], *, bag: str | None = None, label: str | None = None
) -> dict[str, Any]:
    """Measures of a model against labels such as it learned from.

    Args:
        model: the model.
        data: a table with its columns, bags and labels.
        bag: the column of bags; by default that of training.
        label: the column, or two, of labels; by default that of training.

    Raises:
        FileNotFoundError, ValueError: bad input.
    """
    file = TableFile(data)
    estimator = model.estimator
    labels = model.labels if label is None else file.names(label)
    of_rows = isinstance(estimator, PUClassifier)
    bags = None if of_rows else bag or model.bag
    file.need(*labels, *([] if bags is None else [bags]), *model.encoder.columns)
    side = read_side(file, bags, labels)
    y = labels_as_trained(model, side, labels, file)
    matrix = encoded(file, model.encoder, rows=side.rows)
    counted = {} if of_rows else {"bags": len(side.names)}
    return {"on": "labels", "rows": side.rows} | counted | measure(estimator, matrix, y, side.bag_of)


def labels_as_trained(model: TableModel, side: Side, labels: list[str], file: TableFile) -> NDArray[Any]:
    """Labels of the rows of a table, read as those of training were."""
    estimator = model.estimator
    if not isinstance(estimator, LLPClassifier):
        return class_labels(estimator, side, labels, file, model.positive)
    kind, noise, rounding = estimator.label, estimator.noise, estimator.rounding
    return count_labels(side, labels, file.path, kind=kind, noise=noise, rounding=rounding)[0]
