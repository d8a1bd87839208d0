"""What is left of a bag to decide, once the certain instances are taken out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


@dataclass(frozen=True)
class Undecided:
    """Bags without their certain instances: a logit of +inf is a one, -inf (or a masked instance) a zero."""

    z: Tensor  # (b, n) float64, -inf where nothing is left to decide
    sure: Tensor  # (b, n) bool: logits of +inf
    present: Tensor  # (b, n) bool: still to decide
    ones: Tensor  # (b,) how many are sure
    size: Tensor  # (b,) how many are present
    broken: Tensor  # (b,) bool: bags with a NaN

    @classmethod
    def of(cls, logits: Tensor) -> Undecided:
        """Take the certain instances out of logits (b, n) of any floating dtype."""
        z = logits.double()
        sure = z == torch.inf
        z = z.masked_fill(sure, -torch.inf)
        present = z != -torch.inf
        return cls(z, sure, present, sure.sum(-1), present.sum(-1), z.isnan().any(-1))


def shift(z: Tensor, tilt: Tensor) -> Tensor:
    """sum_i log((1 + e^{z_i + t}) / (1 + e^{z_i})), so that log P(S = s) = log P~(S = s) - t s + shift: (b,)"""
    # By logsigmoid, because torch's softplus drops its log1p above 20 and is off by 2e-9 there.
    return (logsigmoid(-z) - logsigmoid(-z - tilt.unsqueeze(-1))).sum(-1)
