"""The losses as `torch.nn.Module`, for code that wants one: options first, tensors when called."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from kofn.losses.count import Reduction
from kofn.losses.llp import llp_loss
from kofn.losses.mil import mil_loss
from kofn.losses.pu import pu_loss


class LLPLoss(nn.Module):
    """Module face of `kofn.losses.llp_loss`."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(
        self, logits: Tensor, counts: Tensor | int, *, mask: Tensor | None = None, offsets: Tensor | None = None
    ) -> Tensor:
        return llp_loss(logits, counts, mask=mask, offsets=offsets, reduction=self.reduction)


class MILLoss(nn.Module):
    """Module face of `kofn.losses.mil_loss`."""

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
    """Module face of `kofn.losses.pu_loss`."""

    def __init__(
        self,
        mixture: float,
        *,
        match: Literal["distribution", "expectation"] = "distribution",
        positive_weight: float = 1.0,
    ) -> None:
        super().__init__()
        self.mixture, self.positive_weight = mixture, positive_weight
        self.match: Literal["distribution", "expectation"] = match

    def forward(self, positive_logits: Tensor, unlabeled_logits: Tensor) -> Tensor:
        w = self.positive_weight
        return pu_loss(positive_logits, unlabeled_logits, self.mixture, match=self.match, positive_weight=w)
