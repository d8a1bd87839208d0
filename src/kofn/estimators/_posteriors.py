"""What is known of instances once the labels of their bags are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.estimators._ensemble import mixed_posteriors
from kofn.learners._objectives import losses_of_entries


def posteriors(objective: Any, logits: Tensor, labels: Tensor, bags: Bags) -> Tensor:
    """P(y_i = 1 | label of the bag) for each entry of `bags.index`, or P(y_i = c | ...) for each class.

    For every statement, d log P(statement) / dx_i = P(y_i = 1 | statement) - p_i: the gradient of its loss has it.
    """
    effect = getattr(objective, "bag_effect", 0.0)
    if effect:
        target = objective.target(labels)
        dist = CountDistribution(logits, offsets=bags.offsets, copies=bags.copies, bag_effect=effect)
        return dist.posteriors_given(lambda given: -target.loss(given))
    x = logits.detach().requires_grad_()
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(losses_of_entries(objective, x, labels, bags.offsets, bags.copies).sum(), x)
    x = x.detach()
    if bags.copies is not None:
        slope = slope / bags.copies.reshape(-1, *(1 for _ in slope.shape[1:]))
    prior = x.softmax(1) if x.dim() == 2 else x.sigmoid()
    return (prior - slope).clamp(0.0, 1.0)  # rounding may leave the interval by 1e-16


def member_posteriors(objective: Any, logits: Tensor, labels: Tensor, bags: Bags) -> Tensor:
    """The same from the logits by each member of a bootstrap, (B, m) or (B, m, C), of which one is true."""
    losses = torch.stack([losses_of_entries(objective, member, labels, bags.offsets, bags.copies) for member in logits])
    each = torch.stack([posteriors(objective, member, labels, bags) for member in logits])
    return mixed_posteriors(each, losses, bags)
