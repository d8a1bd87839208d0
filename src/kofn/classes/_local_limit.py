"""The joint distribution of class counts of large bags: the local limit theorem under the tilt.

Under the tilt of `_class_tilt` the counts k are the mean. With S the covariance of K in C - 1 of its coordinates,

    log P(K = k) = f + L,   L ~ -log det(2 pi S) / 2 + e,   e = rho_4 / 8 - rho_13^2 / 8 - rho_23^2 / 12,

e the first Edgeworth term, of the instances' third and fourth cumulants. Three things keep that right where counts are
small or predictions confident, so that the variance in some direction falls below about 1:

* Counts are integers. The Gaussian's density is divided by its sum over the integers, direction by direction: with
  d_1, d_2, ... the conditional variances of one count after the other, -log(2 pi d) / 2 becomes -log theta(d),
  theta(d) = sum_m e^{-m^2 / 2d}, the same to e^{-20 d} from d = 1 on, and 0 instead of infinite for d = 0.
* In e, the inverse 1/l of an eigenvalue l of the covariance becomes l^7 / (l^8 + s^8), s = 0.3 C / (C - 1).
* Of each class by itself, log P(K_c = k_c) is known exactly, in linear time. The errors that the same formula makes of
  these are taken away from L, weighted by 1 - k_c / n, which sum to C - 1: for two classes L is exact, and the error of
  a small count of many classes is nearly all its own.

So corrected, L is kept between two bounds that hold for it: it is no larger than the smallest log P(K_c = k_c), and no
smaller than the multinomial log-probability of k under the shares k_c / n. bench/class_limit.md has the errors.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kofn.classes._class_tilt import newton_step, solve_tilt, tilted
from kofn.classes._one_vs_rest import one_vs_rest
from kofn.classes._rows import NEVER, Rows
from kofn.counts import CountDistribution

_STILL = 1e-8  # a variance below which the tilt does not follow the logits: nothing depends on it there
_SMALL = 0.3  # the variance below which e is left out
_ORDER = 8
_CELLS = 1 << 19  # instances times classes squared of a batch


def batches(rows: Rows) -> list[Tensor]:
    """Bags whose arrays stay in the processor's cache together."""
    number = max(1, _CELLS // max(1, rows.log_p.shape[1] * rows.log_p.shape[2] ** 2))
    return list(torch.arange(len(rows.log_p), device=rows.log_p.device).split(number))


def log_prob(rows: Rows, steps: int = 2) -> Tensor:
    """log P(K = k), (b,), NEVER or less if impossible.

    Of plain operations. The tilt enters by `steps` of Newton's method from where it is solved: of one step the first
    derivatives are right, of two those up to the third.
    """
    tilt = solve_tilt(rows)
    possible = (tilted(rows, tilt).mean - rows.counts).abs().amax(-1) < 1e-6 * (1.0 + rows.weight.sum(-1))
    for _ in range(steps):
        at = tilted(rows, tilt)
        tilt = tilt + newton_step(at, rows.counts - at.mean, _STILL)
    at = tilted(rows, tilt)
    weight, size, k = rows.weight.unsqueeze(-1), rows.weight.sum(-1, keepdim=True), rows.counts
    kinds = (k > 0).sum(-1).clamp(min=1).to(k.dtype)
    damping = _SMALL * kinds / (kinds - 1).clamp(min=1)
    joint = lattice(at.shared, k) + edgeworth(at.p, rows.weight, _damped_inverse(at.covariance, damping))
    # The same of each class against the rest, whose law has two classes and its cumulants in closed form.
    spread = at.p * (1.0 - at.p)
    variance = (weight * spread).sum(1)
    third, fourth = ((weight * spread * skew).sum(1) for skew in (1.0 - 2.0 * at.p, 1.0 - 6.0 * spread))
    inverse = variance ** (_ORDER - 1) / (variance**_ORDER + _SMALL**_ORDER)
    alone = -_log_theta(variance) + fourth * inverse**2 / 8 - 5 * third**2 * inverse**3 / 24
    exact = _log_marginals(rows, tilt)
    value = joint + ((1.0 - k / size.clamp(min=1.0)) * (exact - alone)).sum(-1)
    multinomial = torch.lgamma(size.squeeze(-1) + 1) - (torch.lgamma(k + 1) - torch.xlogy(k, k)).sum(-1)
    multinomial = multinomial - torch.xlogy(size, size).squeeze(-1)
    value = torch.maximum(torch.minimum(value, exact.amin(-1)), multinomial)
    return torch.where(possible, (value + at.f).clamp(max=0.0), NEVER)


def lattice(shared: Tensor, counts: Tensor) -> Tensor:
    """-sum_j log theta(d_j), (b,): the Gaussian's density at its mean, divided by its sum over the integers.

    The covariance is the Laplacian of a graph with weights `shared` (b, C, C) between the classes, and d_j what is left
    of the degree of class j once those before it are eliminated, as in a network of resistances (star-mesh transform):
    sums of positive terms, in which nothing cancels.
    """
    # Rarer classes first. The order only matters where a d_j is below 1.
    order = shared.detach().sum(-1).argsort(-1)
    order = order.gather(1, counts.gather(1, order).argsort(dim=-1, stable=True))
    graph = shared.gather(1, order.unsqueeze(-1).expand_as(shared))
    graph = graph.gather(2, order.unsqueeze(1).expand_as(shared))
    total = shared.new_zeros(len(shared))
    for _ in range(shared.shape[-1] - 1):
        edges, graph = graph[:, 0, 1:], graph[:, 1:, 1:]
        degree = edges.sum(-1)
        total = total - _log_theta(degree)
        share = edges / degree.clamp(min=1e-100).unsqueeze(-1)
        graph = graph + edges.unsqueeze(-1) * share.unsqueeze(-2)
        graph = graph - torch.diag_embed(graph.diagonal(dim1=1, dim2=2))
    return total


def edgeworth(p: Tensor, weight: Tensor, inverse: Tensor) -> Tensor:
    """e = rho_4 / 8 - rho_13^2 / 8 - rho_23^2 / 12, (b,), of one-hot vectors with probabilities p (b, n, C).

    Their covariances are singular: a vector of ones has none. `inverse` (b, C, C) may be any generalised inverse V of
    the sum. With d_c = (one-hot of c) - p_i and q_c = d_c' V d_c, all contractions are products of matrices:

        rho_4 = sum_i sum_c p_c q_c^2 - (sum_c p_c q_c)^2 - 2 sum_cd p_c p_d (d_c' V d_d)^2,
        rho_13^2 = u' V u,  u = sum_i sum_c p_c q_c d_c,      rho_23^2 = <T, T contracted with V, V and V>,

    T the sum of the third cumulants.
    """
    weighted, diagonal = p * weight.unsqueeze(-1), inverse.diagonal(dim1=1, dim2=2)
    vp = p @ inverse
    pvp = (p * vp).sum(-1, keepdim=True)
    q = diagonal.unsqueeze(1) - 2 * vp + pvp
    trace = (p * q).sum(-1)
    pairs = ((p @ inverse.square()) * p).sum(-1) - 2 * (p * vp.square()).sum(-1) + pvp.squeeze(-1).square()
    rho_4 = (weight * ((p * q.square()).sum(-1) - trace.square() - 2 * pairs)).sum(-1)
    u = (weighted * (q - trace.unsqueeze(-1))).sum(1)
    rho_13 = (u.unsqueeze(1) @ inverse @ u.unsqueeze(-1)).flatten()
    classes = p.shape[-1]
    products = (p.unsqueeze(-1) * p.unsqueeze(-2)).flatten(-2)
    second, one = weighted.mT @ p, torch.eye(classes, dtype=p.dtype, device=p.device)
    third = 2 * (products.mT @ weighted).unflatten(1, (classes, classes))
    third = third - torch.einsum("xab,ac->xabc", second, one) - torch.einsum("xbc,ab->xabc", second, one)
    third = third - torch.einsum("xac,bc->xabc", second, one)
    third = third + torch.einsum("xa,ab,ac->xabc", weighted.sum(1), one, one)
    turned = third
    for _ in range(3):  # each turn contracts the last of three dimensions and puts it first
        turned = (turned.flatten(1, 2) @ inverse).unflatten(1, (classes, classes)).movedim(-1, 1)
    rho_23 = (third * turned).sum((1, 2, 3))
    term: Tensor = rho_4 / 8 - rho_13 / 8 - rho_23 / 12
    return term


def _damped_inverse(covariance: Tensor, damping: Tensor) -> Tensor:
    """Each eigenvalue l, 0 too, to l^7 / (l^8 + s^8): the mean of 1 / (l - r) over the eight roots of r^8 = -s^8."""
    angles = torch.arange(1.0, _ORDER, 2.0, dtype=damping.dtype, device=damping.device) * (math.pi / _ORDER)
    roots = torch.polar(damping.unsqueeze(-1).expand(-1, len(angles)), angles.expand(len(damping), -1))
    shifts = torch.diag_embed(roots.unsqueeze(-1).expand(*roots.shape, covariance.shape[-1]))
    inverse: Tensor = torch.linalg.inv(covariance.unsqueeze(1) - shifts).real.mean(1)
    return inverse  # the other four roots are the conjugates


def _log_theta(variance: Tensor) -> Tensor:
    """log sum_m e^{-m^2 / 2v} over all integers m, by whichever of Jacobi's two series is short."""
    v, m = variance.clamp(min=1e-3), torch.arange(1.0, 7.0, dtype=variance.dtype, device=variance.device)
    wide = torch.exp(-2 * math.pi**2 * m[:2].square() * v.unsqueeze(-1)).sum(-1)
    narrow = torch.exp(-m.square() / (2 * v.unsqueeze(-1))).sum(-1)
    return torch.where(v > 0.5, 0.5 * torch.log(2 * math.pi * v) + torch.log1p(2 * wide), torch.log1p(2 * narrow))


def _log_marginals(rows: Rows, tilt: Tensor) -> Tensor:
    """log P(K_c = k_c) under the tilt, (b, C)."""
    z = rows.log_p + tilt.unsqueeze(1)
    log_odds = one_vs_rest(z.masked_fill(rows.log_p < NEVER / 2, -torch.inf))
    log_odds = log_odds.masked_fill((rows.weight == 0).unsqueeze(1), -torch.inf)
    copies = rows.weight.long().unsqueeze(1) if rows.copied else None
    return CountDistribution(log_odds, copies=copies).log_prob(rows.counts.long())
