"""The distribution of a bag's count when several models, each as good as another, tell it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import torch
from torch import Tensor

from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.counts._quantiles import interval_of_table, log_tail_of, mode_of_table, only_between

ENTRIES = 1 << 20  # logits of instances by models that are worked on at a time


class CountMixture:
    """The mixture, in equal parts, of the distributions of counts by several models of the same bags.

        P(S = k) = (1 / B) sum_b P_b(S = k)

    One of the models is true, and which one is not known: that is a mixture of distributions. A distribution of the
    mean probabilities would treat instances as independent given nothing, and forget that a model that is too high is
    too high on all of them at once; its intervals would be too narrow. Answers are those of `CountDistribution`.

    Args:
        members: of the same bags, float64.

    Examples:
        >>> import torch, kofn
        >>> members = [kofn.CountDistribution(torch.full((10,), x, dtype=torch.float64)) for x in (-1.0, 1.0)]
        >>> mixture = CountMixture(members)
        >>> mixture.mean, mixture.interval(0.9), kofn.CountDistribution(torch.zeros(10)).interval(0.9)
        (tensor(5., dtype=torch.float64), (tensor(1), tensor(9)), (tensor(2), tensor(8)))
    """

    def __init__(self, members: Sequence[CountDistribution]) -> None:
        self.members = members
        self.sizes, self.count_layout = members[0].sizes, members[0].count_layout
        self._tables = members[0].bag_effect is not None  # for which any interval of counts takes a table of all

    @property
    def mean(self) -> Tensor:
        """E S, (b,)."""
        return torch.stack([dist.mean for dist in self.members]).mean(0)

    def log_prob(self, counts: Tensor | int) -> Tensor:
        """log P(S = count), (b,)."""
        return self._mixed(lambda dist: dist.log_prob(counts))

    def log_prob_between(self, low: Tensor | int | None, high: Tensor | int | None) -> Tensor:
        """log P(low <= S <= high), (b,)."""
        if self._tables:
            first, last = (
                torch.as_tensor(end).expand(self.sizes.shape)
                for end in (0 if low is None else low, self.sizes if high is None else high)
            )
            return self.count_layout.logsumexp(only_between(self._log_probs, self.count_layout, first, last))
        return self._mixed(lambda dist: dist.log_prob_between(low, high))

    def log_probs(self) -> Tensor:
        """log P(S = s) for every s of each bag, laid out as those of `CountDistribution`."""
        return self._log_probs

    @cached_property
    def _log_probs(self) -> Tensor:
        return self._mixed(lambda dist: dist.log_probs())

    def cdf(self, counts: Tensor | int) -> Tensor:
        """P(S <= count), (b,)."""
        return self.log_prob_between(None, counts).exp()

    @property
    def mode(self) -> Tensor:
        """The most probable count of each bag, int64; of several that are equal up to rounding the largest."""
        return mode_of_table(self._log_probs, self.count_layout)

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """The central interval that holds the count with probability `level` or more, as `CountDistribution` has it."""
        if self._tables:
            return interval_of_table(self._log_probs, self.count_layout, level)
        each = [dist.interval(level) for dist in self.members]
        lows, highs = (torch.stack(ends) for ends in zip(*each, strict=True))
        log_tail = log_tail_of(level)
        # What all members leave outside, the mixture leaves outside, and what all hold it holds: both ends of its
        # interval lie between those of the members.
        low = _last(lows.amin(0), lows.amax(0), lambda k: self.log_prob_between(None, k - 1) <= log_tail)
        high = -_last(-highs.amax(0), -highs.amin(0), lambda k: self.log_prob_between(1 - k, None) <= log_tail)
        return low, high

    def _mixed(self, ask: Callable[[CountDistribution], Tensor]) -> Tensor:
        return torch.stack([ask(dist) for dist in self.members]).logsumexp(0) - math.log(len(self.members))


def count_distribution(
    log_odds: Tensor, offsets: Tensor, bag_effect: float = 0.0, copies: Tensor | None = None
) -> CountDistribution | CountMixture:
    """The distribution of each bag's count from the log-odds (B, m) of its instances by each of B models."""
    members = [CountDistribution(each, offsets=offsets, copies=copies, bag_effect=bag_effect) for each in log_odds]
    # With a bag effect most answers take a table of all counts, which a mixture keeps.
    return members[0] if len(members) == 1 and not bag_effect else CountMixture(members)


def in_parts(bags: Bags, models: int) -> Iterator[Bags]:
    """The bags, some at a time and in their order: of so many instances, by so many models, that all fit into memory.

    Examples:
        >>> import kofn
        >>> [part.names for part in in_parts(kofn.Bags.from_sizes([400_000, 1, 700_000]), 1)]
        [[0, 1], [2]]
    """
    whole = (bags.offsets[1:] - 1).clamp(min=0) * models // ENTRIES
    changes = (whole.diff() > 0).nonzero().flatten() + 1
    edges = [0, *changes.tolist(), len(bags)]
    for start, end in itertools.pairwise(edges):
        yield bags.select(slice(start, end))


def _last(first: Tensor, last: Tensor, holds: Callable[[Tensor], Tensor]) -> Tensor:
    """The largest k from first to last for which something holds that holds for `first` and never again once not."""
    for _ in range(int((last - first).max()).bit_length() if len(first.shape) == 0 or len(first) else 0):
        middle = (first + last + 1) // 2
        true = holds(middle)
        first, last = torch.where(true, middle, first), torch.where(true, last, middle - 1)
    return first
