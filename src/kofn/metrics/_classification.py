"""Scores against labels, of instances or of bags: scikit-learn's metrics behind checks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

_Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
_Values: TypeAlias = "Tensor | _Array | Sequence[float]"


def auc(labels: _Values, scores: _Values) -> float:
    """Area under the ROC curve: the probability that a positive scores above a negative, ties counting half.

        AUC = P(score+ > score-) + P(score+ = score-) / 2

    Only the order of the scores matters, so logits do as well as probabilities, and infinite ones are welcome. With
    labels of instances and logits it is the instance AUC, with bag labels and `bag_scores` the bag AUC.

    Args:
        labels: 0 and 1, both present; a tensor, an array or a list of any shape.
        scores: of the same shape.

    Raises:
        ValueError: shapes that differ, labels other than 0 and 1, one class only, NaN.
        ImportError: scikit-learn is not there.

    Examples:
        >>> import torch
        >>> from kofn import metrics
        >>> metrics.auc([0, 1, 0, 1], [-2.0, -1.0, 0.5, 3.0])  # three of four pairs in order
        0.75
        >>> logits, offsets = torch.tensor([-3.0, 4.0, -5.0, -4.0]), torch.tensor([0, 2, 4])
        >>> metrics.auc([1, 0], metrics.bag_scores(logits, offsets=offsets))
        1.0
    """
    truth, values = _pair(labels, scores, "auc", 0, 1)
    ranks = np.unique(values, return_inverse=True)[1]  # same order, finite
    return float(_sklearn().roc_auc_score(truth, ranks))


def average_precision(labels: _Values, scores: _Values) -> float:
    """Average precision: the area under the curve of precision against recall. Some label must be positive.

        sum over thresholds of (recall_k - recall_{k - 1}) precision_k

    Where positives are rare it says more than accuracy, which is high for a model that finds none of them. Scores
    without any information have about the share of positives.

    Args:
        labels: 0 and 1; a tensor, an array or a list of any shape.
        scores: of the same shape; only their order matters.

    Raises:
        ValueError: shapes that differ, labels other than 0 and 1, no positive, NaN.
        ImportError: scikit-learn is not there.

    Examples:
        >>> from kofn import metrics
        >>> metrics.average_precision([0, 1, 0, 1], [-2.0, -1.0, 0.5, 3.0])  # (1 + 2/3) / 2
        0.8333333333333333
    """
    truth, values = _pair(labels, scores, "average_precision", 1)
    ranks = np.unique(values, return_inverse=True)[1]  # same order, finite
    return float(_sklearn().average_precision_score(truth, ranks))


def accuracy(labels: _Values, scores: _Values, *, threshold: float = 0.0) -> float:
    """Fraction of correct predictions, (TP + TN) / n.

    Args:
        labels: 0 and 1; a tensor, an array or a list of any shape.
        scores: of the same shape.
        threshold: scores above it are predicted positive: 0 for log-odds, 0.5 for probabilities.

    Raises:
        ValueError: shapes that differ, labels other than 0 and 1, nothing at all, NaN.
        ImportError: scikit-learn is not there.

    Examples:
        >>> from kofn import metrics
        >>> metrics.accuracy([0, 1, 0, 1], [-2.0, -1.0, 0.5, 3.0])
        0.5
        >>> metrics.accuracy([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9], threshold=0.5)
        0.5
    """
    return float(_sklearn().accuracy_score(*_decided(labels, scores, threshold, "accuracy")))


def balanced_accuracy(labels: _Values, scores: _Values, *, threshold: float = 0.0) -> float:
    """Mean of the accuracies on the positives and on the negatives, that is of the recalls; both must be there.

        (TP / (TP + FN) + TN / (TN + FP)) / 2

    Arguments and errors as for `accuracy`.

    Examples:
        >>> from kofn import metrics
        >>> metrics.balanced_accuracy([0, 0, 0, 1], [-2.0, -1.0, -3.0, -4.0])
        0.5
    """
    truth, predicted = _decided(labels, scores, threshold, "balanced_accuracy", 0, 1)
    return float(_sklearn().balanced_accuracy_score(truth, predicted))


def precision(labels: _Values, scores: _Values, *, threshold: float = 0.0) -> float:
    """Share of positives among the instances predicted positive; 0 when none is. Some label must be positive.

        TP / (TP + FP)

    Arguments and errors as for `accuracy`.

    Examples:
        >>> from kofn import metrics
        >>> metrics.precision([0, 1, 0, 1], [2.0, 1.0, -3.0, -4.0])
        0.5
    """
    truth, predicted = _decided(labels, scores, threshold, "precision", 1)
    return float(_sklearn().precision_score(truth, predicted, zero_division=0.0))


def recall(labels: _Values, scores: _Values, *, threshold: float = 0.0) -> float:
    """Share of the positives that are predicted positive. Some label must be positive.

        TP / (TP + FN)

    Arguments and errors as for `accuracy`.

    Examples:
        >>> from kofn import metrics
        >>> metrics.recall([1, 1, 0, 1, 1], [2.0, 1.0, -3.0, -4.0, 5.0])
        0.75
    """
    truth, predicted = _decided(labels, scores, threshold, "recall", 1)
    return float(_sklearn().recall_score(truth, predicted))


def f1(labels: _Values, scores: _Values, *, threshold: float = 0.0) -> float:
    """Harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN). Some label must be positive.

    Arguments and errors as for `accuracy`.

    Examples:
        >>> from kofn import metrics
        >>> metrics.f1([0, 1, 0, 1], [2.0, 1.0, -3.0, -4.0])
        0.5
    """
    truth, predicted = _decided(labels, scores, threshold, "f1", 1)
    return float(_sklearn().f1_score(truth, predicted))


def _decided(labels: _Values, scores: _Values, threshold: float, metric: str, *classes: int) -> tuple[_Array, _Array]:
    truth, values = _pair(labels, scores, metric, *classes)
    return truth, (values > threshold).astype(np.int64)


def _pair(labels: _Values, scores: _Values, metric: str, *classes: int) -> tuple[_Array, _Array]:
    """Labels 0 and 1, of which a metric needs some, and scores that are no NaN, flat, of one shape."""
    truth, values = _array(labels), _array(scores).astype(np.float64)
    if truth.shape != values.shape:
        raise ValueError(
            f"`labels` and `scores` must have the same shape; got {truth.shape} and {values.shape}. "
            f"Bag labels go with one score a bag: kofn.metrics.bag_scores(logits, offsets=offsets)."
        )
    if not truth.size:
        raise ValueError("`labels` must not be empty; there is nothing to measure.")
    if not np.isin(truth, (0, 1)).all():
        odd = truth[~np.isin(truth, (0, 1))].flat[0]
        raise ValueError(f"`labels` must be 0 or 1; got {odd}. Labels of -1 and 1 convert with (labels > 0).")
    if np.isnan(values).any():
        raise ValueError(f"`scores` must not be NaN; {int(np.isnan(values).sum())} of {values.size} are.")
    for label in classes:
        if not (truth == label).any():
            raise ValueError(
                f"`labels` must hold a {label} for `{metric}` to exist; all {truth.size} of them are {1 - label}. "
                f"Measure on a set that has both classes."
            )
    return truth.astype(np.int64).ravel(), values.ravel()


def _array(values: _Values) -> _Array:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return np.asarray(values.double() if values.is_floating_point() else values)  # numpy has no bfloat16
    return np.asarray(values)


def _sklearn() -> Any:
    """scikit-learn's metrics, imported when something is measured."""
    try:
        return import_module("sklearn.metrics")
    except ImportError as error:
        raise ImportError("kofn.metrics needs scikit-learn; install it with: pip install 'kofn[train]'") from error
