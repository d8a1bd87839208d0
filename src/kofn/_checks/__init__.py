"""Every argument check and every message to the user: what the argument is, what must hold, what came, the cure."""

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
from kofn._checks._options import extra, option
from kofn._checks._tensors import holds, is_tensor, logits, mask, not_both, offsets, per_bag, real_per_bag, some_logits

__all__ = [
    "bag_labels",
    "bag_pairs",
    "counts_fit",
    "extra",
    "fractions",
    "holds",
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
    "some_logits",
    "target",
    "whole_counts",
]
