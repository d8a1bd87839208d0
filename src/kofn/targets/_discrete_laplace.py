"""Noise on the integers, for released counts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class DiscreteLaplace:
    """Log-pmf of the discrete Laplace distribution, or two-sided geometric: the noise of the geometric mechanism.

        P(noise = d) = tanh(1 / (2 scale)) exp(-|d| / scale),  d an integer.

    A count released with privacy epsilon has scale = 1 / epsilon.

    Args:
        scale: above 0, a number or one for each bag.

    Examples:
        >>> import torch, kofn
        >>> kofn.targets.DiscreteLaplace(2.0)(torch.arange(-90, 91)).exp().sum().item()
        1.0
    """

    scale: Tensor | float

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Empty, or one entry for each bag."""
        return tuple(torch.as_tensor(self.scale).shape)

    def __call__(self, difference: Tensor) -> Tensor:
        scale = torch.as_tensor(self.scale, dtype=torch.float64, device=difference.device)
        value = torch.tanh(0.5 / scale).log() - difference.abs() / scale
        return value.masked_fill(difference != difference.round(), -torch.inf)
