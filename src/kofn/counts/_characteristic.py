"""A tilted distribution by its characteristic function: values, posteriors and covariances of a range of counts.

For instances with tilted probabilities p_i = 1 - q_i, let w_i(u) = q_i + p_i e^{iu} and phi(u) = prod_i w_i(u).
The trapezoid rule with M points gives

    (1/M) sum_m phi(u_m) e^{-i u_m s} = sum_j P(S = s + j M),    u_m = 2 pi m / M,

that is P(S = s) up to counts at least M away. Two bounds make that cheap and exact to rounding:

* Bernstein: P(|S - mean| >= d) <= 2 e^{-a} for d >= a/3 + sqrt(a^2/9 + 2 a v), with v the variance. An M of
  about nine standard deviations leaves an alias of e^{-40}. (M = n + 1 has none at all.)
* |w_i(u)|^2 = 1 - 4 p_i q_i sin^2(u/2) <= e^{-4 p_i q_i sin^2(u/2)}, so |phi(u)| <= e^{-2 v sin^2(u/2)}:
  frequencies with sin^2(u/2) > 20 / v carry less than e^{-40}.

Together at most 32 frequencies are left, whatever n is, and 14 for large bags: the cost is linear in n.

An instance with c copies is c factors: w_i^c = e^{c log w_i}, log |w_i| by log1p from the second bound's equation, so
that no digit is lost however many copies there are.

Removing instance i divides phi by w_i; setting its label to one multiplies by p_i e^{iu}. Hence everything about
the labels given the count is a sum over the same frequencies with the ratios

    r_i(u) = p_i e^{iu} / w_i(u) = D_i (p_i q_i e^{iu} + p_i^2),    D_i = 1 / |w_i|^2,
    |w_i(u)|^2 = (q_i - p_i)^2 + 4 p_i q_i cos^2(u/2)               (a sum of squares: no cancellation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypeVar

import torch
from torch import Tensor

from kofn.counts import _host
from kofn.counts._tilt import Tilt, total

NEGLIGIBLE = 40.0  # e^-40 = 4e-18: below rounding
# Numbers in a temporary (instances x frequencies), so that memory stays linear in n; on the CPU they fit the cache.
_BLOCK, _BLOCK_OF_DEVICE = 1 << 17, 1 << 22

Complex = tuple[Tensor, Tensor]  # real and imaginary parts: compilers know no complex numbers
Number = TypeVar("Number", Tensor, float)


def radius(variance: Number, exponent: Number | float) -> Number:
    """Distance from the mean beyond which, by Bernstein's bound, a count has probability below 2 e^-exponent."""
    third = exponent / 3
    distance: Number = third + (third * third + 2 * exponent * variance) ** 0.5
    return distance


