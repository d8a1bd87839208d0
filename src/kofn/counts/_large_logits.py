"""Finite logits beyond 1e5, whose differences float64 does not hold beside their sums: the differences come first.

With a tilt t, log P(S = s) is that of the logits y = x + t and a sum that is computed without cancellation (`untilt`).
Let -t be the s-th or the (s + 1)-th largest logit. Then no label that is likely under y is unlikely given S = s, so y
may be cut off where an instance is certain; what is left is of the size of logits as they come. Of an interval that
leaves out the likeliest count, m logits above 0, only the count nearest to it weighs anything if t is that large.

If no such tilt is needed, none of the large logits has to be overcome: they may be cut off as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn.counts import _host
from kofn.counts._layout import LARGEST, Dense, Layout

_LARGE = 1e5
_PART = 1 << 17  # logits that are looked at together
_CELLS = 1 << 22  # of rows of counts that are made at a time
_CUT, _CERTAIN = 1e6, 1e4  # of logits as they are; of tilted ones, whose other label has probability e^-10000


def any_large(logits: Tensor) -> bool:
    """Whether some finite logit on the CPU is too large for the engines; elsewhere that is not looked at."""
    if _host.transformed() or not _host.sees(logits) or not logits.numel() or logits.dtype == torch.float16:
        return False  # of float16 no number is so large
    x = logits.detach().resolve_neg()
    # By numpy, because the threads of torch are not there in a process that was forked, such as a data loader's, and
    # torch would wait for them. A part at a time, which stays in the processor's cache for both passes.
    flat = (x.float() if x.dtype == torch.bfloat16 else x).numpy().reshape(-1)
    return any(_has_large(flat[start : start + _PART]) for start in range(0, len(flat), _PART))


def _has_large(x: NDArray[Any]) -> bool:
    if x.min() >= -_LARGE and x.max() <= _LARGE:
        return False
    size = np.abs(x)
    return bool(((size > _LARGE) & (size < np.inf)).any())


def tame(x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Logits that an engine takes, what log P of theirs lacks, and the counts to ask for; x is float64."""
    with torch.no_grad():
        ranked, order = layout.to_rows(x, -torch.inf).sort(-1, descending=True)
        each = torch.ones_like(order) if layout.copies is None else layout.to_rows(layout.copies, 0).gather(-1, order)
        upto = each.cumsum(-1)
        certain, possible = (each * (ranked == torch.inf)).sum(-1), (each * (ranked > -torch.inf)).sum(-1)
        likeliest = (each * (ranked > 0)).sum(-1)
        last = low if high is None else high.clamp(max=LARGEST)
        nearest = torch.minimum(torch.maximum(likeliest, low), last)
        inside = (certain < nearest) & (nearest < possible)
        place = nearest.where(inside, torch.ones_like(nearest)).unsqueeze(-1)
        at = torch.searchsorted(upto, torch.cat([place, place + 1], -1))
        ends = torch.nn.functional.pad(ranked, (0, 2)).gather(-1, at)
        # The end that has to be overcome is the larger of those that have: their sum loses no digits beside it.
        tilt = -torch.where(nearest > likeliest, ends[..., 0], ends[..., 1])
        needed = inside & (low <= last) & (nearest != likeliest) & (tilt.abs() > _LARGE)
        tilt = tilt.where(needed, torch.zeros_like(tilt))
        # All labels are known: a closed form for any logits.
        known = (low == last) & (low >= certain) & (low <= possible) & ~inside
        spread = layout.spread(tilt)
        y = x + spread
        y = torch.where(layout.spread(needed), y.clamp(-_CERTAIN, _CERTAIN), y.clamp(-_CUT, _CUT))
        y = torch.where(layout.spread(known), x, y)
        counts = nearest.where(needed, low), None if high is None else nearest.where(needed, high)
    # As in `untilt`: labels that are likely without the tilt are counted, and set against the count.
    ones, moved = x > 0, x + spread
    change = logsigmoid(torch.where(ones, x, -x)) - logsigmoid(torch.where(ones, moved, -moved))
    back = layout.sum(change) - tilt * (nearest - likeliest)
    return _through(x, y), back.where(needed, torch.zeros_like(back)), *counts


def _through(x: Tensor, y: Tensor) -> Tensor:
    """The values of y with the derivative of x, where it is finite."""
    return torch.where(x.isfinite(), y.detach() + (x - x.detach()), x)


def all_counts_of_large(
    log_event: Callable[[Tensor, Layout, Tensor], Tensor],
    log_all_counts: Callable[[Tensor, Layout], Tensor],
    x: Tensor,
    layout: Layout,
) -> Tensor:
    """log P(S = s) for every s, as `log_all_counts` gives it, of logits of any size in float64."""
    # A count of log P > -LARGE overcomes no logit beyond LARGE and what n labels can add by being many.
    cut = 2 * _LARGE + layout.longest
    table = log_all_counts(_through(x, x.clamp(-cut, cut)), layout)
    far = (table < -_LARGE) & (table > -torch.inf)
    if bool(far.any()):
        table = asked_one_by_one(table, far, x, layout, lambda rows, part, counts, _: log_event(rows, part, counts))
    return table


def asked_one_by_one(
    table: Tensor,
    which: Tensor,
    x: Tensor,
    layout: Layout,
    log_prob: Callable[[Tensor, Layout, Tensor, Tensor], Tensor],
) -> Tensor:
    """The table (`Layout.of_counts`) with other values where `which` is true: entries that it has too few digits for.

    Args:
        table: log P(S = s) for every s of each bag.
        which: of the shape of the table.
        x: the logits, float64, -inf for absent instances.
        layout: of the logits.
        log_prob: from dense logits (k, n), their layout, counts (k,) and the numbers (k,) of their bags to
            log P(S = count), (k,).
    """
    counts = layout.of_counts()
    bags = counts.spread(torch.arange(layout.shape.numel(), device=x.device).reshape(layout.shape))
    bags, place = bags.expand_as(table)[which], counts.place().expand_as(table)[which]
    rows = layout.to_rows(x, -torch.inf)
    rows = rows.reshape(-1, rows.shape[-1])
    copies = None if layout.copies is None else layout.to_rows(layout.copies, 0).reshape(rows.shape)
    step = max(1, _CELLS // max(1, rows.shape[-1]))
    found = []
    for some, count in zip(bags.split(step), place.split(step), strict=True):
        part = Dense(rows[some].shape, rows.device, None, None if copies is None else copies[some])
        found.append(log_prob(rows[some], part, count, some))
    return table.masked_scatter(which, torch.cat(found))
