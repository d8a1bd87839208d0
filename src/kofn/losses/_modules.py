"""The losses as `torch.nn.Module`, for code that wants one: options first, tensors when called."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from kofn.counts import Counts
from kofn.losses._count import Reduction, count_loss
from kofn.losses._llp import llp_loss
from kofn.losses._mil import mil_loss
from kofn.losses._pu import pu_loss
from kofn.targets import Statement


class CountLoss(nn.Module):
    """Module face of `kofn.count_loss`: -log P(statement about the count of each bag).

    Args:
        reduction: "mean", "sum" or "none".

    Examples:
        >>> import torch, kofn
        >>> from kofn.losses import CountLoss
        >>> loss = CountLoss()
        >>> loss(torch.zeros(2, 4), kofn.AtLeast(1)).neg().exp()
        tensor(0.9375)
    """

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(self, logits: Tensor, target: Statement[Any], **options: Any) -> Tensor:
        """The loss; options as for `kofn.count_loss`: mask, offsets, copies, known, bag_effect, weight."""
        return count_loss(logits, target, **options, reduction=self.reduction)


class LLPLoss(nn.Module):
    """Module face of `kofn.losses.llp_loss`: the mean over bags of -log P(S = count).

    Args:
        reduction: "mean", "sum" or "none".

    Examples:
        >>> import torch
        >>> from kofn.losses import LLPLoss
        >>> loss = LLPLoss()
        >>> loss(torch.zeros(2, 4), torch.tensor([2, 2])).neg().exp()  # 6 of 16 ways to have two of four
        tensor(0.3750)
    """

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(
        self, logits: Tensor, counts: Counts, *, mask: Tensor | None = None, offsets: Tensor | None = None
    ) -> Tensor:
        return llp_loss(logits, counts, mask=mask, offsets=offsets, reduction=self.reduction)


class MILLoss(nn.Module):
    """Module face of `kofn.losses.mil_loss`: -log P(S >= 1) of positive bags, -log P(S = 0) of the others.

    Args:
        positive_weight: of positive bags.
        reduction: "mean", "sum" or "none".

    Examples:
        >>> import torch
        >>> from kofn.losses import MILLoss
        >>> loss = MILLoss(reduction="none")
        >>> loss(torch.zeros(2, 2), torch.tensor([0, 1])).neg().exp()  # none of two; at least one of two
        tensor([0.2500, 0.7500])
    """

    def __init__(self, *, positive_weight: float = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.positive_weight = positive_weight
        self.reduction: Reduction = reduction

    def forward(
        self, logits: Tensor, bag_labels: Tensor | int, *, mask: Tensor | None = None, offsets: Tensor | None = None
    ) -> Tensor:
        w, reduction = self.positive_weight, self.reduction
        return mil_loss(logits, bag_labels, positive_weight=w, mask=mask, offsets=offsets, reduction=reduction)


class PULoss(nn.Module):
    """Module face of `kofn.losses.pu_loss`: KL(Binomial(n, mixture) || P(S)) of n unlabelled.

    Args:
        mixture: fraction of positives among the unlabelled.
        match: "distribution", or "expectation" for the expected count only.
        positive_weight: of the cross-entropy of the labelled positives; None for the mixture times n.

    Examples:
        >>> import torch
        >>> from kofn.losses import PULoss, pu_loss
        >>> loss = PULoss(0.5, match="expectation")
        >>> positive, unlabelled = torch.ones(3), torch.zeros(4)
        >>> bool(loss(positive, unlabelled) == pu_loss(positive, unlabelled, 0.5, match="expectation"))
        True
    """

    def __init__(
        self,
        mixture: float,
        *,
        match: Literal["distribution", "expectation"] = "distribution",
        positive_weight: float | None = None,
    ) -> None:
        super().__init__()
        self.mixture, self.positive_weight = mixture, positive_weight
        self.match: Literal["distribution", "expectation"] = match

    def forward(self, positive_logits: Tensor, unlabeled_logits: Tensor) -> Tensor:
        w = self.positive_weight
        return pu_loss(positive_logits, unlabeled_logits, self.mixture, match=self.match, positive_weight=w)
