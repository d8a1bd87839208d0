"""How far the distributions of counts are from the counts that are known."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import metrics
from kofn.classes import one_vs_rest
from kofn.counts import CountDistribution

LEVEL = 0.9  # of the central interval of a count


def count_errors(
    log_odds: Tensor, offsets: Tensor, counts: Tensor, alike: Tensor, *, exact: bool, bag_effect: float = 0.0
) -> dict[str, float]:
    """Measures of the distributions of bags' counts; `kofn.estimators._measure_names.MEASURES` explains them.

    Args:
        log_odds: (m,) of instances, one bag after the other.
        offsets: (b + 1,) of the bags.
        counts: (b,) float64 what is known of them, NaN where nothing is.
        alike: (b,) the counts that are expected without features.
        exact: whether the counts are whole, so that intervals can be measured.
        bag_effect: standard deviation of the shift of bags.
    """
    dist = CountDistribution(log_odds, offsets=offsets, bag_effect=bag_effect)
    known = ~counts.isnan()
    result = {
        "expected_count_error": float((dist.mean - counts)[known].abs().mean()),
        "expected_count_error_baseline": float((alike - counts)[known].abs().mean()),
    }
    if exact:
        low, high = dist.interval(LEVEL)
        result["interval_coverage"] = float(((low <= counts) & (counts <= high))[known].double().mean())
        if bool(known.all()):
            seen = metrics.count_calibration(log_odds, counts.long(), offsets=offsets, bag_effect=bag_effect)
            result["calibration_error"] = seen.error
    return result


def class_count_errors(
    logits: Tensor, offsets: Tensor, counts: Tensor, rates: Tensor, *, bag_effect: float = 0.0
) -> dict[str, float]:
    """The same of the counts of several classes, each by itself: means over bags and classes.

    Args:
        logits: (m, C) of instances, one bag after the other.
        offsets: (b + 1,) of the bags.
        counts: (b, C) float64 numbers of each class, negative where unknown.
        rates: (C,) of the classes.
        bag_effect: standard deviation of the shift of bags.
    """
    classes = logits.shape[1]
    starts = torch.arange(classes).unsqueeze(1) * len(logits)
    each = torch.cat([offsets[:1], (starts + offsets[1:]).flatten()])  # all bags, once for each class
    alike = rates.unsqueeze(1) * offsets.diff()
    known = counts.masked_fill(counts < 0, torch.nan).T.flatten()
    log_odds = one_vs_rest(logits).flatten()
    return count_errors(log_odds, each, known, alike.flatten(), exact=True, bag_effect=bag_effect)
