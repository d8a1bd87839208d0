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
    ones: Tensor  # (b, 1) how many are sure
    size: Tensor  # (b, 1) how many are present
    broken: Tensor  # (b, 1) bool: bags with a NaN

    @classmethod
    def of(cls, logits: Tensor) -> Undecided:
        """Take the certain instances out of logits (b, n) of any floating dtype."""
        z = logits.double()
        sure = z == torch.inf
        z = z.masked_fill(sure, -torch.inf)
        present = z != -torch.inf
        ones, size = sure.sum(-1, keepdim=True), present.sum(-1, keepdim=True)
        return cls(z, sure, present, ones, size, z.isnan().any(-1, keepdim=True))


def untilt(z: Tensor, tilt: Tensor, counts: Tensor) -> Tensor:
    """log P(S = s) - log P~(S = s) = sum_i log((1 + e^{z_i + t}) / (1 + e^{z_i})) - t s.

    Of tilts (b, 1) and counts (b, k): (b, k).
    """
    # Of the likeliest labels without the tilt, ones where z > 0 and k in number, the probability changes under it by
    # e^{t k} prod_i (1 + e^{z_i}) / (1 + e^{x_i}), x = z + t: the t are counted, not summed, and set against the s in
    # t s. What is left is, for each instance, how likely its label is without and with the tilt; a label that the tilt
    # makes unlikely has a small x, known exactly. With logits of 1e4 and log p = 0 that is the difference between
    # sixteen digits and eleven.
    x = z + tilt
    ones = z > 0
    change = logsigmoid(z.abs()) - logsigmoid(torch.where(ones, x, -x))
    return change.sum(-1, keepdim=True) - tilt * (counts - ones.sum(-1, keepdim=True))
