"""The engine in graphs that are compiled or exported.

One count or interval of dense bags is traced as it is where torch computes it: nothing there depends on the values but
numbers. Of other questions shapes do (sizes of ragged bags, windows of all counts), and the C++ core is no torch: these
become one operator in the graph; when it runs, the operator asks the engine. Outside a graph nobody comes here: an
operator costs more than the engine's own autograd functions.

Graphs have first derivatives. What they do not have raises, instead of being zero: a second derivative, a derivative of
a posterior, a forward-mode derivative, `torch.func.vmap`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor

from kofn.counts import _native_engine, _native_library, _torch_engine
from kofn.counts._arguments import lay_out, require_offsets
from kofn.counts._backend import backend
from kofn.counts._layout import Layout

_library = torch.library.Library("kofn", "DEF")
_library.define("log_interval(Tensor logits, Tensor? offsets, Tensor low, Tensor? high) -> (Tensor, Tensor)")
_library.define("log_probs(Tensor logits, Tensor? offsets) -> Tensor")
_library.define("log_probs_gradient(Tensor logits, Tensor? offsets, Tensor weights) -> Tensor")
_library.define("shift_mode(Tensor logits, Tensor? offsets, Tensor counts, Tensor sigma) -> Tensor")
_library.define(
    "log_shift(Tensor y, Tensor? offsets, Tensor counts, Tensor sigma, Tensor centre) -> (Tensor, Tensor, Tensor)"
)
_library.define("posteriors(Tensor logits, Tensor? offsets, Tensor low, Tensor? high) -> Tensor")


def log_interval(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float | None = None
) -> Tensor:
    """log P(low <= S <= high), or of one count if high is None: (...) or (b,); with a weight, that times their sum."""
    value: Tensor
    if _traced(logits, offsets):
        value = _with_slope(_wide(logits), low, high)
    else:
        value = torch.ops.kofn.log_interval(_wide(logits), offsets, low, high)[0]
    value = value.to(logits.dtype)
    return value if weight is None else value.sum() * weight


def log_interval_slope(
    logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`log_interval` and its gradient by the logits, P(y_i = 1 | low <= S <= high) - sigmoid(x_i), without a graph."""
    if _traced(logits, offsets):
        return _torch_engine.log_interval_slope(logits, offsets, low, high)
    value, slope = torch.ops.kofn.log_interval(_wide(logits), offsets, low, high)
    return value.to(logits.dtype), slope.to(logits.dtype)


def shift_mode(logits: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor) -> Tensor:
    """The likeliest shift of each bag with so many positives, in units of sigma, about: float64, without a gradient."""
    value: Tensor = torch.ops.kofn.shift_mode(_wide(logits).detach(), offsets, counts, sigma.detach())
    return value


def log_shift(y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor) -> Tensor:
    """What a bag effect of standard deviation sigma adds to log P(S = count) of y = x + sigma centre: float64."""
    value: Tensor = torch.ops.kofn.log_shift(_wide(y), layout.offsets, counts, sigma, centre)[0]
    return value


