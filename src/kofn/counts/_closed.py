"""One node of autograd for any log-probability whose gradient is known along with its value.

For any event A about labels of classes, d log P(A) / d x_ic = copies_i (P(y_i = c | A) - P(y_i = c)): whoever computes
log P(A) has its gradient for little more, without a tape. Higher derivatives, forward mode and the transforms of
`torch.func` take the same log-probability as plain operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kofn.counts._host import transformed

#: From logits and whether a gradient is wanted to the value, one number for each bag, and the gradient or None.
Solve = Callable[[Tensor, bool], tuple[Tensor, Tensor | None]]


def with_gradient(
    x: Tensor, solve: Solve, plain: Callable[[Tensor], Tensor], spread: Callable[[Tensor], Tensor]
) -> Tensor:
    """The value that `solve` finds, differentiable by its gradient.

    Args:
        x: the logits.
        solve: the value and its gradient, computed outside of autograd.
        plain: the same value by differentiable operations, for derivatives of higher order and transforms.
        spread: from one number for each bag to the shape of the gradient, or one that broadcasts to it.
    """
    if transformed():
        return plain(x)
    value: Tensor = _apply(x, solve, plain, spread)
    return value


class _Closed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, solve: Solve, plain: Any, spread: Any) -> Tensor:
        value, ctx.gradient = solve(x, ctx.needs_input_grad[0])
        ctx.plain, ctx.spread = plain, spread
        ctx.save_for_backward(x)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            again = x.view_as(x)  # its own node, so that what x was made of is not differentiated here
            (by_x,) = torch.autograd.grad(ctx.plain(again), again, grad, create_graph=True)
            return by_x, None, None, None
        return ctx.gradient * ctx.spread(grad), None, None, None


_apply: Any = super(torch.autograd.Function, _Closed).apply  # without its care of transforms: see `_event`
