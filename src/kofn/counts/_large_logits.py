"""Finite logits beyond 1e5, whose differences float64 does not hold beside their sums: the differences come first.

With a tilt t, log P(S = s) is that of the logits y = x + t and a sum that is computed without cancellation (`untilt`).
Let -t be the s-th or the (s + 1)-th largest logit. Then no label that is likely under y is unlikely given S = s, so y
may be cut off where an instance is certain; what is left is of the size of logits as they come. Of an interval that
leaves out the likeliest count, m logits above 0, only the count nearest to it weighs anything if t is that large.

If no such tilt is needed, none of the large logits has to be overcome: they may be cut off as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn.counts import _host
from kofn.counts._arguments import lay_out
from kofn.counts._layout import LARGEST, Layout
from kofn.counts._table import asked_one_by_one

if TYPE_CHECKING:
    from kofn.counts._engines import IndependentEngine

_LARGE = 1e5
_PART = 1 << 17  # logits that are looked at together
_CUT, _CERTAIN = 1e6, 1e4  # of logits as they are; of tilted ones, whose other label has probability e^-10000


def any_large(logits: Tensor) -> bool:
    """Whether some finite logit on the CPU is too large for the engines; elsewhere that is not looked at."""
    if not _host.sees(logits) or not logits.numel() or logits.dtype == torch.float16:  # which ends before
        return False
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


@dataclass(frozen=True, eq=False)
class LargeLogits:
    """An engine of independent labels that takes logits of any size, by another one that takes those up to 1e6."""

    engine: IndependentEngine

    def log_interval(
        self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float | None = None
    ) -> Tensor:
        y, change, first, last = _tilted(logits.double(), offsets, low, high)
        value = (self.engine.log_interval(y, offsets, first, last) + change).to(logits.dtype)
        return value if weight is None else value.sum() * weight

    def log_interval_slope(
        self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        x = logits.detach().double()
        y, change, first, last = _tilted(x, offsets, low, high)
        value, slope = self.engine.log_interval_slope(y, offsets, first, last)
        return (value + change).to(logits.dtype), (slope + (torch.sigmoid(y) - torch.sigmoid(x))).to(logits.dtype)

    def log_probs(self, logits: Tensor, offsets: Tensor | None) -> Tensor:
        x = logits.double()
        layout = lay_out(x.shape, x.device, None, offsets)
        # A count of log P > -LARGE overcomes no logit beyond LARGE and what n labels can add by being many.
        cut = 2 * _LARGE + layout.longest
        table = self.engine.log_probs(_through(x, x.clamp(-cut, cut)), offsets)
        far = (table < -_LARGE) & (table > -torch.inf)
        if bool(far.any()):
            table = asked_one_by_one(
                table, far, x, layout, lambda rows, counts, _: self.log_interval(rows, None, counts, None)
            )
        return table.to(logits.dtype)

    def posteriors(self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
        y, _, first, last = _tilted(logits.double(), offsets, low, high)
        return self.engine.posteriors(y, offsets, first, last).to(logits.dtype)

    def shift_mode(self, logits: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor) -> Tensor:
        return self.engine.shift_mode(logits, offsets, counts, sigma)

    def log_shift(self, y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor) -> Tensor:
        return self.engine.log_shift(y, layout, counts, sigma, centre)

    def log_shift_slopes(
        self, y: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor, centre: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self.engine.log_shift_slopes(y, offsets, counts, sigma, centre)


def _tilted(
    x: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Logits that an engine takes, what log P of theirs lacks, and the counts to ask for."""
    layout = lay_out(x.shape, x.device, None, offsets)
    with torch.no_grad():
        ranked = layout.to_rows(x, -torch.inf).sort(-1, descending=True).values
        certain, possible = (ranked == torch.inf).sum(-1), (ranked > -torch.inf).sum(-1)
        likeliest = (ranked > 0).sum(-1)
        last = low if high is None else high.clamp(max=LARGEST)
        nearest = torch.minimum(torch.maximum(likeliest, low), last)
        inside = (certain < nearest) & (nearest < possible)
        place = nearest.where(inside, torch.ones_like(nearest)).unsqueeze(-1)
        ends = torch.nn.functional.pad(ranked, (0, 2)).gather(-1, torch.cat([place - 1, place], -1))
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
