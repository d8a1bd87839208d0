"""Measures of positives and unlabelled, which need no negatives, and what they say of how positives were labelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kofn import metrics
from kofn.estimators._pu_classifier import PUClassifier
from kofn.metrics._selection import FEWEST

TOP = 0.1  # of the unlabelled
LEVEL = 0.05  # at which the selection of the labelled positives is called not random


def pu_measures(
    estimator: PUClassifier, unlabelled: NDArray[np.float64], labelled: NDArray[np.float64]
) -> dict[str, float]:
    """Measures of log-odds (u,) of unlabelled instances and (p,) of labelled positives, by their names.

    Returns:
        mixture, if it was estimated mixture_low and mixture_high; of the unlabelled predicted_positive_share and
        mean_probability; of the labelled recall; of both recall_at_tenth, lift_at_tenth, precision_at_tenth, pu_auc,
        implied_auc with implied_auc_low and implied_auc_high, and selection_p_value if the mixture was given, since an
        estimate rests on the very assumption that is tested, and there are 40 of each.
    """
    mixture = float(estimator.mixture_)
    result = {"mixture": mixture}
    low, high = estimator.mixture_interval_ or (mixture, mixture)
    if estimator.mixture_interval_ is not None:
        result["mixture_low"], result["mixture_high"] = low, high
    if len(unlabelled):
        result["predicted_positive_share"] = float((unlabelled > 0).mean())
        result["mean_probability"] = float(torch.from_numpy(unlabelled).sigmoid().mean())
    if len(labelled):
        result["recall"] = float((labelled > 0).mean())
    if min(len(unlabelled), len(labelled)) < 2:
        return result
    result["recall_at_tenth"] = metrics.recall_at(labelled, unlabelled, TOP)
    result["lift_at_tenth"] = result["recall_at_tenth"] / TOP
    result["precision_at_tenth"] = mixture * result["lift_at_tenth"]
    result["pu_auc"] = metrics.pu_auc(labelled, unlabelled)
    if high < 1:
        result["implied_auc"] = metrics.auc_of_mixture(result["pu_auc"], mixture)
        bounds = metrics.auc_bounds(labelled, unlabelled, mixture=(low, high))
        result["implied_auc_low"], result["implied_auc_high"] = bounds
    if estimator.mixture_interval_ is None:
        p_value = metrics.selection_p_value(labelled, unlabelled, mixture=mixture)
        result |= {} if np.isnan(p_value) else {"selection_p_value": p_value}
    return result


def selection_sentence(estimator: PUClassifier, found: Mapping[str, Any]) -> str:
    """In one sentence, whether the labelled positives look selected at random, from measures by their names."""
    if estimator.mixture_interval_ is not None:
        return (
            "Whether the labelled positives were selected at random cannot be checked, because the mixture was "
            "estimated as if they were; give the prior to check it."
        )
    p_value = found.get("selection_p_value")
    if p_value is None:
        return (
            f"Whether the labelled positives were selected at random cannot be checked on fewer than "
            f"{FEWEST} labelled and as many unlabelled rows."
        )
    if p_value >= LEVEL:
        return f"Nothing speaks against labelled positives that were selected at random (p = {p_value:.2g})."
    return (
        f"The labelled positives do not look selected at random (p = {p_value:.2g}): more of them have high scores "
        f"than a mixture of {found['mixture']:.3g} allows, so that easy ones were labelled more often or the mixture "
        f"is smaller."
    )
