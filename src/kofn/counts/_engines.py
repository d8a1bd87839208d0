"""Which engine answers a question about counts."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from kofn.counts import _native_engine, _native_library, _operators, _torch_engine
from kofn.counts._backend import backend
from kofn.counts._large_logits import LargeLogits, any_large
from kofn.counts._layout import Layout


class Engine(Protocol):
    """What answers questions about a count.

    Logits (..., n) have -inf where there is no instance, or are flat, (m,), with offsets (b + 1,). `high` None means
    one count, `low`. Results are in the dtype of the logits.
    """

    def log_interval(
        self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float | None = None
    ) -> Tensor:
        """log P(low <= S <= high) of each bag; with a weight, that times their sum, a scalar."""

    def log_interval_slope(
        self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`log_interval` and its gradient by the logits, without a graph."""

    def log_probs(self, logits: Tensor, offsets: Tensor | None) -> Tensor:
        """log P(S = s) for every s: (..., n + 1), or flat (m + b,)."""

    def posteriors(self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
        """P(y_i = 1 | low <= S <= high), of the shape of the logits."""


class IndependentEngine(Engine, Protocol):
    """What `_native_engine`, `_torch_engine`, `_triton_engine` and `_operators` are: engines of independent labels."""

    def shift_mode(self, logits: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor) -> Tensor:
        """The likeliest shift of each bag with so many positives, in units of sigma, about; see `_bag_effect`."""

    def log_shift(self, y: Tensor, layout: Layout, counts: Tensor, sigma: Tensor, centre: Tensor) -> Tensor:
        """What a bag effect adds to log P(S = count) of logits y = x + sigma centre, float64."""

    def log_shift_slopes(
        self, y: Tensor, offsets: Tensor | None, counts: Tensor, sigma: Tensor, centre: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`log_shift` and its gradients by the logits y and by sigma, without a graph."""


def engine_for(logits: Tensor) -> IndependentEngine:
    """The C++ core where it can look at the logits, torch everywhere else; operators while a graph is compiled."""
    # Of the engines, torch alone has the derivatives of forward mode and of torch.func's transforms.
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    if torch.compiler.is_compiling():
        # In silence, the tangent of an operator would be zero. There the graph breaks, and the engine runs as it is;
        # under fullgraph=True that is an error.
        return cast(IndependentEngine, _OutsideGraph()) if transformed else _operators
    if transformed:
        return _torch_engine
    engine = _chosen(logits)
    return LargeLogits(engine) if any_large(logits) else engine


def _chosen(logits: Tensor) -> IndependentEngine:
    if backend() == "triton":
        engine: Any = import_module("kofn.counts._triton_engine")  # here, since Triton is optional and slow to import
        engine.require_device(logits)
        return cast(IndependentEngine, engine)
    return _native_engine if backend() == "native" and _native_library.takes(logits) else _torch_engine


class _OutsideGraph:
    """The engine as it is, from inside a compiled function: the graph breaks around it, the program does not."""

    def __getattr__(self, question: str) -> Any:
        return torch.compiler.disable(getattr(_torch_engine, question))
