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


def untilt(z: Tensor, tilt: Tensor, counts: Tensor) -> Tensor:
    """log P(S = s) - log P~(S = s) = sum_i log((1 + e^{z_i + t}) / (1 + e^{z_i})) - t s: counts (b, k) to (b, k)."""
    # log(1 + e^x) = max(x, 0) + log1p(e^-|x|), and with x = z + t
    #     max(x, 0) - max(z, 0) = t [z > 0] + x ([x > 0] - [z > 0]).
    # The t are counted, not summed, and set against the s in t s; an x that changes its sign under the tilt is a small
    # number, known exactly. With logits of 1e4 and log p = 0 that is the difference between sixteen digits and eleven.
    t = tilt.unsqueeze(-1)
    x = z + t
    moved = (x > 0).double() - (z > 0).double()
    change = torch.where(moved == 0, 0.0, x * moved) + logsigmoid(z.abs()) - logsigmoid(x.abs())
    return t * ((z > 0).sum(-1, keepdim=True) - counts) + change.sum(-1, keepdim=True)
