"""Random effects of bags on the joint distribution of class counts.

The logits of class c are shifted by u_c in all instances of a bag, u_c ~ N(0, sigma^2 (C - 1) / C) for each class: the
log-odds of a class against the geometric mean of the others by N(0, sigma^2), of two classes exactly as in
`kofn.CountDistribution`. A common shift is a tilt, so

    log P(K = k) = log P(K = k | v) + log int N(v + w) e^{w.k - f(w)} dw,   f(w) = sum_i c_i log sum_c p_ic(v) e^{w_c}

for any v. At the v where the integrand is largest it is Laplace's approximation with its first correction, which is
that of `_local_limit` with the opposite sign and the inverse of cov K + C / ((C - 1) sigma^2): its error falls like
1 / n^2 as well, and with sigma. Given the counts, the shift says nothing more of the labels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kofn.classes import _joint
from kofn.classes._class_tilt import newton_step, solve_tilt, tilted
from kofn.classes._local_limit import edgeworth
from kofn.classes._rows import Rows, cut, join
from kofn.counts import Layout

_LEAST = 1e-6  # a smaller standard deviation changes no digit


def log_prob(x: Tensor, layout: Layout, counts: Tensor, method: _joint.Method, sigma: Tensor) -> Tensor:
    """log P(K = k) of each bag, of `layout.shape`, in the dtype of the logits.

    Args:
        x: as of `_joint.log_prob`.
        layout: as there.
        counts: as there.
        method: as there.
        sigma: of `layout.shape`, float64 standard deviations of the log-odds of each class against the others.
    """
    flat, bags = x.reshape(-1, x.shape[-1]).double(), _joint.flat(layout)
    counts = counts.reshape(-1, x.shape[-1])
    classes = x.shape[-1]
    precision = classes / (max(classes - 1, 1) * sigma.flatten().clamp(min=_LEAST).square())
    pieces, each = cut(flat, bags, counts, absent_classes=True), bags.rectangles().cut(precision)
    found = [_shift(rows, rho) for (rows, _), rho in zip(pieces, each, strict=True)]
    centre, added = (join(bags, values) for values in zip(*found, strict=True))
    alone = _joint.log_prob(flat + bags.spread(centre.mT).mT, bags, counts, method)
    value = torch.where(alone == -torch.inf, alone, alone + added)
    return value.reshape(layout.shape).to(x.dtype)


def _shift(rows: Rows, precision: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest shift (b, C), and what all of them add to log P(K = k) there, (b,)."""
    rho = precision.unsqueeze(-1)
    shift = solve_tilt(rows, precision)
    for _ in range(2):  # with which its derivatives are right up to the third
        at = tilted(rows, shift)
        shift = shift + newton_step(at, rows.counts - at.mean - rho * shift, precision)
    at = tilted(rows, shift)
    one = torch.eye(shift.shape[-1], dtype=shift.dtype, device=shift.device)
    inverse = torch.linalg.inv(at.covariance + rho.unsqueeze(-1) * one)
    log_det = torch.linalg.slogdet(one + at.covariance / rho.unsqueeze(-1))[1]
    added = -precision * shift.square().sum(-1) / 2 - log_det / 2 - edgeworth(at.p, rows.weight, inverse)
    return shift, added
