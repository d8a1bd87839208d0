"""How good a model is on a table: against labels of bags, or against the truth about rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kofn import metrics
from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._baselines import losses_without_features
from kofn.estimators._columns import EncodedTable
from kofn.estimators._mil_classifier import ATTENTION
from kofn.metrics import bag_scores

Array = NDArray[Any]

# Measures in the order in which they are shown, as people call them.
MEASURE_NAMES = {
    "log_likelihood": "log-likelihood of a bag's label",
    "log_likelihood_baseline": "the same, baseline without features",
    "expected_count_error": "expected count is off by",
    "calibration_error": "calibration error of counts",
    "expected_count_in_interval": "expected count inside the bounds",
    "distance_to_observed": "expected count from the observed",
    "bag_accuracy": "bags right",
    "bag_auc": "AUC of bags",
    "mixture": "positives among unlabelled, given",
    "predicted_positive_share": "predicted positive",
    "mean_probability": "mean probability of unlabelled",
    "recall": "labelled positives found",
    "accuracy": "rows right",
    "balanced_accuracy": "rows right, classes balanced",
    "auc": "AUC of rows",
    "f1": "F1 of rows",
    "log_loss": "log-loss of a row",
    "positive_share": "truly positive",
}


def scores_of(estimator: Any, table: EncodedTable, bag_of: Array | None) -> Array:
    """Log-odds (n,) of the rows; of an attention model those of the bags, in the order in which they first appear."""
    scores: Array
    if estimator.loss in ATTENTION:
        scores = estimator.bag_decision_function(table, bag_of)
    else:
        scores = estimator.decision_function(table)
    return scores


def measure(estimator: Any, scores: Array, y: Array, bag_of: Array | None) -> dict[str, float]:
    """Measures against the labels that the estimator learns from.

    Args:
        estimator: fitted.
        scores: as `scores_of` gives them; of training data by models that had not seen them.
        y: (n,) labels of the rows as its `fit` takes them.
        bag_of: (n,) number of each row's bag; None for PU.

    Returns:
        LLP: log_likelihood (a bag) and with known counts expected_count_error and calibration_error. MIL: bag_accuracy
        and, with bags of both kinds, bag_auc. PU: among the unlabelled predicted_positive_share, mean_probability and
        the mixture they should have; and recall, the share of the labelled that are predicted positive.
    """
    if isinstance(estimator, LLPClassifier):
        return _counts(estimator, scores, y, bag_of)
    if isinstance(estimator, MILClassifier):
        return _bags(estimator, scores, y, bag_of)
    return _mixture(estimator, scores, y)


def baseline(estimator: Any, y: Array, bag_of: Array | None) -> dict[str, float]:
    """Of LLP log_likelihood_baseline: had every row the share of positives of all these bags."""
    if not isinstance(estimator, LLPClassifier):
        return {}
    bags = Bags.from_ids(np.arange(len(y)) if bag_of is None else bag_of)
    _, stated, objective, counts = estimator._statement(y, bags, estimator.classes_)
    rate = float(counts.clamp(min=0).minimum(bags.sizes.double()).sum() / bags.sizes.sum())
    return {"log_likelihood_baseline": -float(losses_without_features(objective, stated, bags, rate).mean())}


def measure_rows(logits: Array, truth: Array) -> dict[str, float]:
    """Measures of the scores (n,) of rows against their true classes, 0 and 1. Some exist only if both are there."""
    surprise = np.logaddexp(0.0, np.where(truth == 1, -logits, logits))
    result = {
        "accuracy": metrics.accuracy(truth, logits),
        "log_loss": float(surprise.mean()),
        "positive_share": float(truth.mean()),
        "predicted_positive_share": float((logits > 0).mean()),
    }
    if 0 < truth.sum() < len(truth):
        result |= {
            "auc": metrics.auc(truth, logits),
            "balanced_accuracy": metrics.balanced_accuracy(truth, logits),
            "f1": metrics.f1(truth, logits),
        }
    return result


def _counts(estimator: LLPClassifier, scores: Array, y: Array, bag_of: Array | None) -> dict[str, float]:
    bags = Bags.from_ids(np.arange(len(y)) if bag_of is None else bag_of)
    logits = torch.from_numpy(scores)[bags.index]
    _, stated, objective, counts = estimator._statement(y, bags, estimator.classes_)
    result = {"log_likelihood": -float(objective(logits, stated, bags.offsets).mean())}
    expected = CountDistribution(logits, offsets=bags.offsets).mean
    if estimator.label == "interval":
        inside = (expected >= stated[:, 0] - 0.5) & (expected <= stated[:, 1] + 0.5)
        return result | {"expected_count_in_interval": float(inside.double().mean())}
    if estimator.noise is not None:
        return result | {"distance_to_observed": float((expected - counts).abs().mean())}
    whole = counts.round().long()
    return result | {
        "expected_count_error": metrics.expected_count_error(logits, whole, offsets=bags.offsets),
        "calibration_error": metrics.count_calibration(logits, whole, offsets=bags.offsets).error,
    }


def _bags(estimator: MILClassifier, scores: Array, y: Array, bag_of: Array | None) -> dict[str, float]:
    bags = Bags.from_ids(np.arange(len(y)) if bag_of is None else bag_of)
    labels = bags.common(y).numpy()
    if estimator.loss not in ATTENTION:
        scores = bag_scores(torch.from_numpy(scores)[bags.index], offsets=bags.offsets).numpy()
    result = {"bag_accuracy": metrics.accuracy(labels, scores)}
    if 0 < labels.sum() < len(labels):
        result["bag_auc"] = metrics.auc(labels, scores)
    return result


def _mixture(estimator: PUClassifier, scores: Array, y: Array) -> dict[str, float]:
    result = {"mixture": float(estimator.mixture_)}
    unlabelled, labelled = scores[y != 1], scores[y == 1]
    if len(unlabelled):
        result["predicted_positive_share"] = float((unlabelled > 0).mean())
        result["mean_probability"] = float((1 / (1 + np.exp(-np.clip(unlabelled, -500, 500)))).mean())
    if len(labelled):
        result["recall"] = float((labelled > 0).mean())
    return result
