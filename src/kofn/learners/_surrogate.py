"""The cross-entropy that stands for a loss, at given logits: what boosting and EM make small in its place.

For a statement about the count S of a bag, d(-log P) / dx_i = p_i - q_i, where q_i = P(y_i = 1 | statement) is the
posterior. That is the slope of the cross-entropy -q log p - (1 - q) log(1 - p) of a row whose target is q, held fixed:
the bound of expectation-maximisation, which touches the loss at these logits and lies above it elsewhere. Its curvature
is p (1 - p), and a step that makes the bound smaller makes the loss smaller.

For any other loss with slope g_i, the row's target is q = p - g / w with the row's weight w, so that w (p - q) = g.
Where q would leave [0, 1], it stays at the end and the weight grows until the slope is right again.

For several classes this holds for each class c, with the softmax p_ic and the posterior q_ic; a row has one weight.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST = 1e-3  # of p (1 - p), so that a step of a confident row stays finite


def surrogate(logits: Tensor, slope: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Targets in [0, 1] and weights of rows, whose cross-entropy has the slope that a loss has.

    Args:
        logits: (n,) of rows, or (n, C) of their classes.
        slope: of the loss by the logits, of their shape.
        weight: (n,) of rows, at least 0: how many of them there are.

    Returns:
        Targets of the shape of the logits, for several classes with the sum 1 over them; weights (n,).

    Examples:
        >>> import torch
        >>> target, weight = surrogate(torch.zeros(3), torch.tensor([-0.25, 0.5, 2.0]), torch.ones(3))
        >>> target.tolist(), weight.tolist()
        ([0.75, 0.0, 0.0], [1.0, 1.0, 4.0])
        >>> target, weight = surrogate(torch.zeros(1, 4), torch.tensor([[-0.25, 0.25, 0.25, -0.25]]), torch.ones(1))
        >>> target.tolist(), weight.tolist()
        ([[0.5, 0.0, 0.0, 0.5]], [1.0])
    """
    p, rest = _probabilities(logits)
    weights = _weights(p, rest, slope, weight)
    safe = _beside(weights.clamp(min=torch.finfo(weights.dtype).tiny), logits)
    return (p - slope / safe).clamp(0.0, 1.0), weights


def curvature(logits: Tensor, slope: Tensor, weight: Tensor) -> Tensor:
    """The second derivatives of that cross-entropy, w p (1 - p), (n,); of C classes C / (C - 1) of that, (n, C).

    The cross-entropy of a softmax has the second derivatives H = diag(p) - p p^T, and boosting takes a diagonal one. A
    slope sums to 0 over the classes, and of such a slope H^-1 gives a Newton step. At equal probabilities H is 1 / C on
    these, which is C / (C - 1) times p (1 - p); of two classes it is 2 p (1 - p) at any probabilities, so that the
    difference of the two logits makes the very step that one logit makes.
    """
    p, rest = _probabilities(logits)
    factor = logits.shape[1] / (logits.shape[1] - 1) if logits.dim() == 2 else 1.0
    return factor * _beside(_weights(p, rest, slope, weight), logits) * (p * rest).clamp(min=SMALLEST)


def _probabilities(logits: Tensor) -> tuple[Tensor, Tensor]:
    """p and 1 - p, of the shape of the logits, each to full precision."""
    if logits.dim() == 1:
        return torch.sigmoid(logits), torch.sigmoid(-logits)
    log_p = logits.log_softmax(1)
    return log_p.exp(), -torch.expm1(log_p)


def _weights(p: Tensor, rest: Tensor, slope: Tensor, weight: Tensor) -> Tensor:
    # To the end that the slope points to: 1 for a negative one, whose distance is 1 - p, else 0, at distance p.
    room = torch.where(slope < 0, rest, p).clamp(min=SMALLEST)
    needed = slope.abs() / room
    return torch.maximum(weight, needed if needed.dim() == 1 else needed.amax(1))


def _beside(per_row: Tensor, logits: Tensor) -> Tensor:
    """A number for each row beside its logits."""
    return per_row if logits.dim() == 1 else per_row.unsqueeze(1)