class Window:
    """The distribution of S under a tilt, at the given counts.

    Rows are independent bags. A `spectrum` is a set of complex weights on the frequencies, of shape (r, f).

    Args:
        z: (r, n) float64 logits, -inf where there is no instance.
        tilt: the tilt of each row, with its moments.
        counts: (r, k) integers.
        size: (r, 1) how many instances there are, at most.
        exponent: counts up to `radius(variance, exponent)` from the tilted mean are exact; the others mean nothing.
        copies: (r, n) float64, how many instances each logit stands for; None for one each.
    """

    probs: Tensor  #: (r, k) tilted probabilities of the counts

    def __init__(
        self, z: Tensor, tilt: Tilt, counts: Tensor, *, size: Tensor, exponent: float, copies: Tensor | None = None
    ) -> None:
        x = z + tilt.value
        self._copies = copies
        self._p = torch.sigmoid(x)
        self._q = torch.sigmoid(-x)
        variance = tilt.variance.nan_to_num(0.0)  # a NaN comes out through p and q
        points = (radius(variance, NEGLIGIBLE) + radius(variance, exponent)).minimum(size + 1.0)
        half = ((points - 1) / 2).ceil()
        points = 2 * half + 1  # odd: cos(u/2) is never 0, so no w_i is ever 0
        frequency = torch.arange(_frequencies(variance, half, exponent), device=z.device)
        self._rows, self._columns = _blocks(z, len(frequency))
        step = 2 * math.pi / points
        angle = frequency * step
        self._cos, self._sin = angle.cos(), angle.sin()
        self._cos2_half = (angle / 2).cos().square()
        # The frequencies m and M - m are conjugate: each m > 0 counts twice, and only real parts are kept.
        weight = (frequency <= half) * ((frequency > 0) + 1) / points
        real, imag = self._characteristic()
        self._phi = real * weight, imag * weight
        # m s is reduced modulo M in integers, so that no digit of the angle is lost for large counts. The turns
        # that `_characteristic` leaves out are taken from the counts.
        counted = counts - total(self._p > self._q, copies).long()
        turns = (counted.unsqueeze(-1) * frequency) % points.long().unsqueeze(-1)
        angle = turns * step.unsqueeze(-1)
        self._waves = torch.cat(
            [angle.cos(), angle.sin()], -1
        )  # of e^{-ius} the real part, and minus the imaginary one
        self.probs = self._inverse(self._phi)

    def pull(self, weights: Tensor) -> Tensor:
        """sum_s weights_s P~(y_i = 1, S = s), for weights (r, k) on the counts: (r, n)"""
        return self._pull(self._spectrum(weights))

    def push(self, values: Tensor) -> Tensor:
        """sum_i c_i values_i P~(y_i = 1, S = s), for values (r, n) on the instances: (r, k)."""
        return self._inverse(_times(self._phi, self._ratios(self._all(values))))

    def correlate(self, weights: Tensor, values: Tensor) -> Tensor:
        """sum_s weights_s sum_j c_j values_j P~(y_i = 1, y_j = 1, S = s), for one copy i: (r, n)"""
        # Another instance j brings r_i r_j; the copy i itself is y_i alone and brings r_i = r_i^2 + r_i (1 - r_i).
        spectrum = self._spectrum(weights)
        return self._pull(_times(spectrum, self._ratios(self._all(values)))) + values * self._own(spectrum)

    def _all(self, values: Tensor) -> Tensor:
        return values if self._copies is None else values * self._copies

    def _inverse(self, spectrum: Complex) -> Tensor:
        """Re sum_u spectrum e^{-i u s} at the counts: (r, k)"""
        return torch.bmm(self._waves, torch.cat(spectrum, -1).unsqueeze(-1)).squeeze(-1)

    def _spectrum(self, weights: Tensor) -> Complex:
        """phi(u) sum_s weights_s e^{-i u s}, which turns sums over counts into sums over frequencies."""
        cos, sin = torch.bmm(weights.unsqueeze(-2), self._waves).squeeze(-2).chunk(2, -1)
        real, imag = self._phi
        return torch.addcmul(real * cos, imag, sin), torch.addcmul(imag * cos, real, sin, value=-1)

    def _pull(self, spectrum: Complex) -> Tensor:
        """Re sum_u spectrum r_i: (r, n)"""
        real, imag = spectrum
        sides = torch.stack([torch.addcmul(real * self._cos, imag, self._sin, value=-1), real], 1)

        def pull(sides: Tensor, cos2_half: Tensor, p: Tensor, q: Tensor) -> Tensor:
            with_e, alone = _matmul(sides, _inverse_square(cos2_half, p, q)).unbind(1)
            return p * torch.addcmul(q * with_e, p, alone)

        return self._of_instances(pull, sides)

    def _own(self, spectrum: Complex) -> Tensor:
        """Re sum_u spectrum r_i (1 - r_i): (r, n)"""
        # r (1 - r) = p q e / w^2 = p q e conj(w)^2 D^2, and e conj(w)^2 = q^2 e + 2 p q + p^2 conj(e).
        real, imag = spectrum
        along, across = real * self._cos, imag * self._sin
        sides = torch.stack([along - across, 2 * real, along + across], 1)

        def own(sides: Tensor, cos2_half: Tensor, p: Tensor, q: Tensor) -> Tensor:
            with_e, alone, with_conj = _matmul(sides, _inverse_square(cos2_half, p, q).square()).unbind(1)
            return p * q * (q.square() * with_e + p * q * alone + p.square() * with_conj)

        return self._of_instances(own, sides)

    def _of_instances(self, function: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], sides: Tensor) -> Tensor:
        """function(sides (r, k, f), cos^2(u/2) (r, f), p (r, n), q (r, n)) of each instance: (r, n)"""
        done = []
        for left, cos2_half, p, q in _cut(self._rows, 0, sides, self._cos2_half, self._p, self._q):
            parts = _cut(self._columns, -1, p, q)
            done.append(_joined([function(left, cos2_half, *part) for part in parts], -1))
        return _joined(done, 0)

    def _ratios(self, values: Tensor) -> Complex:
        """sum_i values_i r_i(u): (r, f)"""

        def ratios(cos2_half: Tensor, p: Tensor, q: Tensor, values: Tensor) -> Tensor:
            sides = (values * p).unsqueeze(-1) * torch.stack([q, p], -1)
            return _matmul(_inverse_square(cos2_half, p, q), sides)

        done = []
        for cos2_half, *row in _cut(self._rows, 0, self._cos2_half, self._p, self._q, values):
            done.append(reduce(torch.add, (ratios(cos2_half, *part) for part in _cut(self._columns, -1, *row))))
        with_e, alone = _joined(done, 0).unbind(-1)
        return self._cos * with_e + alone, self._sin * with_e

    def _characteristic(self) -> Complex:
        """phi(u) e^{-iuk}, k the number of instances with p > q: (r, f)"""
        rows = [self._cos, self._sin, self._cos2_half, self._p, self._q]
        copies = [] if self._copies is None else [self._copies]
        done = []
        for cos, sin, cos2_half, *row in _cut(self._rows, 0, *rows, *copies):
            parts = _cut(self._columns, -1, *row)
            done.append(reduce(_times, (_product(cos, sin, cos2_half, *part) for part in parts)))
        real, imag = zip(*done, strict=True)
        return _joined(real, 0), _joined(imag, 0)


