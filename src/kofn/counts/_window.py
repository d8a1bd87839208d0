"""A tilted distribution by its characteristic function: values, posteriors and covariances of a range of counts.

For instances with tilted probabilities p_i = 1 - q_i, let w_i(u) = q_i + p_i e^{iu} and phi(u) = prod_i w_i(u).
The trapezoid rule with M points gives

    (1/M) sum_m phi(u_m) e^{-i u_m s} = sum_j P(S = s + j M),    u_m = 2 pi m / M,

that is P(S = s) up to counts at least M away. Two bounds make that cheap and exact to rounding:

* Bernstein: P(|S - mean| >= d) <= 2 e^{-a} for d >= a/3 + sqrt(a^2/9 + 2 a v), with v the variance. An M of
  about nine standard deviations leaves an alias of e^{-40}. (M = n + 1 has none at all.)
* |w_i(u)|^2 = 1 - 4 p_i q_i sin^2(u/2) <= e^{-4 p_i q_i sin^2(u/2)}, so |phi(u)| <= e^{-2 v sin^2(u/2)}:
  frequencies with sin^2(u/2) > 20 / v carry less than e^{-40}.

Together at most 30 or so frequencies are left, whatever n is, and 14 for large bags: the cost is linear in n.

Removing instance i divides phi by w_i; setting its label to one multiplies by p_i e^{iu}. Hence everything about
the labels given the count is a sum over the same frequencies with the ratios

    r_i(u) = p_i e^{iu} / w_i(u) = D_i (p_i q_i e^{iu} + p_i^2),    D_i = 1 / |w_i|^2,
    |w_i(u)|^2 = (q_i - p_i)^2 + 4 p_i q_i cos^2(u/2)               (a sum of squares: no cancellation).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from kofn.counts._tilt import Tilt

NEGLIGIBLE = 40.0  # e^-40 = 4e-18: below rounding
_BLOCK = 1 << 17  # numbers in a temporary (instances x frequencies): small enough for the cache


def radius(variance: Tensor, exponent: Tensor | float) -> Tensor:
    """Distance from the mean beyond which, by Bernstein's bound, a count has probability below 2 e^-exponent."""
    third = exponent / 3
    distance: Tensor = third + torch.sqrt(third * third + 2 * exponent * variance)
    return distance


