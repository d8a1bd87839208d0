"""When a network is at its best, judged on validation bags: the rules of the paper.

A rule sums what it needs over validation batches (sums, so that processes can add theirs up) and makes of them one
number, the criterion: the epoch with the smallest is kept, and training may stop when it has not fallen for a while.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


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
class ByPrior:
    """For PU learning: how far the number of unlabelled instances predicted positive is from what the mixture says.

    It counts instances, so that ties happen; the validation loss breaks them:

        criterion = floor(|predicted positives - mixture * unlabelled| + 1/2) + 1/2 + loss / (2 + 2 |loss|),

    of which what comes after the floor lies between 0 and 1 and grows with the loss, whatever its sign. A sigmoid would
    do so too, but is 1 in floating point from a loss of 37 on.

    Args:
        mixture: fraction of positives among the unlabelled.

    Examples:
        >>> import torch
        >>> from kofn.learners import ByPrior
        >>> rule = ByPrior(0.5)
        >>> batch = torch.tensor([9.0, 1.0, -1.0, -1.0, -1.0]), torch.tensor([1]), torch.tensor([0, 5])
        >>> rule.criterion(0.0, rule.measure(*batch))  # one of four unlabelled, not two
        1.5
    """

    mixture: float

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        place = torch.arange(len(logits), device=logits.device)
        bag = torch.bucketize(place, offsets[1:].to(place), right=True)
        unlabelled = place - offsets[:-1].to(place)[bag] >= labels.to(place)[bag]
        return torch.stack([(unlabelled & (logits > 0)).sum(), unlabelled.sum()]).double()

    def criterion(self, loss: float, sums: Tensor) -> float:
        apart = float(sums[0] - self.mixture * sums[1])
        # Not round(), to which 1.5 and 2.5 are the same.
        return math.floor(abs(apart) + 0.5) + 0.5 + loss / (2 + 2 * abs(loss))
