"""The engine of bags with an effect of their own: it asks that of independent labels, and integrates over the shift."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kofn.counts import _bag_effect
from kofn.counts._engines import engine_for
from kofn.counts._layout import Layout
from kofn.counts._repeated import Repeated, without_repetition
from kofn.counts._table import only_between


@dataclass(frozen=True, eq=False)
class ShiftedEngine:
    """An `Engine` for bags with a normal shift of their logits, of standard deviation sigma: see `_bag_effect`.

    One count takes one question to the engine below and an integral, in linear time. An interval is a sum over the
    table of all counts.
    """

    layout: Layout
    sigma: Tensor  # float64, one for each bag
    fixed: bool = False  # whether what the shift adds is a constant to autograd

    def log_interval(
        self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None, weight: float | None = None
    ) -> Tensor:
        x = logits.double()
        if high is None:
            alone = engine_for(x).log_interval(x, offsets, low, None)
            value = _add(alone, self._log_shift(x.detach() if self.fixed else x, low))
        else:
            counts = self.layout.of_counts()
            value = counts.logsumexp(only_between(self.log_probs(x, offsets), counts, low, high))
        value = value.to(logits.dtype)
        return value if weight is None else value.sum() * weight

    def log_interval_slope(
        self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        x = logits.detach().double()
        if high is None:
            value, slope = engine_for(x).log_interval_slope(x, offsets, low, None)
            shift, more = self._log_shift_and_slope(x, low)
            impossible = self.layout.spread(value == -torch.inf)
            value, slope = _add(value, shift), slope + more.masked_fill(impossible, 0.0)
        else:
            with torch.enable_grad():
                x = x.requires_grad_()
                value = self.log_interval(x, offsets, low, high)
                (slope,) = torch.autograd.grad(value.sum(), x)
        return value.detach().to(logits.dtype), slope.to(logits.dtype)

    def log_probs(self, logits: Tensor, offsets: Tensor | None) -> Tensor:
        x = logits.double()
        alone = engine_for(x).log_probs(x, offsets)
        return _add(alone, self._log_shifts(x)).to(logits.dtype)

    def posteriors(self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
        engine = engine_for(logits)
        if high is None:  # given the count, the shift says nothing more of the labels
            return engine.posteriors(logits, offsets, low, None)
        # P(y_i = 1 | S in A) = sum_s P(S = s | S in A) P(y_i = 1 | S = s), and P(y_i = 1 | S = s) - p_i is the slope of
        # log P(S = s) of independent labels.
        counts, grad = self.layout.of_counts(), torch.is_grad_enabled() and logits.requires_grad
        with torch.enable_grad():
            x = logits.double() if grad else logits.detach().double().requires_grad_()
            alone = engine.log_probs(x, offsets)
            table = only_between(_add(alone, self._log_shifts(x)), counts, low, high)
            total = counts.logsumexp(table)
            weight = (table - counts.spread(total.masked_fill(total == -torch.inf, 0.0))).exp()
            (slope,) = torch.autograd.grad(alone, x, weight, create_graph=grad)
            found = (torch.sigmoid(x) + slope).to(logits.dtype)
        return found if grad else found.detach()

    def _log_shift(self, x: Tensor, counts: Tensor) -> Tensor:
        first, layout = without_repetition(x, self.layout)
        if isinstance(layout, Repeated):
            return _bag_effect.log_shift(first, layout, counts, self.sigma)
        return engine_for(x).log_shift(x, layout, counts, self.sigma)

    def _log_shift_and_slope(self, x: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        first, layout = without_repetition(x, self.layout)
        if isinstance(layout, Repeated):
            value, slope, _ = _bag_effect.log_shift_slopes(first, layout, counts, self.sigma)
            return value, layout.repeat(slope)
        value, slope, _ = engine_for(x).log_shift_slopes(x, layout.offsets, counts, self.sigma)
        return value, slope

    def _log_shifts(self, x: Tensor) -> Tensor:
        # How many nodes an integral takes depends on the values: a compiled graph breaks here.
        ask = _bag_effect.log_shifts
        ask = torch.compiler.disable(ask) if torch.compiler.is_compiling() else ask
        return ask(x.detach() if self.fixed else x, self.layout, self.sigma)


def _add(alone: Tensor, shift: Tensor) -> Tensor:
    """log P with a shift, from that without; an impossible count stays impossible, without a gradient."""
    return torch.where(alone == -torch.inf, alone, alone + shift)
