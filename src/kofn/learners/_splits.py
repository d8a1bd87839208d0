"""Which bags are held out, so that what is chosen is chosen on bags that were not learned from."""

from __future__ import annotations

from math import ceil

import torch
from torch import Tensor

from kofn.learners._problem import Problem
from kofn.learners._random_stream import generator_of

Split = tuple[Tensor, Tensor]  # positions to learn from, and to judge on

FEWEST = 5  # of a stratum, to hold some of it out
MANY = 5000  # units of which a held-out tenth is as informative as all of them in folds
ENOUGH = 1000  # units of which a held-out tenth will do if the table is large
LARGE = 4_000_000  # values in a table to which one more fit is enough


def hold_out(strata: Tensor, fraction: float, seed: int, *, together: Tensor | None = None) -> Split | None:
    """Hold a fraction of each stratum out, rounded up, but not all; None where nothing can be held out.

    Of a stratum with few members nothing is.

    Args:
        strata: (units,) integers.
        fraction: of each stratum, or where units stay together of what holds them together.
        seed: random seed.
        together: (units,) integers: units with the same one are held out together.

    Examples:
        >>> import torch
        >>> train, held = hold_out(torch.tensor([0] * 20 + [1] * 10), 0.1, seed=0)
        >>> len(train), len(held), int((held >= 20).sum())
        (27, 3, 1)
    """
    strata, group_of = _groups(strata, together)
    held = torch.zeros(len(strata), dtype=torch.bool)
    for order in _shuffled(strata, seed):
        if len(order) >= FEWEST:
            held[order[: min(ceil(fraction * len(order)), len(order) - 1)]] = True
    return _split(held[group_of]) if held.any() else None


def folds(strata: Tensor, number: int, seed: int, *, together: Tensor | None = None) -> list[Split]:
    """Folds of which each holds about the same part of each stratum; none where there are too few units for them.

    Args:
        strata: (units,) integers.
        number: of folds.
        seed: random seed.
        together: (units,) integers: units with the same one are in the same fold.

    Examples:
        >>> import torch
        >>> [held.tolist() for _, held in folds(torch.tensor([0, 0, 0, 1, 1, 1]), 3, seed=0)]
        [[2, 4], [1, 5], [0, 3]]
        >>> [held.tolist() for _, held in folds(torch.zeros(4), 2, seed=0, together=torch.tensor([7, 8, 8, 7]))]
        [[1, 2], [0, 3]]
    """
    strata, group_of = _groups(strata, together)
    if len(strata) < number:
        return []
    fold = torch.empty(len(strata), dtype=torch.int64)
    place = 0
    for order in _shuffled(strata, seed):  # each stratum goes on where the last ended, so that folds are of one size
        fold[order] = torch.arange(place, place + len(order)) % number
        place += len(order)
    return [_split((fold == k)[group_of]) for k in range(number)]


def splits_of(problem: Problem, number: int, seed: int) -> list[Split]:
    """Folds of bags, or of very many bags a held-out tenth; none of fewer than twice as many bags as folds.

    Bags that must stay together (`Problem.together`) are held out together, and count as one. Of a problem that needs
    some of each stratum there are splits only if all of them have some on both sides.
    """
    strata, together = problem.strata, problem.together
    units = len(strata if together is None else together.unique())
    if units < 2 * number:
        return []
    if units > MANY or (problem.instances.size > LARGE and units > ENOUGH):
        held = hold_out(strata, 0.1, seed, together=together)
        return _usable([] if held is None else [held], problem)
    return _usable(folds(strata, number, seed, together=together), problem)


def a_split_of(problem: Problem, fraction: float, seed: int) -> list[Split]:
    """A fraction of the bags, held out; none of the fraction 0, or of too few bags."""
    held = hold_out(problem.strata, fraction, seed, together=problem.together) if fraction else None
    return _usable([] if held is None else [held], problem)


def has_each_stratum(problem: Problem, units: Tensor) -> bool:
    """Whether some units of a problem have all the strata that it has."""
    return len(problem.strata[units].unique()) == len(problem.strata.unique())


def _usable(splits: list[Split], problem: Problem) -> list[Split]:
    """The splits, if what is needed is on both sides of each; else none."""
    if problem.needs_each_stratum and not all(has_each_stratum(problem, side) for split in splits for side in split):
        return []
    return splits


def _groups(strata: Tensor, together: Tensor | None) -> tuple[Tensor, Tensor]:
    """The strata (groups,) of what is held out as a whole, and which of these each unit is in, (units,).

    A group with units of several strata is in the rarest of them: a patient with one positive slide in that of the
    positive ones, so that these are spread over all folds.
    """
    if together is None:
        return strata, torch.arange(len(strata))
    numbers, group_of = together.unique(return_inverse=True)
    _, stratum, members = strata.unique(return_inverse=True, return_counts=True)
    place = members.argsort(stable=True).argsort()[stratum]  # 0 of the rarest
    rarest = place.new_full((len(numbers),), len(members)).scatter_reduce(0, group_of, place, "amin")
    return rarest, group_of


def _split(held: Tensor) -> Split:
    """Positions to learn from and to judge on, by a mask of the latter."""
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def _shuffled(strata: Tensor, seed: int) -> list[Tensor]:
    """The members of each stratum, in an order of chance."""
    generator = generator_of(seed, 2)  # not that of the bags or of the weights
    members = [(strata == stratum).nonzero().flatten() for stratum in strata.unique()]
    return [each[torch.randperm(len(each), generator=generator)] for each in members]
