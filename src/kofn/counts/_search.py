"""Modes, quantiles and central intervals of a count, by bisection: no count is made that is not looked at.

One question answers all of them: the largest k with P(S < k) <= tail, for a tail of at most 1/2. The upper end of a
distribution is the lower end of its mirror image, because n - S is the count of the negated logits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import _require
from kofn.counts._engines import Engine
from kofn.counts._layout import Layout
from kofn.counts._shifted_engine import ShiftedEngine
from kofn.counts._table import EQUAL, interval_of_table, log_tail_of, mode_of_table
from kofn.counts._window import radius


def mode(engine: Engine, logits: Tensor, layout: Layout) -> Tensor:
    """The most probable count, of logits in float64 with -inf for absent instances; of equal ones the largest."""
    if isinstance(engine, ShiftedEngine):  # a shift may make both ends likelier than all between
        return mode_of_table(engine.log_probs(logits, layout.offsets), layout.of_counts())
    # A mode differs from the mean by less than 1 (Darroch, 1964), so it is one of the two counts beside the mean.
    below = layout.sum(torch.sigmoid(logits)).nan_to_num(0.0).floor().long()
    here, next_ = (engine.log_interval(logits, layout.offsets, count, None) for count in (below, below + 1))
    return below + (next_ >= here - 1e-12).long()


def quantile(engine: Engine, logits: Tensor, layout: Layout, q: Tensor | float) -> Tensor:
    """The smallest k with P(S <= k) >= q, of logits in float64 with -inf for absent instances."""
    probability = _require.fractions("q", layout.numbers("q", q))
    _require_no_nan(logits)
    upper = probability > 0.5
    # In the lower half k is the largest with P(S < k) < q; in the upper one the smallest with P(S > k) <= 1 - q.
    tail = torch.where(upper, torch.log1p(-probability) + EQUAL, probability.log() - EQUAL)
    mirrored = torch.where(layout.spread(upper), -logits, logits)
    k = _largest_below(engine, layout.present(mirrored, -torch.inf), layout, tail)
    return torch.where(upper, layout.sizes - k, k)


def interval(engine: Engine, logits: Tensor, layout: Layout, level: float) -> tuple[Tensor, Tensor]:
    """The central interval of `_table.interval_of_table`, of logits in float64 with -inf for absent instances."""
    log_tail = log_tail_of(level)
    _require_no_nan(logits)
    if isinstance(engine, ShiftedEngine):  # which has a table of all counts anyway
        return interval_of_table(engine.log_probs(logits, layout.offsets), layout.of_counts(), level)
    tail = torch.full(layout.shape, log_tail, dtype=torch.float64, device=layout.device)
    low = _largest_below(engine, logits, layout, tail)
    return low, layout.sizes - _largest_below(engine, layout.present(-logits, -torch.inf), layout, tail)


def _largest_below(engine: Engine, logits: Tensor, layout: Layout, log_tail: Tensor) -> Tensor:
    """The largest k from 0 to n with log P(S < k) <= log_tail, which is at most log(1/2)."""
    if isinstance(engine, ShiftedEngine):  # which sums over a table of all counts for any interval
        table = layout.of_counts().to_rows(engine.log_probs(logits, layout.offsets), -torch.inf)
        fits = table.logcumsumexp(-1) <= log_tail.unsqueeze(-1)
        return torch.minimum(fits.sum(-1), layout.sizes)
    p = torch.sigmoid(logits)
    mean, variance = layout.sum(p), layout.sum(p * torch.sigmoid(-logits))
    # Bernstein's inequality, one-sided: P(S <= mean - radius(variance, a)) <= e^-a. So the search may begin there.
    least = (mean - radius(variance, -log_tail)).nan_to_num(neginf=0.0).floor().long().clamp(min=0)
    # The median lies beside the mean (Jogdeo, Samuels 1968): two counts further, P(S < k) is above a half.
    beyond = torch.minimum(mean.floor().long() + 3, layout.sizes + 1)
    zero = torch.zeros_like(least)
    # Host read: the width of the widest search, for the number of steps.
    steps = int((beyond - least).max()).bit_length() if least.numel() else 0
    for _ in range(steps):
        middle = (least + beyond) // 2
        below = engine.log_interval(logits, layout.offsets, zero, middle - 1)
        small = below <= log_tail
        least, beyond = torch.where(small, middle, least), torch.where(small, beyond, middle)
    return least


def _require_no_nan(logits: Tensor) -> None:
    if not _require.holds(~logits.isnan()):
        raise ValueError("`logits` must not be NaN; some are. Look for a division by zero or a diverged training.")
