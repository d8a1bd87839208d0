"""The distribution of S in pure torch, on any device: bags are laid out in rectangles, results put back in order."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn.counts import _bag_effect
from kofn.counts._arguments import lay_out
from kofn.counts._autograd import LogInterval, LogProbs, LogProbsGradient
from kofn.counts._interval import Interval
from kofn.counts._layout import Layout
from kofn.counts._rectangles import rectangles_of

_NO_FLOAT64 = {"mps"}  # devices that cannot compute in float64: their bags go through the CPU


def log_interval(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float | None = None
) -> Tensor:
    """log P(low <= S <= high), or of one count if high is None: (...) or (b,); with a weight, that times their sum."""
    x = _computable(logits)
    rectangles = rectangles_of(x, offsets)
    with_posteriors = logits.requires_grad and torch.is_grad_enabled()
    parts = [
        LogInterval.apply(rectangle, first, last, with_posteriors)[0]
        for rectangle, first, last in zip(rectangles.cut_entries(x), *rectangles.cut(low, high), strict=True)
    ]
    value = rectangles.join(parts).to(logits)
    return value if weight is None else value.sum() * weight


def shift_mode(logits: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor) -> Tensor:
    """The likeliest shift of each bag with so many positives, in units of sigma, about: float64, without a gradient."""
    layout = lay_out(logits.shape, logits.device, None, offsets)
    return _bag_effect.mode(logits.double(), layout, counts, sigma)


def log_shift(y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor) -> Tensor:
    """What a bag effect of standard deviation sigma adds to log P(S = count) of y = x + sigma centre: float64."""
    return _bag_effect.log_shift(y.double(), layout, counts, sigma, centre)


def log_shift_slopes(
    y: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor, centre: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_shift` and its gradients by the logits y and by sigma, without a graph."""
    layout = lay_out(y.shape, y.device, None, offsets)
    return _bag_effect.log_shift_slopes(y.double(), layout, counts, sigma, centre)


def log_probs(logits: Tensor, offsets: Tensor | None) -> Tensor:
    """log P(S = s) for every s: (..., n + 1), or flat (m + b,), in the dtype of the logits."""
    x = _computable(logits)
    rectangles = rectangles_of(x, offsets)
    parts = [LogProbs.apply(rectangle)[0] for rectangle in rectangles.cut_entries(x)]
    return rectangles.join_entries(parts, extra=1).to(logits)


def posteriors(logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
    """P(y_i = 1 | low <= S <= high), of the shape and dtype of the logits."""
    x = _computable(logits)
    rectangles = rectangles_of(x, offsets)
    parts = [
        LogInterval.apply(rectangle, first, last, True)[1]
        for rectangle, first, last in zip(rectangles.cut_entries(x), *rectangles.cut(low, high), strict=True)
    ]
    return rectangles.join_entries(parts).to(logits)


def log_interval_slope(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`log_interval` and its gradient by the logits, P(y_i = 1 | low <= S <= high) - sigmoid(x_i), without a graph."""
    x = _computable(logits)
    rectangles = rectangles_of(x, offsets)
    intervals = [
        Interval(rectangle, first, last)
        for rectangle, first, last in zip(rectangles.cut_entries(x), *rectangles.cut(low, high), strict=True)
    ]
    value = rectangles.join([interval.log_prob() for interval in intervals])
    posteriors = rectangles.join_entries([interval.posteriors() for interval in intervals])
    return value.to(logits), (posteriors - torch.sigmoid(x.double())).to(logits)


def log_probs_gradient(logits: Tensor, offsets: Tensor | None, weights: Tensor) -> Tensor:
    """The gradient of sum_s weights_s log P(S = s) by the logits, without a graph."""
    x = _computable(logits)
    rectangles = rectangles_of(x, offsets)
    upstream = rectangles.cut_entries(weights.to(x.device), extra=1, fill=0.0)
    parts = [
        LogProbsGradient.apply(rectangle, LogProbs.apply(rectangle)[1], part)
        for rectangle, part in zip(rectangles.cut_entries(x), upstream, strict=True)
    ]
    return rectangles.join_entries(parts).to(logits)


def _computable(logits: Tensor) -> Tensor:
    return logits.cpu() if logits.device.type in _NO_FLOAT64 else logits
