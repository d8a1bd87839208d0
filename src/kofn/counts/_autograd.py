"""The distribution of S as autograd functions: values with their closed-form derivatives.

d log P(S in A) / d x_i = P(y_i = 1 | S in A) - p_i, and the derivatives of the posteriors are the covariances of
the labels given S in A. All functions here take (b, n) logits of any floating dtype, -inf for an absent instance,
compute and return float64, and are their own rule for `torch.func.vmap`: more bags.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd.function import once_differentiable

from kofn.counts._interval import Interval
from kofn.counts._sweep import Derivatives, sweep
from kofn.counts._undecided import Undecided


class _BagFunction(torch.autograd.Function):
    """A function of independent bags: mapped over a new dimension, it is the same function of more bags."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        # `torch.autograd.grad(..., is_grads_batched=True)`, as in `jacobian(..., vectorize=True)`, maps a backward pass
        # without asking for a rule of `vmap`: what stands there for many tensors is taken apart and put together here.
        mapped = [isinstance(each, Tensor) and _functorch.is_legacy_batchedtensor(each) for each in args]
        if not any(mapped):
            return super().apply(*args)  # type: ignore[no-untyped-call]
        level = torch._C._vmapmode_increment_nesting() - 1
        torch._C._vmapmode_decrement_nesting()
        values = [
            torch._remove_batch_dim(each, level, 1, 0) if many else each
            for each, many in zip(args, mapped, strict=True)
        ]
        dims = tuple(0 if many else None for many in mapped)
        info = SimpleNamespace(batch_size=len(values[mapped.index(True)]))
        out, _ = cls.vmap(info, dims, *values)
        if isinstance(out, tuple):
            return tuple(torch._add_batch_dim(value, 0, level) for value in out)
        return torch._add_batch_dim(out, 0, level)

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        def fold(value: Any, dim: int | None) -> Any:
            if not isinstance(value, Tensor):
                return value
            mapped = value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)
            return mapped.flatten(0, 1)

        def unfold(value: Tensor) -> Tensor:
            return value.reshape(info.batch_size, len(value) // info.batch_size, *value.shape[1:])

        out = cls.apply(*(fold(value, dim) for value, dim in zip(args, in_dims, strict=True)))
        if isinstance(out, tuple):
            return tuple(unfold(value) for value in out), (0,) * len(out)
        return unfold(out), 0


class LogInterval(_BagFunction):
    """(logits, low, high or None, with posteriors?) to log P(low <= S <= high), (b,), and the posteriors, (b, n).

    Without posteriors the second result has no columns; backward computes them should it need them after all.
    """

    @staticmethod
    def forward(logits: Tensor, low: Tensor, high: Tensor | None, posteriors: bool) -> tuple[Tensor, Tensor]:
        interval = Interval(logits, low, high)
        return interval.log_prob(), interval.posteriors() if posteriors else logits.new_empty(len(logits), 0).double()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        logits, low, high, _ = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(logits, low, high, output[1])
        ctx.save_for_forward(logits, low, high, output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, grad_posteriors: Tensor | None) -> tuple[Tensor | None, ...]:
        logits, low, high, posteriors = ctx.saved_tensors
        out = None
        if grad is not None:
            out = grad.unsqueeze(-1) * _slope(logits, low, high, posteriors)
        if grad_posteriors is not None and grad_posteriors.shape[-1] == logits.shape[-1]:
            second = Covariance.apply(logits, low, high, grad_posteriors)
            out = second if out is None else out + second
        return None if out is None else out.to(logits.dtype), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> tuple[Tensor, Tensor]:
        logits, low, high, posteriors = ctx.saved_tensors
        tangent = tangent.double()
        by_posteriors = posteriors.new_zeros(posteriors.shape)
        if posteriors.shape == logits.shape:
            by_posteriors = Covariance.apply(logits, low, high, tangent)
        return (_slope(logits, low, high, posteriors) * tangent).sum(-1), by_posteriors


def _slope(logits: Tensor, low: Tensor, high: Tensor | None, posteriors: Tensor) -> Tensor:
    if posteriors.shape != logits.shape:
        posteriors = LogInterval.apply(logits, low, high, True)[1]
    return posteriors - torch.sigmoid(logits.double())


class Covariance(_BagFunction):
    """(logits, low, high or None, values) to sum_j Cov(y_i, y_j | low <= S <= high) values_j: (b, n)"""

    @staticmethod
    def forward(logits: Tensor, low: Tensor, high: Tensor | None, values: Tensor) -> Tensor:
        return Interval(logits, low, high, second_order=True).covariance(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Third derivatives have no closed form here: the covariance itself is differentiated, on a tape.
        logits, low, high, values = ctx.saved_tensors
        with torch.enable_grad():
            logits, values = logits.detach().requires_grad_(), values.detach().requires_grad_()
            out = Interval(logits, low, high, second_order=True).covariance(values)
            by_logits, by_values = torch.autograd.grad(out, (logits, values), grad)
        return by_logits, None, None, by_values


class LogProbs(_BagFunction):
    """logits to log P(S = 0..n), (b, n + 1), and the tilts that `Derivatives` wants back, of the same shape."""

    @staticmethod
    def forward(logits: Tensor) -> tuple[Tensor, Tensor]:
        bags = Undecided.of(logits)
        values, tilts = sweep(bags)
        return _up(values, bags, -torch.inf), tilts

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0], output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> Tensor:
        logits, tilts = ctx.saved_tensors
        gradient: Tensor = LogProbsGradient.apply(logits, tilts, grad)
        return gradient.to(logits.dtype)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> tuple[Tensor, None]:
        logits, tilts = ctx.saved_tensors
        weights = torch.zeros_like(tilts)
        return LogProbsSecond.apply(logits, tilts, weights, tangent.double())[0], None


class LogProbsGradient(_BagFunction):
    """(logits, tilts, weights) to the gradient of sum_s weights_s log P(S = s): (b, n)"""

    @staticmethod
    def forward(logits: Tensor, tilts: Tensor, weights: Tensor) -> Tensor:
        bags = Undecided.of(logits)
        return Derivatives(bags, tilts, _down(weights, bags)).gradient()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, tilts, weights = ctx.saved_tensors
        by_weights, by_logits = LogProbsSecond.apply(logits, tilts, weights, grad)
        return by_logits.to(logits.dtype), None, by_weights

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, _: None, by_weights: Tensor | None) -> Tensor:
        logits, tilts, weights = ctx.saved_tensors
        out = torch.zeros_like(logits, dtype=torch.float64)
        if tangent is not None:
            out = out + LogProbsSecond.apply(logits, tilts, weights, tangent.double())[1]
        if by_weights is not None:
            out = out + LogProbsGradient.apply(logits, tilts, by_weights)
        return out


class LogProbsSecond(_BagFunction):
    """(logits, tilts, weights, values): derivatives of <gradient, values> by the weights and by the logits."""

    @staticmethod
    def forward(logits: Tensor, tilts: Tensor, weights: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        bags = Undecided.of(logits)
        by_weights, by_logits = Derivatives(bags, tilts, _down(weights, bags)).along(values)
        return _up(by_weights, bags, 0.0), by_logits

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[None, ...]:
        raise NotImplementedError(
            "third derivatives of log_count_distribution are not implemented; those of log_count_prob are."
        )


def _up(values: Tensor, bags: Undecided, absent: float) -> Tensor:
    """From counts of the undecided instances to counts of the bag: up by the number of sure ones."""
    source = torch.arange(values.shape[-1], device=values.device) - bags.ones
    return values.gather(-1, source.clamp(min=0)).masked_fill(source < 0, absent)


def _down(values: Tensor, bags: Undecided) -> Tensor:
    """The transpose of `_up`; counts that no bag can have get zero."""
    source = torch.arange(values.shape[-1], device=values.device) + bags.ones
    last = values.shape[-1] - 1
    return values.gather(-1, source.clamp(max=last)).masked_fill(source > last, 0.0)
