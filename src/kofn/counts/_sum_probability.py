"""The probability of a total: every instance has a category, every category an integer value, T is their sum.

With log-probabilities l_ic of the categories of instance i, let each be tilted by its value,

    p_ic = e^{l_ic + t v_ic} / Z_i(t),    Z_i(t) = sum_c e^{l_ic + t v_ic},    f_i(u) = sum_c p_ic e^{iu v_ic}.

Then P(T = s) = P~(T = s) e^{-ts} prod_i Z_i(t) for any t, and with M points u_m = 2 pi m / M the trapezoid rule gives

    (1/M) sum_m phi(u_m) e^{-i u_m s} = sum_j P~(T = s + jM),    phi = prod_i f_i.

The tilt makes s the mean of T, so that P~(T = s) is not small beside the other terms. Two bounds make the sum short:

* Bernstein and Hoeffding: P~(|T - s| >= d) <= 2 e^{-a} for d >= a V/3 + sqrt((a V/3)^2 + 2 a var T), with V the
  largest range of an instance, and for d >= sqrt(a/2 sum_i V_i^2), with V_i the range of each. An M beyond one of the
  two has no alias. M = R + 1, with R the range of T, has none at all.
* |f_i(u)|^2 = 1 - 2 sum_{c < d} p_ic p_id (1 - cos(u (v_ic - v_id))), so that
  |phi(u)| <= exp(-sum_w W_w (1 - cos(u w))), with W_w the sum of p_ic p_id over all pairs of values w apart.
  Frequencies at which this is below e^-a are left out. There may be peaks besides that at 0: values on a lattice.

The posterior P(y_i = c | T = s) is p_ic / P~(T = s) times the same sum with phi e^{i u v_ic} / f_i in place of phi.

Whether the result can be trusted follows from A = sum_m |phi(u_m)| / M: rounding errors are proportional to it, so a
P~(T = s) that is not much smaller than A is right. A much smaller one belongs to a total that no labels have, or only
unlikely ones (an odd total of even weights and one odd weight). It is computed again by a recursion in log space over
the instances, whose terms are all positive: impossible totals come out as -inf, and no tilt is needed, but n R steps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from kofn.counts._characteristic import radius
from kofn.counts._layout import LARGEST

_NEGLIGIBLE = 45.0  # e^-45 = 3e-20, beside an A of 1e-4 or more
_TRUSTED = 1e-3  # of A, from which on a probability is right to about 1e-12
_FEW = 24  # frequencies that are not worth a bound
_NEWTON, _STEPS = 20, 120  # steps by Newton's method, after which the tilt is bisected; steps at most
_TINY = 1e-19  # of A: smaller terms do not change the posteriors
_NO_ZERO = 1e-100  # added to every factor, because a factor of 0 could not be divided by
_BLOCK = 1 << 17  # numbers in a temporary (instances x frequencies), so that the processor's cache holds it
_MOST_POINTS = 1 << 24  # of the trapezoid rule, and numbers in a table of the recursion
_MOST_STEPS = 3e10  # of the recursion: a quarter of an hour
_CELLS = 1 << 20  # of the recursion's tables of some bags


class Sums:
    """Bags (b, n) of about the same size, and the total of each.

    Args:
        x: (C, b, n) float64 logits, 0 where there is no instance.
        times: (b, n) how often each counts, 0 where there is none.
        place: (C, b, n) or (C, 1, 1) places among the distinct values.
        distinct: (d,) these; that of the first category is 0.
        totals: (b,) int64, shifted and divided as the values are.
        on_lattice: (b,) whether the step divides the total.
    """

    def __init__(
        self, x: Tensor, times: Tensor, place: Tensor, distinct: Tensor, totals: Tensor, on_lattice: Tensor
    ) -> None:
        self._broken = (x.isnan().any(0) | (x == -torch.inf).all(0)).any(-1)  # NaN, or no category is possible
        self._log_p = x.masked_fill(self._broken.unsqueeze(-1), 0.0).log_softmax(0)
        self._times, self._place, self._distinct, self._totals = times, place, distinct, totals
        self._values = distinct[place]
        possible = self._log_p > -torch.inf
        self._low = self._values.where(possible, LARGEST).amin(0)
        self._high = self._values.where(possible, -LARGEST).amax(0)
        copies = times.long()
        self._above = totals - (self._low * copies).sum(-1)  # the smallest total
        self._below = (self._high * copies).sum(-1) - totals
        reached = on_lattice & (self._above >= 0) & (self._below >= 0)
        # At either end the values of all instances are known: a closed form, and no tilt.
        self._end = reached & ((self._above == 0) | (self._below == 0))
        self._inside = reached & ~self._end & ~self._broken

    def answer(self, *, posterior: bool) -> tuple[Tensor, Tensor]:
        """log P(T = total): (b,), and if wanted the posteriors less the priors, (C, b, n); with derivatives."""
        extreme = torch.where((self._above == 0).unsqueeze(-1), self._low, self._high)
        known = self._log_p.masked_fill((self._values != extreme) & self._end.unsqueeze(-1), -torch.inf)
        value = (self._times * known.logsumexp(0)).sum(-1).clamp(max=0.0).masked_fill(~self._end, -torch.inf)
        prior, given = self._log_p.softmax(0), known.softmax(0)  # the same if the total is impossible
        if bool(self._inside.any()):
            tilt = self._tilt()
            found = self._invert(tilt, posterior=posterior)
            right = tilt.solved & (found.prob > _TRUSTED * found.largest)
            value = torch.where(right, found.log_prob, value)
            given = torch.where(right.unsqueeze(-1), found.posterior, given) if posterior else given
            rest = (self._inside & ~right).nonzero().squeeze(-1)
            for rows in rest.split(self._rows_together(rest)) if len(rest) else []:
                log_prob, theirs = self._recursion(rows, posterior=posterior)
                value = value.index_copy(0, rows, log_prob)
                theirs = torch.where((log_prob == -torch.inf).unsqueeze(-1), prior[:, rows], theirs)
                given = given.index_copy(1, rows, theirs) if posterior else given
        broken = self._broken
        return value.masked_fill(broken, torch.nan), (given - prior).masked_fill(broken.unsqueeze(-1), torch.nan)

    def _tilt(self) -> _Tilt:
        """The tilt under which the mean of T is the total, to half a standard deviation.

        By Newton's method on log((E T - lowest) / (highest - E T)), which is linear in t where one value is rare and
        exact at once for equal instances of two values; within a bracket, which is bisected where a step leaves it.
        """
        log_p, times, inside = self._log_p.detach(), self._times, self._inside
        above, below = self._above.double(), self._below.double()
        wanted = (above / below).log()
        # Beyond this bound every instance has its extreme value but for less than one unit of T altogether.
        spread = -log_p.masked_fill(log_p == -torch.inf, 0.0).amin(0).amin(-1)
        upper = spread + (len(log_p) * (above + below) * times.sum(-1).clamp(min=1.0)).log() + 1
        lower, t = -upper, torch.zeros_like(upper)
        values = (self._values - self._low).double()
        for step in range(_STEPS):
            p = torch.addcmul(log_p, t.unsqueeze(-1), values).softmax(0)
            mean = (p * values).sum(0)
            variance = (times * (p * (values - mean).square()).sum(0)).sum(-1)
            over = (times * mean).sum(-1)
            gap = over - above
            solved = ~inside | (4 * gap.square() <= variance + 1e-12)
            if bool(solved.all()):
                break
            lower, upper = torch.where(gap < 0, t, lower), torch.where(gap > 0, t, upper)
            under = above + below - over
            next_t = t + (wanted - (over / under).log()) / (variance * (1 / over + 1 / under))
            good = (next_t > lower) & (next_t < upper) & (step < _NEWTON)
            t = torch.where(solved, t, torch.where(good, next_t, (lower + upper) / 2))
        wide = (self._high - self._low).double()
        widest = wide.amax(-1).clamp(min=1.0)
        bernstein = widest * radius(variance / widest.square(), _NEGLIGIBLE)
        hoeffding = (_NEGLIGIBLE / 2 * (times * wide.square()).sum(-1)).sqrt()
        points = torch.minimum((torch.minimum(bernstein, hoeffding) + gap.abs() + 1).ceil(), above + below + 1)
        solved = solved & inside & (points <= _MOST_POINTS)
        return _Tilt(t.masked_fill(~solved, 0.0), points.masked_fill(~solved, 0.0), solved)

    def _invert(self, tilt: _Tilt, *, posterior: bool) -> _Inversion:
        """The trapezoid rule at the frequencies that may carry anything, the same for all bags."""
        log_p, values, times = self._log_p, self._values, self._times
        # The tilts of the likeliest values are counted, not summed, and set against that of the total: no digit is
        # lost of a log P near 0.
        likeliest = values.where(log_p == log_p.amax(0), -LARGEST).amax(0)
        tilted = log_p + tilt.value.unsqueeze(-1) * (values - likeliest)
        log_z = tilted.logsumexp(0)
        p = (tilted - log_z).exp()
        lost = self._totals - (likeliest * times.long()).sum(-1)
        change = (times * log_z).sum(-1) - tilt.value * lost
        points, frequencies = self._frequencies(p.detach(), tilt)
        absent, alone = (times == 0).unsqueeze(-1), not bool((times > 1).any())
        prob, largest, pulled = torch.zeros_like(change), torch.zeros_like(change), torch.zeros_like(p)
        for m in frequencies.split(max(1, _BLOCK // max(1, times.numel()))):
            waves = _Waves.of(self._distinct, self._place, m, points)
            real, imag = waves.mean(p)
            real = real + _NO_ZERO
            if alone:
                phi = torch.complex(real.masked_fill(absent, 1.0), imag.masked_fill(absent, 0.0)).prod(1)
            else:
                phi = (times.unsqueeze(-1) * torch.complex(real, imag).log()).sum(1).exp()
            angle = _angles(self._totals, m, points)
            weight = ((m > 0) + 1).double() / points  # m and M - m are conjugate, and only real parts are kept
            spectrum = weight * phi * torch.complex(angle.cos(), -angle.sin())
            size = spectrum.detach().abs()
            prob, largest = prob + spectrum.real.sum(-1), largest + size.sum(-1)
            needed = (size > _TINY * largest.unsqueeze(-1)).any(0)
            if posterior and bool(needed.any()):
                if not bool(needed.all()):
                    waves, spectrum = waves.at(needed), spectrum[:, needed]
                    real, imag = real[..., needed], imag[..., needed]
                above, along = spectrum.unsqueeze(1).imag, spectrum.unsqueeze(1).real
                square = real.square() + imag.square()  # spectrum / factor
                pulled = pulled + waves.pull(
                    (along * real + above * imag) / square, (above * real - along * imag) / square
                )
        right = prob > 0
        prob_or_one = prob.where(right, torch.ones_like(prob))
        given = (p * pulled / prob_or_one.unsqueeze(-1)).clamp(0.0, 1.0)  # rounding only
        return _Inversion(prob.detach(), largest, (prob_or_one.log() + change).clamp(max=0.0), given)

    def _frequencies(self, p: Tensor, tilt: _Tilt) -> tuple[int, Tensor]:
        """M, and the places m of the frequencies that are not negligible for every bag, from 0 to (M - 1) / 2."""
        points = int(tilt.points.max()) // 2 * 2 + 1
        frequencies = torch.arange(points // 2 + 1, device=p.device)
        if len(frequencies) <= _FEW:
            return points, frequencies
        first, second = torch.combinations(torch.arange(len(p), device=p.device)).unbind(-1)
        apart = (self._values[first] - self._values[second]).abs() % points
        pairs = self._times * p[first] * p[second]
        pairs = pairs if apart.shape[-1] > 1 else pairs.sum(-1, keepdim=True)
        weight = p.new_zeros(pairs.shape[1], points)
        weight.scatter_add_(1, _of_bags(apart.expand_as(pairs)), _of_bags(pairs))
        exponent = weight.sum(-1, keepdim=True) - torch.fft.rfft(weight).real
        return points, frequencies[(exponent < _NEGLIGIBLE)[tilt.solved].any(0)]

    def _rows_together(self, rows: Tensor) -> int:
        """How many bags the recursion takes at a time, so that its tables fit into memory."""
        cells = (int(torch.minimum(self._above, self._below)[rows].max()) + 1) * len(self._log_p)
        steps = int(self._times[rows].sum(-1).max())
        if cells > _MOST_POINTS or cells * steps > _MOST_STEPS:
            raise ValueError(
                f"`values` must have a smaller range: whether {steps:,} instances can have a certain total, and how "
                f"likely it is, would take {cells * steps:.0e} steps. Round values and totals to larger units."
            )
        return max(1, _CELLS // cells)

    def _recursion(self, rows: Tensor, *, posterior: bool) -> tuple[Tensor, Tensor]:
        """Of a few bags, the instances one after the other: a table of log P(T_1..i = s) for every s up to the total.

        Values are counted from the end that is nearer. The posteriors are the derivative by the log-probabilities.
        """
        low, high, times = self._low[rows], self._high[rows], self._times[rows]
        values = self._values.expand_as(self._log_p)[:, rows]
        upward = (self._above <= self._below)[rows].unsqueeze(-1)
        values = torch.where(upward, values - low, high - values).clamp(min=0)
        target = torch.minimum(self._above, self._below)[rows]
        last = times.shape[1]  # no instance, at the end of a shorter bag
        instances = [torch.arange(last, device=times.device).repeat_interleave(each) for each in times.long()]
        order = torch.nn.utils.rnn.pad_sequence(instances, batch_first=True, padding_value=last)
        bags = torch.arange(len(rows), device=rows.device).unsqueeze(-1)
        sums = torch.arange(int(target.max()) + 1, device=rows.device)

        def several(table: Tensor, log_p: Tensor, values: Tensor) -> Tensor:
            for log_p_i, values_i in zip(log_p.unbind(-1), values.unbind(-1), strict=True):
                before = sums - values_i.unsqueeze(-1)  # (C, b, s)
                terms = table.expand_as(before).gather(-1, before.clamp(min=0)).masked_fill(before < 0, -torch.inf)
                table = _logsumexp(terms + log_p_i.unsqueeze(-1))
            return table

        first = torch.arange(len(values), device=rows.device)[:, None, None] == 0
        sure = torch.where(first, 0.0, -torch.inf).double()
        differentiable = torch.is_grad_enabled() and self._log_p.requires_grad
        with torch.enable_grad():
            log_p = self._log_p[:, rows] if differentiable else self._log_p[:, rows].detach().requires_grad_()
            each = torch.cat([log_p, sure.expand(-1, len(rows), -1)], -1)[:, bags, order]
            each_value = pad(values, (0, 1))[:, bags, order]
            table = torch.where(sums == 0, 0.0, -torch.inf).to(log_p.dtype).expand(len(rows), -1)
            size = math.isqrt(each.shape[-1]) + 1  # memory of its root: the steps in between are made again
            for part, part_values in zip(each.split(size, -1), each_value.split(size, -1), strict=True):
                table = checkpoint(several, table, part, part_values, use_reentrant=False)
            value = table.gather(-1, target.unsqueeze(-1)).squeeze(-1)
            given = torch.zeros_like(log_p)
            if posterior:
                total = value.masked_fill(value == -torch.inf, 0.0).sum()
                (slope,) = torch.autograd.grad(total, log_p, create_graph=differentiable)
                given = (slope / times.clamp(min=1.0)).clamp(0.0, 1.0)  # rounding only
        return (value, given) if differentiable else (value.detach(), given.detach())


class _Tilt(NamedTuple):
    """Of each bag (b,): the tilt, the points that it needs, and whether it was found and these are not too many."""

    value: Tensor
    points: Tensor
    solved: Tensor


class _Inversion(NamedTuple):
    """Of each bag: P~(T = total), the largest that it could be, log P(T = total), and the posteriors (C, b, n)."""

    prob: Tensor
    largest: Tensor
    log_prob: Tensor
    posterior: Tensor


class _Waves(NamedTuple):
    """cos(u v) and sin(u v) of distinct values and frequencies, (d, f) each, and the place of each value in them.

    Of values that all instances share, (C, 1, 1), they stand in the order of the categories.
    """

    cos: Tensor
    sin: Tensor
    place: Tensor

    @classmethod
    def of(cls, distinct: Tensor, place: Tensor, frequencies: Tensor, points: int) -> _Waves:
        """At u = 2 pi m / M."""
        shared = place.shape[1:] == (1, 1)
        angle = _angles(distinct[place.flatten()] if shared else distinct, frequencies, points)
        return cls(angle.cos(), angle.sin(), place)

    def at(self, chosen: Tensor) -> _Waves:
        """At some of the frequencies."""
        return _Waves(self.cos[:, chosen], self.sin[:, chosen], self.place)

    def mean(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """sum_c p_c e^{iu v_c}, real and imaginary, of (C, b, n): (b, n, f)."""
        if self._shared:
            by_instance = p.flatten(1).T
            real, imag = ((by_instance @ part).unflatten(0, p.shape[1:]) for part in (self.cos, self.sin))
            return real, imag
        real = imag = torch.zeros((), dtype=p.dtype, device=p.device)
        for c, p_c in enumerate(p[1:].unsqueeze(-1), 1):
            real, imag = real + p_c * self._of(self.cos, c), imag + p_c * self._of(self.sin, c)
        return real + p[0].unsqueeze(-1), imag  # the first category has the value 0

    def pull(self, real: Tensor, imag: Tensor) -> Tensor:
        """Re sum_u z_u e^{iu v_c}, of z (b, n, f): (C, b, n)."""
        if self._shared:
            found = self.cos @ real.flatten(0, 1).T - self.sin @ imag.flatten(0, 1).T
            return found.reshape(-1, *real.shape[:2])
        rest = [
            (real * self._of(self.cos, c) - imag * self._of(self.sin, c)).sum(-1) for c in range(1, len(self.place))
        ]
        return torch.stack([real.sum(-1), *rest])

    @property
    def _shared(self) -> bool:
        return self.place.shape[1:] == (1, 1)

    def _of(self, part: Tensor, c: int) -> Tensor:
        """Of the values of a category: (b, n, f)."""
        return part.index_select(0, self.place[c].flatten()).reshape(*self.place.shape[1:], -1)


def _angles(numbers: Tensor, frequencies: Tensor, points: int) -> Tensor:
    """2 pi m s / M of each number s and place m, reduced in integers, so that no digit is lost: (..., f)."""
    turns = (numbers % points).unsqueeze(-1) * frequencies % points
    return turns.double() * (2 * math.pi / points)


def _of_bags(values: Tensor) -> Tensor:
    """From (C, b, n) to (b, C n)."""
    return values.transpose(0, 1).flatten(1)


def _logsumexp(terms: Tensor) -> Tensor:
    """log sum exp over the first dimension; its derivative is 0, not NaN, where all terms are -inf."""
    top = terms.detach().amax(0)
    top = top.masked_fill(top == -torch.inf, 0.0)
    total = (terms - top).exp().sum(0)
    nothing = total == 0
    return (total.masked_fill(nothing, 1.0).log() + top).masked_fill(nothing, -torch.inf)
