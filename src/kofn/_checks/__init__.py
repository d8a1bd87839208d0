"""Checks of arguments that are to move beside their readers."""

from kofn._checks._estimators import counts_of_bags, intervals, shares_of_bags
from kofn._checks._labels import (
    bag_labels,
    bag_pairs,
    counts_fit,
    fractions,
    law_shape,
    noise,
    normalised,
    prior,
    target,
    whole_counts,
)
from kofn._checks._options import extra, option, whole_number
from kofn._checks._tensors import is_tensor, logits, mask, not_both, offsets, per_bag, real_per_bag, some_logits

__all__ = [
    "bag_labels",
    "bag_pairs",
    "counts_fit",
    "counts_of_bags",
    "extra",
    "fractions",
    "intervals",
    "is_tensor",
    "law_shape",
    "logits",
    "mask",
    "noise",
    "normalised",
    "not_both",
    "offsets",
    "option",
    "per_bag",
    "prior",
    "real_per_bag",
    "shares_of_bags",
    "some_logits",
    "target",
    "whole_counts",
    "whole_number",
]
