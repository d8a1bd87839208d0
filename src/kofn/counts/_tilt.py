"""The tilt that makes a wanted count the mean of the tilted distribution.

Adding one number t to every logit multiplies P(S = s) by e^{ts} and a constant that does not depend on s, so
the tilted distribution knows everything about the original one. With t chosen such that the mean of S is the wanted
count, that count is one of the likeliest values, and nothing that is computed of it is ever tiny.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn.counts import _host

_STEPS = 3  # from the ranking: of 71,052 awkward bags, n from 2 to 50,000, 32 needed a second one, none a third
_LOOKS = 5  # from the middle of the logits: one or two are enough for bags as they come
_LAST_PLACES = 4e-16
_FAR = 1e3  # a tilt that costs logits digits, where a smaller one may do
_SATURATED = 40.0  # from a logit, where e^-40 is nothing beside one
_NOTHING = 1e-9  # a sum of probabilities whose square is nothing beside the tolerance of 1e-18


class Tilt(NamedTuple):
    """A tilt and the moments of the count under it, each (r, 1) float64."""

    value: Tensor
    mean: Tensor
    variance: Tensor

    @classmethod
    def at(cls, z: Tensor, value: Tensor, copies: Tensor | None = None) -> Tilt:
        """The moments of logits z (r, n), each as often as it has copies, under the tilts `value` (r, 1)."""
        p = torch.sigmoid(z + value)
        return cls(value, total(p, copies), total(torch.addcmul(p, p, p, value=-1), copies))

    def hits(self, target: Tensor) -> Tensor:
        """Whether the mean is within one standard deviation of the target: (r, 1) bool, False for NaN.

        That is near enough: if all the mass lay below s, S = (s - 1) - S' with S' a count of mean m and variance
        v < m, so (s - E S)^2 = (1 + m)^2 >= 4 m > 4 v. A count within one standard deviation of the mean is therefore
        never out of reach; its tilted probability is comparable to the largest one. The 1e-18 lets saturated rows
        (variance 0) pass.
        """
        gap = self.mean - target
        return gap * gap <= self.variance + 1e-18


def total(values: Tensor, copies: Tensor | None) -> Tensor:
    """Sums (r, 1) over the entries of rows (r, n), each as often as it has copies; None for one each."""
    return (values if copies is None else values * copies).sum(-1, keepdim=True)


def solve_tilt(z: Tensor, counts: Tensor, size: Tensor, copies: Tensor | None = None) -> Tilt:
    """Find t with |sum_i sigmoid(z_i + t) - s| at most one standard deviation of the tilted distribution.

    Args:
        z: (r, n) float64 logits, -inf where there is no instance.
        counts: (r, 1) wanted means, int64. The nearest one inside stands for 0 and size, whose tilt is infinite.
        size: (r, 1) number of instances in each row.
        copies: (r, n) float64, how many instances each logit stands for; None for one each.

    Returns:
        A tilt for each row: finite, but NaN should it not be found (never yet seen) and in rows with a NaN.
    """
    z = z.detach()  # every formula holds for any tilt: none has a derivative through it
    rank = torch.minimum(counts, size - 1).clamp(min=1)
    # To rank costs an accelerator less than to look at the first steps, and the CPU as much as all the rest.
    tilt = _from_the_middle(z, rank, size, copies) if _host.sees(z) else None
    if tilt is not None and _host.all_true((tilt.value.abs() <= _FAR) | (size == 0)):
        return tilt
    return _from_the_ranking(z, rank, size, copies)


def _from_the_middle(z: Tensor, rank: Tensor, size: Tensor, copies: Tensor | None) -> Tilt | None:
    """Newton's method from the middle of the logits, or None if a few steps do not solve every row."""
    length = size.double()
    target = torch.minimum(rank, length - 0.5).clamp(min=0.5)
    # On the log-odds of the mean rather than on the mean: exact at once for equal logits z, whose t is log_odds - z.
    log_odds = torch.log(target / (length - target))
    low = log_odds - z.amax(-1, keepdim=True)
    high = log_odds - z.masked_fill(z == -torch.inf, torch.inf).amin(-1, keepdim=True)
    middle = (low + high) / 2
    value = torch.where((low < 0) & (high > 0) | ~middle.isfinite(), 0.0, middle)
    for _ in range(_LOOKS):
        tilt = Tilt.at(z, value, copies)
        solved = tilt.hits(target) | (size == 0)
        if _host.all_true(solved):
            return tilt
        room = tilt.mean * (length - tilt.mean)
        step = (log_odds - torch.log(tilt.mean / (length - tilt.mean))) * room / (length * tilt.variance)
        value = torch.where(solved, value, value + step)
    return None


