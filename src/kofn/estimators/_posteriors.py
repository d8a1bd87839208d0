"""What is known of instances once the labels of their bags are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.counts._engines import Engine
from kofn.counts._shifted_engine import ShiftedEngine
from kofn.estimators._ensemble import mixed_posteriors


class _FixedShift(CountDistribution):
    """A distribution whose gradient by the logits is that of the part without a shift."""

    @property
    def _engine(self) -> Engine:
        engine = super()._engine
        return replace(engine, fixed=True) if isinstance(engine, ShiftedEngine) else engine


def posteriors(objective: Any, logits: Tensor, labels: Tensor, bags: Bags) -> Tensor:
    """P(y_i = 1 | label of the bag) for each entry of `bags.index`, or P(y_i = c | ...) for each class.

    For every statement, d log P(statement) / dx_i = P(y_i = 1 | statement) - p_i: the gradient of its loss has it. With
    a bag effect this holds of the part without a shift; the factor that the shift adds to the probability of a count,
    whichever labels make it up, is held fixed.
    """
    x, effect = logits.detach().requires_grad_(), getattr(objective, "bag_effect", 0.0)
    with torch.enable_grad():
        if effect:
            losses = objective.target(labels).loss(_FixedShift(x, offsets=bags.offsets, bag_effect=effect))
        else:
            losses = objective(x, labels, bags.offsets)
        (slope,) = torch.autograd.grad(losses.sum(), x)
    x = x.detach()
    prior = x.softmax(1) if x.dim() == 2 else x.sigmoid()
    return (prior - slope).clamp(0.0, 1.0)  # rounding may leave the interval by 1e-16


def member_posteriors(objective: Any, logits: Tensor, labels: Tensor, bags: Bags) -> Tensor:
    """The same from the logits by each member of a bootstrap, (B, m) or (B, m, C), of which one is true."""
    losses = torch.stack([objective(member, labels, bags.offsets) for member in logits])
    each = torch.stack([posteriors(objective, member, labels, bags) for member in logits])
    return mixed_posteriors(each, losses, bags)
