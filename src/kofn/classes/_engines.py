"""Which engine answers a question about class counts."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from kofn.classes import _torch_engine


class Engine(Protocol):
    """What every engine is.

    Logits (..., n, C) have -inf in all classes where there is no instance, or are (m, C) with offsets (b + 1,). Counts
    are int64, (..., C) or (b, C). Results are in the dtype of the logits.
    """

    def log_prob(self, logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
        """log P(K = k) of each bag: (...) or (b,)."""

    def posteriors(self, logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
        """P(y_i = c | K = k), of the shape of the logits."""


def engine_for(logits: Tensor) -> Engine:
    return _torch_engine