class Window:
    """The distribution of S under a tilt, at the given counts.

    Rows are independent bags. A `spectrum` is a set of complex weights on the frequencies, of shape (r, f).

    Args:
        z: (r, n) float64 logits, -inf where there is no instance.
        tilt: the tilt of each row, with its moments.
        counts: (r, k) integers.
        reach: (r,) counts up to this far from the tilted mean are exact; the others mean nothing.
    """

    probs: Tensor  #: (r, k) tilted probabilities of the counts

    def __init__(self, z: Tensor, tilt: Tilt, counts: Tensor, *, reach: Tensor) -> None:
        x = z + tilt.value.unsqueeze(-1)
        self._p = torch.sigmoid(x)
        self._q = torch.sigmoid(-x)
        self._pq = self._p * self._q
        variance = tilt.variance.nan_to_num(0.0)  # a NaN comes out through p and q; shapes must not see it
        points = (radius(variance, NEGLIGIBLE) + reach).ceil().clamp(max=z.shape[-1] + 1).long()
        points += 1 - points % 2  # odd: cos(u/2) is never 0, so no w_i is ever 0
        cut = torch.asin((NEGLIGIBLE / 2 / variance).sqrt().clamp(max=1.0)) / math.pi
        last = torch.minimum((cut * points).ceil().long(), points // 2)
        # Host read: the number of frequencies is a shape. It comes right after the last one of `solve_tilt`.
        frequency = torch.arange(int(last.max()) + 1 if len(last) else 1, device=z.device)
        step = (2 * math.pi / points.double()).unsqueeze(-1)
        angle = frequency * step
        self._e = torch.polar(torch.ones_like(angle), angle)
        self._cos2_half = torch.cos(angle / 2).square().unsqueeze(-1)
        # The frequencies m and M - m are conjugate: each m > 0 counts twice, and only real parts are kept.
        weight = (frequency <= last.unsqueeze(-1)) * (1 + (frequency > 0).double())
        self._phi = self._characteristic() * (weight / points.unsqueeze(-1))
        # m s is reduced modulo M in integers, so that no digit of the angle is lost for large counts. The turns
        # that `_characteristic` leaves out are taken from the counts.
        counted = counts - (self._p > self._q).sum(-1, keepdim=True)
        turns = (counted.unsqueeze(-1) * frequency) % points[:, None, None]
        angle = turns * -step.unsqueeze(-1)
        self._waves = torch.polar(torch.ones_like(angle), angle)
        self.probs = self._inverse(self._phi)

    def pull(self, weights: Tensor) -> Tensor:
        """sum_s weights_s P~(y_i = 1, S = s), for weights (r, k) on the counts: (r, n)"""
        return self._pull(self._spectrum(weights))

    def push(self, values: Tensor) -> Tensor:
        """sum_i values_i P~(y_i = 1, S = s), for values (r, n) on the instances: (r, k), the transpose of `pull`."""
        return self._inverse(self._phi * self._ratios(values))

    def correlate(self, weights: Tensor, values: Tensor) -> Tensor:
        """sum_s weights_s sum_j values_j P~(y_i = 1, y_j = 1, S = s): (r, n)"""
        # For j != i the pair brings r_i r_j; for j = i it is y_i alone and brings r_i = r_i^2 + r_i (1 - r_i).
        spectrum = self._spectrum(weights)
        return self._pull(spectrum * self._ratios(values)) + values * self._own(spectrum)

    def _inverse(self, spectrum: Tensor) -> Tensor:
        """Re sum_u spectrum e^{-i u s} at the counts: (r, k)"""
        return torch.matmul(self._waves, spectrum.unsqueeze(-1)).squeeze(-1).real

    def _spectrum(self, weights: Tensor) -> Tensor:
        """phi(u) sum_s weights_s e^{-i u s}, which turns sums over counts into sums over frequencies."""
        return self._phi * torch.matmul(weights.unsqueeze(-2).to(self._waves.dtype), self._waves).squeeze(-2)

    def _pull(self, spectrum: Tensor) -> Tensor:
        """Re sum_u spectrum r_i: (r, n)"""
        sides = torch.stack([(spectrum * self._e).real, spectrum.real], 1)
        out = torch.empty_like(self._p)
        for rows, columns in self._blocks():
            both = torch.matmul(sides[rows], self._inverse_square(rows, columns))
            out[rows, columns] = self._pq[rows, columns] * both[:, 0] + self._p[rows, columns].square() * both[:, 1]
        return out

    def _ratios(self, values: Tensor) -> Tensor:
        """sum_i values_i r_i(u): (r, f) complex."""
        sides = torch.stack([values * self._pq, values * self._p.square()], -1)
        out = self._p.new_zeros(*self._e.shape, 2)
        for rows, columns in self._blocks():
            out[rows] += torch.matmul(self._inverse_square(rows, columns), sides[rows, columns])
        return self._e * out[..., 0] + out[..., 1]

    def _own(self, spectrum: Tensor) -> Tensor:
        """Re sum_u spectrum r_i (1 - r_i): (r, n)"""
        # r (1 - r) = p q e / w^2 = p q e conj(w)^2 D^2, and e conj(w)^2 = q^2 e + 2 p q + p^2 conj(e).
        sides = torch.stack([(spectrum * self._e).real, 2 * spectrum.real, (spectrum * self._e.conj()).real], 1)
        out = torch.empty_like(self._p)
        for rows, columns in self._blocks():
            p, q, pq = self._p[rows, columns], self._q[rows, columns], self._pq[rows, columns]
            three = torch.matmul(sides[rows], self._inverse_square(rows, columns).square())
            out[rows, columns] = pq * (q.square() * three[:, 0] + pq * three[:, 1] + p.square() * three[:, 2])
        return out

    def _characteristic(self) -> Tensor:
        """phi(u) e^{-iuk}, k the number of instances with p > q, whose factors are p + q e^{-iu} = e^{-iu} w(u).

        Of an instance that is nearly sure, either way, the factor is nearly 1: hundreds of them lose nothing, where
        hundreds of factors e^{iu} would each add the same rounding error to the angle.
        """
        phi = torch.ones_like(self._e)
        large, small = torch.maximum(self._p, self._q), torch.minimum(self._p, self._q)
        turning = torch.where(self._p > self._q, -small, small)
        for rows, columns in self._blocks():
            e = self._e[rows].unsqueeze(-1)
            real = torch.addcmul(large[rows, None, columns], small[rows, None, columns], e.real)
            phi[rows] *= torch.complex(real, turning[rows, None, columns] * e.imag).prod(-1)
        return phi

    def _inverse_square(self, rows: slice, columns: slice) -> Tensor:
        p, q = self._p[rows, None, columns], self._q[rows, None, columns]
        square = torch.addcmul((q - p).square(), 4 * self._pq[rows, None, columns], self._cos2_half[rows])
        return square.reciprocal_()

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        """Cut (r, n) such that a block times the frequencies stays in the cache, and memory linear in n."""
        (r, n), f = self._p.shape, self._e.shape[-1]
        columns = max(1, min(n, _BLOCK // f))
        rows = max(1, _BLOCK // (columns * f))
        for i in range(0, r, rows):
            for j in range(0, n, columns):
                yield slice(i, i + rows), slice(j, j + columns)
