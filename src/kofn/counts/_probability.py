"""The probability of one count or one interval of counts, in time linear in the bag: log P(low <= S <= high).

One view of the distribution, tilted to the likeliest count of the interval, holds all of it. It is log-concave, so away
from that count the terms only fall; those out of the view add less than e^-40 of the sum, however wide the interval is.
With c the end of the interval towards which the tilt t leans,

    P(low <= S <= high) = (P / P~)(S = c) sum_s P~(S = s) e^{-t (s - c)},

where no factor in the sum exceeds one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn.counts import _host
from kofn.counts._characteristic import NEGLIGIBLE, Window, radius
from kofn.counts._layout import Layout
from kofn.counts._product_tree import LARGEST, Tree, never_underflows
from kofn.counts._tilt import Tilt, solve_tilt, total, untilt

_TINY = math.exp(-40)


@dataclass(frozen=True)
class Undecided:
    """What is left of bags to decide: without certain instances. +inf is a one, -inf (or a masked instance) a zero."""

    z: Tensor  # (b, n) float64, -inf where nothing is left to decide
    sure: Tensor  # (b, n) bool: logits of +inf
    present: Tensor  # (b, n) bool: still to decide
    ones: Tensor  # (b, 1) how many are sure
    size: Tensor  # (b, 1) how many are present
    broken: Tensor  # (b, 1) bool: bags with a NaN
    copies: Tensor | None  # (b, n) float64, how many instances a logit stands for; None for one each

    @classmethod
    def of(cls, logits: Tensor, copies: Tensor | None = None) -> Undecided:
        """Take the certain instances out of logits (b, n) of any floating dtype."""
        z = logits.double()
        sure = z == torch.inf
        z = z.masked_fill(sure, -torch.inf)
        present = z != -torch.inf
        ones, size = total(sure, copies).long(), total(present, copies).long()
        return cls(z, sure, present, ones, size, z.isnan().any(-1, keepdim=True), copies)


class Interval:
    """The interval of counts that each bag's label allows, and what it says of the bag and its instances.

    Args:
        logits: (b, n), any floating dtype; -inf is an instance that is not there.
        low: (b,) smallest allowed counts, int64.
        high: (b,) largest allowed counts; None means one count, high = low.
        copies: (b, n) float64, how many instances each logit stands for; None for one each.
        second_order: whether `covariance` will be asked for, which only a window has.
    """

    def __init__(
        self,
        logits: Tensor,
        low: Tensor,
        high: Tensor | None,
        copies: Tensor | None = None,
        *,
        second_order: bool = False,
    ) -> None:
        self._bags = bags = Undecided.of(logits, copies)
        one = high is None
        # Every negative count is as impossible as -1, which cannot overflow.
        self._low = self._high = low.unsqueeze(-1).clamp(min=-1) - bags.ones
        if high is not None:
            self._low = self._low.clamp(min=0)
            self._high = torch.minimum(high.unsqueeze(-1).clamp(min=-1) - bags.ones, bags.size)
        self._none = self._high == 0
        self._edge = self._none | (self._low == bags.size)  # all labels are known: none of them ones, or all
        self._impossible = (self._low > torch.minimum(self._high, bags.size)) | (self._high < 0)
        # The interval says nothing of the labels, because it allows every count or none.
        self._uninformative = (self._low <= 0) & (self._high >= bags.size) | self._impossible
        self._view: Tree | Window
        # A tree has the shape of its bag, and a leaf for each instance; a graph is compiled for any shape.
        small = logits.shape[-1] <= LARGEST and copies is None
        if small and not second_order and not torch.compiler.is_compiling():
            self._view, counts, last = self._tree(one=one)
        else:
            self._view, counts, last = self._window(one=one)
        if one:
            self._anchor, self._total = self._low, self._view.probs
            self._weights = 1 / self._total
        else:
            self._anchor = torch.where(self._tilt > 0, self._low, self._high)
            fall = -self._tilt * (counts - self._anchor)
            weights = fall.clamp(max=0.0).exp() * ((counts >= self._low) & (counts <= last))
            self._total = (self._view.probs * weights).sum(-1, keepdim=True)
            self._weights = weights / self._total

    def _tree(self, *, one: bool) -> tuple[Tree, Tensor, Tensor]:
        """The distribution as a product, the counts it shows, and the last one of the interval."""
        bags = self._bags
        easy = never_underflows(bags.z, bags.size)
        self._tilted = not _host.all_true(easy)
        if not self._tilted:
            self._tilt = torch.zeros_like(bags.z[:, :1])
        else:
            self._tilt = self._solve(one=one).value.masked_fill(easy, 0.0)
        every = torch.arange(bags.z.shape[-1] + 1, device=bags.z.device).expand(len(bags.z), -1)
        counts = self._low if one else every
        return Tree(bags.z, self._tilt, counts), counts, self._high

    def _window(self, *, one: bool) -> tuple[Window, Tensor, Tensor]:
        """The distribution by its characteristic function, the counts it shows, and the last one it shows rightly."""
        bags = self._bags
        tilt = self._solve(one=one)
        self._tilt, self._tilted = tilt.value, True
        if one:
            return self._seen(tilt, self._low, 1.0), self._low, self._high
        mean, reach = tilt.mean.nan_to_num(0.0), radius(tilt.variance.nan_to_num(0.0), NEGLIGIBLE)
        first = torch.maximum(self._low, (mean - reach).ceil().long())
        last = torch.minimum(self._high, (mean + reach).floor().long())
        n = _host.largest(bags.size, bound=bags.z.shape[-1])
        # n / 4 is the largest variance. The compiler cannot take a root of a size that changes.
        widest = n if torch.compiler.is_compiling() else min(n, math.ceil(2 * radius(n / 4, NEGLIGIBLE)))
        counts = first + torch.arange(_host.largest(last - first, bound=widest) + 1, device=first.device)
        return self._seen(tilt, counts, NEGLIGIBLE), counts, last

    def _seen(self, tilt: Tilt, counts: Tensor, exponent: float) -> Window:
        bags = self._bags
        return Window(bags.z, tilt, counts, size=bags.size, exponent=exponent, copies=bags.copies)

    def _solve(self, *, one: bool) -> Tilt:
        """The tilt to the likeliest count of the interval: none where that is the mean itself."""
        z, size, copies = self._bags.z, self._bags.size, self._bags.copies
        if one:
            return solve_tilt(z, self._low, size, copies)
        z = z.detach()
        mean = total(torch.sigmoid(z), copies)
        target = mean.clamp(self._low, self._high)
        tilt = solve_tilt(z, target.nan_to_num(0.0).round().long(), size, copies)
        # Of a bag that is nearly sure of its count many tilts hit it. Only one that leans towards the interval, or none
        # (which is then nearer still), lets the terms of the sum fall; the other way, e^{-ts} would raise the last
        # digits of counts far away.
        lean = (target - mean).sign()
        return Tilt.at(z, ((tilt.value * lean).clamp(min=0.0) * lean).masked_fill(lean == 0, 0.0), copies)

    def log_prob(self) -> Tensor:
        """log P(low <= S <= high): (b,)"""
        bags = self._bags
        value = self._total.log()
        if self._tilted:
            value = value + untilt(bags.z, self._tilt, self._anchor, bags.copies)
        value = value.clamp(max=0.0)  # rounding only
        # Closed forms where they are exact to the last digit, so that n = 1 is cross-entropy and nothing less.
        toward = torch.where(self._none, -bags.z, bags.z.masked_fill(~bags.present, torch.inf))
        value = torch.where(self._edge, total(logsigmoid(toward), bags.copies), value)
        value = value.masked_fill(self._uninformative, 0.0).masked_fill(self._impossible, -torch.inf)
        return value.masked_fill(bags.broken, torch.nan).squeeze(-1)

    def posteriors(self) -> Tensor:
        """P(y_i = 1 | low <= S <= high): (b, n); where the interval says nothing or cannot be, P(y_i = 1)."""
        bags = self._bags
        value = self._view.pull(self._weights).clamp(0.0, 1.0)  # rounding only: a few 1e-16 outside
        value = torch.where(self._edge, bags.present & ~self._none, value)
        value = torch.where(self._uninformative, torch.sigmoid(bags.z), value)
        return value.masked_fill(bags.sure, 1.0).masked_fill(bags.broken, torch.nan)

    def gradient(self) -> Tensor:
        """c_i (P(y_i = 1 | low <= S <= high) - p_i): (b, n); exactly 0 where the interval says nothing."""
        bags = self._bags
        # Of the same tensor: a sigmoid may differ in its last digit with where a number lies in memory.
        value = (self.posteriors() - torch.sigmoid(bags.z)).masked_fill(bags.sure, 0.0)
        return value if bags.copies is None else (value * bags.copies).masked_fill(bags.copies == 0, 0.0)

    def covariance(self, values: Tensor) -> Tensor:
        """sum_j c_j Cov(y_i, y_j | low <= S <= high) values_j, for one copy i: (b, n)"""
        if not isinstance(self._view, Window):
            raise TypeError("covariance needs Interval(..., second_order=True)")
        bags = self._bags
        mean = (self._weights * self._view.push(values)).sum(-1, keepdim=True)
        value = self._view.correlate(self._weights, values) - mean * self._view.pull(self._weights)
        value = value.masked_fill(self._edge, 0.0)
        p = torch.sigmoid(bags.z)
        value = torch.where(self._uninformative, p * torch.sigmoid(-bags.z) * values, value)
        return value.masked_fill(bags.broken, torch.nan)


def log_none(logits: Tensor, layout: Layout) -> Tensor:
    """log P(S = 0) = -sum_i softplus(x_i) of each bag, from float64 logits with -inf for absent instances."""
    value = layout.sum(logsigmoid(-logits))
    value = value * torch.ones_like(value).masked_fill(value.isnan(), torch.nan)  # and all of its gradient
    return value.masked_fill(value == -torch.inf, -torch.inf)  # impossible, with gradient zero


def log_any(logits: Tensor, layout: Layout) -> Tensor:
    """log P(S >= 1) of each bag, from float64 logits with -inf for absent instances: a closed form, for every logit.

    With T = -log P(S = 0) = sum_i softplus(x_i), it is log(1 - e^-T): by log1p where e^-T is small, by expm1 where T
    is. When T is below e^-40, every softplus(x_i) is e^{x_i} to rounding and log T = logsumexp(x), which does not
    underflow. -inf, with gradient zero, where that is impossible.
    """
    none = -log_none(logits, layout)
    tiny, large = none <= _TINY, none > math.log(2)
    # Each formula sees only a T at which it is finite and has a finite derivative: no 0 inf comes back from the others.
    by_expm1 = torch.log(-torch.expm1(-none.masked_fill(tiny | large, 1.0)))
    by_log1p = torch.log1p(-torch.exp(-none.masked_fill(~large, 1.0)))
    return torch.where(tiny, layout.logsumexp(logits), torch.where(large, by_log1p, by_expm1))
