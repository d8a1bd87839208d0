"""Labels of bags: what a count, a proportion or a law may be."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn._checks._tensors import holds, is_tensor, real_per_bag


def fractions(name: str, value: Tensor) -> Tensor:
    """Numbers from 0 to 1."""
    if not holds((value >= 0) & (value <= 1)):
        worst = float(value.min() if bool((value < 0).any()) else value.max())
        raise ValueError(f"`{name}` must lie between 0 and 1; got {worst:g}. Percentages are divided by 100 first.")
    return value


def bag_labels(value: object, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """One label for each bag, 0 or 1 of any dtype, as bool."""
    tensor = value.long() if isinstance(value, Tensor) and value.dtype == torch.bool else value
    labels = real_per_bag("bag_labels", tensor, like, shape)
    if not holds((labels == 0) | (labels == 1)):
        odd = float(labels[(labels != 0) & (labels != 1)][0])
        raise ValueError(
            f"`bag_labels` must be 0 (no positive in the bag) or 1 (at least one); got {odd:g}. "
            f"Labels of -1 and 1 convert with (labels > 0); proportions go to kofn.losses.llp_loss."
        )
    return labels == 1


def counts_fit(counts: Tensor, sizes: Tensor) -> None:
    """Counts that a bag of that size can have."""
    fits = (counts >= 0) & (counts <= sizes)
    if not holds(fits):
        bag = int((~fits).flatten().nonzero()[0])
        size = int(sizes.expand(fits.shape).flatten()[bag])
        raise ValueError(
            f"`counts` must lie between 0 and the bag's size; bag {bag} has {size} instances and count "
            f"{int(counts.flatten()[bag])}. Check the order of the bags, or that these are counts, not labels."
        )


def whole_counts(exact: Tensor, slack: Tensor) -> None:
    """Proportions that are a whole number of positives."""
    whole = (exact - exact.round()).abs() <= slack
    if not holds(whole):
        bag = int((~whole).flatten().nonzero()[0])
        raise ValueError(
            f"`proportions` must be a whole count of the bag when rounding='error'; bag {bag} would have "
            f"{float(exact.flatten()[bag]):g} positives. Choose rounding='nearest' if they were published with few "
            f"digits, rounding='spread' to share each between its two neighbouring counts."
        )


def law_shape(name: str, value: object, shape: tuple[int, ...], *, ragged: bool) -> Tensor:
    """One entry for every count of every bag, as `log_count_distribution` returns them."""
    tensor = is_tensor(name, value)
    try:
        return tensor.expand(shape)
    except RuntimeError:
        rule = "flat (instances + bags,)" if ragged else "(..., n + 1)"
        raise ValueError(
            f"`{name}` must have an entry for each count, {rule}, here {tuple(shape)}; got {tuple(tensor.shape)}. "
            f"kofn.log_count_distribution returns this shape; counts past a bag's size have -inf."
        ) from None


def normalised(totals: Tensor) -> None:
    """Laws that sum to one; totals are the logs of their sums."""
    right = totals.abs() <= 1e-3
    if not holds(right):
        bag = int((~right).flatten().nonzero()[0])
        raise ValueError(
            f"`log_probs` must be logarithms of probabilities that sum to one; those of bag {bag} sum to "
            f"{float(totals.flatten()[bag].exp()):g}. Take the log of probabilities, or torch.log_softmax of scores."
        )


def noise(value: object) -> None:
    """A law on the real line or a callable."""
    if isinstance(value, torch.distributions.Distribution):
        if value.event_shape:
            raise ValueError(
                f"`noise` must be a law of one number; its event shape is {tuple(value.event_shape)}. "
                f"A noise scale for each bag is a batch shape: Normal(0.0, scales)."
            )
        if value.support is not torch.distributions.constraints.real:
            raise ValueError(
                f"`noise` must be a law on all real numbers, because observed - s may be any of them; "
                f"{type(value).__name__} is not. Pass its log-pmf as a function that is -inf outside its support."
            )
    elif not callable(value):
        raise TypeError(
            f"`noise` must be a torch.distributions law or a function from differences to log-probabilities; "
            f"got {type(value).__name__}. For instance torch.distributions.Laplace(0.0, scale)."
        )


def bag_pairs(value: object, bags: int) -> Tensor:
    """Pairs of bags, (p, 2)."""
    tensor = is_tensor("pairs", value)
    if tensor.dtype != torch.int64 or tensor.dim() != 2 or tensor.shape[1] != 2:
        raise ValueError(
            f"`pairs` must be int64 of shape (pairs, 2), the richer bag first; got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}. kofn.losses.pair_bags(proportions) makes them."
        )
    if not len(tensor):
        raise ValueError(
            f"`pairs` must hold at least one pair of bags with different proportions; got none from {bags} bags. "
            f"Equal proportions tell the classes apart in no way; put more bags in a batch."
        )
    if not holds((tensor >= 0) & (tensor < bags)):
        raise ValueError(f"`pairs` must index bags 0 to {bags - 1}; got {int(tensor.min())} to {int(tensor.max())}.")
    return tensor


def target(value: object, kind: type) -> None:
    """A statement about a count."""
    if not isinstance(value, kind):
        raise TypeError(
            f"`target` must say something of the count: kofn.Exactly(counts), kofn.AtLeast(1), ...; "
            f"got {type(value).__name__}. Plain counts are kofn.Exactly(counts)."
        )


def prior(prior: float, labeled_fraction: float) -> None:
    """A class prior, and a labelled fraction that it allows."""
    if not 0 <= prior <= 1:
        raise ValueError(f"`prior` must lie between 0 and 1; got {prior:g}.")
    if not 0 <= labeled_fraction <= prior or labeled_fraction == 1:
        raise ValueError(
            f"`labeled_fraction` must lie between 0 and the prior, {prior:g}, and below 1; got {labeled_fraction:g}. "
            f"It is the share of labelled positives in all the data, and those are positives too."
        )
