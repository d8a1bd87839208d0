"""The tilt that makes wanted class counts the mean of the tilted distribution, for many bags at a time.

Adding t_c to every logit of class c multiplies P(K = k) by e^{t.k} and a factor that does not depend on k:

    log P(K = k) = f(t) + log P~(K = k),   f(t) = sum_i c_i log sum_c p_ic e^{t_c} - t.k,

with P~ the distribution under the tilt and c_i the copies of an instance. The minimum of the convex f has

    gradient E~ K - k = 0,   Hessian cov~ K,

and there k is never unlikely: P~(K = k) is at least the multinomial probability of k under the shares k_c / n, by van
der Waerden's bound of permanents (native/src/class_tilt.h).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kofn.classes._rows import NEVER, Rows
from kofn.counts import _host

_PASSES = 200  # Newton needs about ten; logits in the thousands some tens
_SMOOTH_SPREAD = 40.0  # logits that differ by less than that need no higher temperature
_COOLING = 0.3
_RIDGE = 1e-13  # of the trace, on the diagonal of a Hessian that is singular: a constant added to t changes nothing


class Tilted(NamedTuple):
    """The distribution of labels under a tilt."""

    f: Tensor  # (b,)
    p: Tensor  # (b, n, C)
    mean: Tensor  # (b, C) of K
    shared: Tensor  # (b, C, C) sum_i c_i p_ia p_ib, 0 on the diagonal
    covariance: Tensor  # (b, C, C) of K


def moved(rows: Rows, tilt: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities under tilts (b, C), up to a constant of each instance, and what these add up to less t.k.

    The tilt of the class that is likeliest under it is taken from those of all classes of an instance, counted instead
    of summed, and set against t.k: with a tilt of 1e6, that is the difference between sixteen digits and ten.
    """
    likeliest = (rows.log_p + tilt.unsqueeze(1)).detach().argmax(-1)
    z = rows.log_p + (tilt.unsqueeze(1) - tilt.gather(1, likeliest).unsqueeze(-1))
    number = torch.zeros_like(rows.counts).scatter_add(1, likeliest, rows.weight)
    return z, (tilt * (number - rows.counts)).sum(-1)


def tilted(rows: Rows, tilt: Tensor) -> Tilted:
    """The distribution under tilts (b, C)."""
    z, constant = moved(rows, tilt)
    top = z.detach().amax(-1, keepdim=True)
    parts = (z - top).exp()  # one exponential, for both softmax and logsumexp
    total = parts.sum(-1, keepdim=True)
    p = parts / total
    weighted = p * rows.weight.unsqueeze(-1)
    shared = weighted.mT @ p
    shared = shared - torch.diag_embed(shared.diagonal(dim1=1, dim2=2))
    # The variance of a class is what it shares with the others: no cancellation where p is nearly one.
    covariance = torch.diag_embed(shared.sum(-1)) - shared
    f = ((total.log() + top).squeeze(-1) * rows.weight).sum(-1) + constant
    return Tilted(f, p, weighted.sum(1), shared, covariance)


def newton_step(at: Tilted, gap: Tensor, precision: Tensor | float) -> Tensor:
    """(cov K + precision)^-1 gap, (b, C)."""
    ridge = _RIDGE * at.covariance.diagonal(dim1=1, dim2=2).sum(-1) + precision
    hessian = at.covariance + torch.diag_embed(ridge.unsqueeze(-1).expand_as(gap))
    step: Tensor = torch.linalg.solve_ex(hessian, gap.unsqueeze(-1))[0].squeeze(-1)
    return step


def solve_tilt(rows: Rows, precision: Tensor | None = None) -> Tensor:
    """The tilts (b, C) with E~ K = k, without a graph; with a precision (b,) those that minimise f + precision t.t / 2.

    Where no tilt has E~ K = k because the counts are impossible, the tilt is far out, and E~ K as near as it comes.
    """
    with torch.no_grad():
        return _solve_tilt(rows._replace(log_p=rows.log_p.detach()), precision)


def _solve_tilt(rows: Rows, precision: Tensor | None) -> Tensor:
    rho = torch.zeros_like(rows.counts[:, 0]) if precision is None else precision.detach()

    def look(tilt: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """T f(t / T) of logits over T, its gradient, and Newton's step from there."""
        by = temperature.unsqueeze(-1)
        at = tilted(rows._replace(log_p=rows.log_p / by.unsqueeze(-1)), tilt / by)
        gap = rows.counts - at.mean - rho.unsqueeze(-1) * tilt
        step = newton_step(at, gap, rho * temperature + 1e-300) * by
        # Where logits leave nearly nothing open the Hessian vanishes, and with it the scale of a step.
        far = (step / by).abs().amax(-1, keepdim=True)
        step = torch.nan_to_num(step * (20.0 / far.clamp(min=20.0)))
        return temperature * at.f + rho * tilt.square().sum(-1) / 2, gap, step

    # Logits in the thousands make f a polyhedron, with no slope for Newton to see. At a temperature as high as they
    # differ it is smooth; its minimum, followed down to temperature 1, stays within reach of the next.
    there = (rows.log_p > NEVER / 2) & (rows.weight > 0).unsqueeze(-1)
    lowest = torch.where(there, rows.log_p, 0.0).flatten(1).amin(-1) if rows.log_p.numel() else rho
    temperature = (-lowest / _SMOOTH_SPREAD).clamp(min=1.0)
    enough = 1e-11 * (1.0 + rows.weight.sum(-1))
    tilt = torch.zeros_like(rows.counts)
    value, gap, step = look(tilt, temperature)
    length = torch.ones_like(value)
    for _ in range(_PASSES):
        decrement = (step * gap).sum(-1)
        near = ~((decrement > torch.where(temperature > 1.0, 0.05, 1e-15)) & (gap.abs().amax(-1) > enough))
        if not _host.transformed() and bool((near & (temperature == 1.0)).all()):
            break
        cooler = near & (temperature > 1.0)
        temperature = torch.where(cooler, (temperature * _COOLING).clamp(min=1.0), temperature)
        moved = torch.where(near.unsqueeze(-1), tilt, tilt + length.unsqueeze(-1) * step)
        found, its_gap, its_step = look(moved, temperature)
        # Half the step until f has fallen as much as a step of that length may promise, up to rounding.
        fell = found <= value - 1e-4 * length * decrement + 1e-13 * value.abs()
        better = cooler | near | fell | (decrement < 1e-7) | (length < 1e-9)
        tilt = torch.where(better.unsqueeze(-1), moved, tilt)
        value = torch.where(better, found, value)
        gap = torch.where(better.unsqueeze(-1), its_gap, gap)
        step = torch.where(better.unsqueeze(-1), its_step, step)
        length = torch.where(better, torch.ones_like(length), length / 2)
    return tilt - tilt.mean(-1, keepdim=True) if precision is None else tilt
