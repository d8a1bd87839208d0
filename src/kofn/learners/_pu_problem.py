"""Labelled positives and unlabelled instances as a problem: bags that are dealt anew each epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from kofn.bags import Bags
from kofn.learners._objectives import PUObjective
from kofn.learners._problem import Problem
from kofn.learners._random_stream import generator_of


@dataclass(frozen=True, eq=False, kw_only=True)
class PUProblem(Problem):
    """Labelled positives and unlabelled instances, dealt into new bags each epoch: the positives of a bag come first.

    There are ceil(unlabelled / size) bags, whose sizes differ by one at most: no small bag is left over, whose count
    would say less. Positives are dealt likewise, over and over if there are too few, and all of them if there are many.
    What is held out are instances.

    Attributes:
        labeled: (n,) bool, True for the labelled positives.
        size: unlabelled instances in a bag, at most.
        chosen: (k,) the instances that are used.
    """

    labeled: Tensor
    size: int
    chosen: Tensor
    needs_each_stratum: ClassVar[bool] = True  # the loss compares positives with unlabelled

    @classmethod
    def of(cls, labeled: Tensor, *, size: int, seed: int, **problem: Any) -> PUProblem:
        """A problem of all instances."""
        bags, labels = deal(labeled, torch.arange(len(labeled)), size, 0, seed)
        shares = torch.full((len(bags),), float(problem["rate"]), dtype=torch.float64)
        return cls(
            bags=bags,
            labels=labels,
            proportions=shares,
            labeled=labeled,
            size=size,
            chosen=torch.arange(len(labeled)),
            **problem,
        )

    @property
    def strata(self) -> Tensor:
        return self.labeled[self.chosen].long()

    @property
    def slopes_are_gradients(self) -> bool:
        # Where the negative risk is too small, nnPU steps away from it and not down its own value.
        return not (isinstance(self.objective, PUObjective) and self.objective.loss == "nnpu")

    @property
    def saturates(self) -> bool:
        return isinstance(self.objective, PUObjective) and self.objective.saturates

    def take(self, units: Tensor) -> PUProblem:
        """The problem of some of the instances."""
        together = None if self.together is None else self.together[units]
        return replace(self, chosen=self.chosen[units], together=together).deal(0, 0)

    def ranked(self, score: Callable[[Tensor], Tensor], epoch: int) -> PUProblem:
        """The problem without the unlabelled instances that look most positive, where the loss ranks once an epoch.

        (1 - mixture) of the unlabelled are kept, those with the smallest logits, and pass for negatives. Of these
        alone the loss ignores none. Bags shrink with them, so that an epoch has as many steps. While the network warms
        up, all are kept: the ranking of one that knows nothing would decide at random what it is to learn.
        """
        objective = self.objective
        if not (isinstance(objective, PUObjective) and objective.loss == "cvir"):
            return self
        if epoch < objective.warm_up:
            return replace(self, objective=replace(objective, mixture=0.0))
        if objective.ranking == "batch":
            return self
        known = self.labeled[self.chosen]
        unlabelled = self.chosen[~known]
        kept = max(round((1 - objective.mixture) * len(unlabelled)), 1)
        lowest = score(unlabelled).topk(kept, largest=False).indices
        return replace(
            self,
            chosen=torch.cat([self.chosen[known], unlabelled[lowest]]),
            together=None,  # of an epoch nothing is held out
            size=-(-self.size * kept // len(unlabelled)),
            objective=replace(objective, mixture=0.0),
        )

    def deal(self, epoch: int, seed: int) -> PUProblem:
        bags, labels = deal(self.labeled, self.chosen, self.size, epoch, seed)
        return replace(self, bags=bags, labels=labels, proportions=self.proportions[:1].expand(len(bags)))


def deal(labeled: Tensor, chosen: Tensor, size: int, epoch: int, seed: int) -> tuple[Bags, Tensor]:
    """Bags of labelled positives and unlabelled instances, and how many of each bag, the first ones, are labelled.

    Examples:
        >>> import torch
        >>> labeled = torch.tensor([True, False, False, False, False])
        >>> bags, positives = deal(labeled, torch.arange(5), 2, 0, 0)
        >>> bags.sizes.tolist(), positives.tolist(), bags[0][0].item()
        ([3, 3], [1, 1], 0)
    """
    if not len(chosen):
        return Bags.from_lists([]), torch.zeros(0, dtype=torch.int64)
    generator = generator_of(seed, epoch)
    known, unknown = chosen[labeled[chosen]], chosen[~labeled[chosen]]
    unknown = unknown[torch.randperm(len(unknown), generator=generator)]
    n_bags = -(-len(unknown) // size)
    each = max(min(size, len(known)), -(-len(known) // n_bags))  # so many that none is left out
    rounds = -(-n_bags * each // len(known))
    order = torch.cat([torch.randperm(len(known), generator=generator) for _ in range(rounds)])
    positives = known[order[: n_bags * each]].reshape(n_bags, each)
    bags = [torch.cat(pair) for pair in zip(positives, unknown.tensor_split(n_bags), strict=True)]
    return Bags.from_lists(bags), torch.full((n_bags,), each)
