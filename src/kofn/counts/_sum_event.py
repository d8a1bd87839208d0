"""What is asked of a sum of values: the probability of one total, with derivatives, and posteriors given it.

As for a count, d log P(T = total) / d x_ic = c_i (P(y_i = c | T = total) - P(y_i = c)), with c_i the copies of an
instance, and autograd needs one node. All nodes take logits of categories, two classes as 0 and x, and a `Layout` whose
copies are 0 where there is no instance; they are their own rule for `torch.func.vmap`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from kofn.counts._event import BagFunction
from kofn.counts._layout import LARGEST, Layout
from kofn.counts._sum_probability import Sums

_TABLE = 1 << 12  # values from 0 to here have a place each in a table


@dataclass(frozen=True)
class Values:
    """Integer values of categories, counted from the first category's in steps as wide as all of them allow.

    Attributes:
        place: (C,) for all instances alike, or (*entries, C): where a value stands among the distinct ones.
        distinct: (d,) int64, which may be negative.
        origin: () or (*entries,), the first category's value.
        step: the greatest common divisor of what the others differ from it, by which they were divided.
    """

    place: Tensor
    distinct: Tensor
    origin: Tensor
    step: int

    @classmethod
    def of(cls, values: Tensor) -> Values:
        """From int64 values (C,) or (*entries, C)."""
        origin = values[..., 0]
        values = values - origin.unsqueeze(-1)
        least, most = (int(values.min()), int(values.max())) if values.numel() else (0, 0)
        if most - least < _TABLE:  # all numbers in between have a place, which is faster than to sort
            distinct = torch.bincount((values - least).flatten(), minlength=1).nonzero().squeeze(-1) + least
            step = math.gcd(*distinct.tolist()) or 1
            every = torch.arange(least // step, most // step + 1, device=values.device)
            return cls((values - least) // step, every, origin, step)
        distinct, place = values.unique(return_inverse=True)
        step = math.gcd(*distinct.tolist())
        return cls(place, distinct // step, origin, step)

    def repeated(self, times: int, *, flat: bool) -> Values:
        """The same of so many tensors, as `Layout.repeated` has them."""
        if self.place.dim() == 1:
            return self
        place, origin = (part.expand(times, *part.shape) for part in (self.place, self.origin))
        return replace(self, place=place.flatten(0, 1) if flat else place, origin=origin.flatten() if flat else origin)


@dataclass
class _Ask:
    """The arguments of a node that are no logits or totals, and what its forward pass leaves for the backward pass."""

    layout: Layout
    values: Values
    wanted: bool = False  # whether the forward pass finds the gradient along with the value
    found: Tensor | None = None

    def repeated(self, times: int) -> _Ask:
        """What is asked of so many bags for each of these."""
        return _Ask(self.layout.repeated(times), self.values.repeated(times, flat=self.layout.offsets is not None))


def log_total(x: Tensor, values: Tensor, totals: Tensor, layout: Layout) -> Tensor:
    """log P(T = total) of each bag, from float64 logits (*entries, C) of the categories.

    Args:
        x: (*entries, C) float64.
        values: int64, of the same shape, or (C,) for all instances alike.
        totals: int64, of the layout's shape.
        layout: which instance belongs to which bag, and their copies; none for an instance that is not there.
    """
    value: Tensor
    if torch.compiler.is_compiling():  # how many frequencies there are depends on the values: a graph breaks here
        value = torch.compiler.disable(log_total)(x, values, totals, layout)
    else:
        wanted = x.requires_grad and torch.is_grad_enabled()
        value = LogTotal.apply(x, totals, _Ask(layout, Values.of(values), wanted))
    return value


def posteriors(x: Tensor, values: Tensor, totals: Tensor, layout: Layout) -> Tensor:
    """P(y_i = c | T = total) of one copy of each instance, (*entries, C); 0 where there is no instance."""
    times = _times(layout).unsqueeze(-1)
    change: Tensor = TotalGradient.apply(x, totals, _Ask(layout, Values.of(values))) / times.clamp(min=1.0)
    prior = certain(torch.where(times > 0, x, 0.0)).softmax(-1)
    return torch.where(times > 0, (prior + change).clamp(0.0, 1.0), 0.0)  # rounding only


class LogTotal(BagFunction):
    """(logits, totals, ask) to log P(T = total)."""

    @staticmethod
    def forward(x: Tensor, totals: Tensor, ask: _Ask) -> Tensor:
        value, change = _answer(x, totals, ask, posterior=ask.wanted)
        ask.found = _times(ask.layout).unsqueeze(-1) * change if ask.wanted else None
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        ask, found = ctx.ask, ctx.ask.found
        if found is None or torch.is_grad_enabled():
            found = TotalGradient.apply(*ctx.saved_tensors, replace(ask, wanted=False, found=None))
        return ask.layout.spread(grad).unsqueeze(-1) * found, None, None


class TotalGradient(BagFunction):
    """(logits, totals, ask) to the gradient of log P(T = total): c_i (P(y_i = c | T = total) - P(y_i = c))."""

    @staticmethod
    def forward(x: Tensor, totals: Tensor, ask: _Ask) -> Tensor:
        return _times(ask.layout).unsqueeze(-1) * _answer(x, totals, ask, posterior=True)[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return TotalHessian.apply(*ctx.saved_tensors, grad, ctx.ask), None, None


class TotalHessian(BagFunction):
    """(logits, totals, weights, ask) to the product of the second derivatives of log P(T = total) and weights."""

    @staticmethod
    def forward(x: Tensor, totals: Tensor, weights: Tensor, ask: _Ask) -> Tensor:
        # All that the gradient is made of are plain operations, which have derivatives; of the tilt there need be none.
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            gradient = TotalGradient.forward(x, totals, ask)
            return torch.autograd.grad(gradient, x, weights)[0] if gradient.requires_grad else torch.zeros_like(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[None, ...]:
        raise NotImplementedError("third derivatives of log_sum_prob are not implemented; those of log_count_prob are.")


def _times(layout: Layout) -> Tensor:
    """How often each entry counts: its copies, or 1; float64."""
    if layout.copies is not None:
        return layout.copies.double()
    return torch.ones(layout.entries, dtype=torch.float64, device=layout.device)


def certain(x: Tensor) -> Tensor:
    """Logits in which a category of logit +inf is the only one possible; NaN where there are two of them."""
    certain = x == torch.inf
    known = torch.where(certain, 0.0, -torch.inf).to(x.dtype)
    known = known.masked_fill(certain.sum(-1, keepdim=True) > 1, torch.nan)
    return torch.where(certain.any(-1, keepdim=True), known, x)


def _answer(x: Tensor, totals: Tensor, ask: _Ask, *, posterior: bool) -> tuple[Tensor, Tensor]:
    """log P(T = total) of each bag, and if wanted the posteriors less the priors, by rectangles of similar bags."""
    layout, values = ask.layout, ask.values
    m, categories = layout.entries.numel(), x.shape[-1]
    # One row more, which is no instance, for what fills up the rectangles. From here on categories come first: of few
    # categories and many instances that is several times as fast.
    logits = pad(certain(x.reshape(m, categories)).T, (0, 1))
    times = pad(_times(layout).flatten(), (0, 1))
    shared = values.place.dim() == 1
    place = values.place[:, None, None] if shared else pad(values.place.reshape(m, categories).T, (0, 1))
    totals = totals.clamp(-LARGEST // 2, LARGEST // 2) - layout.sum(values.origin.expand(layout.entries))
    entries = torch.arange(m, device=x.device).reshape(layout.entries)
    rectangles = layout.rectangles()
    found, each = torch.zeros_like(logits), []
    for part, total in zip(rectangles.cut_entries(entries, m), rectangles.cut(totals), strict=True):
        there = times[part] > 0
        value, change = Sums(
            x=logits[:, part].masked_fill(~there, 0.0),
            times=times[part],
            place=place if shared else place[:, part],
            distinct=values.distinct,
            totals=total.div(values.step, rounding_mode="floor"),
            on_lattice=total % values.step == 0,
        ).answer(posterior=posterior)
        each.append(value)
        if posterior:
            found[:, part] = change.masked_fill(~there, 0.0)
    return rectangles.join(each).reshape(layout.shape), found[:, :-1].T.reshape(x.shape)