def _from_the_ranking(z: Tensor, rank: Tensor, size: Tensor, copies: Tensor | None) -> Tilt:
    """A few steps of Newton's method from the ranking of the logits, whatever these are.

    Call an instance an exception if it is a zero among the s largest logits or a one among the others, and r_i its
    probability. Then S = s + (exceptions below) - (exceptions above), and the mean of S is s where the expected numbers
    A(t) of exceptions above and B(t) below are equal. Newton's method is on log B - log A: linear in t where exceptions
    are rare, however unlike the logits are, and exact at once where all logits are equal.

    It starts half-way between the s-th and the (s + 1)-th logit, where every r_i <= 1/2. The two nearest have the same
    r there, so B / A is between 1 / n and n; both terms of the slope, sum r_i (1 - r_i) / sum r_i, are at least 1/2. If
    the two are far apart there are no exceptions between them, and it starts as near to 0 as that is so: a tilt of 1e6
    takes six digits from a logit of 1.
    """
    ranked, order = z.sort(-1, descending=True)
    each = torch.ones_like(ranked) if copies is None else copies.gather(-1, order)
    upto = each.cumsum(-1)
    above = (rank - (upto - each)).clamp(min=0.0).minimum(each)  # how many copies of each are among the s largest
    sides = torch.stack([above, each - above], 1)  # (r, 2, n)
    single = size < 2  # has no count inside: as likely a one as a zero
    place = torch.searchsorted(upto, torch.cat([rank.double(), rank.masked_fill(single, 0) + 1.0], -1).contiguous())
    upper, lower = ranked.gather(-1, place.clamp(max=z.shape[-1] - 1)).split(1, -1)
    margin = (upper / 2 - lower / 2).clamp(max=_SATURATED)
    start = value = torch.zeros_like(upper).clamp(margin - upper, -lower - margin).nan_to_num(0.0, posinf=0.0)
    for _ in range(_STEPS):
        x = ranked + value
        r = torch.sigmoid(torch.stack([-x, x], 1))
        # The bounds are for rows without exceptions to speak of, which are solved.
        exceptions = (r * sides).sum(-1).clamp(min=_NOTHING)
        slope = ((torch.addcmul(r, r, r, value=-1) * sides).sum(-1) / exceptions).sum(-1, keepdim=True).clamp(min=0.1)
        over, under = exceptions.split(1, -1)
        before, value = value, torch.addcdiv(value, (under / over).log(), slope, value=-1)
    exhausted = (value - before).abs() <= _LAST_PLACES * value.abs()  # logits of 1e17: no number is nearer
    value = torch.where(single, start, value)
    tilt = Tilt.at(z, value, copies)
    found = tilt.hits(rank) | single | exhausted
    return tilt._replace(value=tilt.value.masked_fill(~found, torch.nan))


def untilt(z: Tensor, tilt: Tensor, counts: Tensor, copies: Tensor | None = None) -> Tensor:
    """log P(S = s) - log P~(S = s) = sum_i c_i log((1 + e^{z_i + t}) / (1 + e^{z_i})) - t s.

    Of tilts (b, 1) and counts (b, k): (b, k).
    """
    # Of the likeliest labels without the tilt, ones where z > 0 and k in number, the probability changes under it by
    # e^{t k} prod_i (1 + e^{z_i}) / (1 + e^{x_i}), x = z + t: the t are counted, not summed, and set against the s in
    # t s. What is left is, for each instance, how likely its label is without and with the tilt; a label that the tilt
    # makes unlikely has a small x, known exactly. With logits of 1e4 and log p = 0 that is the difference between
    # sixteen digits and eleven.
    x = z + tilt
    ones = z > 0
    change = logsigmoid(z.abs()) - logsigmoid(torch.where(ones, x, -x))
    return total(change, copies) - tilt * (counts - total(ones, copies))
