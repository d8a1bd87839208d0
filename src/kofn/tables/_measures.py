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
from kofn.losses import count_loss
from kofn.tables._encoder import Floats
from kofn.targets import Exactly, counts_of_proportions, from_proportions

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


def measure(estimator: Any, X: Floats, y: Array, bag_of: Array | None) -> dict[str, float]:  # noqa: N803
    """Measures against the labels that the estimator learns from.

    Args:
        estimator: fitted.
        X: (n, features).
        y: labels of the rows as its `fit` takes them.
        bag_of: (n,) number of each row's bag; None for PU.

    Returns:
        LLP: log_likelihood (a bag), and with known counts log_likelihood_baseline (had every row the share of positives
        of all these bags), expected_count_error and calibration_error. MIL: bag_accuracy and, with bags of both kinds,
        bag_auc. PU: among the unlabelled predicted_positive_share, mean_probability and the mixture they should have;
        and recall, the share of the labelled that are predicted positive.
    """
    if isinstance(estimator, LLPClassifier):
        return _counts(estimator, X, y, bag_of)
    if isinstance(estimator, MILClassifier):
        return _bags(estimator, X, y, bag_of)
    return _mixture(estimator, X, y)


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


def _counts(estimator: LLPClassifier, X: Floats, y: Array, bag_of: Array | None) -> dict[str, float]:  # noqa: N803
    bags = Bags.from_ids(np.arange(len(X)) if bag_of is None else bag_of)
    logits = torch.from_numpy(estimator.decision_function(X))[bags.index]
    result = {"log_likelihood": estimator.score(X, y, groups=np.arange(len(X)) if bag_of is None else bag_of)}
    labels = torch.as_tensor(y)[bags.index][bags.offsets[:-1]].double()
    expected = CountDistribution(logits, offsets=bags.offsets).mean
    if estimator.label == "interval":
        inside = (expected >= labels[:, 0] - 0.5) & (expected <= labels[:, 1] + 0.5)
        return result | {"expected_count_in_interval": float(inside.double().mean())}
    noisy = estimator.noise is not None
    counts = counts_of_proportions(labels, bags.sizes, noisy=noisy) if estimator.label == "proportion" else labels
    if estimator.noise is not None:
        return result | {"distance_to_observed": float((expected - counts).abs().mean())}
    whole = counts.round().long()
    # What features tell is measured from here: the distribution of a bag whose rows nothing tells apart.
    baseline = torch.full_like(logits, float(torch.logit(counts.sum() / bags.sizes.sum())))
    by_share = estimator.label == "proportion"
    target = from_proportions(labels, bags.sizes, rounding=estimator.rounding) if by_share else Exactly(whole)
    return result | {
        "log_likelihood_baseline": -float(count_loss(baseline, target, offsets=bags.offsets)),
        "expected_count_error": metrics.expected_count_error(logits, whole, offsets=bags.offsets),
        "calibration_error": metrics.count_calibration(logits, whole, offsets=bags.offsets).error,
    }


def _bags(estimator: MILClassifier, X: Floats, y: Array, bag_of: Array | None) -> dict[str, float]:  # noqa: N803
    groups = np.arange(len(X)) if bag_of is None else bag_of
    scores = estimator.bag_decision_function(X, groups)
    labels = Bags.from_ids(groups).common(y).numpy()
    result = {"bag_accuracy": metrics.accuracy(labels, scores)}
    if 0 < labels.sum() < len(labels):
        result["bag_auc"] = metrics.auc(labels, scores)
    return result


def _mixture(estimator: PUClassifier, X: Floats, y: Array) -> dict[str, float]:  # noqa: N803
    logits = estimator.decision_function(X)
    result = {"mixture": float(estimator.mixture_)}
    unlabelled, labelled = logits[y != 1], logits[y == 1]
    if len(unlabelled):
        result["predicted_positive_share"] = float((unlabelled > 0).mean())
        result["mean_probability"] = float((1 / (1 + np.exp(-np.clip(unlabelled, -500, 500)))).mean())
    if len(labelled):
        result["recall"] = float((labelled > 0).mean())
    return result
