"""The cross-entropy that stands for a loss, at given logits: what boosting and EM make small in its place.

For a statement about the count S of a bag, d(-log P) / dx_i = p_i - q_i, where q_i = P(y_i = 1 | statement) is the
posterior. That is the slope of the cross-entropy -q log p - (1 - q) log(1 - p) of a row whose target is q, held fixed:
the bound of expectation-maximisation, which touches the loss at these logits and lies above it elsewhere. Its curvature
is p (1 - p), and a step that makes the bound smaller makes the loss smaller.

For any other loss with slope g_i, the row's target is q = p - g / w with the row's weight w, so that w (p - q) = g.
Where q would leave [0, 1], it stays at the end and the weight grows until the slope is right again.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST = 1e-3  # of p (1 - p), so that a step of a confident row stays finite


def surrogate(logits: Tensor, slope: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Targets in [0, 1] and weights of rows, (n,) each, whose cross-entropy has the slope that a loss has.

    Args:
        logits: (n,) of rows.
        slope: (n,) of the loss by the logits.
        weight: (n,) of rows, at least 0: how many of them there are.

    Examples:
        >>> import torch
        >>> target, weight = surrogate(torch.zeros(3), torch.tensor([-0.25, 0.5, 2.0]), torch.ones(3))
        >>> target.tolist(), weight.tolist()
        ([0.75, 0.0, 0.0], [1.0, 1.0, 4.0])
    """
    p = torch.sigmoid(logits)
    weights = _weights(logits, p, slope, weight)
    target = (p - slope / weights.clamp(min=torch.finfo(weights.dtype).tiny)).clamp(0.0, 1.0)
    return target, weights


def curvature(logits: Tensor, slope: Tensor, weight: Tensor) -> Tensor:
    """The second derivatives of that cross-entropy, w p (1 - p), (n,)."""
    p = torch.sigmoid(logits)
    return _weights(logits, p, slope, weight) * (p * torch.sigmoid(-logits)).clamp(min=SMALLEST)


def _weights(logits: Tensor, p: Tensor, slope: Tensor, weight: Tensor) -> Tensor:
    # To the end that the slope points to: 1 for a negative one, whose distance is 1 - p, else 0, at distance p.
    room = torch.where(slope < 0, torch.sigmoid(-logits), p).clamp(min=SMALLEST)
    return torch.maximum(weight, slope.abs() / room)
