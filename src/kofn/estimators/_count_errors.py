"""How far the distributions of counts are from the counts that are known."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn.classes import one_vs_rest
from kofn.counts import CountDistribution
from kofn.estimators._count_mixture import CountMixture, count_distribution
from kofn.metrics._calibration import LEVELS, calibration_of

LEVEL = 0.9  # of the central interval of a count


def count_errors(
    dist: CountDistribution | CountMixture, counts: Tensor, alike: Tensor, *, exact: bool
) -> dict[str, float]:
    """Measures of the distributions of bags' counts; `kofn.estimators._measure_names.MEASURES` explains them.

    Args:
        dist: of the bags.
        counts: (b,) float64 what is known of them, NaN where nothing is.
        alike: (b,) the counts that are expected without features.
        exact: whether the counts are whole, so that intervals can be measured.
    """
    known = ~counts.isnan()
    result = {
        "expected_count_error": float((dist.mean - counts)[known].abs().mean()),
        "expected_count_error_baseline": float((alike - counts)[known].abs().mean()),
    }
    if exact:
        low, high = dist.interval(LEVEL)
        result["interval_coverage"] = float(((low <= counts) & (counts <= high))[known].double().mean())
        if bool(known.all()):
            result["calibration_error"] = calibration_of(dist, counts.long(), LEVELS).error
    return result


def class_count_errors(
    logits: Tensor, offsets: Tensor, counts: Tensor, rates: Tensor, *, bag_effect: float = 0.0
) -> dict[str, float]:
    """The same of the counts of several classes, each by itself: means over bags and classes.

    Args:
        logits: (B, m, C) of instances by each of B models, one bag after the other.
        offsets: (b + 1,) of the bags.
        counts: (b, C) float64 numbers of each class, negative where unknown.
        rates: (C,) of the classes.
        bag_effect: standard deviation of the shift of bags.
    """
    starts = torch.arange(logits.shape[2]).unsqueeze(1) * logits.shape[1]
    each = torch.cat([offsets[:1], (starts + offsets[1:]).flatten()])  # all bags, once for each class
    alike = rates.unsqueeze(1) * offsets.diff()
    known = counts.masked_fill(counts < 0, torch.nan).T.flatten()
    dist = count_distribution(one_vs_rest(logits).flatten(1), each, bag_effect)
    return count_errors(dist, known, alike.flatten(), exact=True)
