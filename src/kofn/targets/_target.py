"""What a target is: a statement about the counts of each bag, and its negative log-likelihood."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from torch import Tensor

from kofn.classes import ClassCountDistribution
from kofn.counts import CountDistribution

Dist = TypeVar("Dist", CountDistribution, ClassCountDistribution)


class Statement(Generic[Dist]):
    """What `count_loss` takes: a statement, and the distribution that it is a statement about."""

    #: Made of the logits by `count_loss`, and given to `loss`.
    distribution: ClassVar[type[CountDistribution] | type[ClassCountDistribution]]

    def loss(self, dist: Dist) -> Tensor:
        """Negative log-likelihood of the statement, -log P(statement): one number for each bag.

        Args:
            dist: the distribution of the count of each bag.

        Returns:
            Of `dist.shape`, in the dtype of its logits; +inf, with gradient zero, where the statement is impossible.
        """
        raise NotImplementedError

    def total(self, dist: Dist, weight: float) -> Tensor:
        """weight times the sum of the losses of all bags, a scalar; for a target that has a shorter way to it."""
        return self.loss(dist).sum() * weight


class Target(Statement[CountDistribution]):
    """A statement about the number of positives in each bag."""

    distribution = CountDistribution
