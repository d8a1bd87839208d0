"""What is asked of a count: the probability of one count or an interval of counts, and of all counts, with derivatives.

For any event A, d log P(A) / d x_i = c_i (P(y_i = 1 | A) - p_i), with c_i the copies of an instance. So an engine gives
two things, a value and its gradient, and autograd needs one node: `Event`. The derivatives of that gradient are the
covariances of the labels given A. `AllCounts` is the same for the whole table of counts.

All nodes take the tensor of the logits as it is and a `Layout`, and are their own rule for `torch.func.vmap`: a layout
of more bags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd.function import once_differentiable

from kofn.counts import _compiled, _native, _random_effect
from kofn.counts._engines import TorchEngine, engine_for
from kofn.counts._host import transformed
from kofn.counts._large_logits import all_counts_of_large, any_large, tame
from kofn.counts._layout import Layout


def log_event(
    x: Tensor,
    layout: Layout,
    low: Tensor,
    high: Tensor | None = None,
    *,
    sigma: Tensor | None = None,
    weight: float | None = None,
) -> Tensor:
    """log P(low <= S <= high) of each bag, of one count if high is None; with a weight, that times their sum.

    Args:
        x: logits of any floating dtype, -inf where there is no instance.
        layout: which of them belong to which bag, and their copies.
        low: int64, one for each bag.
        high: the same, or None.
        sigma: float64 standard deviations of a random effect for each bag, of one count only; or None.
        weight: of the sum over bags; None for one number for each bag.

    Returns:
        `layout.shape`, or a scalar with a weight; in the dtype of the logits.
    """
    wide = x if x.dtype in _native.DTYPES else x.double()
    value: Tensor
    if torch.compiler.is_compiling():
        # Of a transform the operators know nothing; there the graph breaks, and the engine runs as it is.
        ask_for = torch.compiler.disable(log_event) if transformed() else _compiled.log_event
        value = ask_for(wide, layout, low, high, sigma=sigma)
    elif transformed():
        if sigma is None:
            value = Event.apply(wide, None, low, high, _Ask(layout))
        else:  # plain operations, which have all derivatives
            value = _random_effect.log_prob(log_event, wide.double(), layout, low, sigma)
    else:
        wanted = torch.is_grad_enabled() and (wide.requires_grad or (sigma is not None and sigma.requires_grad))
        ask = _Ask(layout, weight, wanted)
        value = _apply_event(wide, sigma, low, high, ask)
        if not ask.large:
            return value if wide is x else value.to(x.dtype)
        value = _log_event_of_large(wide.double(), layout, low, high, sigma)
    value = value.to(x.dtype)
    return value if weight is None else value.sum() * weight


def _log_event_of_large(x: Tensor, layout: Layout, low: Tensor, high: Tensor | None, sigma: Tensor | None) -> Tensor:
    """`log_event` of finite logits that are too large for the engines, in float64."""
    if sigma is not None:
        return _random_effect.log_prob(log_event, x, layout, low, sigma)
    y, change, low, high = tame(x, layout, low, high)
    value: Tensor = Event.apply(y, None, low, high, _Ask(layout, None, y.requires_grad)) + change
    return value


def posteriors(x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> Tensor:
    """P(y_i = 1 | low <= S <= high) of one copy of each instance: the shape and dtype of the logits."""
    if torch.compiler.is_compiling():
        ask = torch.compiler.disable(posteriors) if transformed() else _compiled.posteriors
        return ask(x, layout, low, high)
    dtype = x.dtype
    if any_large(x):
        x, _, low, high = tame(x.double(), layout, low, high)
    if transformed() or (x.requires_grad and torch.is_grad_enabled()):
        wide = x.double()
        found = EventGradient.apply(wide, low, high, _Ask(layout))
        if layout.copies is not None:
            found = found / layout.copies.clamp(min=1)
        given: Tensor = torch.sigmoid(wide) + found
        return given.to(dtype)
    return engine_for(x).posteriors(x, layout, low, high).to(dtype)


def log_all_counts(x: Tensor, layout: Layout) -> Tensor:
    """log P(S = s) for every s, laid out as `layout.of_counts` says, of instances without copies."""
    wide = x if x.dtype in _native.DTYPES else x.double()
    value: Tensor
    if torch.compiler.is_compiling():
        ask = torch.compiler.disable(log_all_counts) if transformed() else _compiled.log_all_counts
        value = ask(wide, layout)
    elif transformed():
        value = AllCounts.apply(wide, _Ask(layout))
    else:
        ask = _Ask(layout, wanted=torch.is_grad_enabled() and wide.requires_grad)
        value = _apply_all_counts(wide, ask)
        if ask.large:
            value = all_counts_of_large(
                log_event, lambda y, bags: AllCounts.apply(y, _Ask(bags)), wide.double(), layout
            )
    return value.to(x.dtype)


@dataclass
class _Ask:
    """The arguments of a node that are no tensors, and what its forward pass leaves for the backward pass."""

    layout: Layout
    weight: float | None = None
    wanted: bool = False  # whether the forward pass finds gradients along with the value
    found: Any = None
    large: bool = False  # whether some finite logit proved too large for the engines

    def repeated(self, times: int) -> _Ask:
        """What is asked of so many bags for each of these."""
        return _Ask(self.layout.repeated(times))


class BagFunction(torch.autograd.Function):
    """A function of independent bags whose last argument has their layout, as `_Ask`. Mapped, it is that of more."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *tensors, ctx.ask = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    # torch has no types for `apply`, and its own class no method of that name above it that mypy knows.
    @classmethod
    def apply(cls, *args: Any) -> Any:
        # `torch.autograd.grad(..., is_grads_batched=True)`, as in `jacobian(..., vectorize=True)`, maps a backward pass
        # without asking for a rule of `vmap`: what stands there for many tensors is taken apart and put together here.
        mapped = [isinstance(each, Tensor) and _functorch.is_legacy_batchedtensor(each) for each in args]
        if any(mapped):
            return cls._apply_to_batches(mapped, args)
        if transformed():
            *tensors, ask = args
            return super().apply(*tensors, replace(ask, layout=ask.layout.outside()))  # type: ignore[no-untyped-call]
        return super(torch.autograd.Function, cls).apply(*args)  # type: ignore[misc]

    @classmethod
    def _apply_to_batches(cls, mapped: list[bool], args: tuple[Any, ...]) -> Any:
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
        many: int = info.batch_size
        flat = args[-1].layout.offsets is not None

        def fold(value: Any, dim: int | None) -> Any:
            if not isinstance(value, Tensor):
                return value
            mapped = value.expand(many, *value.shape) if dim is None else value.movedim(dim, 0)
            return mapped.flatten(0, 1) if flat else mapped

        def unfold(value: Tensor) -> Tensor:
            return value.reshape(many, len(value) // many, *value.shape[1:]) if flat else value

        ask = args[-1].repeated(many)
        out = cls.apply(*(fold(value, dim) for value, dim in zip(args[:-1], in_dims[:-1], strict=True)), ask)
        if isinstance(out, tuple):
            return tuple(unfold(value) for value in out), (0,) * len(out)
        return unfold(out), 0


class Event(BagFunction):
    """(logits, sigma or None, low, high or None, ask) to log P(low <= S <= high), or with a weight to a sum."""

    @staticmethod
    def forward(x: Tensor, sigma: Tensor | None, low: Tensor, high: Tensor | None, ask: _Ask) -> Tensor:
        engine = engine_for(x)
        value, by_x, by_sigma, ask.large = engine.event(
            x, ask.layout, low, high, sigma, ask.weight, gradient=ask.wanted
        )
        if ask.wanted:
            ask.found = by_x, by_sigma
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, sigma, low, high = ctx.saved_tensors
        ask: _Ask = ctx.ask
        if torch.is_grad_enabled():
            return *_differentiable_backward(ctx, grad), None, None, None
        found = ask.found or engine_for(x).event(x, ask.layout, low, high, sigma, ask.weight, gradient=True)[1:3]
        # The gradient is handed over, not copied: a second pass through a graph that was retained asks again.
        (by_x, by_sigma), ask.found = found, None
        del found
        # Of many gradients at once (is_grads_batched) one tensor stands for each, which has no memory of its own.
        plain = _native.takes(grad)
        if ask.weight is not None and plain and grad.item() == 1.0:  # the loss itself goes backward
            return by_x, by_sigma, None, None, None
        if plain and ask.weight is None and ask.layout.offsets is not None:
            out = _native.scale(by_x, ask.layout.offsets, grad)
        else:
            out = by_x * (grad if ask.weight is not None else ask.layout.spread(grad))
        return out, None if by_sigma is None else by_sigma * grad, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        x, _sigma, low, high = ctx.saved_tensors
        along: Tensor = ctx.ask.layout.add(EventGradient.apply(x, low, high, _Ask(ctx.ask.layout)) * tangent)
        return along


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradients by the logits and by sigma, as functions that have derivatives."""
    x, sigma, low, high = ctx.saved_tensors
    layout, weight = ctx.ask.layout, ctx.ask.weight
    if weight is not None:
        grad = (grad * weight).expand(layout.shape)
    if sigma is None:
        return (layout.spread(grad) * EventGradient.apply(x, low, high, _Ask(layout))).to(x.dtype), None
    sources = x.view_as(x), sigma.view_as(sigma)  # sigma may be made of x, or x of sigma
    value = _random_effect.log_prob(log_event, sources[0].double(), layout, low, sources[1])
    wanted = [part for part, needed in zip(sources, ctx.needs_input_grad, strict=False) if needed]
    found = iter(torch.autograd.grad(value, wanted, grad.to(value.dtype), create_graph=True))
    by_x, by_sigma = (next(found) if needed else None for needed in ctx.needs_input_grad[:2])
    return by_x, by_sigma


class EventGradient(BagFunction):
    """(logits, low, high or None, ask) to the gradient of log P(low <= S <= high) by the logits."""

    @staticmethod
    def forward(x: Tensor, low: Tensor, high: Tensor | None, ask: _Ask) -> Tensor:
        gradient: Tensor = engine_for(x).event(x, ask.layout, low, high, None, None, gradient=True)[1]
        return gradient

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, low, high = ctx.saved_tensors
        return HessianProduct.apply(x, low, high, grad, _Ask(ctx.ask.layout)).to(x.dtype), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        x, low, high = ctx.saved_tensors
        along: Tensor = HessianProduct.apply(x, low, high, tangent, _Ask(ctx.ask.layout)).to(x.dtype)
        return along


class HessianProduct(BagFunction):
    """(logits, low, high or None, values, ask) to sum_j d^2 log P(low <= S <= high) / dx_i dx_j values_j, float64."""

    @staticmethod
    def forward(x: Tensor, low: Tensor, high: Tensor | None, values: Tensor, ask: _Ask) -> Tensor:
        return TorchEngine.hessian_product(x, ask.layout, low, high, values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Third derivatives have no closed form here: the product itself is differentiated, on a tape.
        x, low, high, values = ctx.saved_tensors
        with torch.enable_grad():
            x, values = x.detach().requires_grad_(), values.detach().requires_grad_()
            out = TorchEngine.hessian_product(x, ctx.ask.layout, low, high, values)
            by_x, by_values = torch.autograd.grad(out, (x, values), grad)
        return by_x, None, None, by_values, None


class AllCounts(BagFunction):
    """(logits, ask) to log P(S = s) for every s, laid out as `of_counts` says."""

    @staticmethod
    def forward(x: Tensor, ask: _Ask) -> Tensor:
        value, ask.found, ask.large = engine_for(x).all_counts(x, ask.layout, tilts=ask.wanted)
        return value

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.ask = inputs
        ctx.tilts = ctx.ask.found
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
        (x,) = ctx.saved_tensors
        ask = replace(ctx.ask, found=ctx.tilts)
        return AllCountsGradient.apply(x, grad, ask).to(x.dtype), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        (x,) = ctx.saved_tensors
        nothing = torch.zeros(ctx.ask.layout.of_counts().entries, dtype=torch.float64, device=x.device)
        along: Tensor = AllCountsSecond.apply(x, nothing, tangent.double(), _Ask(ctx.ask.layout))[0].to(x.dtype)
        return along


class AllCountsGradient(BagFunction):
    """(logits, weights, ask) to the gradient of sum_s weights_s log P(S = s) by the logits, float64."""

    @staticmethod
    def forward(x: Tensor, weights: Tensor, ask: _Ask) -> Tensor:
        engine = engine_for(x)
        tilts = engine.all_counts(x, ask.layout, tilts=True)[1] if ask.found is None else ask.found
        return engine.all_counts_gradient(x, ask.layout, tilts, weights.double())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weights = ctx.saved_tensors
        by_weights, by_x = AllCountsSecond.apply(x, weights, grad, _Ask(ctx.ask.layout))
        return by_x.to(x.dtype), by_weights.to(weights.dtype), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, by_weights: Tensor | None, _: None) -> Tensor:
        x, weights = ctx.saved_tensors
        out = torch.zeros_like(x, dtype=torch.float64)
        if tangent is not None:
            out = out + AllCountsSecond.apply(x, weights, tangent.double(), _Ask(ctx.ask.layout))[1]
        if by_weights is not None:
            out = out + AllCountsGradient.apply(x, by_weights, _Ask(ctx.ask.layout))
        return out


class AllCountsSecond(BagFunction):
    """(logits, weights, values, ask): derivatives of <gradient, values> by the weights and by the logits."""

    @staticmethod
    def forward(x: Tensor, weights: Tensor, values: Tensor, ask: _Ask) -> tuple[Tensor, Tensor]:
        return TorchEngine.all_counts_second(x, ask.layout, weights.double(), values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[None, ...]:
        raise NotImplementedError(
            "third derivatives of log_count_distribution are not implemented; those of log_count_prob are."
        )


# What `Function.apply` calls where no transform is active: its own care of them takes longer than the arithmetic of a
# small batch.
_apply_event: Any = super(torch.autograd.Function, Event).apply
_apply_all_counts: Any = super(torch.autograd.Function, AllCounts).apply
