"""Logits of classes beyond 1e5: differences come first, and an answer that has too few digits left is refused.

Only differences from an instance's largest logit matter. A class that is 3e7 below it never occurs in counts with
log P(K = k) > -1e7, so differences are cut off there; less likely counts are what float64 has no digits for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kofn import _require

if TYPE_CHECKING:
    from kofn.classes._class_engines import Engine

_CUT = 3e7
_LEAST = -1e7  # log P: of 1e7 float64 keeps nine digits after the point


@dataclass(frozen=True, eq=False)
class LargeClassLogits:
    """An engine of class counts that takes logits of any size, by another one."""

    engine: Engine

    def log_prob(self, logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
        value = self.engine.log_prob(_differences(logits), offsets, counts)
        _require_digits(value)
        return value.to(logits.dtype)

    def posteriors(self, logits: Tensor, offsets: Tensor | None, counts: Tensor) -> Tensor:
        x = _differences(logits)
        _require_digits(self.engine.log_prob(x.detach(), offsets, counts))
        return self.engine.posteriors(x, offsets, counts).to(logits.dtype)


def _differences(logits: Tensor) -> Tensor:
    """Logits less the largest of their instance, in float64, where that is finite."""
    x = logits.double()
    top = x.detach().amax(-1, keepdim=True)
    below = (x.detach() - top.masked_fill(~top.isfinite(), 0.0)).clamp(min=-_CUT)
    # The values of the differences with the derivative of the logits, where these are finite.
    return torch.where(x.isfinite() & top.isfinite(), below + (x - x.detach()), x)


def _require_digits(log_probs: Tensor) -> None:
    """Require log-probabilities that keep nine digits after the point."""
    fits = ~(log_probs < _LEAST) | (log_probs == -torch.inf)
    if not _require.holds(fits):
        raise ValueError(
            f"`logits` must not differ so much that joint class counts have a log-probability below {_LEAST:g}; got "
            f"{float(log_probs[~fits].flatten()[0]):g}. An impossible class has the logit -inf; scale others down."
        )
