"""What is known of instances once the labels of their bags are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kofn.bags import Bags


def posteriors(objective: Any, logits: Tensor, labels: Tensor, bags: Bags) -> Tensor:
    """P(y_i = 1 | label of the bag) for each entry of `bags.index`, or P(y_i = c | ...) for each class.

    For every statement, d log P(statement) / dx_i = P(y_i = 1 | statement) - p_i: the gradient of its loss has it.
    """
    x = logits.detach().requires_grad_()
    with torch.enable_grad():
        total = objective(x, labels, bags.offsets).sum()
    (slope,) = torch.autograd.grad(total, x)
    x = x.detach()
    prior = x.softmax(1) if x.dim() == 2 else x.sigmoid()
    return (prior - slope).clamp(0.0, 1.0)  # rounding may leave the interval by 1e-16
