"""What labels say before any feature is looked at: the rate of the instances, and the shares of the labels.

Of every statement about bags the best model without features is a constant. Which one depends on the statement: of
counts it is the rate of the instances, of whether bags are positive the share of those that are (one rate of all
instances would tie a label to the size of its bag), of grades the share of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kofn.learners import BagObjective, CountObjective, Objective, PooledObjective, Problem, PUObjective
from kofn.learners._best_rate import best_rate
from kofn.learners._objectives import losses_of_entries
from kofn.learners._problem import start_at

MOST_LABELS = 1000  # different labels that are counted


def count_rates(counts: Tensor, sizes: Tensor, weight: Tensor | None) -> tuple[float | Tensor, Tensor]:
    """The base rate of positives, or (C,) of the classes, and about the proportions, (b,) or (b, C), of each bag.

    Args:
        counts: (b,) about the number of positives in each bag; or (b, C) numbers of each class, -1 where unknown.
        sizes: (b,) of the bags.
        weight: (b,) of the bags, or None for ones.

    Returns:
        Rates above 0 and below 1, and proportions from 0 to 1, unknown ones filled in.
    """
    if counts.dim() == 2:
        return _class_rates(counts, sizes, weight)
    shares = (counts / sizes).clamp(0.0, 1.0)
    times = sizes if weight is None else sizes * weight
    rate = float((shares * times).sum() / times.sum())
    half = 0.5 / float(sizes[times > 0].sum())  # a rate that is 0 or 1 is only known to be near it
    return min(max(rate, half), 1 - half), shares


def _class_rates(counts: Tensor, sizes: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Base rates (C,) of the classes, and about the proportions (b, C) of each bag, unknown ones filled in.

    The rate of a class is its share of the bags in which it is known; the rest is shared by classes that are never
    known. The unknown classes of a bag share what the known ones leave, in the ratio of their rates.

    Examples:
        >>> import torch
        >>> rates, shares = _class_rates(torch.tensor([[2, 1, 1], [3, -1, -1]]), torch.tensor([4, 5]), None)
        >>> shares.tolist()
        [[0.5, 0.25, 0.25], [0.6, 0.2, 0.2]]
    """
    known = counts >= 0
    n = (sizes if weight is None else sizes * weight).double().unsqueeze(1)
    shares = counts.clamp(min=0).double() / sizes.unsqueeze(1)
    seen = (known * n).sum(0)
    rates = (shares * known * n).sum(0) / seen.clamp(min=torch.finfo(torch.float64).tiny)
    never_known = seen == 0
    left = (1 - rates.sum()).clamp(min=0.0) / never_known.sum().clamp(min=1)
    rates = torch.where(never_known, left, rates)
    # A rate that is 0 is only known to be near it.
    rates = rates.clamp(min=0.5 / float(sizes[n.flatten() > 0].sum()))
    rates = rates / rates.sum()
    unknown = torch.where(known, 0.0, rates)
    rest = (1 - (shares * known).sum(1, keepdim=True)) / unknown.sum(1, keepdim=True).clamp(min=1e-300)
    return rates, torch.where(known, shares, unknown * rest)


