"""What is asked of a count in graphs that are compiled or exported.

One count or interval of dense bags is traced as it is where torch computes it: nothing there depends on the values but
numbers. Of other questions shapes do (sizes of ragged bags, windows of all counts), and the C++ core is no torch: these
become one operator in the graph; when it runs, the operator asks the engine. Outside a graph nobody comes here: an
operator costs more than the engine's own autograd functions.

Graphs have first derivatives. What they do not have raises, instead of being zero: a second derivative, a derivative of
a posterior, a forward-mode derivative, `torch.func.vmap`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor

from kofn.counts._engines import TorchEngine, backend, engine_for
from kofn.counts._layout import Layout, lay_out

_BAGS = "Tensor x, Tensor? offsets, Tensor? copies"
_library = torch.library.Library("kofn", "DEF")
_library.define(f"event({_BAGS}, Tensor low, Tensor? high, Tensor? sigma) -> (Tensor, Tensor, Tensor)")
_library.define(f"posteriors({_BAGS}, Tensor low, Tensor? high) -> Tensor")
_library.define("all_counts(Tensor x, Tensor? offsets) -> Tensor")
_library.define("all_counts_gradient(Tensor x, Tensor? offsets, Tensor weights) -> Tensor")


def log_event(x: Tensor, layout: Layout, low: Tensor, high: Tensor | None, sigma: Tensor | None) -> Tensor:
    """log P(low <= S <= high) of each bag, in the dtype of the logits, float32 or float64."""
    if sigma is None and _traced(x, layout):
        return _with_gradient(x, layout, low, high)
    value: Tensor = torch.ops.kofn.event(x, layout.offsets, layout.copies, low, high, sigma)[0]
    return value


def posteriors(x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> Tensor:
    """P(y_i = 1 | low <= S <= high), of the shape and dtype of the logits."""
    if _traced(x, layout) and not x.requires_grad:
        return TorchEngine.posteriors(x, layout, low, high).to(x.dtype)
    value: Tensor = torch.ops.kofn.posteriors(x, layout.offsets, layout.copies, low, high)
    return value.to(x.dtype)


def log_all_counts(x: Tensor, layout: Layout) -> Tensor:
    """log P(S = s) for every s, laid out as `layout.of_counts` says."""
    value: Tensor = torch.ops.kofn.all_counts(x, layout.offsets)
    return value


def _native_when_traced() -> bool:
    """Whether the C++ core was in use when the graph was made: the compiler cannot follow a context variable."""
    return backend() == "native"


# What torch.compiler.assume_constant_result does, but for its import of the compiler, which takes a second.
_native_when_traced._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _traced(x: Tensor, layout: Layout) -> bool:
    return layout.offsets is None and not (x.is_cpu and _native_when_traced())


def _with_gradient(x: Tensor, layout: Layout, low: Tensor, high: Tensor | None) -> Tensor:
    """log P(low <= S <= high), traced: no function of autograd, of which a graph of changing shapes takes only one."""
    still = x.detach()
    value, gradient, *_ = TorchEngine.event(still, layout, low, high, None, None, gradient=True)
    nothing = torch.where(still.isfinite(), x - still, 0.0)  # but its derivative is 1
    traced: Tensor = value + (gradient * nothing).sum(-1)
    return traced


# What the operators do when a graph runs. Offsets were taken on trust while it was made: they are checked here.


def _laid_out(x: Tensor, offsets: Tensor | None, copies: Tensor | None = None) -> Layout:
    return lay_out(x.shape, x.device, offsets=offsets, copies=copies)


def _run_event(x: Tensor, offsets: Any, copies: Any, low: Tensor, high: Any, sigma: Any) -> tuple[Tensor, ...]:
    layout = _laid_out(x, offsets, copies)
    value, by_x, by_sigma, _ = engine_for(x).event(x, layout, low, high, sigma, None, gradient=True)
    return value, by_x, low.new_zeros(0, dtype=torch.float64) if by_sigma is None else by_sigma


def _run_posteriors(x: Tensor, offsets: Any, copies: Any, low: Tensor, high: Any) -> Tensor:
    return engine_for(x).posteriors(x, _laid_out(x, offsets, copies), low, high).to(x.dtype)


def _run_all_counts(x: Tensor, offsets: Any) -> Tensor:
    return engine_for(x).all_counts(x, _laid_out(x, offsets), tilts=False)[0]


def _run_all_counts_gradient(x: Tensor, offsets: Any, weights: Tensor) -> Tensor:
    engine, layout = engine_for(x), _laid_out(x, offsets)
    tilts = engine.all_counts(x, layout, tilts=True)[1]
    return engine.all_counts_gradient(x, layout, tilts, weights.double()).to(x.dtype)


# Shapes and dtypes of the results, which is all that the compiler sees.


def _shape_of_event(x: Tensor, _: Any, __: Any, low: Tensor, ___: Any, sigma: Tensor | None) -> tuple[Tensor, ...]:
    by_sigma = low.new_empty(0, dtype=torch.float64) if sigma is None else torch.empty_like(sigma)
    return torch.empty_like(low, dtype=x.dtype), torch.empty_like(x), by_sigma


def _shape_of_all_counts(x: Tensor, offsets: Tensor | None) -> Tensor:
    if offsets is not None:
        return x.new_empty(x.shape[0] + offsets.shape[0] - 1)
    return x.new_empty(*x.shape[:-1], x.shape[-1] + 1)


# Derivatives.


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.offsets, ctx.inputs = inputs[1], len(inputs)
    ctx.save_for_backward(*(output[1:] if isinstance(output, tuple) else inputs[:1]))


def _backward_of_event(ctx: Any, grad: Tensor | None, *by_gradients: Tensor | None) -> tuple[Tensor | None, ...]:
    if any(part is not None for part in by_gradients):
        _not_there()
    if grad is None:
        return (None,) * 6
    gradient, by_sigma = ctx.saved_tensors
    by_sigma = grad * by_sigma if by_sigma.shape == grad.shape else None
    return gradient * _laid_out(gradient, ctx.offsets).spread(grad), None, None, None, None, by_sigma


def _backward_of_all_counts(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
    (x,) = ctx.saved_tensors
    return torch.ops.kofn.all_counts_gradient(x, ctx.offsets, grad), None


def _not_there(*_: Any) -> NoReturn:
    raise NotImplementedError(
        "compiled graphs have first derivatives of log-probabilities of counts only: no second ones, none of "
        "posteriors. Take these outside torch.compile."
    )


for _name, _run, _shape, _backward in (
    ("event", _run_event, _shape_of_event, _backward_of_event),
    ("posteriors", _run_posteriors, lambda x, *_: torch.empty_like(x), _not_there),
    ("all_counts", _run_all_counts, _shape_of_all_counts, _backward_of_all_counts),
    ("all_counts_gradient", _run_all_counts_gradient, lambda x, *_: torch.empty_like(x), _not_there),
):
    _library.impl(_name, _run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"kofn::{_name}", _shape, lib=_library)
    torch.library.register_autograd(f"kofn::{_name}", _backward, setup_context=_keep, lib=_library)
