"""Statements that bound the count, from one side or both."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from kofn import _require
from kofn.counts import CountDistribution
from kofn.targets._target import Target


@dataclass(frozen=True, eq=False)
class Exactly(Target):
    """So many are positive: -log P(S = count), in linear time.

    Args:
        counts: (...) or (b,) integers from 0 to the bag's size, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.Exactly(2)).neg().exp()  # 6 of the 16 outcomes of four fair coins
        tensor(0.3750)
    """

    counts: Tensor | int

    def loss(self, dist: CountDistribution) -> Tensor:
        losses = -dist.log_prob(self.counts)
        if not _require.holds(losses.isfinite()):
            self._require_possible(dist)
        return losses

    def total(self, dist: CountDistribution, weight: float) -> Tensor:
        total = dist.log_likelihood(self.counts, weight=-weight)
        if not _require.is_finite(total):
            self._require_possible(dist)
        return total

    def _require_possible(self, dist: CountDistribution) -> None:
        """Called for infinite losses only: a count that no bag of that size has makes its loss infinite."""
        dist.instance_layout.require_counts(dist.instance_layout.whole_numbers("counts", self.counts))


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

    low: Tensor | int | None
    high: Tensor | int | None

    def loss(self, dist: CountDistribution) -> Tensor:
        return -dist.log_prob_between(self.low, self.high)


class AtLeast(Between):
    """So many or more are positive: -log P(S >= low), in linear time; a closed form for ``AtLeast(1)``.

    Args:
        low: (...) or (b,) integers, or one int for all bags.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.AtLeast(1)).neg().exp()
        tensor(0.9375)
    """

    def __init__(self, low: Tensor | int) -> None:
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

    def __init__(self, high: Tensor | int) -> None:
        super().__init__(None, high)
