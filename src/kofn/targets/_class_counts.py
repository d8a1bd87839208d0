"""Statements about the counts of several classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kofn import _require
from kofn.classes import ClassCountDistribution, Method
from kofn.targets._target import Statement, refuse


class ClassTarget(Statement[ClassCountDistribution]):
    """A statement about the number of instances of each class, for logits (..., n, C), or (m, C) with offsets."""

    distribution = ClassCountDistribution


@dataclass(frozen=True, eq=False)
class ClassCounts(ClassTarget):
    """So many are of each class, jointly: -log P(K_1 = k_1, ..., K_C = k_C), as `kofn.log_class_count_prob` has it.

    Args:
        counts: (..., C) or (b, C) integers that sum to the bag's size, or (C,) for all bags.
        method: "exact", "limit", or "auto" for the exact one in small bags and the local limit in large ones.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.zeros(4, 3)  # four instances, three classes, all equally likely
        >>> kofn.count_loss(logits, kofn.ClassCounts(torch.tensor([2, 1, 1]))).neg().exp()  # 12 of the 81 outcomes
        tensor(0.1481)
    """

    counts: Tensor
    method: Method = field(default="auto", kw_only=True)

    def loss(self, dist: ClassCountDistribution) -> Tensor:
        return -dist.log_prob(self.counts, method=self.method)

    def require_possible(self, dist: ClassCountDistribution, counted: Tensor | None) -> None:
        counts, sizes = dist.whole_numbers(self.counts), dist.sizes
        refuse(
            (counts < 0).any(-1) | (counts.sum(-1) != sizes),
            counted,
            lambda bag: (
                f"`counts` must be at least 0 and sum to the bag's size; bag {bag} has {int(sizes.flatten()[bag])} "
                f"instances and counts {counts.reshape(-1, dist.classes)[bag].tolist()}. "
                f"If some counts are not known, use kofn.MarginalClassCounts with -1 for these."
            ),
        )


@dataclass(frozen=True, eq=False)
class MarginalClassCounts(ClassTarget):
    """So many are of each class, each class by itself: -sum_c log P(K_c = k_c), in linear time.

    The sum over the classes (not their mean) of the exact losses of one class against the rest: a composite likelihood.
    It knows nothing of how the counts depend on one another, and costs C binary bags at any size. Classes whose count
    is not known are left out of the sum.

    Args:
        counts: (..., C) or (b, C), or (C,) for all bags: of an integer dtype, with -1 for a count that is
            not known, or of a floating point dtype with integer values, and NaN for it.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.zeros(2, 2)  # P(K_1 = 1) = P(K_2 = 1) = 1/2
        >>> kofn.count_loss(logits, kofn.MarginalClassCounts(torch.tensor([1, 1]))).neg().exp()
        tensor(0.2500)
        >>> kofn.count_loss(logits, kofn.MarginalClassCounts(torch.tensor([1.0, torch.nan]))).neg().exp()
        tensor(0.5000)
    """

    counts: Tensor

    def loss(self, dist: ClassCountDistribution) -> Tensor:
        counts = dist.whole_numbers(_unknown_is_negative(self.counts))
        return -dist.log_marginals(counts).masked_fill(counts < 0, 0.0).sum(-1)

    def require_possible(self, dist: ClassCountDistribution, counted: Tensor | None) -> None:
        counts, sizes = dist.whole_numbers(_unknown_is_negative(self.counts)), dist.sizes
        refuse(
            (counts > sizes.unsqueeze(-1)).any(-1),
            counted,
            lambda bag: (
                f"`counts` must not exceed the bag's size; bag {bag} has {int(sizes.flatten()[bag])} instances and "
                f"counts {counts.reshape(-1, dist.classes)[bag].tolist()}. Check the order of the bags, or that these "
                f"are counts, not labels."
            ),
        )


def _unknown_is_negative(counts: Tensor) -> Tensor:
    """Require integers, with -1 or NaN for unknown: int64, -1 for unknown."""
    counts = _require.numbers("counts", counts)
    if counts.is_floating_point():
        known = ~counts.isnan()
        if not _require.holds(~known | (counts == counts.round()) & counts.isfinite()):
            raise ValueError("`counts` must be integers, or NaN where unknown; round proportions to counts first.")
        counts = torch.where(known, counts, -1.0).long()
    if not _require.holds(counts >= -1):
        raise ValueError(f"`counts` must be at least 0, or -1 where unknown; got {int(counts.min())}.")
    return counts
