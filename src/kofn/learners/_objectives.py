"""What training minimises: from the logits of a batch and the labels of its bags to one loss for each bag.

An objective is any callable from (logits, labels, offsets) to one loss for each bag, whose mean is the batch's loss.
These are the losses of `kofn.losses` in that shape, as small frozen dataclasses, so that they can be sent to other
processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from kofn import losses
from kofn.losses import count_loss
from kofn.losses._pu import Surrogate
from kofn.targets import Between, Exactly, Statement

Unit = Literal["bag", "instance"]
PULossName = Literal["count", "expectation", "upu", "nnpu", "cvir"]
Ranking = Literal["epoch", "batch"]


class Objective(Protocol):
    """From logits and labels of bags to losses whose mean is minimised.

    Attributes:
        unit: what one loss is about: a "bag", as a likelihood is, or an "instance", as a mean over instances is, whose
            slope by one logit shrinks with the bag.
    """

    @property
    def unit(self) -> Unit: ...

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        """Losses (b,) of bags.

        Args:
            logits: (m,) of instances, (m, C) of their classes, or (b,) of bags from a network that pools.
            labels: (b, ...) of the bags.
            offsets: (b + 1,) of the instances' bags, on the CPU wherever logits and labels are: they are shapes.
        """


def between(bounds: Tensor) -> Between:
    """The interval of counts that a row of bounds (b, 2) is.

    Examples:
        >>> import torch, kofn
        >>> from kofn.learners import between
        >>> kofn.count_loss(torch.zeros(1, 4), between(torch.tensor([[1, 3]]))).neg().exp()  # 1 - 2 / 16
        tensor(0.8750)
    """
    return Between(bounds[:, 0], bounds[:, 1])


@dataclass(frozen=True)
class CountObjective:
    """The count loss of a target made from the labels: ``count_loss(logits, target(labels))``.

    Args:
        target: from labels (b, ...) to a statement; `kofn.Exactly`, and of several classes `kofn.ClassCounts`, takes
            counts as they are.
        bag_effect: standard deviation of the shift that the logits of a bag have in common.

    Examples:
        >>> import torch
        >>> from kofn.learners import CountObjective
        >>> CountObjective()(torch.zeros(3), torch.tensor([1, 1]), torch.tensor([0, 2, 3])).neg().exp()
        tensor([0.5000, 0.5000])
    """

    target: Callable[[Tensor], Statement[Any]] = Exactly
    bag_effect: float = 0.0
    unit: ClassVar[Unit] = "bag"

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor | None, copies: Tensor | None = None) -> Tensor:
        """Losses (b,) of bags; without offsets logits are (b, n), and bags are of one size."""
        return count_loss(
            logits,
            self.target(labels),
            offsets=offsets,
            copies=copies,
            bag_effect=self.bag_effect or None,
            reduction="none",
        )


@dataclass(frozen=True)
class ProportionObjective:
    """`kofn.losses.proportion_loss` of labels that are counts, or `class_proportion_loss` of counts of classes, (b, C).

    Examples:
        >>> import torch
        >>> from kofn.learners import ProportionObjective
        >>> ProportionObjective()(torch.zeros(4), torch.tensor([1, 2]), torch.tensor([0, 2, 4])).neg().exp()
        tensor([0.5000, 0.5000])
    """

    unit: ClassVar[Unit] = "instance"

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        if logits.dim() == 1:
            shares = labels / _sizes(offsets, labels)
            return losses.proportion_loss(logits, shares, offsets=offsets, reduction="none")
        shares = labels.double() / _sizes(offsets, labels).unsqueeze(1)
        return losses.class_proportion_loss(logits, shares, offsets=offsets, reduction="none")


@dataclass(frozen=True)
class TransportObjective:
    """`kofn.losses.transport_loss` of labels that are counts of classes, (b, C).

    Examples:
        >>> import torch
        >>> from kofn.learners import TransportObjective
        >>> offsets = torch.tensor([0, 1, 2])  # of single instances it is the cross-entropy
        >>> TransportObjective()(torch.zeros(2, 4), torch.eye(4).long()[:2], offsets).neg().exp()
        tensor([0.2500, 0.2500])
    """

    unit: ClassVar[Unit] = "instance"

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        shares = labels.double() / _sizes(offsets, labels).unsqueeze(1)
        return losses.transport_loss(logits, shares, offsets=offsets, reduction="none")


@dataclass(frozen=True)
class ContaminationObjective:
    """`kofn.losses.mutual_contamination_loss` of labels that are counts, over pairs of the batch's bags.

    Each bag of a pair has half of the pair's loss, and the mean over bags is the mean over pairs. A batch without two
    different proportions says nothing: its losses are 0.

    Examples:
        >>> import torch
        >>> from kofn.learners import ContaminationObjective
        >>> objective = ContaminationObjective()
        >>> objective(torch.zeros(4), torch.tensor([1, 1]), torch.tensor([0, 2, 4]))  # equal proportions
        tensor([0., 0.])
        >>> objective(torch.zeros(4), torch.tensor([0, 2]), torch.tensor([0, 2, 4])).shape  # one pair
        torch.Size([2])
    """

    unit: ClassVar[Unit] = "instance"

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        proportions = labels / _sizes(offsets, labels)
        losses_of_bags = logits.sum() * 0.0 + logits.new_zeros(len(labels))
        pairs = losses.pair_bags(proportions)
        if not len(pairs):
            return losses_of_bags
        found = losses.mutual_contamination_loss(logits, proportions, pairs=pairs, offsets=offsets, reduction="none")
        half = found * (len(labels) / (2 * len(pairs)))
        return losses_of_bags.index_add(0, pairs.reshape(-1), half.repeat_interleave(2))


@dataclass(frozen=True)
class BagObjective:
    """`kofn.losses.mil_loss`, or `kofn.losses.pooled_bag_loss` where a pool is named, of labels 0 and 1.

    Examples:
        >>> import torch
        >>> from kofn.learners import BagObjective
        >>> batch = torch.zeros(4), torch.tensor([0, 1]), torch.tensor([0, 2, 4])
        >>> BagObjective()(*batch).neg().exp()
        tensor([0.2500, 0.7500])
        >>> BagObjective(pool="max")(*batch).neg().exp()
        tensor([0.5000, 0.5000])
    """

    pool: Literal["max", "mean", "logsumexp"] | None = None
    positive_weight: float = 1.0
    unit: ClassVar[Unit] = "bag"

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        weight = self.positive_weight
        if self.pool is None:
            return losses.mil_loss(logits, labels, positive_weight=weight, offsets=offsets, reduction="none")
        return losses.pooled_bag_loss(
            logits, labels, pool=self.pool, positive_weight=weight, offsets=offsets, reduction="none"
        )


@dataclass(frozen=True)
class PooledObjective:
    """Cross-entropy of bag logits (b,) from a network that pools, such as `kofn.learners.AttentionMIL`.

    Examples:
        >>> import torch
        >>> from kofn.learners import PooledObjective
        >>> PooledObjective()(torch.zeros(2), torch.tensor([0, 1]), torch.tensor([0, 7, 9])).neg().exp()
        tensor([0.5000, 0.5000])
    """

    positive_weight: float = 1.0
    unit: ClassVar[Unit] = "bag"

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        weight = logits.new_tensor(self.positive_weight)
        return binary_cross_entropy_with_logits(logits, labels.to(logits), pos_weight=weight, reduction="none")


@dataclass(frozen=True)
class PUObjective:
    """A loss of positive and unlabelled logits for each bag, of which the first `labels` ones are labelled positives.

    Args:
        mixture: fraction of positives among the unlabelled.
        loss: "count" or "expectation" (`kofn.losses.pu_loss`), "upu", "nnpu" or "cvir".
        positive_weight: of the labelled positives, with "count" and "expectation"; None as in `kofn.losses.pu_loss`.
        surrogate: the loss of one instance, with "upu" and "nnpu"; as in `kofn.losses.upu_loss`.
        ranking: what "cvir" ranks together: all bags that it is given, which are the "batch"; with "epoch" a network
            ranks all unlabelled before each epoch (`PUProblem.ranked`).
        warm_up: with "cvir", so many first epochs of a network take all unlabelled for negatives and ignore none.

    Examples:
        >>> import torch
        >>> from kofn.losses import nnpu_loss
        >>> from kofn.learners import PUObjective
        >>> logits, known, offsets = torch.tensor([2.0, 1.0, 0.0, -1.0]), torch.tensor([2]), torch.tensor([0, 4])
        >>> objective = PUObjective(0.5, "nnpu")
        >>> bool(objective(logits, known, offsets)[0] == nnpu_loss(logits[:2], logits[2:], 0.5))
        True
    """

    mixture: float
    loss: PULossName = "count"
    positive_weight: float | None = None
    surrogate: Surrogate = "sigmoid"
    ranking: Ranking = "epoch"
    warm_up: int = 0

    @property
    def unit(self) -> Unit:
        return "bag" if self.loss in ("count", "expectation") else "instance"

    @property
    def saturates(self) -> bool:
        """Whether the loss of an instance is flat at large scores of either sign."""
        return self.loss in ("upu", "nnpu") and self.surrogate == "sigmoid"

    def __call__(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        if self.loss == "cvir":
            return self._ranked_together(logits, labels, offsets)
        known_of_bags = labels.to(offsets.device)  # host read: how many instances are labelled is a shape
        shapes, group = torch.stack([known_of_bags, offsets.diff() - known_of_bags], 1).unique(
            dim=0, return_inverse=True
        )
        result = logits.new_zeros(len(labels))
        for number, (known, unknown) in enumerate(shapes.tolist()):  # bags of one shape lie in a rectangle
            bags = (group == number).nonzero().flatten()
            places = offsets[:-1][bags, None] + torch.arange(known + unknown)
            x = logits[places.to(logits.device)]
            result = result.index_copy(0, bags.to(logits.device), self._losses(x[:, :known], x[:, known:]))
        return result

    def _losses(self, positive: Tensor, unlabeled: Tensor) -> Tensor:
        """Losses (g,) of bags (g, p) and (g, k)."""
        if self.loss in ("upu", "nnpu"):
            loss = losses.upu_loss if self.loss == "upu" else losses.nnpu_loss
            return loss(positive, unlabeled, self.mixture, surrogate=self.surrogate, reduction="none")
        match: Any = "distribution" if self.loss == "count" else "expectation"
        weight = self.positive_weight
        return losses.pu_loss(positive, unlabeled, self.mixture, match=match, positive_weight=weight, reduction="none")

    def _ranked_together(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        """The one loss of all bags, as that of each, so that their mean is it."""
        known = known_entries(labels, offsets)
        return losses.cvir_loss(logits[known], logits[~known], self.mixture).expand(len(labels))


def criteria(objective: Objective, losses: Tensor, labels: Tensor) -> Tensor:
    """What a penalty is chosen by, (b,): the losses; of labels 0 and 1 of bags their squared errors.

    The log-loss of labels has no upper bound. Of few bags, many instances each and weak penalties, some bags are sure
    and wrong, and their losses rule a mean while most labels become right. A squared error (1 - P(label))^2 is proper,
    too, and at most 1 (Brier 1950).

    Examples:
        >>> import torch
        >>> from kofn.learners import BagObjective, CountObjective
        >>> losses, labels = torch.tensor([0.5, 40.0]), torch.tensor([1, 0])
        >>> criteria(BagObjective(), losses, labels)
        tensor([0.1548, 1.0000])
        >>> criteria(CountObjective(), losses, labels)
        tensor([ 0.5000, 40.0000])
    """
    if not isinstance(objective, (BagObjective, PooledObjective)):
        return losses
    weight = torch.where(labels == 1, objective.positive_weight, 1.0).to(losses)
    return weight * torch.expm1(-losses / weight.clamp(min=torch.finfo(losses.dtype).tiny)).square()


def losses_of_entries(
    objective: Objective, logits: Tensor, labels: Tensor, offsets: Tensor, copies: Tensor | None
) -> Tensor:
    """Losses (b,) of bags whose entries stand for several instances each, if `copies` are given.

    The count loss knows of copies; of the others each copy is an entry of its own.

    Examples:
        >>> import torch
        >>> from kofn.learners import CountObjective, ProportionObjective
        >>> x, counts, offsets = torch.tensor([0.0, 1.0]), torch.tensor([2]), torch.tensor([0, 2])
        >>> alike, copies = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([2, 1])
        >>> for objective in (CountObjective(), ProportionObjective()):
        ...     loss = losses_of_entries(objective, x, counts, offsets, copies)
        ...     print(bool(torch.allclose(loss, objective(alike, counts, torch.tensor([0, 3])))))
        True
        True
    """
    if copies is None:
        return objective(logits, labels, offsets)
    if isinstance(objective, CountObjective):
        return objective(logits, labels, offsets, copies)
    ends = torch.cat([copies.new_zeros(1), copies.cumsum(0)]).cpu()
    return objective(logits.repeat_interleave(copies.to(logits.device), 0), labels, ends[offsets])


def known_entries(labels: Tensor, offsets: Tensor) -> Tensor:
    """(m,) bool: which entries of bags are labelled positives, the first `labels` (b,) ones of each bag.

    Examples:
        >>> import torch
        >>> known_entries(torch.tensor([1, 2]), torch.tensor([0, 3, 5])).tolist()
        [True, False, False, True, True]
    """
    offsets = offsets - offsets[0]
    total, offsets = int(offsets[-1]), offsets.to(labels.device)
    first = offsets[:-1].repeat_interleave(offsets.diff(), output_size=total)
    known = labels.to(offsets).repeat_interleave(offsets.diff(), output_size=total)
    return torch.arange(total, device=labels.device) - first < known


def _sizes(offsets: Tensor, labels: Tensor) -> Tensor:
    """Sizes of bags beside their labels."""
    return offsets.diff().to(labels.device)
