"""A tilted distribution as a product of polynomials, for small bags: values and posteriors of any counts.

prod_i (q_i + p_i X) is multiplied out pairwise, level by level; the coefficient of X^s is P(S = s). Every term is
positive, so every coefficient is right to a few units in its last place as long as nothing underflows. The last
product is never formed: of it only the wanted counts are. The way down is the same tree backwards: the weight of a
child's coefficient is the correlation of its parent's weights with its sibling.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Up to this size the quadratic tree is faster than the linear window: by a quarter for one count, twofold for all.
LARGEST = 64


def never_underflows(z: Tensor, size: Tensor) -> Tensor:
    """Bags whose every count can be computed without a tilt: (b, 1) bool.

    P(S = s) >= prod_i min(p_i, q_i) for each s, and -log min(p, q) <= |z| + log 2.
    """
    return z.abs().nan_to_num(nan=0.0, posinf=0.0).sum(-1, keepdim=True) + size * 0.6931471805599453 < 600.0


class Tree:
    """The distribution of S under a tilt, at the given counts.

    Args:
        z: (r, n) float64 logits, -inf where there is no instance.
        tilt: (r, 1) float64.
        counts: (r, k) integers; impossible ones have probability 0.
    """

    probs: Tensor  #: (r, k) tilted probabilities of the counts

    def __init__(self, z: Tensor, tilt: Tensor, counts: Tensor) -> None:
        x = z + tilt
        self._n = z.shape[-1]
        pad = (1 << max(1, (self._n - 1).bit_length())) - self._n  # at least two leaves, so that there is a root
        leaves = torch.stack([torch.sigmoid(-x), torch.sigmoid(x)], -1)
        if pad:
            nobody = torch.tensor([1.0, 0.0], dtype=x.dtype, device=x.device)
            leaves = torch.cat([leaves, nobody.expand(len(z), pad, 2)], 1)
        self._levels = [leaves]
        while self._levels[-1].shape[1] > 2:
            below = self._levels[-1]
            self._levels.append(_multiply(below[:, 0::2], below[:, 1::2]))
        # (r, 2, k, d + 1): what a coefficient of the left half meets in the right one at each count, and vice versa.
        self._partners = _reversed_at(counts, self._levels[-1]).flip(1)
        # Products and sums here and below, not matmul: on small batches of small matrices it is five times slower.
        self.probs = (self._partners[:, 0] * self._levels[-1][:, :1]).sum(-1)

    def pull(self, weights: Tensor) -> Tensor:
        """sum_s weights_s P~(y_i = 1, S = s), for weights (r, k) on the counts: (r, n)"""
        adjoint = (self._partners * weights[:, None, :, None]).sum(2)
        for level in reversed(self._levels[:-1]):
            siblings = level.unflatten(1, (-1, 2)).flip(2)
            shifted = adjoint.unfold(-1, level.shape[-1], 1).unsqueeze(2)
            adjoint = torch.matmul(shifted, siblings.unsqueeze(-1)).squeeze(-1).flatten(1, 2)
        return self._levels[0][:, : self._n, 1] * adjoint[:, : self._n, 1]


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    """Coefficients of the products of polynomials of equal degree d: (..., d + 1) twice to (..., 2 d + 1)."""
    width = a.shape[-1]
    out = torch.nn.functional.pad(a[..., :1] * b, (0, width - 1))
    for j in range(1, width):
        out[..., j : j + width].addcmul_(a[..., j : j + 1], b)
    return out


def _reversed_at(counts: Tensor, coefficients: Tensor) -> Tensor:
    """b_{s - j} for each count s and j = 0..d, zero outside 0..d: (r, k), (r, 2, d + 1) to (r, 2, k, d + 1)."""
    r, halves, width = coefficients.shape
    index = (counts.unsqueeze(-1) - torch.arange(width, device=counts.device)).unsqueeze(1)
    inside = (index >= 0) & (index < width)
    wanted = (index * inside).flatten(2).expand(r, halves, counts.shape[-1] * width)
    return coefficients.gather(-1, wanted).view(r, halves, counts.shape[-1], width) * inside
