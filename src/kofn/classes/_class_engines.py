"""Which engine answers a question about class counts."""

from __future__ import annotations

from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from kofn.classes import _native_class_engine, _torch_class_engine
from kofn.classes._large_class_logits import LargeClassLogits
from kofn.counts import _native, backend
from kofn.counts._large_logits import any_large


class Engine(Protocol):
    """What `_native_class_engine` and `_torch_class_engine` both are.

    Logits (..., n, C) have -inf in all classes where there is no instance, or are (m, C) with offsets (b + 1,). Counts
    are int64, (..., C) or (b, C). Results are in the dtype of the logits.
    """

    def log_prob(self, logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
        """log P(K = k) of each bag: (...) or (b,)."""

    def posteriors(self, logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
        """P(y_i = c | K = k), of the shape of the logits."""


def engine_for(logits: Tensor) -> Engine:
    """The C++ core where it can look at the logits, torch everywhere else."""
    if torch.compiler.is_compiling():  # the size of a table depends on values: no graph can hold it
        return cast(Engine, _OutsideGraph())
    return _engine_for(logits)


def _engine_for(logits: Tensor) -> Engine:
    # Torch alone has the derivatives of forward mode and of torch.func's transforms.
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    if transformed:
        return _torch_class_engine
    native = backend() == "native" and _native.takes(logits)
    engine: Engine = _native_class_engine if native else _torch_class_engine
    return LargeClassLogits(engine) if any_large(logits) else engine


class _OutsideGraph:
    """The engine from inside a compiled function: the graph breaks around it; under fullgraph=True that is an error."""

    def __getattr__(self, question: str) -> Any:
        def answer(logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
            value: Tensor = getattr(_engine_for(logits), question)(logits, offsets, counts)
            return value

        return torch.compiler.disable(answer)
