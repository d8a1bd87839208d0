"""No positive in a bag, or at least one: closed forms, right at every logit."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn.counts._layout import Layout

TINY = math.exp(-40)


def log_none_and_any(logits: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """log P(S = 0) and log P(S >= 1) of each bag, from float64 logits with -inf for absent instances.

    -inf, with gradient zero, where that is impossible.
    """
    surprise: Tensor
    log_any: Tensor
    surprise, log_any = _NoneAndAny.apply(logits, layout)
    return -surprise, log_any


class _NoneAndAny(torch.autograd.Function):
    """T = -log P(S = 0) = sum_i softplus(x_i) and v = log P(S >= 1) = log(1 - e^-T).

    When T is below e^-40, every softplus(x_i) is e^{x_i} to rounding and v = log T = logsumexp(x), which does not
    underflow. Because e^v = 1 - e^-T,

        dT / dx_i = sigmoid(x_i),
        dv / dx_i = sigmoid(x_i) e^-T / (1 - e^-T) = exp(log sigmoid(x_i) - T - v),

    one exponential of a number that is never above 0 by more than rounding: no branch, no 0 / 0.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        total = -layout.sum(logsigmoid(-x))
        value = torch.where(total > math.log(2), torch.log1p(-torch.exp(-total)), torch.log(-torch.expm1(-total)))
        return total, torch.where(total > TINY, value, layout.logsumexp(x))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Layout], output: tuple[Tensor, Tensor]) -> None:
        x, ctx.layout = inputs
        ctx.save_for_backward(x, *output)
        ctx.save_for_forward(x, *output)

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, grad_value: Tensor) -> tuple[Tensor, None]:
        (x, total, value), layout = ctx.saved_tensors, ctx.layout
        by_value = layout.spread(grad_value) * _slope(x, total, value, layout)
        return layout.spread(grad_total) * torch.sigmoid(x) + by_value, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> tuple[Tensor, Tensor]:
        (x, total, value), layout = ctx.saved_tensors, ctx.layout
        return layout.sum(tangent * torch.sigmoid(x)), layout.sum(tangent * _slope(x, total, value, layout))


def _slope(x: Tensor, total: Tensor, value: Tensor, layout: Layout) -> Tensor:
    """dv / dx, zero where v is -inf."""
    impossible = value == -torch.inf
    down = (total + value.masked_fill(impossible, 0.0)).masked_fill(impossible, torch.inf)
    return (logsigmoid(x) - layout.spread(down)).exp()
