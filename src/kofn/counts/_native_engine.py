"""The distribution of S by the C++ core, for CPU tensors: the functions of `_torch_engine` at the cost of autograd.

Forward computes the value and its gradient in one go, so that backward is one multiplication. When a graph of the
backward pass is asked for (second derivatives), backward goes through `_torch_engine` instead, which has one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from kofn.counts import _native_library, _torch_engine


class _Event(NamedTuple):
    """Of which counts, of which bags, summed or not. One argument of the autograd function: each more is felt."""

    low: Tensor
    high: Tensor | None
    offsets: Tensor | None
    weight: float | None  # of the sum over bags; None: one number for each bag

    def solve(self, logits: Tensor, *, slope: bool) -> tuple[Tensor, Any]:
        """The value, and if wanted its gradient by the logits."""
        low, high, offsets, weight = self
        if weight is None:
            return _native_library.interval(logits, offsets, low, high, slope=slope)
        return _native_library.log_likelihood(logits, offsets, low, high, weight, slope=slope)

    def log_prob(self, logits: Tensor) -> Tensor:
        """The value by torch, with a graph."""
        value = _torch_engine.log_interval(logits, self.offsets, self.low, self.high)
        return value if self.weight is None else value.sum() * self.weight


def log_interval(logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
    """log P(low <= S <= high), or of one count when high is None: (...) or (b,), in the dtype of the logits."""
    return _interval(logits, _Event(_plain(low), high if high is None else _plain(high), offsets, None))


def log_likelihood(logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float) -> Tensor:
    """weight times the sum over bags of `log_interval`: a scalar, in the dtype of the logits."""
    return _interval(logits, _Event(_plain(low), high if high is None else _plain(high), offsets, weight))


def log_probs(logits: Tensor, offsets: Tensor | None) -> Tensor:
    """log P(S = s) for every s: (..., n + 1), or flat (m + b,), in the dtype of the logits."""
    if unpack_dual(logits).tangent is not None:  # a forward derivative of every count: not in the core
        return _torch_engine.log_probs(logits, offsets)
    value: Tensor = _LogProbs.apply(_computable(logits), offsets)
    return value.to(logits.dtype)


def posteriors(logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
    """P(y_i = 1 | low <= S <= high), of the shape and dtype of the logits."""
    # Their derivative is a covariance: not in the core.
    if (logits.requires_grad and torch.is_grad_enabled()) or unpack_dual(logits).tangent is not None:
        return _torch_engine.posteriors(logits, offsets, low, high)
    last = high if high is None else _plain(high)
    return _native_library.posteriors(_computable(logits), offsets, _plain(low), last).to(logits.dtype)


def log_interval_slope(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`log_interval` and its gradient by the logits, P(y_i = 1 | low <= S <= high) - sigmoid(x_i), without a graph."""
    last = high if high is None else _plain(high)
    return _native_library.interval(_computable(logits), offsets, _plain(low), last, slope=True)


def log_probs_gradient(logits: Tensor, offsets: Tensor | None, weights: Tensor) -> Tensor:
    """The gradient of sum_s weights_s log P(S = s) by the logits, without a graph."""
    x = _computable(logits)
    _, tilts = _native_library.law(x, offsets, tilts=True)
    return _native_library.law_gradient(x, offsets, tilts, _plain(weights.double())).to(logits.dtype)


def _interval(logits: Tensor, event: _Event) -> Tensor:
    value: Tensor = _LogInterval.apply(_computable(logits), event)
    return value if value.dtype == logits.dtype else value.to(logits.dtype)


def _computable(logits: Tensor) -> Tensor:
    """The logits as the core reads them: float32 or float64, one after the other in memory."""
    return _plain(logits if logits.dtype in _native_library.DTYPES else logits.double())


def _plain(tensor: Tensor) -> Tensor:
    """Contiguous memory that holds the values themselves, not their negatives (torch's lazy negative bit)."""
    return tensor.contiguous().resolve_neg()


class _LogInterval(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, event: _Event) -> Tensor:
        value, ctx.slope = event.solve(logits, slope=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits)
        ctx.save_for_forward(logits)
        ctx.event = event
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        event: _Event = ctx.event
        if torch.is_grad_enabled():
            (logits,) = ctx.saved_tensors
            (slope,) = torch.autograd.grad(event.log_prob(logits), logits, grad, create_graph=True)
            return slope, None
        if event.weight is not None:
            return ctx.slope * grad, None
        if event.offsets is None:
            return ctx.slope * grad.unsqueeze(-1), None
        return _native_library.scale(ctx.slope, event.offsets, _plain(grad)), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        event: _Event = ctx.event
        (logits,) = ctx.saved_tensors
        slope = ctx.slope
        if not ctx.needs_input_grad[0]:  # forward mode alone: nothing asked for a gradient
            slope = event.solve(logits, slope=True)[1]
        change: Tensor = slope * tangent
        if event.weight is not None:
            return change.sum()
        if event.offsets is None:
            return change.sum(-1)
        bag = torch.arange(len(event.low)).repeat_interleave(event.offsets.diff())
        return torch.zeros_like(event.low, dtype=change.dtype).index_add(0, bag, change)


class _LogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, offsets: Tensor | None) -> Tensor:
        value, ctx.tilts = _native_library.law(logits, offsets, tilts=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits)
        ctx.offsets = offsets
        return value.to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (logits,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = _torch_engine.log_probs(logits, ctx.offsets)
            (slope,) = torch.autograd.grad(value, logits, grad, create_graph=True)
            return slope, None
        weights = _plain(grad.double())
        return _native_library.law_gradient(logits, ctx.offsets, ctx.tilts, weights).to(logits.dtype), None
