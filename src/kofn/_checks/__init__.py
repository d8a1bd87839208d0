"""Every argument check and every message to the user: what the argument is, what must hold, what came, the cure."""

from kofn._checks._data import (
    bag_ids,
    no_empty_bag,
    one_for_each_instance,
    one_value,
    positions,
    which_bags,
    whole_numbers,
)
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
    "bag_ids",
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
    "no_empty_bag",
    "noise",
    "normalised",
    "not_both",
    "offsets",
    "one_for_each_instance",
    "one_value",
    "option",
    "per_bag",
    "positions",
    "prior",
    "real_per_bag",
    "some_logits",
    "target",
    "which_bags",
    "whole_counts",
    "whole_numbers",
]
