"""The tilt that makes wanted class counts the mean of the tilted law, for one bag.

Adding t_c to every logit of class c multiplies P(K = k) by e^{t.k} and a constant that does not depend on k. The tilt
with E K = k minimises the convex

    f(t) = sum_i log sum_c e^{x_ic + t_c} - t.k,   gradient E K - k,   Hessian the covariance of K.

Under it the counts are at least as probable as if all instances were alike (by van der Waerden's bound of permanents;
see native/src/class_tilt.h), so that nothing that is computed of them is ever tiny.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kofn.classes._sorted_bags import NEVER

_STEPS = 60  # at one temperature; Newton needs 3 to 8
_NEAR = 0.05  # squared distance of the mean from k, in standard deviations
_SMOOTH_SPREAD = 40.0  # logits that differ by less than that need no higher temperature
_COOLING = 0.3


class Tilted(NamedTuple):
    """A bag under a tilt."""

    p: Tensor  # (n, c) probabilities
    mean: Tensor  # (c,) of K
    covariance: Tensor  # (c, c)
    back: Tensor  # log P(K = k) - log P~(K = k) = f(t), times the temperature


def solve_tilt(log_p: Tensor, counts: Tensor) -> Tilted:
    """The law of log-probabilities (n, c) with counts (c,) within a fraction of a standard deviation of its mean."""
    k, tilt = counts.to(log_p.dtype), torch.zeros_like(log_p[0])
    lowest = torch.where(log_p > NEVER / 2, log_p, 0.0).amin()
    # Logits in the thousands make f a polyhedron, with no slope for Newton to see. At a temperature as high as they
    # differ it is smooth; its minimum, followed down to temperature 1, stays within reach of the next.
    temperature = float(-lowest) / _SMOOTH_SPREAD
    while temperature > 1.0:
        tilt, _ = _descend(log_p, k, tilt, temperature)
        temperature *= _COOLING
    return _descend(log_p, k, tilt, 1.0)[1]


def _look(log_p: Tensor, k: Tensor, tilt: Tensor, temperature: float) -> Tilted:
    z = (log_p + tilt) / temperature
    p = z.softmax(-1)
    # The variance of a class is what it shares with the others: no cancellation where p is nearly one.
    shared = p.T @ p
    shared.fill_diagonal_(0.0)
    return Tilted(p, p.sum(0), shared.sum(0).diag() - shared, temperature * z.logsumexp(-1).sum() - tilt @ k)


def _descend(log_p: Tensor, k: Tensor, tilt: Tensor, temperature: float) -> tuple[Tensor, Tilted]:
    """Newton's method with halved steps, from a tilt at which it begins."""
    at = _look(log_p, k, tilt, temperature)
    for _ in range(_STEPS):
        gap = (k - at.mean)[1:]
        hessian = at.covariance[1:, 1:]
        ridge = 1e-12 * at.covariance.trace() + 1e-300
        step = torch.linalg.solve_ex(hessian + ridge * torch.eye(len(gap), dtype=k.dtype, device=k.device), gap)[0]
        decrement = float(step @ gap)
        # NaN compares false: such a bag, or one whose Hessian has vanished, is as near as it gets.
        if not (decrement > _NEAR and float(gap.abs().max()) > 1e-4):
            break
        # Where logits leave nearly nothing open the Hessian vanishes, and with it the scale of a step.
        step = step * (temperature * min(1.0, 20.0 / float(step.abs().max())))
        slope, before, start = float(step @ -gap), float(at.back), tilt
        for half in range(40):
            length = 0.5**half
            tilt = torch.cat([start[:1], start[1:] + length * step])
            at = _look(log_p, k, tilt, temperature)
            if float(at.back) <= before + 0.25 * length * slope + 1e-13 * abs(before):
                break
    return tilt, at
