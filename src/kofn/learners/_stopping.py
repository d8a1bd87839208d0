"""When a network is at its best, judged on validation bags: ours and the rules of the paper.

A rule sums what it needs over validation batches (sums, so that processes can add theirs up) and makes of them one
number, the criterion: the epoch with the smallest is kept, and training may stop when it has not fallen for a while.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from kofn.learners._objectives import known_entries


class StoppingRule(Protocol):
    """Turns validation batches into one number, smaller is better."""

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        """Sums over a batch, (k,) float64."""

    def criterion(self, loss: float, sums: Tensor) -> float:
        """The number to minimise, from the mean validation loss and the sums over all batches."""


@dataclass(frozen=True)
class ByLoss:
    """The validation loss itself.

    Examples:
        >>> import torch
        >>> from kofn.learners import ByLoss
        >>> rule = ByLoss()
        >>> rule.criterion(0.7, rule.measure(torch.zeros(3), torch.tensor([1]), torch.tensor([0, 3])))
        0.7
    """

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        return logits.new_zeros(0, dtype=torch.float64)

    def criterion(self, loss: float, sums: Tensor) -> float:
        return loss


@dataclass(frozen=True)
class ByLossAndError:
    """The validation loss plus the share of misclassified bags, as attention models are stopped.

    For networks that give one logit for each bag (Ilse, Tomczak, Welling 2018).

    Examples:
        >>> import torch
        >>> from kofn.learners import ByLossAndError
        >>> rule = ByLossAndError()
        >>> batch = torch.tensor([2.0, -1.0]), torch.tensor([1, 1]), torch.tensor([0, 3, 5])
        >>> rule.criterion(0.5, rule.measure(*batch))  # one bag of two is taken for the other kind
        1.0
    """

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        wrong = (logits > 0) != (labels > 0)
        return torch.stack([wrong.sum(), torch.tensor(len(labels), device=wrong.device)]).double()

    def criterion(self, loss: float, sums: Tensor) -> float:
        return loss + float(sums[0] / sums[1])


@dataclass(frozen=True)
class ByPredictedShare:
    """For PU learning: how far the number of unlabelled instances predicted positive is from what the mixture says.

    It counts instances, so that ties happen; the validation loss breaks them:

        criterion = floor(|predicted positives - mixture * unlabelled| + 1/2) + 1/2 + loss / (2 + 2 |loss|),

    of which what comes after the floor lies between 0 and 1 and grows with the loss, whatever its sign. A sigmoid would
    do so too, but is 1 in floating point from a loss of 37 on.

    Args:
        mixture: fraction of positives among the unlabelled.

    Examples:
        >>> import torch
        >>> from kofn.learners import ByPredictedShare
        >>> rule = ByPredictedShare(0.5)
        >>> batch = torch.tensor([9.0, 1.0, -1.0, -1.0, -1.0]), torch.tensor([1]), torch.tensor([0, 5])
        >>> rule.criterion(0.0, rule.measure(*batch))  # one of four unlabelled, not two
        1.5
    """

    mixture: float

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        unlabelled = ~known_entries(labels, offsets)
        return torch.stack([(unlabelled & (logits > 0)).sum(), unlabelled.sum()]).double()

    def criterion(self, loss: float, sums: Tensor) -> float:
        return _instances_then_loss(float(sums[0] - self.mixture * sums[1]), loss)


@dataclass(frozen=True)
class ByLabelAccuracy:
    """For PU learning, the paper's rule: how far the accuracy against the given labels is from a perfect classifier's.

    The labels of a perfect classifier differ from the given ones, labelled as positive and unlabelled as negative, in
    the mixture * n_U positives that are not labelled. With n_P labelled and n_U unlabelled validation instances,

        accuracy wanted = 1 - mixture n_U / (n_P + n_U),

    which is the class prior for the mixture 1/2 of all the paper's settings. Times n_P + n_U, the distance to it is

        |missed labelled positives + unlabelled predicted positive - mixture n_U|,

    so that here, unlike in `ByPredictedShare`, the labelled positives count; the validation loss breaks ties as there.
    Bags deal few positives again and again, so that of these the share missed is taken, times n_P.

    Args:
        mixture: fraction of positives among the unlabelled.
        labeled_per_unlabeled: n_P / n_U.

    Examples:
        >>> import torch
        >>> from kofn.learners import ByLabelAccuracy
        >>> rule = ByLabelAccuracy(0.5, labeled_per_unlabeled=0.5)
        >>> batch = torch.tensor([9.0, -2.0, 1.0, -1.0, -1.0, -1.0]), torch.tensor([2]), torch.tensor([0, 6])
        >>> rule.criterion(0.0, rule.measure(*batch))  # one missed, one too few: accuracy 4/6, as wanted
        0.5
    """

    mixture: float
    labeled_per_unlabeled: float

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        known, positive = known_entries(labels, offsets), logits > 0
        sums = [(known & ~positive).sum(), known.sum(), (~known & positive).sum(), (~known).sum()]
        return torch.stack(sums).double()

    def criterion(self, loss: float, sums: Tensor) -> float:
        missed, known, found, unlabelled = sums.tolist()
        labelled = self.labeled_per_unlabeled * unlabelled
        return _instances_then_loss(labelled * missed / known + found - self.mixture * unlabelled, loss)


def _instances_then_loss(apart: float, loss: float) -> float:
    """Ordered by a distance in whole instances, then by the loss."""
    # Not round(), to which 1.5 and 2.5 are the same.
    return math.floor(abs(apart) + 0.5) + 0.5 + loss / (2 + 2 * abs(loss))
