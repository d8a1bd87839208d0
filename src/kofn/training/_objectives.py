"""What training minimises: from the logits of a batch and the labels of its bags to one loss for each bag.

An objective is any callable from (logits, labels, offsets) to a tensor of losses whose mean is the batch's loss. These
are the losses of `kofn.losses` in that shape, as small frozen dataclasses, so that they travel to other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from kofn import losses
from kofn.losses import count_loss
from kofn.targets import Between, Exactly, Target


class Objective(Protocol):
    """From logits and labels of bags to losses whose mean is to become small."""

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        """Losses (k,) of bags.

        Args:
            logits: (m,) of instances, or (b,) of bags from a network that pools.
            labels: (b, ...) of the bags.
            offsets: (b + 1,) of the instances' bags.
        """


def between(bounds: Tensor) -> Between:
    """The interval of counts that a row of bounds (b, 2) is.

    Examples:
        >>> import torch, kofn
        >>> from kofn.training import between
        >>> kofn.count_loss(torch.zeros(1, 4), between(torch.tensor([[1, 3]]))).neg().exp()  # 1 - 2 / 16
        tensor(0.8750)
    """
    return Between(bounds[:, 0], bounds[:, 1])


@dataclass(frozen=True)
class CountObjective:
    """The count loss of a target made from the labels: ``count_loss(logits, target(labels))``.

    Args:
        target: from labels (b, ...) to a statement; `kofn.Exactly` takes counts as they are.

    Examples:
        >>> import torch
        >>> from kofn.training import CountObjective
        >>> CountObjective()(torch.zeros(3), torch.tensor([1, 1]), torch.tensor([0, 2, 3])).neg().exp()
        tensor([0.5000, 0.5000])
    """

    target: Callable[[Tensor], Target] = Exactly

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        return count_loss(logits, self.target(labels), offsets=offsets, reduction="none")


@dataclass(frozen=True)
class ProportionObjective:
    """`kofn.losses.proportion_loss` of labels that are counts.

    Examples:
        >>> import torch
        >>> from kofn.training import ProportionObjective
        >>> ProportionObjective()(torch.zeros(4), torch.tensor([1, 2]), torch.tensor([0, 2, 4])).neg().exp()
        tensor([0.5000, 0.5000])
    """

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        return losses.proportion_loss(logits, labels / offsets.diff(), offsets=offsets, reduction="none")


@dataclass(frozen=True)
class ContaminationObjective:
    """`kofn.losses.mutual_contamination_loss` of labels that are counts, over pairs of the batch's bags.

    A batch without two different proportions says nothing: its loss is 0.

    Examples:
        >>> import torch
        >>> from kofn.training import ContaminationObjective
        >>> objective = ContaminationObjective()
        >>> objective(torch.zeros(4), torch.tensor([1, 1]), torch.tensor([0, 2, 4]))  # equal proportions
        tensor([0.])
        >>> objective(torch.zeros(4), torch.tensor([0, 2]), torch.tensor([0, 2, 4])).shape  # one pair
        torch.Size([1])
    """

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        proportions = labels / offsets.diff()
        pairs = losses.pair_bags(proportions)
        if not len(pairs):
            return logits.sum().reshape(1) * 0.0
        return losses.mutual_contamination_loss(logits, proportions, pairs=pairs, offsets=offsets, reduction="none")


@dataclass(frozen=True)
class BagObjective:
    """`kofn.losses.mil_loss`, or `kofn.losses.pooled_bag_loss` where a pool is named, of labels 0 and 1.

    Examples:
        >>> import torch
        >>> from kofn.training import BagObjective
        >>> batch = torch.zeros(4), torch.tensor([0, 1]), torch.tensor([0, 2, 4])
        >>> BagObjective()(*batch).neg().exp()
        tensor([0.2500, 0.7500])
        >>> BagObjective(pool="max")(*batch).neg().exp()
        tensor([0.5000, 0.5000])
    """

    pool: Literal["max", "mean", "logsumexp"] | None = None
    positive_weight: float = 1.0

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        weight = self.positive_weight
        if self.pool is None:
            return losses.mil_loss(logits, labels, positive_weight=weight, offsets=offsets, reduction="none")
        return losses.pooled_bag_loss(
            logits, labels, pool=self.pool, positive_weight=weight, offsets=offsets, reduction="none"
        )


@dataclass(frozen=True)
class PooledObjective:
    """Cross-entropy of bag logits (b,) from a network that pools, such as `kofn.models.AttentionMIL`.

    Examples:
        >>> import torch
        >>> from kofn.training import PooledObjective
        >>> PooledObjective()(torch.zeros(2), torch.tensor([0, 1]), torch.tensor([0, 7, 9])).neg().exp()
        tensor([0.5000, 0.5000])
    """

    positive_weight: float = 1.0

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        weight = logits.new_tensor(self.positive_weight)
        return binary_cross_entropy_with_logits(logits, labels.to(logits), pos_weight=weight, reduction="none")


@dataclass(frozen=True)
class PUObjective:
    """A loss of positive and unlabelled logits, for each bag of a batch; labels as in `kofn.batches.Batch`.

    Args:
        mixture: fraction of positives among the unlabelled.
        loss: such as `kofn.losses.pu_loss`, `nnpu_loss`.
        options: of the loss.

    Examples:
        >>> import torch
        >>> from kofn.losses import nnpu_loss
        >>> from kofn.training import PUObjective
        >>> logits, known, offsets = torch.tensor([2.0, 1.0, 0.0, -1.0]), torch.tensor([2]), torch.tensor([0, 4])
        >>> objective = PUObjective(0.5, nnpu_loss)
        >>> bool(objective(logits, known, offsets)[0] == nnpu_loss(logits[:2], logits[2:], 0.5))
        True
    """

    mixture: float
    loss: Callable[..., Tensor] = losses.pu_loss
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        bags = zip(offsets[:-1].tolist(), labels.tolist(), offsets[1:].tolist(), strict=True)
        return torch.stack(
            [
                self.loss(logits[start : start + known], logits[start + known : end], self.mixture, **self.options)
                for start, known, end in bags
            ]
        )
