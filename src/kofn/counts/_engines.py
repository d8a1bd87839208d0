"""Which engine answers a question about counts."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from kofn.counts import _native_engine, _native_library, _operators, _torch_engine
from kofn.counts._backend import backend


class Engine(Protocol):
    """What `_native_engine`, `_torch_engine` and `_operators` all are.

    Logits (..., n) have -inf where there is no instance, or are flat, (m,), with offsets (b + 1,). `high` None means
    one count, `low`. Results are in the dtype of the logits.
    """

    def log_interval(self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
        """log P(low <= S <= high) of each bag."""

    def log_likelihood(
        self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float
    ) -> Tensor:
        """weight times the sum over bags of `log_interval`: a scalar."""

    def log_probs(self, logits: Tensor, offsets: Tensor | None) -> Tensor:
        """log P(S = s) for every s: (..., n + 1), or flat (m + b,)."""

    def posteriors(self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
        """P(y_i = 1 | low <= S <= high), of the shape of the logits."""


def engine_for(*tensors: Tensor | None) -> Engine:
    """The C++ core where it can look at the tensors, torch everywhere else; operators while a graph is compiled."""
    if torch.compiler.is_compiling():
        # An operator has no forward-mode derivative, and none of the second order: in silence, its tangent would be
        # zero. There the graph breaks, and the engine runs as it is; under fullgraph=True that is an error.
        transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
        return cast(Engine, _OutsideGraph()) if transformed else _operators
    return _eager_engine(*tensors)


def _eager_engine(*tensors: Tensor | None) -> Engine:
    if backend() == "native" and _native_library.takes(*tensors):
        return _native_engine
    return _torch_engine


class _OutsideGraph:
    """The engine as it is, from inside a compiled function: the graph breaks around it, the program does not."""

    def __getattr__(self, question: str) -> Any:
        return partial(torch.compiler.disable(_ask), question)


def _ask(question: str, *args: Any) -> Any:
    engine = _eager_engine(*(part for part in args if isinstance(part, Tensor)))
    return getattr(engine, question)(*args)
