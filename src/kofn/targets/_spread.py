"""Counts that are not integers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kofn.counts import CountDistribution
from kofn.targets._target import Target


@dataclass(frozen=True, eq=False)
class Spread(Target):
    """The count is a real number, such as 68.5: its mass is shared by the two nearest integers.

        KL(q || distribution of S), q(low) = 1 - share, q(low + 1) = share, low = floor(count), share = count - low

    The mean of q is the count. In linear time. An integer count is `Exactly` it.

    Args:
        counts: (...) or (b,) real numbers from 0 to the bag's size, or one for all bags.

    Examples:
        >>> import torch, kofn
        >>> x = torch.tensor([0.3, -1.0, 2.0])
        >>> torch.allclose(kofn.count_loss(x, kofn.targets.Spread(2.0)), kofn.count_loss(x, kofn.Exactly(2)))
        True
    """

    counts: Tensor | float

    def loss(self, dist: CountDistribution) -> Tensor:
        counts = dist.instance_layout.numbers("counts", self.counts)
        dist.instance_layout.require_counts(counts)
        low, exact = counts.floor(), dist.double()
        share = counts - low
        total: Tensor = -torch.special.entr(share) - torch.special.entr(1 - share)
        for count, mass in ((low, 1 - share), (low + 1, share)):
            total = total - mass * exact.log_prob(count.long()).masked_fill(mass == 0, 0.0)
        return total.to(dist.logits.dtype)
