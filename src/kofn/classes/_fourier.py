"""The joint distribution of class counts of one large bag through its characteristic function.

With phi(u) = prod_i w_i(u), w_i = sum_c p_ic e^{i u_c}, and the frequencies and weights of `_grid`,

    P(K = k) = Re sum_u g(u) phi(u),    P(y_i = c, K = k) = p_ic Re sum_u g(u) e^{i u_c} prod_{j != i} w_j(u).

The product without i is that of the instances before i times that of those after it: nothing is divided by a w_i, which
may be zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kofn.classes._class_tilt import solve_tilt
from kofn.classes._grid import choose_grid
from kofn.classes._sorted_bags import NEVER

_CELLS = 1 << 20  # frequencies times instances at once
_CONFIRMED = 1e7  # cells of a table that are spent on confirming that counts are impossible


def posteriors(log_p: Tensor, counts: Tensor, most: float) -> tuple[Tensor, Tensor] | None:
    """log P(K = k), a scalar, and P(y_i = c | K = k), (n, c), of log-probabilities (n, c) and counts (c,).

    None if that takes more than `most` frequencies, half as many as there are states, or if a table has to tell.
    """
    view = solve_tilt(log_p, counts)
    grid = choose_grid(view.mean, view.covariance, counts, len(log_p), most)
    if grid is None:
        return None
    total, shares = log_p.new_zeros(()), torch.zeros_like(log_p)
    one = torch.ones(1, dtype=torch.complex128, device=log_p.device)
    stretch = max(1, _CELLS // max(1, len(log_p)))
    for angles, g in zip(grid.angles.split(stretch), grid.weights.split(stretch), strict=True):
        waves = torch.polar(torch.ones_like(angles), angles)  # (f, c)
        w = view.p.to(waves.dtype) @ waves.T  # (n, f)
        ends = one.expand(1, len(g))
        before = torch.cat([ends, w.cumprod(0)])
        after = torch.cat([w.flip(0).cumprod(0).flip(0), ends])
        total = total + (g * before[-1]).real.sum()
        shares = shares + ((before[:-1] * after[1:] * g) @ waves).real
    if not float(total) > 1e-12:  # no tilt makes the counts likely: impossible, which a table confirms if it can be had
        return None if 2 * most * len(log_p) <= _CONFIRMED else (torch.full_like(total, NEVER), view.p)
    return total.log() + view.back, (view.p * shares / total).clamp(0.0, 1.0)
