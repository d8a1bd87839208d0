"""What a learner is given: instances, bags of them, and a loss of their logits to minimise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn._io.mapped import take
from kofn.bags import Bags
from kofn.learners._objectives import CountObjective, Objective, losses_of_entries
from kofn.learners._stopping import ByLoss, StoppingRule

Floats = NDArray[np.float32]
Pooling = Literal["attention", "gated-attention"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Instances, bags of them, the label of each bag, and the loss of logits given these labels.

    A task (label proportions, multiple instances, positives and unlabelled) makes a problem of its labels, and any
    learner minimises its loss: the mean over bags, by weight, of ``objective(logits, labels, offsets)``.

    Of two classes an instance has one logit, the log-odds of the positive one: logits are (n,). Of C classes it has C,
    unnormalised log-probabilities: logits are (n, C). Whatever is made of logits goes along their first dimension, so
    that one learner is the learner of both.

    Attributes:
        instances: (n, ...) float32; of a table NaN where a value is missing.
        categories: number of categories by column, for columns that hold codes 0, 1, ... of categories.
        bags: positions of the bags' instances; an instance may occur several times.
        labels: (b, ...) what the objective reads.
        objective: from logits of entries, (m,) or (m, C), labels and offsets to losses (b,).
        weight: (b,) of the bags' losses, at least 0; None for ones.
        together: (b,) integers, such as the patient of each slide: bags of the same one are held out together; None
            where each bag stands for itself.
        rate: the probability of a positive instance before anything is learned, or (C,) those of the classes: where
            every learner starts.
        proportions: (b,) about the share of positives in each bag, or (b, C) of each class; of multiple instances, 1
            where there is one.
        rule: what makes a network's epoch the best.
        pooling: the attention that makes one logit of a bag, for a network; None where the loss reads instances.
    """

    instances: Floats
    bags: Bags
    labels: Tensor
    objective: Objective
    rate: float | Tensor
    proportions: Tensor
    categories: Mapping[int, int] = field(default_factory=dict)
    weight: Tensor | None = None
    together: Tensor | None = None
    rule: StoppingRule = field(default_factory=ByLoss)
    pooling: Pooling | None = None
    needs_each_stratum: ClassVar[bool] = False  # in every part that is learned from or judged on

    @property
    def strata(self) -> Tensor:
        """(units,) integers: what is held out is held out of each stratum. A unit is a bag."""
        if not bool(((self.proportions == 0) | (self.proportions == 1)).all()):
            return torch.zeros(len(self.bags), dtype=torch.int64)
        return self.proportions.argmax(1) if self.proportions.dim() == 2 else self.proportions.long()

    @property
    def saturates(self) -> bool:
        """Whether the loss is flat at large logits, so that no learner comes back from there."""
        return False

    @property
    def slopes_are_gradients(self) -> bool:
        """Whether `losses_and_slope` gives the gradient of the loss itself, of which an optimiser can converge."""
        return True

    @property
    def start_rate(self) -> float | Tensor:
        """The rate at which a learner starts: one half where the loss saturates, whose slope is largest there."""
        return 0.5 if self.saturates else self.rate

    @cached_property
    def start(self) -> Tensor:
        """The logit of an instance before anything is learned, (), or those of the classes, (C,), float64."""
        return start_at(self.start_rate)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The shape of what an instance is scored with: () for one logit, (C,) for one of each class."""
        return tuple(self.start.shape)

    def take(self, units: Tensor) -> Problem:
        """The problem of some of the bags."""
        return replace(
            self,
            bags=self.bags.select(units),
            labels=self.labels[units],
            proportions=self.proportions[units],
            weight=None if self.weight is None else self.weight[units],
            together=None if self.together is None else self.together[units],
        )

    def deal(self, epoch: int, seed: int) -> Problem:
        """The problem with the bags of an epoch; here they are the same in each."""
        return self

    def ranked(self, score: Callable[[Tensor], Tensor], epoch: int) -> Problem:
        """The problem without the instances that an epoch ignores, by logits of positions; here none is ignored."""
        return self

    def compact(self, *, columns: bool = True) -> tuple[Tensor, Problem]:
        """The instances that lie in a bag, and the problem of these alone; without `columns`, of rows with none."""
        if self._in_order:
            return self.bags.index, self
        rows, index = self.bags.index.unique(return_inverse=True)
        if len(rows) == len(self.instances):
            return rows, self
        kept = take(self.instances, rows.numpy()) if columns else np.empty((len(rows), 0), np.float32)
        return rows, replace(self, instances=kept, bags=Bags(index, self.bags.offsets, copies=self.bags.copies))

    @property
    def bag_weights(self) -> Tensor:
        """(b,) float64."""
        return torch.ones(len(self.bags), dtype=torch.float64) if self.weight is None else self.weight.double()

    @property
    def row_weights(self) -> Tensor:
        """(n,) float64: for each instance the sum of the weights of the bags that it lies in."""
        if self.weight is None and self._in_order and self.bags.copies is None:
            return torch.ones(1, dtype=torch.float64).expand(len(self.instances))
        return torch.zeros(len(self.instances), dtype=torch.float64).index_add(0, self.bags.index, self._entry_weights)

    def losses(self, logits: Tensor) -> Tensor:
        """Losses (b,) of the bags, from logits of the instances, (n,) or (n, C)."""
        return self.losses_of(self._entries(logits), self.labels, self.bags.offsets, self.bags.copies)

    def losses_of(self, entries: Tensor, labels: Tensor, offsets: Tensor, copies: Tensor | None = None) -> Tensor:
        """Losses (b,) of some of the bags, from logits of their entries, (m, ...), one bag after the other."""
        if self._size and isinstance(self.objective, CountObjective):
            rows = entries.view(-1, self._size, *entries.shape[1:])
            return self.objective(rows, labels, None, None if copies is None else copies.view(-1, self._size))
        return losses_of_entries(self.objective, entries, labels, offsets, copies)

    def losses_and_slope(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Losses (b,) of the bags, and the gradient of their `total` by the logits of the instances, of their shape."""
        x = logits.detach().requires_grad_()
        with torch.enable_grad():
            losses = self.losses(x)
            (slope,) = torch.autograd.grad(self.total(losses), x)
        return losses.detach(), slope

    def _entries(self, logits: Tensor) -> Tensor:
        """Logits of the entries of the bags, (m, ...), from those of the instances, (n, ...)."""
        return logits if self._in_order else logits.index_select(0, self.bags.index)

    @cached_property
    def _in_order(self) -> bool:
        """Whether the bags are the instances one after the other, so that nothing need be looked up."""
        index = self.bags.index
        return len(index) == len(self.instances) and torch.equal(index, torch.arange(len(index)))

    @cached_property
    def _size(self) -> int:
        """Entries of all bags, which then are a rectangle without offsets to be checked and looked up; else 0."""
        entries = self.bags.offsets.diff()
        return int(entries[0]) if len(entries) and bool((entries == entries[0]).all()) else 0

    @cached_property
    def _entry_weights(self) -> Tensor:
        """(m,) float64: the weight of the bag of each entry, as often as it has copies."""
        weights = self.bag_weights[self.bags.bag_of()]
        return weights if self.bags.copies is None else weights * self.bags.copies

    def mean_loss(self, logits: Tensor) -> Tensor:
        """The mean over bags, by weight, from logits of the instances, (n,) or (n, C)."""
        return self.mean(self.losses(logits))

    def mean(self, losses: Tensor) -> Tensor:
        """The mean of losses (b,) by weight; a bag of weight 0 is left out, whatever its loss."""
        if self.weight is None:
            return losses.mean()
        weights = self.bag_weights.to(losses.dtype)
        return (losses.masked_fill(weights == 0, 0.0) * weights).sum() / weights.sum()

    @property
    def mean_of(self) -> float:
        """What `total` is a sum over: the weights of the bags, or of their instances where a loss is one's mean."""
        weights = self.bag_weights
        return float((weights * self.bags.sizes).sum() if self.objective.unit == "instance" else weights.sum())

    def total(self, losses: Tensor) -> Tensor:
        """The sum of losses (b,) by weight, in which an instance's part does not shrink with its bag.

        A likelihood of a bag is such a sum already. A mean over its instances is multiplied by how many they are, so
        that p (1 - p) is of the size of the curvature of either.
        """
        if self.weight is None and self.objective.unit == "bag":
            return losses.sum()
        weights = self.bag_weights.to(losses.dtype)
        if self.objective.unit == "instance":
            weights = weights * self.bags.sizes
        return (losses.masked_fill(weights == 0, 0.0) * weights).sum()


def start_at(rate: float | Tensor | NDArray[np.float64]) -> Tensor:
    """The logit of a base rate, (), or the logits of those of the classes, (C,), float64.

    Examples:
        >>> start_at(0.5), start_at(np.array([0.25, 0.75])).exp()
        (tensor(0., dtype=torch.float64), tensor([0.2500, 0.7500], dtype=torch.float64))
    """
    rates = torch.as_tensor(rate, dtype=torch.float64)
    return rates.log() if rates.dim() else rates.logit()
