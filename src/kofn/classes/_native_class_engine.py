"""The distribution of class counts by the C++ core, for CPU tensors: value and gradient in one go.

Second derivatives go through `_torch_class_engine`, which has a graph. Forward mode and `torch.func` never come here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kofn.classes import _torch_class_engine
from kofn.counts import _native


def log_prob(logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
    """log P(K = k) of each bag: (...) or (b,), in the dtype of the logits."""
    return _log_prob(_computable(logits), offsets, counts.contiguous()).to(logits.dtype)


def posteriors(logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
    """P(y_i = c | K = k), of the shape and dtype of the logits."""
    if logits.requires_grad and torch.is_grad_enabled():  # their derivative is a covariance: not in the core
        return _torch_class_engine.posteriors(logits, offsets, counts)
    _, _, value = _native.class_counts(_computable(logits), offsets, counts.contiguous(), posterior=True)
    posterior: Tensor = value.to(logits.dtype)
    return posterior


def _computable(logits: Tensor) -> Tensor:
    """The logits as the core reads them: float32 or float64, one after the other in memory."""
    x = logits if logits.dtype in _native.DTYPES else logits.double()
    return x.contiguous().resolve_neg()


class _LogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
        value, ctx.slope, _ = _native.class_counts(logits, offsets, counts, gradient=ctx.needs_input_grad[0])
        ctx.save_for_backward(logits, counts)
        ctx.offsets = offsets
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        logits, counts = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = _torch_class_engine.log_prob(logits, ctx.offsets, counts)
            return torch.autograd.grad(value, logits, grad, create_graph=True)[0], None, None
        if ctx.offsets is not None:
            grad = grad.repeat_interleave(ctx.offsets.diff()).unsqueeze(-1)
            return ctx.slope * grad, None, None
        return ctx.slope * grad[..., None, None], None, None


_log_prob: Callable[[Tensor, Tensor | None, Tensor], Tensor] = _LogProb.apply
