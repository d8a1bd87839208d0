"""No positive in a bag, or at least one: closed forms, right at every logit."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn.counts._layout import Layout

_TINY = math.exp(-40)


def log_none_and_any(logits: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """log P(S = 0) and log P(S >= 1) of each bag, from float64 logits with -inf for absent instances.

    With T = -log P(S = 0) = sum_i softplus(x_i), log P(S >= 1) = log(1 - e^-T): by log1p where e^-T is small, by expm1
    where T is. When T is below e^-40, every softplus(x_i) is e^{x_i} to rounding and log T = logsumexp(x), which does
    not underflow. -inf, with gradient zero, where that is impossible.
    """
    total = -layout.sum(logsigmoid(-logits))
    tiny, large = total <= _TINY, total > math.log(2)
    # Each formula sees only a T at which it is finite and has a finite derivative: no 0 inf comes back from the others.
    by_expm1 = torch.log(-torch.expm1(-total.masked_fill(tiny | large, 1.0)))
    by_log1p = torch.log1p(-torch.exp(-total.masked_fill(~large, 1.0)))
    log_any = torch.where(large, by_log1p, by_expm1)
    return -total, torch.where(tiny, layout.logsumexp(logits), log_any)
