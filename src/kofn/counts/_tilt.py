"""The tilt that makes a wanted count the mean of the tilted distribution.

Adding one number t to every logit multiplies P(S = s) by e^{ts} and a constant that does not depend on s, so
the tilted distribution knows everything about the original one. With t chosen such that the mean of S is the wanted
count, that count is one of the likeliest values, and nothing that is computed of it is ever tiny.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_STEPS = 100  # Newton needs 2 to 5; bisecting a bracket of logits up to 2e4 fewer than 60
_RESTART = 8


class Tilt(NamedTuple):
    """A tilt and the moments of the count under it, each (r,) float64."""

    value: Tensor
    mean: Tensor
    variance: Tensor

    @classmethod
    def at(cls, z: Tensor, value: Tensor) -> Tilt:
        """The moments of logits z (r, n) under the tilts `value` (r,)."""
        p = torch.sigmoid(z + value.unsqueeze(-1))
        return cls(value, p.sum(-1), torch.addcmul(p, p, p, value=-1).sum(-1))


def solve_tilt(z: Tensor, target: Tensor, size: Tensor) -> Tilt:
    """Find t with |sum_i sigmoid(z_i + t) - target| at most one standard deviation of the tilted distribution.

    One standard deviation is near enough: if all the mass lay below s, S = (s - 1) - S' with S' a count of
    mean m and variance v < m, so (s - E S)^2 = (1 + m)^2 >= 4 m > 4 v. A count within one standard deviation
    of the mean is therefore never out of reach; its tilted probability is comparable to the largest one.

    Args:
        z: (r, n) float64 logits, -inf where there is no instance.
        target: (r,) wanted means. Half a count inside [0, size] stands for the ends, whose tilt is infinite.
        size: (r,) number of instances in each row.

    Returns:
        A finite tilt for each row (0 where size is 0); its moments are NaN in rows with a NaN.
    """
    z = z.detach()  # every formula holds for any tilt: none has a derivative through it
    size = size.double()
    target = torch.minimum(target.double(), size - 0.5).clamp(min=0.5)
    # All z equal to c would give t = log_odds - c exactly, hence the bracket from the extreme logits.
    log_odds = torch.log(target / (size - target))
    low = log_odds - z.amax(-1)
    high = log_odds - z.masked_fill(z == -torch.inf, torch.inf).amin(-1)
    middle = (low + high) / 2
    value = torch.where((low < 0) & (high > 0) | ~middle.isfinite(), 0.0, middle)
    for step in range(_STEPS):
        value, mean, variance = tilt = Tilt.at(z, value)
        gap = mean - target
        # NaN compares false: such a row counts as solved. The 1e-18 lets saturated rows (variance 0) pass.
        unsolved = (gap * gap > variance + 1e-18) & (low < high)
        # Host read: the only one of the solve, once a step, because the number of steps depends on the values.
        if not bool(unsolved.any()):
            break
        low = torch.where(gap > 0, low, value)
        high = torch.where(gap > 0, value, high)
        if step == _RESTART:
            proposal = _between_order_statistics(z, target, size)
        else:
            # Newton on the log-odds of the mean rather than on the mean: exact at once for equal logits.
            room = mean * (size - mean)
            proposal = value + (log_odds - torch.log(mean / (size - mean))) * room / (size * variance)
        inside = (low < proposal) & (proposal < high)
        value = torch.where(unsolved, torch.where(inside, proposal, (low + high) / 2), value)
    return tilt


def _between_order_statistics(z: Tensor, target: Tensor, size: Tensor) -> Tensor:
    """Minus the midpoint of the s-th and (s + 1)-th largest logit: right to a few units for any logits.

    There, s instances have p >= 1/2 and the others p <= 1/2, so |mean - s| <= sum min(p, q) <= 2 variance:
    Newton sees a slope, even when logits in the thousands make the mean a staircase everywhere else.
    """
    ranked = z.sort(-1, descending=True).values
    # A NaN target would become a rank out of bounds; its row is lost anyway.
    rank = torch.minimum(target.nan_to_num(1.0).round(), size - 1).clamp(min=1).long().unsqueeze(-1)
    above = ranked.gather(-1, rank - 1)
    below = ranked.gather(-1, rank.clamp(max=z.shape[-1] - 1))
    return -(above / 2 + below / 2).squeeze(-1)
