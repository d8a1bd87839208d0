"""The frequencies that carry the law of class counts near its mean.

K_0 follows from the others; d = c - 1 integers L = U K are left, U unimodular and chosen such that their
covariance is reduced (no correlation beyond 1/2 or so), because K_1 + K_2 may be known far better than either. The
trapezoid rule with M_1 x ... x M_d points, u = U' (2 pi m_j / M_j), has the aliases L + M z, z whole. Two bounds:

* Bennett: P(L_j - mean >= x) <= exp(-(v / r^2) h(r x / v)), h(y) = (1 + y) log(1 + y) - y, with v the variance of L_j
  and r the width of one instance's share in it. M_j reaches as far.
* |w_i|^2 = 1 - 4 sum_{c < e} p_ic p_ie s_ce with s_ce = sin^2((u_c - u_e) / 2), so |phi(u)| <= exp(2 sum cov_ce s_ce)
  with the (negative) covariances of K_c and K_e. Frequencies below e^-34 are left out; those left lie in a box that the
  inverse covariance tells.

phi(-u) is the conjugate of phi(u): of each pair one is kept, and counted twice.
"""

from __future__ import annotations

from math import asin, ceil, floor, log1p, pi, prod, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

_EXPONENT = 34.0  # e^-34 = 2e-15


class Grid(NamedTuple):
    """Frequencies of a bag's law."""

    angles: Tensor  # (f, c): u, 0 for class 0
    weights: Tensor  # (f,) complex: P(K = k) = Re sum weights phi(u)


def choose_grid(mean: Tensor, covariance: Tensor, counts: Tensor, size: int, most: float) -> Grid | None:
    """The frequencies of `size` instances whose counts have these moments; None if they are more than `most`."""
    basis, reduced = _reduce(covariance[1:, 1:].cpu())
    gaps = (basis @ (counts - mean)[1:].cpu().double()).abs().tolist()
    precisions = torch.linalg.pinv(reduced, hermitian=True).diagonal().tolist()
    points, far = [], []
    for row, variance, gap, precision in zip(
        basis.tolist(), reduced.diagonal().tolist(), gaps, precisions, strict=True
    ):
        width = max(0.0, *row) - min(0.0, *row)
        # Half a count more: a gap of 1 that rounding makes a little less must not be an alias of 0 where L is certain.
        wanted = min(floor(_bennett_radius(variance, width) + gap + 0.5) + 1, int(width) * size + 1)
        # A Gaussian ends at u = sqrt(2 e / conditional variance); here 2 |sin(u / 2)| stands for u.
        radius = sqrt(2 * _EXPONENT * precision) / 2 if variance > 1e-12 else 1.0
        angle = 2 * asin(radius) if radius < 1 else pi
        points.append(wanted)
        far.append(min(wanted // 2, ceil(angle / (2 * pi) * wanted)))
    if prod(2 * m + 1 for m in far) > 64 * most:
        return None
    device = covariance.device
    m = torch.cartesian_prod(*[torch.arange(-f, f + 1, device=device) for f in far]).reshape(-1, len(far))
    modulus = torch.tensor(points, device=device)
    # The first that is not its own conjugate tells u from -u; M/2 and -M/2 are one frequency.
    own = (m == 0) | (2 * m == modulus)
    sign = m.masked_fill(own, 0)
    first = (sign != 0).long().argmax(1, keepdim=True)
    sign = sign.gather(1, first).squeeze(1)
    kept = (sign >= 0) & (2 * m != -modulus).all(1)
    m, sign = m[kept], sign[kept]
    u = basis.to(device)
    # 2 pi m x / M for whole x, reduced in integers: no digit is lost.
    turns = torch.fmod(m.unsqueeze(-1) * u.long(), modulus.unsqueeze(-1)).double() / modulus.unsqueeze(-1)
    angles = 2 * pi * torch.cat([turns.new_zeros(len(m), 1), turns.sum(1)], 1)
    half = torch.sin((angles.unsqueeze(-1) - angles.unsqueeze(-2)) / 2).square()
    kept = -(half * covariance.triu(1)).sum((1, 2)) * 2 <= _EXPONENT
    m, sign, angles = m[kept], sign[kept], angles[kept]
    if len(m) > most:
        return None
    wanted_turns = torch.fmod(m * (u.long() @ counts[1:]), modulus).double() / modulus
    weights = (1 + (sign > 0).double()) / prod(points)
    return Grid(angles, torch.polar(weights, -2 * pi * wanted_turns.sum(1)))


def _bennett_radius(variance: float, width: float) -> float:
    """Distance from the mean beyond which probabilities are below e^-_EXPONENT."""
    v = variance / width**2 if width else 0.0
    if v <= 0:
        return 0.0
    x = sqrt(2 * _EXPONENT * v)  # of a Gaussian: too small, and the bound is convex in x
    for _ in range(60):
        y = x / v
        step = (v * ((1 + y) * log1p(y) - y) - _EXPONENT) / log1p(y)
        x -= step
        if abs(step) < 1e-3:
            break
    return x * width


def _reduce(covariance: Tensor) -> tuple[Tensor, Tensor]:
    """A unimodular matrix U, (d, d), and U covariance U', with whole multiples of rows taken from others."""
    basis, reduced = torch.eye(len(covariance), dtype=torch.float64), covariance.clone()
    for _ in range(100):
        changed = False
        for a in range(len(basis)):
            for b in range(len(basis)):
                if a == b or not reduced[b, b] > 0:
                    continue
                q = torch.round(reduced[a, b] / reduced[b, b])
                after = reduced[a, a] - 2 * q * reduced[a, b] + q * q * reduced[b, b]
                if q == 0 or not after < 0.999 * reduced[a, a]:
                    continue
                basis[a] -= q * basis[b]
                reduced[a] -= q * reduced[b]
                reduced[:, a] -= q * reduced[:, b]
                changed = True
        if not changed:
            break
    return basis, reduced
