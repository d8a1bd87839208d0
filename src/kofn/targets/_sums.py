"""Statements about a total: the sum of integer values that the instances of a bag have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kofn.counts import Counts, SumDistribution
from kofn.targets._target import Statement, refuse


@dataclass(frozen=True, eq=False)
class Sum(Statement[SumDistribution]):
    """The values of the instances of each bag have this sum: -log P(T = total), T = v_1(y_1) + ... + v_n(y_n).

    Of categories, such as digits or grades, every one has a value; of two classes every positive has a weight. What the
    logits are follows from the shapes, see `kofn.log_sum_prob`.

    Args:
        total: (...) or (b,) integers, or one int for all bags.
        values: integers: (C,) of categories, or one for each category of each instance; of two classes the weight of
            each instance. They may be negative.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.zeros(4, 2, 10)  # four bags of two images, ten digits
        >>> total = torch.tensor([0, 9, 18, 3])  # of the digits of each bag
        >>> kofn.count_loss(logits, kofn.Sum(total, torch.arange(10)), reduction="none").neg().exp()
        tensor([0.0100, 0.1000, 0.0100, 0.0400])
    """

    total: Counts
    values: Tensor | Sequence[Any] | int

    def distribution(
        self, logits: Tensor, *, bag_effect: Tensor | float | None = None, **bags: Tensor | None
    ) -> SumDistribution:
        """The distribution of T, of categories or of two classes: arguments as in `count_loss`."""
        if bag_effect is not None:
            raise ValueError("`bag_effect` must be None for a sum of values: its distribution has none. Leave it out.")
        return SumDistribution.of(logits, self.values, self.total, **bags)

    def loss(self, dist: SumDistribution) -> Tensor:
        return -dist.log_prob(self.total)

    def require_possible(self, dist: SumDistribution, counted: Tensor | None) -> None:
        impossible = dist.with_logits(torch.zeros_like(dist.logits)).log_prob(self.total) == -torch.inf
        total = dist.instance_layout.whole_numbers("total", self.total)
        refuse(
            impossible,
            counted,
            lambda bag: (
                f"`total` must be the sum of some values of the bag's instances; bag {bag} has "
                f"{int(dist.sizes.flatten()[bag])} instances and total {int(total.flatten()[bag])}, which no labels "
                f"have. Check the order of the bags, the values, and that no instance is missing."
            ),
        )
