"""Modes, quantiles and central intervals of a count.

Of independent labels by bisection: no count is made that is not looked at. One question answers all of them: the
largest k with P(S < k) <= tail, for a tail of at most 1/2. The upper end of a distribution is the lower end of its
mirror image, because n - S is the count of the negated logits. With a random effect they come from a table of all
counts, log P(S = s) for every s of each bag, laid out as `Layout.of_counts` says.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kofn import _require
from kofn.counts._characteristic import radius
from kofn.counts._layout import Layout, Ragged

if TYPE_CHECKING:
    from kofn.counts._distribution import CountDistribution

EQUAL = 1e-9  # logarithms of probabilities nearer than this are of equal ones, such as 5/16 and its sum of four terms
_CELLS = 1 << 22  # of rows of counts that are made at a time


def mode(dist: CountDistribution) -> Tensor:
    """The most probable count of a distribution in float64 without a graph; of equal ones the largest."""
    if dist.bag_effect is not None:  # a shift may make both ends likelier than all between
        return mode_of_table(dist.log_probs(), dist.count_layout)
    # A mode differs from the mean by less than 1 (Darroch, 1964), so it is one of the two counts beside the mean.
    below = dist.mean.nan_to_num(0.0).floor().long()
    here, next_ = (dist.log_prob(count) for count in (below, below + 1))
    return below + (next_ >= here - 1e-12).long()


def quantile(dist: CountDistribution, q: Tensor | float) -> Tensor:
    """The smallest k with P(S <= k) >= q, of a distribution in float64 without a graph."""
    layout = dist.instance_layout
    probability = _require.fractions("q", layout.numbers("q", q))
    _require_no_nan(dist)
    upper = probability > 0.5
    # In the lower half k is the largest with P(S < k) < q; in the upper one the smallest with P(S > k) <= 1 - q.
    tail = torch.where(upper, torch.log1p(-probability) + EQUAL, probability.log() - EQUAL)
    mirrored = dist.with_logits(torch.where(layout.spread(upper), -dist.logits, dist.logits))
    k = _largest_below(mirrored, tail)
    return torch.where(upper, layout.sizes - k, k)


def interval(dist: CountDistribution, level: float) -> tuple[Tensor, Tensor]:
    """The central interval of `interval_of_table`, of a distribution in float64 without a graph."""
    log_tail = log_tail_of(level)
    _require_no_nan(dist)
    if dist.bag_effect is not None:
        return interval_of_table(dist.log_probs(), dist.count_layout, level)
    tail = torch.full(dist.shape, log_tail, dtype=torch.float64, device=dist.logits.device)
    return _largest_below(dist, tail), dist.sizes - _largest_below(dist.with_logits(-dist.logits), tail)


def _largest_below(dist: CountDistribution, log_tail: Tensor) -> Tensor:
    """The largest k from 0 to n with log P(S < k) <= log_tail, which is at most log(1/2)."""
    if dist.bag_effect is not None:  # which sums over a table of all counts for any interval
        table = dist.count_layout.to_rows(dist.log_probs(), -torch.inf)
        fits = table.logcumsumexp(-1) <= log_tail.unsqueeze(-1)
        return torch.minimum(fits.sum(-1), dist.sizes)
    mean = dist.mean
    # Bernstein's inequality, one-sided: P(S <= mean - radius(variance, a)) <= e^-a. So the search may begin there.
    least = (mean - radius(dist.variance, -log_tail)).nan_to_num(neginf=0.0).floor().long().clamp(min=0)
    # The median lies beside the mean (Jogdeo, Samuels 1968): two counts further, P(S < k) is above a half.
    beyond = torch.minimum(mean.floor().long() + 3, dist.sizes + 1)
    zero = torch.zeros_like(least)
    # Host read: the width of the widest search, for the number of steps.
    steps = int((beyond - least).max()).bit_length() if least.numel() else 0
    for _ in range(steps):
        middle = (least + beyond) // 2
        small = dist.log_prob_between(zero, middle - 1) <= log_tail
        least, beyond = torch.where(small, middle, least), torch.where(small, beyond, middle)
    return least


def _require_no_nan(dist: CountDistribution) -> None:
    if not _require.holds(~dist.instance_layout.present(dist.logits, 0.0).isnan()):
        raise ValueError("`logits` must not be NaN; some are. Look for a division by zero or a diverged training.")


def only_between(table: Tensor, counts: Layout, low: Tensor, high: Tensor) -> Tensor:
    """The table with -inf for counts below `low` or above `high`, one of each for every bag."""
    place = counts.place()
    return table.masked_fill((place < counts.spread(low)) | (place > counts.spread(high)), -torch.inf)


def mode_of_table(table: Tensor, counts: Layout) -> Tensor:
    """The most probable count, int64; of several that are equal up to rounding the largest."""
    best = table >= counts.spread(counts.max(table)) - 1e-12
    return counts.max(torch.where(best, counts.place().double(), -1.0)).clamp(min=0).long()


def interval_of_table(table: Tensor, counts: Layout, level: float) -> tuple[Tensor, Tensor]:
    """The largest low with P(S < low) <= (1 - level) / 2, and the smallest high with P(S > high) at most that."""
    if isinstance(counts, Ragged) and counts.longest * counts.shape[0] > max(2 * counts.length, _CELLS):
        # Rows as long as the longest bag are mostly empty: in halves, down to bags of one length or few.
        middle = counts.shape[0] // 2
        start, halves = int(counts.offsets[middle]), []
        for part, offsets in ((table[:start], counts.offsets[: middle + 1]), (table[start:], counts.offsets[middle:])):
            layout = Ragged(len(part), counts.device, offsets - offsets[0])
            halves.append(interval_of_table(part, layout, level))
        low, high = (torch.cat(ends) for ends in zip(*halves, strict=True))
        return low, high
    rows, log_tail = counts.to_rows(table, -torch.inf), log_tail_of(level)
    low = (rows.logcumsumexp(-1) <= log_tail).sum(-1)
    # From above: what lies past a bag's size has no probability, and is left out first.
    high = rows.shape[-1] - 1 - (rows.flip(-1).logcumsumexp(-1) <= log_tail).sum(-1)
    return low, high


def log_tail_of(level: float) -> float:
    """The logarithm of what a central interval leaves out on either side.

    It is never above 1/2, where the two ends would pass each other.
    """
    _require.level("level", level)
    return min(math.log((1 - level) / 2) + EQUAL, math.log(0.5) - EQUAL)
