"""Some entries of a table of all counts, each asked for by itself: those that a table has too few digits for."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kofn.counts._layout import Layout
from kofn.counts._table import CELLS


def asked_one_by_one(
    table: Tensor, which: Tensor, x: Tensor, layout: Layout, log_prob: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Tensor:
    """The table (`Layout.of_counts`) with other values where `which` is true.

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
