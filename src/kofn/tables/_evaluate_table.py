"""Measure a model on a table with labels."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from kofn.estimators import LLPClassifier, PUClassifier
from kofn.estimators._class_table import ClassTable
from kofn.estimators._judged import judge, was_trained_on
from kofn.estimators._measures import measure, scores_of
from kofn.estimators._pu_measures import selection_sentence
from kofn.estimators._trust import verdicts
from kofn.tables._label_columns import Column, binary, count_labels, true_classes
from kofn.tables._reading import RowMetadata, encode_table, read_metadata
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel
from kofn.tables._training_table import class_labels


def evaluate_rows(
    model: TableModel, data: str | os.PathLike[str], *, truth: str, positive: str | None = None
) -> dict[str, Any]:
    """Measures of a model's rows against their true classes.

    Args:
        model: the model.
        data: a table with its columns.
        truth: the column of true classes; rows where it is empty are left out.
        positive: the value that means positive, if it is not 1, true or yes.

    Returns:
        on; rows; known_rows, how many of them have a true class; trained_on, whether the model was trained on these
        data, which makes it look better than it is; and measures of the rows with a true class by name: accuracy
        (of less than a tenth of positives average_precision), balanced_accuracy, auc, log_loss, and of two classes f1,
        positive_share, predicted_positive_share, expected_ratio and, if the data have the bags of training,
        auc_within_bags; of several, confusion: for each true class, by its name, how many of its rows are predicted to
        be of which.

    Raises:
        FileNotFoundError, ValueError: bad input.
    """
    file = TableFile(data)
    file.require_columns(truth, *model.columns.names)
    of_bag = [] if model.bag is None else file.split_names(model.bag)
    of_bag = of_bag if set(of_bag) <= set(file.columns) else []
    metadata = read_metadata(file, None, [truth, *of_bag])
    classes = truth_of(model, metadata.columns[truth], Column(file.path, truth), positive=positive)
    known = ~np.isnan(classes)
    logits = np.concatenate([part for part, _ in model.scores(file)])[known]
    table = encode_table(file, model.columns, rows=metadata.rows)
    groups = _groups([metadata.columns[name] for name in of_bag])
    seen = was_trained_on(model.estimator, table, None if model.copies else groups)  # these have a row several times
    found = {"on": "rows", "rows": metadata.rows, "known_rows": int(known.sum()), "trained_on": seen}
    found |= measure(model.estimator, logits, truth=classes[known], groups=None if groups is None else groups[known])
    if logits.ndim == 2:
        found["confusion"] = _confusion(classes[known], logits.argmax(1), model.estimator.classes_.tolist())
    return found


def _groups(columns: list[Any]) -> NDArray[Any] | None:
    """The bag of each row, if all rows have one."""
    if not columns or any(column.isna().any() for column in columns):
        return None
    codes = np.column_stack([column.astype(str).factorize()[0] for column in columns])
    return np.asarray(np.unique(codes, axis=0, return_inverse=True)[1]).ravel()


def truth_of(model: TableModel, values: Any, where: Column, *, positive: str | None) -> NDArray[np.float64]:
    """A column of true classes as 0 and 1 or, where columns of labels name the classes, 0 to C - 1; NaN if empty."""
    known = values.notna().to_numpy()
    if not known.any():
        raise ValueError(f"{where} has no value in any row. Name the column of true classes, or leave `truth` out.")
    found = np.full(len(values), np.nan)
    if positive is None and len(model.labels) > 1 and model.estimator.label != "interval":
        found[known] = true_classes(values[known], where, model.labels)
        return found
    if len(model.estimator.classes_) > 2:
        raise ValueError(f"`positive` goes with two classes; this model has {len(model.estimator.classes_)}.")
    found[known] = binary(values[known], where, positive=positive)
    return found


def _confusion(truth: Any, predicted: Any, names: list[str]) -> dict[str, dict[str, int]]:
    """How many rows of each true class are predicted to be of each class."""
    table = confusion_matrix(truth, predicted, labels=np.arange(len(names)))
    return {name: dict(zip(names, row.tolist(), strict=True)) for name, row in zip(names, table, strict=True)}


def evaluate_bags(
    model: TableModel,
    data: str | os.PathLike[str],
    *,
    bag: str | None = None,
    label: str | None = None,
    copies: str | None = None,
) -> dict[str, Any]:
    """Measures of a model against labels such as it learned from.

    Args:
        model: the model.
        data: a table with its columns, bags and labels.
        bag: the column of bags, or several with commas; by default that of training.
        label: the column, or two, of labels; by default that of training.
        copies: the column that says how many instances a row stands for; by default that of training.

    Returns:
        on, rows, bags, and measures by name, such as log_likelihood and expected_count_error of LLP, bag_accuracy of
        MIL, mean_probability and recall of PU; source, "new", "training" or, if these are the training data and some
        were held out, "held-out"; trained_on, whether the model was trained on these data, on which the
        measures, of all rows, make it look better than it is; verdicts, as reports have them, which are then of the
        held-out bags alone; of PU also selection, a sentence on whether the labelled positives look selected at random.

    Raises:
        FileNotFoundError, ValueError: bad input.
    """
    file = TableFile(data)
    estimator = model.estimator
    labels = model.labels if label is None else file.parse_columns(label)
    of_rows = isinstance(estimator, PUClassifier)
    metadata = model.metadata(file, bag=None if of_rows else bag or model.bag, labels=labels, copies=copies)
    y = labels_as_trained(model, metadata, labels, file)
    table = encode_table(file, model.columns, rows=metadata.rows)
    bags = None if of_rows else metadata.bags()
    counted = {} if bags is None else {"bags": len(bags)}
    measures = measure(estimator, **scores_of(estimator, table, bags), y=y, bags=bags)
    judged = judge(estimator, table, metadata.bag_of, metadata.copies)
    told = {"verdicts": [one.to_json() for one in verdicts(estimator, judged, y[judged.rows])]}
    found = {"on": "labels", "rows": metadata.rows} | counted | measures | {"source": judged.source} | told
    found["trained_on"] = judged.source != "new"
    return found | ({"selection": selection_sentence(estimator, measures)} if of_rows else {})


def labels_as_trained(
    model: TableModel, metadata: RowMetadata, labels: list[str], file: TableFile
) -> NDArray[Any] | ClassTable:
    """Labels of the rows of a table, read as those of training were."""
    estimator = model.estimator
    if not isinstance(estimator, LLPClassifier):
        return class_labels(estimator, metadata, labels, file, model.positive)
    kind, noise, rounding = estimator.label, estimator.noise, estimator.rounding
    return count_labels(metadata, labels, file.path, kind=kind, noise=noise, rounding=rounding)[0]
