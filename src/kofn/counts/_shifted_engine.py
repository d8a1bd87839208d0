"""The engine of bags with an effect of their own: it asks that of independent labels, and integrates over the shift."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kofn import _require
from kofn.counts import _bag_effect
from kofn.counts._engines import engine_for
from kofn.counts._layout import Dense, Layout
from kofn.counts._repeated import Repeated, without_repetition
from kofn.counts._table import asked_one_by_one, only_between

_DIGITS = 1e5  # log P without a shift, as a multiple of the result, that leaves the result ten digits


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
            value = self._log_prob(x, low)
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
            y, centre, first, layout = self._centred(x, low)
            value, slope = engine_for(y).log_interval_slope(y, offsets, low, None)
            if isinstance(layout, Repeated):
                shift, more, _ = _bag_effect.log_shift_slopes(first, layout, low, self.sigma, centre)
                more = layout.repeat(more)
            else:
                shift, more, _ = engine_for(y).log_shift_slopes(y, offsets, low, self.sigma, centre)
            impossible = self.layout.spread(value == -torch.inf)
            value, slope = _add(value, shift), slope + more.masked_fill(impossible, 0.0)
        else:
            with torch.enable_grad():
                x = x.requires_grad_()
                value = self.log_interval(x, offsets, low, high)
                (slope,) = torch.autograd.grad(value.sum(), x)
        return value.detach().to(logits.dtype), slope.to(logits.dtype)

    def log_probs(self, logits: Tensor, offsets: Tensor | None) -> Tensor:
        return self._table(logits.double())[1].to(logits.dtype)

    def posteriors(self, logits: Tensor, offsets: Tensor | None, low: Tensor, high: Tensor | None) -> Tensor:
        engine = engine_for(logits)
        if high is None:  # given the count, the shift says nothing more of the labels
            return engine.posteriors(logits, offsets, low, None)
        # P(y_i = 1 | S in A) = sum_s P(S = s | S in A) P(y_i = 1 | S = s), and P(y_i = 1 | S = s) - p_i is the slope of
        # log P(S = s) of independent labels.
        counts, grad = self.layout.of_counts(), torch.is_grad_enabled() and logits.requires_grad
        with torch.enable_grad():
            x = logits.double() if grad else logits.detach().double().requires_grad_()
            alone, table = self._table(x)
            table = only_between(table, counts, low, high)
            total = counts.logsumexp(table)
            weight = (table - counts.spread(total.masked_fill(total == -torch.inf, 0.0))).exp()
            (slope,) = torch.autograd.grad(alone, x, weight, create_graph=grad)
            found = (torch.sigmoid(x) + slope).to(logits.dtype)
        return found if grad else found.detach()

    def _log_prob(self, x: Tensor, counts: Tensor) -> Tensor:
        """log P(S = count) of each bag, in float64: that of the likeliest shift, and what all of them add."""
        y, centre, first, layout = self._centred(x, counts)
        alone = engine_for(y).log_interval(y, self.layout.offsets, counts, None)
        if self.fixed:  # of logits x, d log P(S = s) / dx_i is P(y_i = 1 | S = s) - sigmoid(x_i), not - sigmoid(y_i)
            p, nothing = torch.sigmoid(x.detach()), (x - x.detach()).nan_to_num(0.0)
            alone = alone + self.layout.sum(nothing * (torch.sigmoid(y.detach()) - p))
            y = y.detach()
        if isinstance(layout, Repeated):
            return _add(alone, _bag_effect.log_shift(first, layout, counts, self.sigma, centre))
        return _add(alone, engine_for(y).log_shift(y, layout, counts, self.sigma, centre))

    def _centred(self, x: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor, Layout]:
        """Logits at the likeliest shift of each bag, that shift in units of sigma, the same with each logit once."""
        first, layout = without_repetition(x, self.layout)
        if isinstance(layout, Repeated):
            centre = _bag_effect.mode(first, layout, counts, self.sigma)
        else:
            centre = engine_for(x).shift_mode(x, layout.offsets, counts, self.sigma)
        shift = self.sigma * centre
        y = x + self.layout.spread(shift)
        return y, centre, first + layout.spread(shift) if isinstance(layout, Repeated) else y, layout

    def _table(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log P(S = s) for every s without and with a shift, in float64."""
        alone = engine_for(x).log_probs(x, self.layout.offsets)
        if torch.compiler.is_compiling():  # how many nodes there are depends on the values: a graph breaks here
            return alone, torch.compiler.disable(self._shifted)(x, alone)
        return alone, self._shifted(x, alone)

    def _shifted(self, x: Tensor, alone: Tensor) -> Tensor:
        held = x.detach() if self.fixed else x
        table = _add(alone, _bag_effect.log_shifts(held, self.layout, self.sigma))
        # Where logits are so large that log P(S = s) is all but undone by the shift, too few digits are left: such
        # counts are asked for one by one.
        lost = (alone > -torch.inf) & (alone < _DIGITS * table.detach().clamp(max=-1.0))
        if not _require.holds(~lost):
            table = asked_one_by_one(table, lost, x, self.layout, self._of_rows)
        return table

    def _of_rows(self, rows: Tensor, counts: Tensor, bags: Tensor) -> Tensor:
        """log P(S = count) of dense logits (k, n) with the effects of bags (k,)."""
        layout = Dense(rows.shape, rows.device, rows != -torch.inf)
        return replace(self, layout=layout, sigma=self.sigma.flatten()[bags])._log_prob(rows, counts)


def _add(alone: Tensor, shift: Tensor) -> Tensor:
    """log P with a shift, from that without; an impossible count stays impossible, without a gradient."""
    return torch.where(alone == -torch.inf, alone, alone + shift)