def _frequencies(variance: Tensor, half: Tensor, exponent: float) -> int:
    """How many frequencies carry anything, at most: most do at a variance of 20, from which on the highest do not."""
    there = NEGLIGIBLE / 2
    if _host.sees(variance):
        cut = torch.asin((there / variance).sqrt().clamp(max=1.0)) / math.pi
        last = torch.minimum((cut * (2 * half + 1)).ceil(), half)
        return int(last.max()) + 1 if len(last) else 1
    points = radius(there, NEGLIGIBLE) + radius(there, exponent)
    return math.ceil((points - 1) / 2) + 1


def _blocks(z: Tensor, frequencies: int) -> tuple[int, int]:
    """Rows and columns of z that are worked on at a time."""
    entries = (_BLOCK if z.device.type == "cpu" else _BLOCK_OF_DEVICE) // frequencies
    columns = max(1, min(z.shape[-1], entries))
    return max(1, entries // columns), columns


def _cut(size: int, dim: int, *values: Tensor) -> Iterable[tuple[Tensor, ...]]:
    """The values in pieces along a dimension. A graph that is compiled has no temporaries, and holds for any shape."""
    if torch.compiler.is_compiling() or values[0].shape[dim] <= size:
        return [values]
    return zip(*(value.split(size, dim) for value in values), strict=True)


def _joined(parts: Sequence[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim)


def _inverse_square(cos2_half: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """D_i(u) = 1 / ((q_i - p_i)^2 + 4 p_i q_i cos^2(u/2)), of (r, f) and twice (r, n): (r, f, n)"""
    gap, pq = (q - p).square().unsqueeze(1), (p * q).unsqueeze(1)
    return torch.addcmul(gap, pq, cos2_half.unsqueeze(-1), value=4).reciprocal_()


def _product(
    cos: Tensor, sin: Tensor, cos2_half: Tensor, p: Tensor, q: Tensor, copies: Tensor | None = None
) -> Complex:
    """prod_i w_i(u)^{c_i} e^{-iuk}, k the number of instances with p > q, of (r, f) and (r, n): (r, f)

    The factor of these is p + q e^{-iu} = e^{-iu} w(u). Of an instance that is nearly sure, either way, the factor is
    nearly 1: hundreds of them lose nothing, where hundreds of factors e^{iu} would each add the same rounding error to
    the angle. Products over parts of a bag multiply to that of the whole.
    """
    large, small = torch.maximum(p, q), torch.minimum(p, q)
    real = torch.addcmul(large.unsqueeze(1), small.unsqueeze(1), cos.unsqueeze(-1))
    imag = torch.copysign(small, q - p).unsqueeze(1) * sin.unsqueeze(-1)
    if copies is not None:
        log_size = torch.log1p(-4 * (p * q).unsqueeze(1) * (1 - cos2_half).unsqueeze(-1)) / 2
        log_size, angle = ((part * copies.unsqueeze(1)).sum(-1) for part in (log_size, torch.atan2(imag, real)))
    elif torch.compiler.is_compiling():
        # Slower one by one, but the compiler makes one loop of it, and none of complex numbers.
        log_size, angle = (real.square() + imag.square()).log().sum(-1) / 2, torch.atan2(imag, real).sum(-1)
    else:
        product = torch.complex(real, imag).prod(-1)
        return product.real, product.imag
    return log_size.exp() * angle.cos(), log_size.exp() * angle.sin()


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    # As a product and a sum it is one loop with what makes a and b, once it is compiled.
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2) if torch.compiler.is_compiling() else torch.bmm(a, b)


def _times(a: Complex, b: Complex) -> Complex:
    return torch.addcmul(a[0] * b[0], a[1], b[1], value=-1), torch.addcmul(a[0] * b[1], a[1], b[0])
