"""Questions to a table of all counts: log P(S = s) for every s of each bag, laid out as `Layout.of_counts` says."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from kofn import _require
from kofn.counts._layout import Layout, Ragged

CELLS = 1 << 22  # of rows of counts that are made at a time
EQUAL = 1e-9  # logarithms of probabilities nearer than this are of equal ones, such as 5/16 and its sum of four terms


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
    if isinstance(counts, Ragged) and counts.longest * counts.shape[0] > max(2 * counts.length, CELLS):
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


def asked_one_by_one(
    table: Tensor, which: Tensor, x: Tensor, layout: Layout, log_prob: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Tensor:
    """The table (`Layout.of_counts`) with other values where `which` is true: entries that it has too few digits for.

    Args:
        table: log P(S = s) for every s of each bag.
        which: of the shape of the table.
        x: the logits, float64, -inf for absent instances.
        layout: of the logits.
        log_prob: from dense logits (k, n), counts (k,) and the numbers (k,) of their bags to log P(S = count), (k,).
    """
    counts = layout.of_counts()
    bags = counts.spread(torch.arange(layout.shape.numel(), device=x.device).reshape(layout.shape))
    bags, place = bags.expand_as(table)[which], counts.place().expand_as(table)[which]
    rows = layout.to_rows(x, -torch.inf)
    rows = rows.reshape(-1, rows.shape[-1])
    step = max(1, CELLS // max(1, rows.shape[-1]))
    found = [log_prob(rows[some], count, some) for some, count in zip(bags.split(step), place.split(step), strict=True)]
    return table.masked_scatter(which, torch.cat(found))
