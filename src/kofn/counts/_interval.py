"""The probability of one count or one interval of counts, in time linear in the bag: log P(low <= S <= high).

One view of the distribution, tilted to the likeliest count of the interval, holds all of it. It is log-concave, so away
from that count the terms only fall; those out of the view add less than e^-40 of the sum, however wide the interval is.
With c the end of the interval towards which the tilt t leans,

    P(low <= S <= high) = (P / P~)(S = c) sum_s P~(S = s) e^{-t (s - c)},

where no factor in the sum exceeds one.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from kofn.counts._tilt import Tilt, solve_tilt
from kofn.counts._tree import LARGEST, Tree, never_underflows
from kofn.counts._undecided import Undecided, untilt
from kofn.counts._window import NEGLIGIBLE, Window, radius


class Interval:
    """The interval of counts that each bag's label allows, and what it says of the bag and its instances.

    Args:
        logits: (b, n), any floating dtype; -inf is an instance that is not there.
        low: (b,) smallest allowed counts, int64.
        high: (b,) largest allowed counts; None means one count, high = low.
        second_order: whether `covariance` will be asked for, which only a window has.
    """

    def __init__(self, logits: Tensor, low: Tensor, high: Tensor | None, *, second_order: bool = False) -> None:
        self._bags = bags = Undecided.of(logits)
        one = high is None
        if high is None:  # every negative count is as impossible as -1, which cannot overflow
            self._low = self._high = low.clamp(min=-1) - bags.ones
        else:
            self._low = (low.clamp(min=-1) - bags.ones).clamp(min=0)
            self._high = torch.minimum(high.clamp(min=-1) - bags.ones, bags.size)
        self._view: Tree | Window
        if logits.shape[-1] <= LARGEST and not second_order:
            self._view, counts, last = self._tree(one=one)
        else:
            self._view, counts, last = self._window(one=one)
        if one:
            self._anchor, weights = self._low, torch.ones_like(self._view.probs)
        else:
            self._anchor = torch.where(self._tilt > 0, self._low, self._high)
            fall = -self._tilt.unsqueeze(-1) * (counts - self._anchor.unsqueeze(-1))
            shown = (counts >= self._low.unsqueeze(-1)) & (counts <= last.unsqueeze(-1))
            weights = fall.clamp(max=0.0).exp() * shown
        self._total = (self._view.probs * weights).sum(-1)
        self._weights = weights / self._total.unsqueeze(-1)

    def _tree(self, *, one: bool) -> tuple[Tree, Tensor, Tensor]:
        """The distribution as a product, the counts it shows, and the last one of the interval."""
        bags = self._bags
        easy = never_underflows(bags.z, bags.size)
        # Host read: whether the solve for the tilt, with its own reads, is needed at all.
        self._tilted = not bool(easy.all())
        if not self._tilted:
            self._tilt = torch.zeros_like(bags.z[:, 0])
        else:
            self._tilt = self._solve(one=one).value.masked_fill(easy, 0.0)
        every = torch.arange(bags.z.shape[-1] + 1, device=bags.z.device).expand(len(bags.z), -1)
        counts = self._low.unsqueeze(-1) if one else every
        return Tree(bags.z, self._tilt, counts), counts, self._high

    def _window(self, *, one: bool) -> tuple[Window, Tensor, Tensor]:
        """The distribution by its characteristic function, the counts it shows, and the last one it shows rightly."""
        bags = self._bags
        tilt = self._solve(one=one)
        self._tilt, self._tilted = tilt.value, True
        reach = radius(tilt.variance.nan_to_num(0.0), 1.0 if one else NEGLIGIBLE)
        if one:
            first, width, last = self._low, 1, self._high
        else:
            mean = tilt.mean.nan_to_num(0.0)
            first = torch.maximum(self._low, (mean - reach).ceil().long())
            last = torch.minimum(self._high, (mean + reach).floor().long())
            # Host read: how many counts the widest interval shows, again a shape.
            width = max(1, int((last - first).max()) + 1) if len(first) else 1
        counts = first.unsqueeze(-1) + torch.arange(width, device=first.device)
        return Window(bags.z, tilt, counts, reach=reach), counts, last

    def _solve(self, *, one: bool) -> Tilt:
        """The tilt to the likeliest count of the interval: none where that is the mean itself."""
        z, size = self._bags.z, self._bags.size
        if one:
            return solve_tilt(z, self._low, size)
        mean = torch.sigmoid(z.detach()).sum(-1)
        target = mean.clamp(self._low, self._high)
        return Tilt.at(z.detach(), solve_tilt(z, target, size).value.masked_fill(target == mean, 0.0))

    @cached_property
    def _edge(self) -> Tensor:
        """Bags whose labels are all known: none of them ones, or all."""
        return (self._high == 0) | (self._low == self._bags.size)

    @cached_property
    def _uninformative(self) -> Tensor:
        """Bags of which the interval says nothing, because it allows every count or none."""
        low, high, size = self._low, self._high, self._bags.size
        return (low <= 0) & (high >= size) | self._impossible

    @cached_property
    def _impossible(self) -> Tensor:
        return (self._low > torch.minimum(self._high, self._bags.size)) | (self._high < 0)

    def log_prob(self) -> Tensor:
        """log P(low <= S <= high): (b,)"""
        bags = self._bags
        value = self._total.log()
        if self._tilted:
            value = value + untilt(bags.z, self._tilt, self._anchor.unsqueeze(-1)).squeeze(-1)
        value = value.clamp(max=0.0)  # rounding only
        # Closed forms where they are exact to the last digit, so that n = 1 is cross-entropy and nothing less.
        toward = torch.where((self._high == 0).unsqueeze(-1), -bags.z, bags.z.masked_fill(~bags.present, torch.inf))
        value = torch.where(self._edge, torch.nn.functional.logsigmoid(toward).sum(-1), value)
        value = value.masked_fill(self._uninformative, 0.0).masked_fill(self._impossible, -torch.inf)
        return value.masked_fill(bags.broken, torch.nan)

    def posteriors(self) -> Tensor:
        """P(y_i = 1 | low <= S <= high): (b, n); where the interval says nothing or cannot be, P(y_i = 1)."""
        bags = self._bags
        value = self._view.pull(self._weights).clamp(0.0, 1.0)  # rounding only: a few 1e-16 outside
        every = bags.present & (self._high > 0).unsqueeze(-1)
        value = torch.where(self._edge.unsqueeze(-1), every.double(), value)
        value = torch.where(self._uninformative.unsqueeze(-1), torch.sigmoid(bags.z), value)
        return value.masked_fill(bags.sure, 1.0).masked_fill(bags.broken.unsqueeze(-1), torch.nan)

    def covariance(self, values: Tensor) -> Tensor:
        """sum_j Cov(y_i, y_j | low <= S <= high) values_j: (b, n)"""
        if not isinstance(self._view, Window):
            raise TypeError("covariance needs Interval(..., second_order=True)")
        bags = self._bags
        mean = (self._weights * self._view.push(values)).sum(-1, keepdim=True)
        value = self._view.correlate(self._weights, values) - mean * self._view.pull(self._weights)
        value = value.masked_fill(self._edge.unsqueeze(-1), 0.0)
        p = torch.sigmoid(bags.z)
        value = torch.where(self._uninformative.unsqueeze(-1), p * torch.sigmoid(-bags.z) * values, value)
        return value.masked_fill(bags.broken.unsqueeze(-1), torch.nan)
