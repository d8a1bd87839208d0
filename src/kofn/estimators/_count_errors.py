"""How far the distributions of counts are from the counts that are known."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn.classes import one_vs_rest
from kofn.counts import CountDistribution
from kofn.estimators._count_mixture import CountMixture, count_distribution
from kofn.metrics._calibration import LEVELS, CountCalibration, calibration_of

LEVEL = 0.9  # of the central interval of a count


def counts_of(
    members: Tensor, offsets: Tensor, counts: Tensor, bag_effect: float
) -> tuple[CountDistribution | CountMixture, Tensor]:
    """The distributions of the counts of bags, and what is known of them, float64 with NaN where nothing is.

    Of C classes these are those of all bags for the first class, then for the second, and so on.

    Args:
        members: (B, m) or (B, m, C) logits of instances by each of B models, one bag after the other.
        offsets: (b + 1,) of the bags.
        counts: (b,) or (b, C) known counts, negative where unknown.
        bag_effect: standard deviation of the shift of bags.
    """
    known = counts.double().masked_fill(counts < 0, torch.nan)
    if members.dim() == 3:
        starts = torch.arange(members.shape[2]).unsqueeze(1) * members.shape[1]
        offsets = torch.cat([offsets[:1], (starts + offsets[1:]).flatten()])  # all bags, once for each class
        members, known = one_vs_rest(members).flatten(1), known.T.flatten()
    return count_distribution(members, offsets, bag_effect), known


def calibration_where_known(
    dist: CountDistribution | CountMixture, counts: Tensor, levels: tuple[float, ...]
) -> CountCalibration:
    """Calibration on the bags whose counts are not NaN, of which there must be one."""
    return calibration_of(dist, counts.nan_to_num(0.0).long(), levels).of(~counts.isnan())


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
        seen = calibration_where_known(dist, counts, LEVELS)
        result["randomised_coverage"] = seen.coverage[LEVELS.index(LEVEL)]
        result["calibration_error"] = seen.error
    return result
