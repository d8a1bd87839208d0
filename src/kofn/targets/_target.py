"""What a target is: a statement about the counts of each bag, and its negative log-likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from kofn import _require
from kofn.classes import ClassCountDistribution
from kofn.counts import CountDistribution, SumDistribution

Dist = TypeVar("Dist", CountDistribution, ClassCountDistribution, SumDistribution)


class Statement(Generic[Dist]):
    """What `count_loss` takes: a statement, and the distribution that it is a statement about."""

    #: Makes of the logits, the mask and so on, as `count_loss` has them, the distribution that `loss` is given.
    distribution: ClassVar[Callable[..., Any]]

    def loss(self, dist: Dist) -> Tensor:
        """Negative log-likelihood of the statement, -log P(statement): one number for each bag.

        Args:
            dist: the distribution of the count of each bag.

        Returns:
            Of `dist.shape`, in the dtype of its logits; +inf, with gradient zero, where the statement is impossible.
        """
        raise NotImplementedError

    def require_possible(self, dist: Dist, counted: Tensor | None) -> None:
        """Require labels that a bag of its size can have; `count_loss` calls it where a loss is infinite.

        A label that only infinite logits make impossible is no error: its loss is +inf.

        Args:
            dist: the distribution of the count of each bag.
            counted: bool, of `dist.shape`: bags whose labels are looked at; None for all.

        Raises:
            ValueError: a label that is impossible for any logits.
        """

    def weighted_loss(self, dist: Dist, weight: float) -> Tensor:
        """weight times the sum of the losses of all bags, a scalar; for a target that has a shorter way to it."""
        return self.loss(dist).sum() * weight


def refuse(wrong: Tensor, counted: Tensor | None, message: Callable[[int], str]) -> None:
    """Raise a ValueError about the first bag that is wrong and counts, by its number in the flattened batch."""
    wrong = wrong if counted is None else wrong & counted
    if not _require.holds(~wrong):
        raise ValueError(message(int(wrong.flatten().nonzero()[0])))


class Target(Statement[CountDistribution]):
    """A statement about the number of positives in each bag."""

    distribution = CountDistribution
