"""The law of S in pure torch, on any device: checked arguments in, differentiable results out.

Bags are laid out in rectangles, each goes through the autograd functions, and the results are put back in order.
Arguments: logits (..., n) with a mask or none, or (m,) with offsets; low, high and counts one for each bag, int64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kofn.counts._functions import LogInterval, LogLaw
from kofn.counts._layout import lay_out

_NO_FLOAT64 = {"mps"}  # devices that cannot compute in float64: their bags go through the CPU


def log_interval(
    logits: Tensor, low: Tensor, high: Tensor | None, *, mask: Tensor | None = None, offsets: Tensor | None = None
) -> Tensor:
    """log P(low <= S <= high), or of one count when high is None: (...) or (b,), in the dtype of the logits."""
    x = _computable(logits)
    layout = lay_out(x, _beside(x, mask), offsets)
    lows = layout.cut(low.to(x.device))
    highs = [None] * len(lows) if high is None else layout.cut(high.to(x.device))
    with_posteriors = logits.requires_grad and torch.is_grad_enabled()
    parts = [
        LogInterval.apply(rectangle, first, last, with_posteriors)[0]
        for rectangle, first, last in zip(layout.rectangles(), lows, highs, strict=True)
    ]
    return layout.join(parts).to(logits)


def log_law(logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
    """log P(S = s) for every s: (..., n + 1), or flat (m + b,), in the dtype of the logits."""
    x = _computable(logits)
    layout = lay_out(x, _beside(x, mask), offsets)
    parts = [LogLaw.apply(rectangle)[0] for rectangle in layout.rectangles()]
    return layout.join_instances(parts, extra=1).to(logits)


def posteriors(logits: Tensor, counts: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
    """P(y_i = 1 | S = count), of the shape and dtype of the logits."""
    x = _computable(logits)
    layout = lay_out(x, _beside(x, mask), offsets)
    parts = [
        LogInterval.apply(rectangle, count, None, True)[1]
        for rectangle, count in zip(layout.rectangles(), layout.cut(counts.to(x.device)), strict=True)
    ]
    return layout.join_instances(parts).to(logits)


def _computable(logits: Tensor) -> Tensor:
    return logits.cpu() if logits.device.type in _NO_FLOAT64 else logits


def _beside(x: Tensor, mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.to(x.device)
