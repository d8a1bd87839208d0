"""One count and one interval by a Triton kernel, on a CUDA device. Experimental: nobody has run it on one.

Forward computes the value and its gradient in one launch, so that backward is one multiplication. All else is torch's:
all counts, posteriors, bag effects, and the backward pass of a backward pass.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

from kofn.counts import _torch_engine
from kofn.counts._arguments import lay_out
from kofn.counts._native_library import DTYPES
from kofn.counts._torch_engine import log_probs, log_shift, log_shift_slopes, posteriors, shift_mode
from kofn.counts._triton_kernel import interval_kernel

__all__ = [
    "log_interval",
    "log_interval_slope",
    "log_probs",
    "log_shift",
    "log_shift_slopes",
    "posteriors",
    "shift_mode",
]

#: Triton was imported with TRITON_INTERPRET=1: kernels run as Python, on CPU tensors.
INTERPRETED = isinstance(interval_kernel, InterpretedFunction)
_SMALL = 16.0  # instances: bags up to this size, in the mean, are a block


def require_device(logits: Tensor) -> None:
    """Require logits that the kernel can be launched on."""
    if not (logits.is_cpu if INTERPRETED else logits.is_cuda):
        there = "the CPU, in Triton's interpreter," if INTERPRETED else "a CUDA device"
        raise ValueError(
            f"`logits` must be on {there} inside kofn.counts.use('triton'); they are on {logits.device}. Move them, or "
            f"use 'native' or 'torch' here. On the CPU, Triton only runs in its interpreter, for tests: set "
            f"TRITON_INTERPRET=1 before Python starts."
        )


def log_interval(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float | None = None
) -> Tensor:
    """log P(low <= S <= high), or of one count if high is None: (...) or (b,); with a weight, that times their sum."""
    value: Tensor = _LogInterval.apply(_computable(logits), offsets, low, high)
    value = value.to(logits.dtype)
    return value if weight is None else value.sum() * weight


def log_interval_slope(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`log_interval` and its gradient by the logits, P(y_i = 1 | low <= S <= high) - sigmoid(x_i), without a graph."""
    value, slope = _launch(_computable(logits), offsets, low, high, slope=True)
    return value.to(logits.dtype), slope.to(logits.dtype)


def plan(*, one: bool, size: float) -> dict[str, Any]:
    """How the kernel is compiled and launched for one count or an interval, of bags of this size in the mean."""
    frequencies = 32 if one else 64
    block = 16 if size <= _SMALL else 64 if one else 32
    return {
        "ONE": one,
        "FREQUENCIES": frequencies,
        "BLOCK": block,
        "num_warps": block * frequencies // 256,  # with more than eight numbers for a thread, registers run out
        "enable_fp_fusion": False,  # rounded as in the interpreter, in which it is tested
    }


def _launch(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, *, slope: bool
) -> tuple[Tensor, Any]:
    """The value of each bag and, if wanted, its gradient, both in the logits' dtype: float32 or float64."""
    bags = low.numel()
    value = torch.empty(low.shape, dtype=logits.dtype, device=logits.device)
    by_logits = torch.empty_like(logits) if slope else None
    if not bags:
        return value, by_logits
    low = low.contiguous()
    with nullcontext() if INTERPRETED else torch.cuda.device(logits.device):
        interval_kernel[(bags,)](
            logits,
            low if offsets is None else offsets.to(logits.device),
            logits.shape[-1],
            low,
            low if high is None else high.contiguous(),
            value,
            value if by_logits is None else by_logits,
            RAGGED=offsets is not None,
            SLOPE=slope,
            **plan(one=high is None, size=logits.numel() / bags),
        )
    return value, by_logits


def _computable(logits: Tensor) -> Tensor:
    """The logits as the kernel reads them: float32 or float64, one after the other in memory."""
    return (logits if logits.dtype in DTYPES else logits.double()).contiguous().resolve_neg()


class _LogInterval(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
        value, slope = _launch(logits, offsets, low, high, slope=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits, slope)
        ctx.event = offsets, low, high
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        logits, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = _torch_engine.log_interval(logits, *ctx.event)
            (by_logits,) = torch.autograd.grad(value, logits, grad, create_graph=True)
        else:
            by_logits = slope * lay_out(logits.shape, logits.device, None, ctx.event[0]).spread(grad)
        return by_logits, None, None, None
