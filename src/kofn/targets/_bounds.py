"""Statements that bound the count, from one side or both."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from kofn.counts import CountDistribution, Counts
from kofn.targets._target import Target, refuse


@dataclass(frozen=True, eq=False)
class Exactly(Target):
    """So many are positive: -log P(S = count), in linear time.

    Args:
        counts: (...) or (b,) integers from 0 to the bag's size, as a tensor, an array or a list; or one int for all.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.Exactly(2)).neg().exp()  # 6 of the 16 outcomes of four fair coins
        tensor(0.3750)
    """

    counts: Counts

    def loss(self, dist: CountDistribution) -> Tensor:
        return -dist.log_prob(self.counts)

    def weighted_loss(self, dist: CountDistribution, weight: float) -> Tensor:
        return dist.log_prob(self.counts, weight=-weight)

    def require_possible(self, dist: CountDistribution, counted: Tensor | None) -> None:
        counts = dist.instance_layout.whole_numbers("counts", self.counts)
        dist.instance_layout.require_counts(counts if counted is None else counts.where(counted, counts.new_zeros(())))


@dataclass(frozen=True, eq=False)
class Between(Target):
    """The count lies in an interval, ends included: -log P(low <= S <= high), in linear time.

    Args:
        low: (...) or (b,) integers, or one int for all bags; None for no bound.
        high: (...) or (b,) integers, or one int for all bags; None for no bound.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.Between(1, 3)).neg().exp()
        tensor(0.8750)
    """

    low: Counts | None
    high: Counts | None

    def loss(self, dist: CountDistribution) -> Tensor:
        return -dist.log_prob_between(self.low, self.high)

    def require_possible(self, dist: CountDistribution, counted: Tensor | None) -> None:
        whole, sizes = dist.instance_layout.whole_numbers, dist.sizes
        low = whole("low", 0) if self.low is None else whole("low", self.low)
        high = sizes if self.high is None else whole("high", self.high)
        refuse(
            (low > high) | (low > sizes) | (high < 0),
            counted,
            lambda bag: (
                f"`low` and `high` must allow a count from 0 to the bag's size; bag {bag} has "
                f"{int(sizes.flatten()[bag])} instances and the interval from {int(low.flatten()[bag])} to "
                f"{int(high.flatten()[bag])}. Check the order of the bags, or that these are counts, not labels."
            ),
        )


class AtLeast(Between):
    """So many or more are positive: -log P(S >= low), in linear time; a closed form for ``AtLeast(1)``.

    Args:
        low: (...) or (b,) integers, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.AtLeast(1)).neg().exp()
        tensor(0.9375)
    """

    def __init__(self, low: Counts) -> None:
        super().__init__(low, None)


class AtMost(Between):
    """So many or fewer are positive: -log P(S <= high), in linear time.

    Args:
        high: (...) or (b,) integers, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.AtMost(1)).neg().exp()
        tensor(0.3125)
    """

    def __init__(self, high: Counts) -> None:
        super().__init__(None, high)
