"""The distribution of S by the C++ core, for CPU tensors: the functions of `_torch_engine` at the cost of autograd.

Forward computes the value and its gradient in one go, so that backward is one multiplication. When a graph of the
backward pass is asked for (second derivatives), backward goes through `_torch_engine` instead, which has one. Forward
mode and `torch.func` never come here.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

from kofn.counts import _native_library, _torch_engine
from kofn.counts._layout import Layout

# Offsets, low, high, and the weight of the sum over bags, None for one number for each bag. One argument of the
# autograd function: each more is felt.
_Event = tuple[Tensor | None, Tensor, Tensor | None, float | None]
_Maybe = TypeVar("_Maybe", Tensor, Tensor | None)


def log_interval(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float | None = None
) -> Tensor:
    """log P(low <= S <= high), or of one count if high is None: (...) or (b,); with a weight, that times their sum."""
    x = _computable(logits)
    last = high if high is None else high.contiguous()
    value: Tensor = _apply_log_interval(x, (offsets, low.contiguous(), last, weight))
    return value if x.dtype == logits.dtype else value.to(logits.dtype)


def shift_mode(logits: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor) -> Tensor:
    """The likeliest shift of each bag with so many positives, in units of sigma, about: float64, without a gradient."""
    return _torch_engine.shift_mode(logits.detach(), offsets, counts, sigma.detach())


def log_shift(y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor) -> Tensor:
    """What a bag effect of standard deviation sigma adds to log P(S = count) of y = x + sigma centre: float64."""
    return _torch_engine.log_shift(y, layout, counts, sigma, centre)


def log_shift_slopes(
    y: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor, centre: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_shift` and its gradients by the logits y and by sigma, without a graph."""
    return _torch_engine.log_shift_slopes(y, offsets, counts, sigma, centre)


def log_probs(logits: Tensor, offsets: Tensor | None) -> Tensor:
    """log P(S = s) for every s: (..., n + 1), or flat (m + b,), in the dtype of the logits."""
    value: Tensor = _LogProbs.apply(_computable(logits), offsets)
    return value.to(logits.dtype)


def posteriors(logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
    """P(y_i = 1 | low <= S <= high), of the shape and dtype of the logits."""
    if logits.requires_grad and torch.is_grad_enabled():  # their derivative is a covariance: not in the core
        return _torch_engine.posteriors(logits, offsets, low, high)
    return _native_library.posteriors(_computable(logits), offsets, _plain(low), _plain(high)).to(logits.dtype)


def log_interval_slope(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`log_interval` and its gradient by the logits, P(y_i = 1 | low <= S <= high) - sigmoid(x_i), without a graph."""
    value, slope = _native_library.interval(_computable(logits), offsets, _plain(low), _plain(high), slope=True)
    return value.to(logits.dtype), slope.to(logits.dtype)


def log_probs_gradient(logits: Tensor, offsets: Tensor | None, weights: Tensor) -> Tensor:
    """The gradient of sum_s weights_s log P(S = s) by the logits, without a graph."""
    x = _computable(logits)
    _, tilts = _native_library.log_probs(x, offsets, tilts=True)
    return _native_library.log_probs_gradient(x, offsets, tilts, _plain(weights.double())).to(logits.dtype)


def _computable(logits: Tensor) -> Tensor:
    """The logits as the core reads them: float32 or float64, one after the other in memory."""
    x = logits if logits.dtype in _native_library.DTYPES else logits.double()
    return x.contiguous().resolve_neg()


def _plain(tensor: _Maybe) -> _Maybe:
    """Contiguous memory that holds the values themselves, not their negatives (torch's lazy negative bit)."""
    return tensor if tensor is None else tensor.contiguous().resolve_neg()


class _LogInterval(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, event: _Event) -> Tensor:
        value, slope = _native_library.interval(logits, *event, slope=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits)
        ctx.known = event, slope
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        event: _Event
        event, slope = ctx.known
        if torch.is_grad_enabled():
            (logits,) = ctx.saved_tensors
            value = _torch_engine.log_interval(logits, *event)
            (by_logits,) = torch.autograd.grad(value, logits, grad, create_graph=True)
            return by_logits, None
        if slope is None:
            (logits,) = ctx.saved_tensors
            _, slope = _native_library.interval(logits, *event, slope=True)
        # The slope is handed over, not copied: a second pass through a graph that was retained asks the core again.
        ctx.known = event, None
        offsets, _, _, weight = event
        # Of many gradients at once (is_grads_batched) one tensor stands for each, which has no memory of its own.
        plain = _native_library.takes(grad)
        if weight is not None:  # most often the loss itself goes backward, with the gradient 1
            return slope if plain and grad.item() == 1.0 else slope * grad, None
        if plain and offsets is not None:
            return _native_library.scale(slope, offsets, _plain(grad)), None
        return slope * (grad.unsqueeze(-1) if offsets is None else _spread(grad, offsets)), None


def _spread(per_bag: Tensor, offsets: Tensor) -> Tensor:
    """Each bag's number beside each of its instances."""
    return per_bag.index_select(-1, torch.arange(len(offsets) - 1).repeat_interleave(offsets.diff()))


# What `Function.apply` calls where no transform of torch.func is active, as none is here: its care of them takes longer
# than the arithmetic of a small batch.
_apply_log_interval: Any = super(torch.autograd.Function, _LogInterval).apply


class _LogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, offsets: Tensor | None) -> Tensor:
        value, ctx.tilts = _native_library.log_probs(logits, offsets, tilts=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits)
        ctx.offsets = offsets
        return value.to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (logits,) = ctx.saved_tensors
        again = torch.is_grad_enabled()
        if again or not _native_library.takes(grad):
            with torch.enable_grad():
                value = _torch_engine.log_probs(logits, ctx.offsets)
            (slope,) = torch.autograd.grad(value, logits, grad, create_graph=again)
            return slope, None
        weights = _plain(grad.double())
        return _native_library.log_probs_gradient(logits, ctx.offsets, ctx.tilts, weights).to(logits.dtype), None
