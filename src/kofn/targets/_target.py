"""What a target is: a statement about the count of each bag, and how surprised a distribution is by it."""

from __future__ import annotations

from torch import Tensor

from kofn.counts import CountDistribution


class Target:
    """A statement about the number of positives in each bag."""

    def loss(self, dist: CountDistribution) -> Tensor:
        """How surprising the statement is: -log P(statement), one number for each bag.

        Args:
            dist: the distribution of the count of each bag.

        Returns:
            Of `dist.shape`, in the dtype of its logits; +inf, with gradient zero, where the statement is impossible.
        """
        raise NotImplementedError

    def total(self, dist: CountDistribution, weight: float) -> Tensor:
        """weight times the sum of the losses of all bags, a scalar; for a target that has a shorter way to it."""
        return self.loss(dist).sum() * weight
