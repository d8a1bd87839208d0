"""The law of S by the C++ core, for CPU tensors: the same functions as `_by_torch`, at the cost of the autograd call.

Forward computes the value and its gradient in one go, so that backward is one multiplication. When a graph of the
backward pass is asked for (second derivatives), backward goes through `_by_torch` instead, which has one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from kofn.counts import _by_torch, _native


def log_interval(
    logits: Tensor, low: Tensor, high: Tensor | None, *, mask: Tensor | None = None, offsets: Tensor | None = None
) -> Tensor:
    """log P(low <= S <= high), or of one count when high is None: (...) or (b,), in the dtype of the logits."""
    x = _computable(logits, mask)
    label = low.contiguous(), None if high is None else high.contiguous(), offsets
    value: Tensor = _Interval.apply(x, label)
    return value if value.dtype == logits.dtype else value.to(logits.dtype)


def log_law(logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
    """log P(S = s) for every s: (..., n + 1), or flat (m + b,), in the dtype of the logits."""
    if unpack_dual(logits).tangent is not None:  # a forward derivative of every count: not in the core
        return _by_torch.log_law(logits, mask=mask, offsets=offsets)
    value: Tensor = _Law.apply(_computable(logits, mask), offsets)
    return value if value.dtype == logits.dtype else value.to(logits.dtype)


def posteriors(logits: Tensor, counts: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
    """P(y_i = 1 | S = count), of the shape and dtype of the logits."""
    # Their derivative is a covariance: not in the core.
    if (logits.requires_grad and torch.is_grad_enabled()) or unpack_dual(logits).tangent is not None:
        return _by_torch.posteriors(logits, counts, mask=mask, offsets=offsets)
    value = _native.posteriors(_computable(logits, mask), offsets, counts.contiguous())
    return value.to(logits.dtype)


def _computable(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Contiguous float32 or float64 logits, -inf where there is no instance."""
    if mask is None and logits.dtype in _native.DTYPES and logits.is_contiguous():
        return logits
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf)
    if logits.dtype not in _native.DTYPES:
        logits = logits.double()
    return logits.contiguous()


class _Interval(torch.autograd.Function):
    """One argument holds low, high and offsets: on small batches each more is felt."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, label: tuple[Tensor, Tensor | None, Tensor | None]) -> Tensor:
        low, high, offsets = label
        value, ctx.slope = _native.interval(logits, offsets, low, high, slope=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits)
        ctx.save_for_forward(logits)
        ctx.label = label
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        low, high, offsets = ctx.label
        if torch.is_grad_enabled():
            (logits,) = ctx.saved_tensors
            value = _by_torch.log_interval(logits, low, high, offsets=offsets)
            (slope,) = torch.autograd.grad(value, logits, grad, create_graph=True)
            return slope, None
        if offsets is None:
            return ctx.slope * grad.unsqueeze(-1), None
        return _native.scale(ctx.slope, offsets, grad.contiguous()), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        low, high, offsets = ctx.label
        (logits,) = ctx.saved_tensors
        slope = ctx.slope
        if not ctx.needs_input_grad[0]:  # forward mode alone: nothing asked for a gradient
            slope = _native.interval(logits, offsets, low, high, slope=True)[1]
        change: Tensor = slope * tangent
        if offsets is None:
            return change.sum(-1)
        bag = torch.arange(len(low)).repeat_interleave(offsets.diff())
        return torch.zeros_like(low, dtype=change.dtype).index_add(0, bag, change)


class _Law(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, offsets: Tensor | None) -> Tensor:
        value, ctx.tilts = _native.law(logits, offsets, tilts=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits)
        ctx.offsets = offsets
        return value.to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (logits,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = _by_torch.log_law(logits, offsets=ctx.offsets)
            (slope,) = torch.autograd.grad(value, logits, grad, create_graph=True)
            return slope, None
        weights = grad.double().contiguous()
        return _native.law_gradient(logits, ctx.offsets, ctx.tilts, weights).to(logits.dtype), None