@dataclass(frozen=True)
class LabelShares:
    """How common each label of a bag is: a model of grades, or of labels 0 and 1, that looks at no feature.

    A label is the bounds of a count, of which an upper one that is the size of the bag, or more, is -1: "at least one"
    is the same grade in bags of any size. With K different labels among n, by weight, a label has the probability
    (times + 1/2) / (n + K/2), and one that was not seen that of half a time; with bags labelled 0 and 1 there is none
    to be seen.

    Attributes:
        labels: K bounds.
        shares: their K probabilities.
        other: the probability of all others.

    Examples:
        >>> bounds, sizes = torch.tensor([[0, 0], [1, 5], [1, 7]]), torch.tensor([4, 5, 7])
        >>> shares = LabelShares.of(bounds, sizes, torch.ones(3), closed=True)
        >>> shares.labels, shares.shares
        (((0, 0), (1, -1)), (0.375, 0.625))
        >>> shares.losses(bounds, sizes).neg().exp().tolist()
        [0.375, 0.625, 0.625]
    """

    labels: tuple[tuple[int, int], ...]
    shares: tuple[float, ...]
    other: float

    @classmethod
    def of(cls, bounds: Tensor, sizes: Tensor, weight: Tensor, *, closed: bool) -> LabelShares:
        """Those of bags with these bounds, (b, 2); closed, if none and at least one are all labels that there are."""
        grades, times = _as_grades(bounds, sizes), weight.double()
        times = times * (int((times > 0).sum()) / max(float(times.sum()), 1e-300))  # as many as there are bags
        if closed:
            grades = torch.cat([grades, torch.tensor([[0, 0], [1, -1]])])
            times = torch.cat([times, times.new_zeros(2)])
        labels, of = grades.unique(dim=0, return_inverse=True)
        seen = torch.zeros(len(labels), dtype=torch.float64).index_add(0, of, times) + 0.5
        kept = seen.argsort(descending=True, stable=True)[:MOST_LABELS].sort().values
        rest = 0.0 if closed else 0.5
        total = float(seen.sum()) + rest
        bounds_of = tuple((low, high) for low, high in labels[kept].tolist())
        return cls(bounds_of, tuple((seen[kept] / total).tolist()), rest / total)

    def losses(self, bounds: Tensor, sizes: Tensor) -> Tensor:
        """-log of the probabilities of the labels of bags, (b,) float64."""
        known = len(self.labels)
        grades = torch.cat([torch.tensor(self.labels), _as_grades(bounds, sizes)])
        _, of = grades.unique(dim=0, return_inverse=True)
        shares = torch.full((int(of.max()) + 1,), self.other, dtype=torch.float64)
        shares[of[:known]] = torch.tensor(self.shares, dtype=torch.float64)
        return -shares[of[known:]].log()

    def to_facts(self) -> list[list[float]]:
        """What a model file keeps: low, high and share of each label, and last the share of all others."""
        pairs = zip(self.labels, self.shares, strict=True)
        return [*([*label, share] for label, share in pairs), [0, 0, self.other]]

    @classmethod
    def from_facts(cls, facts: list[list[float]]) -> LabelShares:
        """What a model file kept."""
        labels = tuple((int(low), int(high)) for low, high, _ in facts[:-1])
        return cls(labels, tuple(share for _, _, share in facts[:-1]), facts[-1][2])


def label_shares(problem: Problem) -> LabelShares | None:
    """The shares of the labels of a problem's bags; None for labels that are no intervals of counts.

    Where a loss weighs positive bags, so do their shares.
    """
    objective, labels = problem.objective, problem.labels
    if isinstance(objective, (BagObjective, PooledObjective)):
        weight = torch.where(labels == 1, objective.positive_weight, 1.0) * problem.bag_weights
        return LabelShares.of(bounds_of_bags(labels, problem.bags.sizes), problem.bags.sizes, weight, closed=True)
    if isinstance(objective, CountObjective) and labels.dim() == 2 and problem.outputs == () and labels.shape[1] == 2:
        return LabelShares.of(labels, problem.bags.sizes, problem.bag_weights, closed=False)
    return None


def bounds_of_bags(labels: Tensor, sizes: Tensor) -> Tensor:
    """The bounds (b, 2) that labels 0 and 1 are: none, and at least one."""
    return torch.stack([labels, torch.where(labels == 1, sizes, 0)], 1)


def losses_without_features(
    objective: Objective, labels: Tensor, sizes: Tensor, rate: Any, shares: LabelShares | None
) -> Tensor:
    """Losses (b,) of bags by the best constant: the shares of their labels, or one rate of all instances.

    Of labels and of intervals it is the one of the two that is better on these bags: where large bags are more often
    positive, one rate of all instances knows it, and the share of positive bags does not. The loss of positives and
    unlabelled weighs the labelled ones, and its best constant, on these bags, is above the mixture.

    Args:
        objective: of the bags.
        labels: (b, ...) that it reads.
        sizes: (b,) of the bags.
        rate: of the instances, or (C,) of their classes.
        shares: of the labels, for labels that have any.

    Examples:
        >>> sizes = torch.tensor([2, 1])
        >>> losses_without_features(CountObjective(), torch.tensor([1, 0]), sizes, 0.5, None).neg().exp()
        tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    if isinstance(objective, PUObjective) and objective.unit == "bag" and len(sizes):
        rate = best_rate(objective, labels, sizes, None)
    start = start_at(rate)
    alike = start.expand(len(sizes), *start.shape).contiguous()
    copies = None if isinstance(objective, PooledObjective) else sizes
    found = losses_of_entries(objective, alike, labels, torch.arange(len(sizes) + 1), copies)
    if shares is None:
        return found
    if isinstance(objective, (BagObjective, PooledObjective)):
        weight = torch.where(labels == 1, objective.positive_weight, 1.0)
        of_labels = weight * shares.losses(bounds_of_bags(labels, sizes), sizes)
    else:
        of_labels = shares.losses(labels, sizes)
    return of_labels if float(of_labels.mean()) < float(found.mean()) else found


def _as_grades(bounds: Tensor, sizes: Tensor) -> Tensor:
    low, high = bounds.long().unbind(1)
    return torch.stack([low, torch.where(high >= sizes, -1, high)], 1)
