"""The probability of a total: every instance has a category, every category an integer value, T is their sum.

With log-probabilities l_ic of the categories of instance i, let each be tilted by its value,

    p_ic = e^{l_ic + t v_ic} / Z_i(t),    Z_i(t) = sum_c e^{l_ic + t v_ic},    f_i(u) = sum_c p_ic e^{iu v_ic}.

Then P(T = s) = P~(T = s) e^{-ts} prod_i Z_i(t) for any t, and with M points u_m = 2 pi m / M the trapezoid rule gives

    (1/M) sum_m phi(u_m) e^{-i u_m s} = sum_j P~(T = s + jM),    phi = prod_i f_i.

The tilt makes s the mean of T, so that P~(T = s) is not small beside the other terms. Two bounds make the sum short:

* Bernstein: P~(|T - s| >= d) <= 2 e^{-a} for d >= a V/3 + sqrt((a V/3)^2 + 2 a var T), V the largest range of an
  instance: an M beyond that d has no alias. M = R + 1, with R the range of T, has none at all.
* |f_i(u)|^2 = 1 - 2 sum_{c < d} p_ic p_id (1 - cos(u (v_ic - v_id))), so that
  |phi(u)| <= exp(-sum_w W_w (1 - cos(u w))), with W_w the sum of p_ic p_id over all pairs of values w apart.
  Frequencies at which this is below e^-a are left out. There may be peaks besides that at 0: values on a lattice.

The posterior P(y_i = c | T = s) is p_ic / P~(T = s) times the same sum with phi e^{i u v_ic} / f_i in place of phi.

What the sum cannot give is seen from it. Rounding errors are a part of A = sum_m |phi(u_m)| / M, the largest that any
total could have; a P~(T = s) that is not much smaller is right. A smaller one, of a total that no labels have or only
unlikely ones (an odd total of even weights and one odd weight), comes from a recursion in log space over the instances,
whose terms are all positive: it knows an impossible total exactly and needs no tilt, but n R steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kofn.counts._characteristic import radius
from kofn.counts._layout import LARGEST, Layout

_NEGLIGIBLE = 50.0  # e^-50 = 2e-22, beside an A of 1e-4 or more
_TRUSTED = 1e-3  # of A, from which on a probability is right to about 1e-12
_FEW = 24  # frequencies that are not worth a bound
_NEWTON, _STEPS = 20, 120  # steps by Newton's method, after which the tilt is bisected; steps at most
_TINY = 1e-19  # of A: frequencies of which no posterior hears anything
_NO_ZERO = 1e-100  # added to a factor: nothing beside any but 0, by which could not be divided
_BLOCK = 1 << 17  # numbers in a temporary (instances x frequencies), which the processor's cache holds
_TABLE = 1 << 12  # values from 0 to here have a place each in a table
_MOST_POINTS = 1 << 24  # of the trapezoid rule, and what a bag may ask of the recursion
_MOST_CELLS = 1e11
_CELLS = 1 << 20  # of a table that is made at once


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


@dataclass
class Question:
    """What is asked of a batch of bags: everything but the logits.

    Attributes:
        values: of the categories.
        totals: int64, of the layout's shape.
        layout: which instance belongs to which bag, and their copies.
        wanted: whether the gradient is found along with the value.
        found: the gradient, until it is handed over.
    """

    values: Values
    totals: Tensor
    layout: Layout
    wanted: bool = False
    found: Tensor | None = None


def log_total(x: Tensor, question: Question) -> Tensor:
    """log P(T = total) of each bag, from float64 logits (*entries, C) of the categories."""
    wanted = x.requires_grad and torch.is_grad_enabled()
    value: Tensor = LogTotal.apply(x, replace(question, wanted=wanted))
    return value


def posteriors(x: Tensor, question: Question) -> Tensor:
    """P(y_i = c | T = total) of one copy of each instance, (*entries, C); 0 where there is no instance."""
    change = _answer(x, question, posterior=True)[1]
    there = (_times(question.layout) > 0).unsqueeze(-1)
    prior = certain(torch.where(there, x, 0.0)).softmax(-1)
    return torch.where(there, (prior + change).clamp(0.0, 1.0), 0.0)  # rounding only


def _gradient(x: Tensor, question: Question) -> Tensor:
    """c_i (P(y_i = c | T = total) - P(y_i = c)), with c_i the copies of an instance."""
    return _times(question.layout).unsqueeze(-1) * _answer(x, question, posterior=True)[1]


class LogTotal(torch.autograd.Function):
    """(logits, question) to log P(T = total), with the gradient from the forward pass."""

    @staticmethod
    def forward(x: Tensor, question: Question) -> Tensor:
        value, change = _answer(x, question, posterior=question.wanted)
        if question.wanted:
            question.found = _times(question.layout).unsqueeze(-1) * change
        return value

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.question = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        question: Question = ctx.question
        found = question.found
        if found is None or torch.is_grad_enabled():  # plain operations, which have derivatives of their own
            found = _gradient(x, question)
        # Of a flat layout the bag of each instance, of a dense one a dimension more.
        return question.layout.spread(grad).unsqueeze(-1) * found, None


def _times(layout: Layout) -> Tensor:
    """How often each entry counts: its copies, or 1, and 0 where there is none; float64."""
    if layout.copies is not None:
        return layout.copies.double()
    return layout.present(torch.ones(layout.entries, dtype=torch.float64, device=layout.device), 0.0)


def certain(x: Tensor) -> Tensor:
    """Logits in which a category of logit +inf is the only one possible; NaN where there are two of them."""
    certain = x == torch.inf
    known = torch.where(certain, 0.0, -torch.inf).to(x.dtype)
    known = known.masked_fill(certain.sum(-1, keepdim=True) > 1, torch.nan)
    return torch.where(certain.any(-1, keepdim=True), known, x)


def _answer(x: Tensor, question: Question, *, posterior: bool) -> tuple[Tensor, Tensor]:
    """log P(T = total) of each bag, and if wanted the posteriors less the priors, by rectangles of similar bags."""
    layout, values = question.layout, question.values
    m, categories = layout.entries.numel(), x.shape[-1]
    # One row more, which is no instance, for what fills up the rectangles.
    logits = torch.cat([x.reshape(m, categories), x.new_zeros(1, categories)])
    times = torch.cat([_times(layout).flatten(), x.new_zeros(1)])
    place = values.place
    if place.dim() > 1:
        place = torch.cat([place.reshape(m, categories), place.new_zeros(1, categories)])
    totals = question.totals.clamp(-LARGEST // 2, LARGEST // 2) - layout.sum(values.origin.expand(layout.entries))
    entries = torch.arange(m, device=x.device).reshape(layout.entries)
    rectangles = layout.rectangles()
    found, each = torch.zeros_like(logits), []
    for part, total in zip(rectangles.cut_entries(entries, m), rectangles.cut(totals), strict=True):
        there = times[part] > 0
        value, change = _Bags(
            x=logits[part].masked_fill(~there.unsqueeze(-1), 0.0),
            times=times[part],
            place=place[part] if place.dim() > 1 else place.expand(1, 1, categories),
            distinct=values.distinct,
            totals=total.div(values.step, rounding_mode="floor"),
            on_lattice=total % values.step == 0,
        ).answer(posterior=posterior)
        each.append(value)
        if posterior:
            found = found.index_put((part,), change.masked_fill(~there.unsqueeze(-1), 0.0))
    return rectangles.join(each).reshape(layout.shape), found[:-1].reshape(x.shape)


class _Bags:
    """Bags (b, n) of about the same size, and the total of each.

    Args:
        x: (b, n, C) float64 logits, 0 where there is no instance.
        times: (b, n) how often each counts, 0 where there is none.
        place: (b, n, C) or (1, 1, C) places among the distinct values.
        distinct: (d,) these; that of the first category is 0.
        totals: (b,) int64, shifted and divided as the values are.
        on_lattice: (b,) whether the step divides the total.
    """

    def __init__(
        self, x: Tensor, times: Tensor, place: Tensor, distinct: Tensor, totals: Tensor, on_lattice: Tensor
    ) -> None:
        x = certain(x)
        self._broken = (x.isnan().any(-1) | (x == -torch.inf).all(-1)).any(-1)  # NaN, or no category is possible
        self._log_p = x.masked_fill(self._broken[:, None, None], 0.0).log_softmax(-1)
        self._times, self._place, self._distinct, self._totals = times, place, distinct, totals
        self._values = distinct[place]
        possible = self._log_p > -torch.inf
        self._low = self._values.where(possible, LARGEST).amin(-1)
        self._high = self._values.where(possible, -LARGEST).amax(-1)
        copies = times.long()
        self._above = totals - (self._low * copies).sum(-1)  # the smallest total
        self._below = (self._high * copies).sum(-1) - totals
        possible_total = on_lattice & (self._above >= 0) & (self._below >= 0)
        # At either end the values of all instances are known: a closed form, and no tilt.
        self._end = possible_total & ((self._above == 0) | (self._below == 0))
        self._inside = possible_total & ~self._end & ~self._broken

    def answer(self, *, posterior: bool) -> tuple[Tensor, Tensor]:
        """log P(T = total): (b,), and if wanted the posteriors less the priors, (b, n, C); with derivatives."""
        inside, end = self._inside, self._end[:, None, None]
        extreme = torch.where((self._above == 0).unsqueeze(-1), self._low, self._high).unsqueeze(-1)
        known = self._log_p.masked_fill((self._values != extreme) & end, -torch.inf)
        value = (self._times * known.logsumexp(-1)).sum(-1).masked_fill(~self._end, -torch.inf)
        prior, given = self._log_p.softmax(-1), known.softmax(-1)  # the same if the total is impossible
        if bool(inside.any()):
            tilt = self._tilt()
            found = self._invert(tilt, posterior=posterior)
            right = tilt.solved & (found.prob > _TRUSTED * found.largest)
            value = torch.where(right, found.log_prob, value)
            given = torch.where(right[:, None, None], found.posterior, given) if posterior else given
            rest = (inside & ~right).nonzero().squeeze(-1)
            for rows in rest.split(self._rows_together(rest)) if len(rest) else []:
                log_prob, theirs = self._recursion(rows, posterior=posterior)
                value = value.index_copy(0, rows, log_prob)
                theirs = torch.where((log_prob == -torch.inf)[:, None, None], prior[rows], theirs)
                given = given.index_copy(0, rows, theirs) if posterior else given
        broken = self._broken
        return value.masked_fill(broken, torch.nan), (given - prior).masked_fill(broken[:, None, None], torch.nan)

    def _tilt(self) -> _Tilt:
        """The tilt under which the mean of T is the total, to half a standard deviation.

        By Newton's method on log((E T - lowest) / (highest - E T)), which is linear in t where one value is rare and
        exact at once for equal instances of two values; within a bracket, which is bisected where a step leaves it.
        """
        log_p, times, inside = self._log_p.detach(), self._times, self._inside
        values, least = self._values.double(), self._low.double().unsqueeze(-1)
        above, below = self._above.double(), self._below.double()
        wanted = (above / below).log()
        # Beyond this bound every instance has its extreme value but for less than one unit of T altogether.
        spread = -log_p.masked_fill(log_p == -torch.inf, 0.0).flatten(1).amin(-1)
        bound = spread + (above + below).log() + math.log(log_p.shape[-1]) + times.sum(-1).clamp(min=1.0).log() + 1
        upper, lower = bound, -bound
        t = torch.zeros_like(bound)
        solved = ~inside
        values = values - least
        for step in range(_STEPS):
            p = (log_p + t[:, None, None] * values).softmax(-1)
            mean = (p * values).sum(-1, keepdim=True)
            variance = (times * (p * (values - mean).square()).sum(-1)).sum(-1)
            over = (times * mean.squeeze(-1)).sum(-1)
            gap = over - above
            solved = ~inside | (4 * gap.square() <= variance + 1e-12)
            if bool(solved.all()):
                break
            lower, upper = torch.where(gap < 0, t, lower), torch.where(gap > 0, t, upper)
            under = above + below - over
            slope = variance * (1 / over + 1 / under)
            next_t = t + (wanted - (over / under).log()) / slope
            good = (next_t > lower) & (next_t < upper) & (step < _NEWTON)
            t = torch.where(solved, t, torch.where(good, next_t, (lower + upper) / 2))
        solved = solved & inside
        return _Tilt(t.masked_fill(~solved, 0.0), variance, gap, solved)

    def _invert(self, tilt: _Tilt, *, posterior: bool) -> _Inversion:
        """The trapezoid rule at the frequencies that may carry anything, the same for all bags."""
        values, likeliest = self._values, self._log_p.argmax(-1, keepdim=True)
        # The tilts of the likeliest values are counted, not summed, and set against that of the total: no digit is
        # lost of a log P near 0.
        centre = values.expand_as(self._log_p).gather(-1, likeliest)
        tilted = self._log_p + tilt.value[:, None, None] * (values - centre)
        log_z = tilted.logsumexp(-1)
        p = (tilted - log_z.unsqueeze(-1)).exp()
        lost = self._totals - (centre.squeeze(-1) * self._times.long()).sum(-1)
        change = (self._times * log_z).sum(-1) - tilt.value * lost
        points, frequencies = self._frequencies(p.detach(), tilt)
        weights = ((frequencies > 0) + 1).double() / points  # m and M - m are conjugate, and only real parts are kept
        absent, alone = self._times == 0, not bool((self._times > 1).any())
        prob, largest = torch.zeros_like(change), torch.zeros_like(change)
        pulled = torch.zeros_like(p)
        block = max(1, _BLOCK // max(1, absent.numel()))
        for m, weight in zip(frequencies.split(block), weights.split(block), strict=True):
            waves = _Waves.of(self._distinct, self._place, m, points)
            factor = waves.mean(p) + _NO_ZERO
            if alone:
                phi = factor.masked_fill(absent.unsqueeze(-1), 1.0).prod(1)
            else:
                phi = (self._times.unsqueeze(-1) * factor.log()).sum(1).exp()
            angle = _angles(self._totals, m, points)
            spectrum = weight * phi * torch.complex(angle.cos(), -angle.sin())
            size = spectrum.detach().abs()
            prob, largest = prob + spectrum.real.sum(-1), largest + size.sum(-1)
            audible = (size > _TINY * largest.unsqueeze(-1)).any(0)
            if posterior and bool(audible.any()):
                if not bool(audible.all()):
                    waves, factor, spectrum = waves.at(audible), factor[..., audible], spectrum[..., audible]
                pulled = pulled + waves.pull(spectrum.unsqueeze(1) / factor)
        right = prob > 0
        prob_or_one = prob.where(right, torch.ones_like(prob))
        given = (p * pulled / prob_or_one[:, None, None]).clamp(0.0, 1.0)  # rounding only
        return _Inversion(prob.detach(), largest, (prob_or_one.log() + change).clamp(max=0.0), given)

    def _frequencies(self, p: Tensor, tilt: _Tilt) -> tuple[int, Tensor]:
        """M, and the places m of the frequencies that are not negligible for every bag, from 0 to (M - 1) / 2."""
        solved = tilt.solved
        if not bool(solved.any()):
            return 1, torch.zeros(1, dtype=torch.int64, device=p.device)
        widest = (self._high - self._low).amax(-1).clamp(min=1).double()
        alias = widest * radius(tilt.variance / widest.square(), _NEGLIGIBLE) + tilt.gap.abs() + 1
        needed = torch.minimum(alias.ceil(), (self._above + self._below + 1).double())[solved]
        points = int(needed.max()) // 2 * 2 + 1
        if points > _MOST_POINTS:
            raise ValueError(
                f"`values` must have a smaller range: the total of a bag spreads over {points:,} numbers, more than "
                f"{_MOST_POINTS:,}. Round them to larger units."
            )
        half = points // 2
        frequencies = torch.arange(half + 1, device=p.device)
        if half < _FEW:
            return points, frequencies
        first, second = torch.combinations(torch.arange(p.shape[-1], device=p.device)).unbind(-1)
        apart = (self._values[..., first] - self._values[..., second]).abs() % points
        pairs = self._times.unsqueeze(-1) * p[..., first] * p[..., second]
        pairs = pairs if apart.shape[1] > 1 else pairs.sum(1, keepdim=True)
        bags = len(pairs)
        weight = p.new_zeros(bags, points)
        weight.scatter_add_(1, apart.expand(bags, -1, -1).reshape(bags, -1), pairs.reshape(bags, -1))
        exponent = weight.sum(-1, keepdim=True) - torch.fft.rfft(weight).real
        return points, frequencies[(exponent < _NEGLIGIBLE)[solved].any(0)]

    def _rows_together(self, rows: Tensor) -> int:
        """How many bags the recursion takes at a time, so that its tables fit into memory."""
        cells = int(torch.minimum(self._above, self._below)[rows].max() + 1) * self._log_p.shape[-1]
        steps = int(self._times[rows].sum(-1).max())
        if cells * steps > _MOST_CELLS:
            raise ValueError(
                f"`total` must be a likelier one, or of smaller values: whether labels have this total, and how likely "
                f"it is, would take {cells * steps:.0e} steps for a bag of {steps:,} instances. Leave the bag out, or "
                f"round its values to larger units."
            )
        return max(1, _CELLS // cells)

    def _recursion(self, rows: Tensor, *, posterior: bool) -> tuple[Tensor, Tensor]:
        """Of a few bags, the instances one after the other: a table of log P(T_1..i = s) for every s up to the total.

        Values are counted from the end that is nearer. The posteriors are the derivative by the log-probabilities.
        """
        upward = (self._above <= self._below)[rows, None, None]
        values = self._values.expand_as(self._log_p)[rows]
        low, high = self._low[rows].unsqueeze(-1), self._high[rows].unsqueeze(-1)
        values = torch.where(upward, values - low, high - values).clamp(min=0)
        target = torch.minimum(self._above, self._below)[rows]
        times = self._times[rows]
        instances = [torch.arange(times.shape[1], device=times.device).repeat_interleave(each) for each in times.long()]
        order = torch.nn.utils.rnn.pad_sequence(instances, batch_first=True, padding_value=times.shape[1])
        bags = torch.arange(len(rows), device=rows.device).unsqueeze(-1)
        wide = torch.arange(int(target.max()) + 1, device=rows.device)

        def several(table: Tensor, log_p: Tensor, values: Tensor) -> Tensor:
            for log_p_i, values_i in zip(log_p.unbind(1), values.unbind(1), strict=True):
                before = wide - values_i.unsqueeze(-1)  # (k, C, s)
                terms = table.unsqueeze(1).expand_as(before).gather(-1, before.clamp(min=0))
                terms = terms.masked_fill(before < 0, -torch.inf) + log_p_i.unsqueeze(-1)
                table = _logsumexp(terms, 1)
            return table

        differentiable = torch.is_grad_enabled() and self._log_p.requires_grad
        with torch.enable_grad():
            log_p = self._log_p[rows] if differentiable else self._log_p[rows].detach().requires_grad_()
            nothing = torch.full_like(log_p[:, :1], -torch.inf)
            nothing[..., 0] = 0.0
            each = torch.cat([log_p, nothing], 1)[bags, order]
            each_value = torch.cat([values, torch.zeros_like(values[:, :1])], 1)[bags, order]
            table = torch.where(wide == 0, 0.0, -torch.inf).to(each.dtype).expand(len(rows), -1)
            size = math.isqrt(each.shape[1]) + 1
            for part, part_values in zip(each.split(size, 1), each_value.split(size, 1), strict=True):
                table = checkpoint(several, table, part, part_values, use_reentrant=False)
            value = table.gather(-1, target.unsqueeze(-1)).squeeze(-1)
            if not posterior:
                return value.detach(), log_p.detach()
            total = value.masked_fill(value == -torch.inf, 0.0).sum()
            (slope,) = torch.autograd.grad(total, log_p, create_graph=differentiable)
        given = (slope / times.clamp(min=1.0).unsqueeze(-1)).clamp(0.0, 1.0)  # rounding only
        return (value, given) if differentiable else (value.detach(), given)


class _Tilt(NamedTuple):
    """Of each bag (b,): the tilt, 0 where it was not found; the variance of T under it, and by how much E T is off."""

    value: Tensor
    variance: Tensor
    gap: Tensor
    solved: Tensor


class _Inversion(NamedTuple):
    """Of each bag: P~(T = total), the largest that it could be, log P(T = total), and the posteriors (b, n, C)."""

    prob: Tensor
    largest: Tensor
    log_prob: Tensor
    posterior: Tensor


class _Waves(NamedTuple):
    """cos(u v) and sin(u v) of frequencies and distinct values, (d, f, 2), and the places (.., C) among these."""

    table: Tensor
    place: Tensor

    @classmethod
    def of(cls, distinct: Tensor, place: Tensor, frequencies: Tensor, points: int) -> _Waves:
        """At u = 2 pi m / M; of values that are the same for all instances in their order."""
        shared = place.shape[:2] == (1, 1)
        angle = _angles(distinct[place.flatten()] if shared else distinct, frequencies, points)
        return cls(torch.stack([angle.cos(), angle.sin()], -1), place)

    def at(self, chosen: Tensor) -> _Waves:
        """At some of the frequencies."""
        return self._replace(table=self.table[:, chosen])

    def mean(self, p: Tensor) -> Tensor:
        """sum_c p_c e^{iu v_c}: (b, n, C) to complex (b, n, f)."""
        if self._shared:
            pairs = (p @ self.table.flatten(1)).unflatten(-1, self.table.shape[1:])
            return torch.view_as_complex(pairs)
        total = torch.view_as_complex(p[..., 1, None, None] * self._of(1))
        for c in range(2, p.shape[-1]):
            total = total + torch.view_as_complex(p[..., c, None, None] * self._of(c))
        return total + p[..., :1]  # of the first category, whose value is 0

    def pull(self, spectrum: Tensor) -> Tensor:
        """Re sum_u spectrum e^{iu v_c}: complex (b, n, f) to (b, n, C)."""
        pairs = torch.view_as_real(spectrum.conj().resolve_conj())
        if self._shared:
            return pairs.flatten(-2) @ self.table.flatten(1).T
        rest = [(pairs * self._of(c)).sum((-2, -1)) for c in range(1, self.place.shape[-1])]
        return torch.stack([spectrum.real.sum(-1), *rest], -1)

    @property
    def _shared(self) -> bool:
        return self.place.shape[:2] == (1, 1)

    def _of(self, c: int) -> Tensor:
        """Those of a category, (b, n, f, 2)."""
        place = self.place[..., c]
        return self.table.index_select(0, place.flatten()).unflatten(0, place.shape)


def _angles(numbers: Tensor, frequencies: Tensor, points: int) -> Tensor:
    """2 pi m s / M of each number s and place m, reduced in integers, so that no digit is lost: (..., f)."""
    turns = (numbers % points).unsqueeze(-1) * frequencies % points
    return turns.double() * (2 * math.pi / points)


def _logsumexp(terms: Tensor, dim: int) -> Tensor:
    """log sum exp whose derivative is 0, not NaN, where all terms are -inf."""
    top = terms.detach().amax(dim, keepdim=True)
    top = top.masked_fill(top == -torch.inf, 0.0)
    total = (terms - top).exp().sum(dim, keepdim=True)
    nothing = total == 0
    return (total.masked_fill(nothing, 1.0).log() + top).masked_fill(nothing, -torch.inf).squeeze(dim)
