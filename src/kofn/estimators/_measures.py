"""How good a fitted model is: each measure computed here, and only formatted elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn import metrics
from kofn.bags import Bags
from kofn.classes import one_vs_rest
from kofn.counts import CountDistribution
from kofn.estimators._bag_losses import MODEL, bag_losses
from kofn.estimators._baselines import NO_FEATURES
from kofn.estimators._class_table import ClassTable
from kofn.estimators._count_errors import LEVEL, count_errors, counts_of
from kofn.estimators._count_mixture import CountMixture, count_distribution
from kofn.estimators._ensemble import mixed
from kofn.estimators._llp_classifier import LLPClassifier
from kofn.estimators._measure_names import MEASURES
from kofn.estimators._mil_classifier import ATTENTION, MILClassifier
from kofn.estimators._pu_classifier import PUClassifier
from kofn.estimators._pu_measures import pu_measures
from kofn.estimators._rates import count_rates
from kofn.estimators._row_labels import whole_truth
from kofn.estimators._verdicts import RARE
from kofn.metrics._within_bags import pairs_within_bags

Array = NDArray[Any]


def measure(
    estimator: Any,
    logits: Array | None,
    *,
    y: Array | ClassTable | None = None,
    bags: Bags | None = None,
    truth: Array | None = None,
    bag_logits: Array | None = None,
    members: Tensor | None = None,
    groups: Array | None = None,
) -> dict[str, float]:
    """Measures of a fitted estimator by their names, which `MEASURES` explains.

    Args:
        estimator: fitted.
        logits: (n,) log-odds of the instances, or (n, C) logits of several classes; of training data by models that had
            not seen them. None for an attention model, if there is no truth.
        y: (n,) or (n, C) labels as its `fit` takes them, for the measures of its task.
        bags: which instances lie in which bag, for measures of bags; not needed for PU.
        truth: (n,) true classes, 0 and 1, or 0 to C - 1, -1 where not known: then rows with a class are measured, and
            counts are not told. With `y` of PU, those of the unlabelled are measured.
        bag_logits: (b,) log-odds of the bags by an attention model.
        members: (B, n) or (B, n, C) logits by each member of a bootstrap, whose mixture the labels and counts of bags
            are measured by; None where `logits` are of one model.
        groups: (n,) the bag of each instance, for the AUC within bags; by default as `bags` has it.

    Returns:
        With `y`, LLP: log_likelihood, log_likelihood_baseline, log_likelihood_gain. MIL: these, bag_accuracy,
        bag_accuracy_baseline, bag_auc. PU: the measures of `pu_measures`. With counts that `truth` or `y` tells:
        expected_count_error, expected_count_error_baseline, randomised_coverage, calibration_error; of bounds
        expected_count_in_interval, of noisy counts distance_to_observed. With `truth`: accuracy or, where positives are
        rare, average_precision, log_loss, positive_share, predicted_positive_share, expected_ratio, auc,
        auc_within_bags, balanced_accuracy, f1. What needs both classes is left out where there is one. Of several
        classes errors and coverages of counts are means over bags and classes.
    """
    bags = None if bags is None else bags.repeated()
    if members is None and logits is not None:
        members = torch.from_numpy(logits).unsqueeze(0)
    if logits is not None and members is not None and logits.ndim == 2:
        return _in_order(_several(estimator, torch.from_numpy(logits), members, y, bags, truth))
    found: dict[str, float] = {}
    judged: Any = np.ones(0 if logits is None else len(logits), dtype=bool)
    if isinstance(estimator, PUClassifier):
        if y is not None and logits is not None:
            judged = np.asarray(y != estimator.classes_[1])
            found |= pu_measures(estimator, logits[judged], logits[~judged])
    elif bags is not None:
        scores = None if members is None else members[:, bags.index]
        if isinstance(estimator, LLPClassifier) and y is not None and scores is not None:
            found |= _likelihood(estimator, y, bags, members=scores)
        if bag_logits is None and scores is not None:
            bag_logits = mixed(torch.stack([metrics.bag_scores(x, offsets=bags.offsets) for x in scores])).numpy()
        if isinstance(estimator, MILClassifier) and y is not None and bag_logits is not None:
            found |= _likelihood(estimator, y, bags, bag_logits=bag_logits) | _bags(estimator, bag_logits, y, bags)
        if scores is not None and estimator.loss not in ATTENTION:
            found |= _counts(estimator, scores, y, bags, whole_truth(truth))
    if truth is not None and logits is not None:
        judged = judged & (truth >= 0)
        if judged.any():
            if groups is None and bags is not None and not isinstance(estimator, PUClassifier):
                groups = bag_of_rows(bags, len(logits))
            marginal = estimator._marginal(torch.from_numpy(logits[judged])).numpy()
            of = None if groups is None else groups[judged]
            found |= _instances(marginal, np.asarray(truth, dtype=np.int64)[judged], of)
    return _in_order(found)


def _in_order(found: Mapping[str, float]) -> dict[str, float]:
    return {name: found[name] for name in MEASURES if name in found}


def scores_of(estimator: Any, X: Any, bags: Bags | None) -> dict[str, Any]:
    """Scores as `measure` takes them: logits of instances and by each member, or of bags by an attention model."""
    if estimator.loss in ATTENTION and bags is not None:
        return {"logits": None, "bag_logits": estimator._pooled_logits(estimator._instances(X), bags)}
    members = estimator._member_logits(X)
    return {"logits": mixed(members, classes=members.dim() == 3).numpy(), "members": members}


def bag_of_rows(bags: Bags, rows: int) -> NDArray[np.int64] | None:
    """(rows,) the bag of each row, below 0 for a row in no bag; None where no bag has two rows to be put in order."""
    found = np.arange(-rows, 0)
    found[bags.index.numpy()] = bags.bag_of().numpy()
    return found if len(bags) < int((found >= 0).sum()) else None


def known_counts(
    estimator: Any, y: Array | ClassTable | None, bags: Bags, truth: Array | None
) -> tuple[Tensor | None, bool]:
    """What is known of the count of each bag, (b,) or (b, C) float64 or None, and whether it is the count itself."""
    if truth is not None:
        classes = torch.from_numpy(np.asarray(truth, dtype=np.int64))
        many = len(estimator.classes_)
        return bags.sum(classes if many == 2 else torch.eye(many, dtype=torch.int64)[classes]).double(), True
    if y is None or not isinstance(estimator, LLPClassifier) or estimator.label == "interval":
        return None, False
    counts = estimator._statement(y, bags, estimator.classes_)[3]
    return counts, estimator.noise is None and bool((counts == counts.round()).all())


def count_summaries(dist: CountDistribution | CountMixture) -> dict[str, NDArray[Any]]:
    """The distribution of each bag's count in numbers.

    Args:
        dist: of b bags; with `bootstrap` a mixture of such.

    Returns:
        Arrays (b,): size; mean; low and high, the central interval that holds the count with probability 0.9 or more
        (`kofn.CountDistribution.interval`); at_least_one, P(S >= 1).

    Examples:
        >>> import torch, kofn
        >>> from kofn.tables import count_summaries
        >>> found = count_summaries(kofn.CountDistribution(torch.zeros(1, 4).double()))
        >>> {name: values.tolist() for name, values in found.items()}
        {'size': [4], 'mean': [2.0], 'low': [0], 'high': [4], 'at_least_one': [0.9375]}
    """
    low, high = dist.interval(LEVEL)
    return {
        "size": dist.sizes.numpy(),
        "mean": dist.mean.numpy(),
        "low": low.numpy(),
        "high": high.numpy(),
        "at_least_one": dist.log_prob_between(1, None).exp().numpy(),
    }


def _several(
    estimator: Any,
    logits: Tensor,
    members: Tensor,
    y: Array | ClassTable | None,
    bags: Bags | None,
    truth: Array | None,
) -> dict[str, float]:
    """Measures of several classes: of the labels of bags, of counts, of instances."""
    found: dict[str, float] = {}
    if bags is not None:
        scores = members[:, bags.index]
        if y is not None:
            found |= _likelihood(estimator, y, bags, members=scores)
        counts, _ = known_counts(estimator, y, bags, whole_truth(truth))
        if counts is not None and bool((counts >= 0).any()):
            rates = torch.as_tensor(count_rates(counts, bags.sizes, None)[0])
            dist, known = counts_of(scores, bags.offsets, counts, estimator.bag_effect_)
            alike = (rates.unsqueeze(1) * bags.sizes).flatten()
            found |= count_errors(dist, known, alike, exact=True)
    if truth is not None and bool((truth >= 0).any()):
        codes = torch.from_numpy(np.asarray(truth, dtype=np.int64))
        found |= _class_instances(logits[codes >= 0], codes[codes >= 0])
    return found


def _likelihood(estimator: Any, y: Any, bags: Bags, **scores: Any) -> dict[str, float]:
    """Mean log-probabilities of the labels of bags, by the model and without features."""
    losses = bag_losses(estimator, y, bags, **scores)
    mean, baseline = (-float(losses[name].mean()) for name in (MODEL, NO_FEATURES))
    return {
        "log_likelihood": mean,
        "log_likelihood_baseline": baseline,
        "log_likelihood_gain": mean - baseline,
    }


def _counts(
    estimator: Any, logits: Tensor, y: Array | ClassTable | None, bags: Bags, truth: Array | None
) -> dict[str, float]:
    known, exact = known_counts(estimator, y, bags, truth)
    dist = count_distribution(logits, bags.offsets, estimator.bag_effect_)
    expected = dist.mean
    if known is None:
        if y is None or not isinstance(estimator, LLPClassifier):
            return {}
        stated = estimator._statement(y, bags, estimator.classes_)[1]
        inside = (expected >= stated[:, 0] - 0.5) & (expected <= stated[:, 1] + 0.5)
        return {"expected_count_in_interval": float(inside.double().mean())}
    if isinstance(estimator, LLPClassifier) and estimator.noise is not None and truth is None:
        return {"distance_to_observed": float((expected - known).abs().mean())}
    alike = bags.sizes * (known.sum() / bags.sizes.sum())
    return count_errors(dist, known, alike, exact=exact)


def _bags(estimator: MILClassifier, scores: Array, y: Any, bags: Bags) -> dict[str, float]:
    labels = estimator._bag_labels(y, bags, len(y)).numpy()
    result = {"bag_accuracy": metrics.accuracy(labels, scores)}
    result["bag_accuracy_baseline"] = float(max(labels.mean(), 1 - labels.mean()))
    if 0 < labels.sum() < len(labels):
        result["bag_auc"] = metrics.auc(labels, scores)
    return result


def _instances(logits: Array, truth: Array, groups: Array | None) -> dict[str, float]:
    """Measures of the scores (n,) of instances against their true classes, 0 and 1, with the bags of these, if any."""
    positive, negative = np.logaddexp(0.0, -logits), np.logaddexp(0.0, logits)  # -log P of either class
    share = float(truth.mean())
    result = {
        "log_loss": float(np.where(truth == 1, positive, negative).mean()),
        "positive_share": share,
        "predicted_positive_share": float((logits > 0).mean()),
    }
    if share < RARE and truth.any():
        result["average_precision"] = metrics.average_precision(truth, logits)
    else:
        result["accuracy"] = metrics.accuracy(truth, logits)
    if truth.any():
        result["expected_ratio"] = float(np.exp(-positive).sum() / truth.sum())
    if 0 < truth.sum() < len(truth):
        result |= {
            "auc": metrics.auc(truth, logits),
            "balanced_accuracy": metrics.balanced_accuracy(truth, logits),
            "f1": metrics.f1(truth, logits),
        }
    if groups is not None:
        in_order, pairs = pairs_within_bags(truth, logits, groups)
        result |= {"auc_within_bags": float(in_order.sum() / pairs.sum())} if pairs.any() else {}
    return result


def _class_instances(logits: Tensor, truth: Tensor) -> dict[str, float]:
    """Measures of the logits (n, C) of instances against their true classes, 0 to C - 1."""
    predicted = logits.argmax(1)
    seen = truth.unique()
    right = predicted == truth
    result = {
        "accuracy": float(right.double().mean()),
        "log_loss": float(torch.nn.functional.cross_entropy(logits.double(), truth)),
        "balanced_accuracy": float(torch.stack([right[truth == c].double().mean() for c in seen]).mean()),
    }
    if len(seen) > 1:
        each = [metrics.auc(truth == c, log_odds) for c, log_odds in enumerate(one_vs_rest(logits)) if c in seen]
        result["auc"] = float(np.mean(each))
    return result