def log_shift_slopes(
    y: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor, centre: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_shift` and its gradients by the logits y and by sigma, without a graph."""
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.kofn.log_shift(_wide(y), offsets, counts, sigma, centre)
    return found


def log_probs(logits: Tensor, offsets: Tensor | None) -> Tensor:
    """log P(S = s) for every s: (..., n + 1), or flat (m + b,), in the dtype of the logits."""
    value: Tensor = torch.ops.kofn.log_probs(_wide(logits), offsets)
    return value.to(logits.dtype)


def posteriors(logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
    """P(y_i = 1 | low <= S <= high), of the shape and dtype of the logits."""
    value: Tensor
    if _traced(logits, offsets) and not logits.requires_grad:
        value = _torch_engine.log_interval_slope(_wide(logits), None, low, high)[1] + torch.sigmoid(_wide(logits))
    else:
        value = torch.ops.kofn.posteriors(_wide(logits), offsets, low, high)
    return value.to(logits.dtype)


def _wide(logits: Tensor) -> Tensor:
    """Logits of half precision as float64: a gradient is rounded once, at the end."""
    return logits if logits.dtype in _native_library.DTYPES else logits.double()


def _native(logits: Tensor) -> bool:
    return backend() == "native" and _native_library.takes(logits)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch has no type for it
def _native_when_traced() -> bool:
    """Whether the C++ core was in use when the graph was made: the compiler cannot follow a context variable."""
    return backend() == "native"


def _traced(logits: Tensor, offsets: Tensor | None) -> bool:
    return offsets is None and not (logits.is_cpu and _native_when_traced())


def _with_slope(logits: Tensor, low: Tensor, high: Tensor | None) -> Tensor:
    """log P(low <= S <= high), traced: no function of autograd, of which a graph of changing shapes takes only one."""
    x = logits.detach()
    value, slope = _torch_engine.log_interval_slope(x, None, low, high)
    nothing = torch.where(x.isfinite(), logits - x, 0.0)  # but its derivative is 1
    return value + (slope * nothing).sum(-1)


# What the operators do when a graph runs. Offsets were taken on trust while it was made: they are checked here.


def _run(question: str, logits: Tensor, offsets: Tensor | None, *numbers: Tensor | None) -> Any:
    engine: Any = _native_engine if _native(logits) else _torch_engine
    if offsets is not None:
        offsets = require_offsets(offsets, len(logits))
    return getattr(engine, question)(logits, offsets, *numbers)


# Shapes and dtypes of the results, which is all that the compiler sees.


def _shape_of_log_interval(logits: Tensor, offsets: Tensor | None, low: Tensor, _: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(low, dtype=logits.dtype), torch.empty_like(logits)


def _shape_of_log_shift(
    y: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor, centre: Tensor
) -> tuple[Tensor, ...]:
    value = torch.empty_like(centre)
    return value, torch.empty_like(y, dtype=torch.float64), torch.empty_like(value)


def _shape_of_log_probs(logits: Tensor, offsets: Tensor | None) -> Tensor:
    if offsets is not None:
        return logits.new_empty(logits.shape[0] + offsets.shape[0] - 1)
    return logits.new_empty(*logits.shape[:-1], logits.shape[-1] + 1)


# Derivatives.


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.offsets, ctx.dtype = inputs[1], inputs[0].dtype
    ctx.save_for_backward(*(output[1:] if isinstance(output, tuple) else inputs[:1]))


def _backward_of_log_interval(ctx: Any, grad: Tensor | None, by_slope: Tensor | None) -> tuple[Tensor | None, ...]:
    if by_slope is not None:
        _not_there()
    if grad is None:
        return None, None, None, None
    (slope,) = ctx.saved_tensors
    return slope * lay_out(slope.shape, slope.device, None, ctx.offsets).spread(grad), None, None, None


def _backward_of_log_shift(ctx: Any, grad: Tensor | None, *by_slopes: Tensor | None) -> tuple[Tensor | None, ...]:
    if any(part is not None for part in by_slopes):
        _not_there()
    if grad is None:
        return None, None, None, None, None
    slope, by_sigma = ctx.saved_tensors
    by_logits = slope * lay_out(slope.shape, slope.device, None, ctx.offsets).spread(grad)
    return by_logits.to(ctx.dtype), None, None, grad * by_sigma, None


def _backward_of_log_probs(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
    (logits,) = ctx.saved_tensors
    return torch.ops.kofn.log_probs_gradient(logits, ctx.offsets, grad), None


def _not_there(*_: Any) -> NoReturn:
    raise NotImplementedError(
        "compiled graphs have first derivatives of log-probabilities of counts only: no second ones, none of "
        "posteriors. Take these outside torch.compile."
    )


for _name, _question, _shape, _backward in (
    ("log_interval", "log_interval_slope", _shape_of_log_interval, _backward_of_log_interval),
    ("shift_mode", "shift_mode", lambda _, __, counts, ___: torch.empty(counts.shape, dtype=torch.float64), _not_there),
    ("log_shift", "log_shift_slopes", _shape_of_log_shift, _backward_of_log_shift),
    ("log_probs", "log_probs", _shape_of_log_probs, _backward_of_log_probs),
    ("log_probs_gradient", "log_probs_gradient", lambda logits, *_: torch.empty_like(logits), _not_there),
    ("posteriors", "posteriors", lambda logits, *_: torch.empty_like(logits), _not_there),
):
    _library.impl(_name, partial(_run, _question), "CompositeExplicitAutograd")
    torch.library.register_fake(f"kofn::{_name}", _shape, lib=_library)
    torch.library.register_autograd(f"kofn::{_name}", _backward, setup_context=_keep, lib=_library)
