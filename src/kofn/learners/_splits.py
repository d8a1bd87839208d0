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


def hold_out(strata: Tensor, fraction: float, seed: int, *, each: bool = False) -> Split | None:
    """Hold a fraction of each stratum out, rounded up, but not all; None where nothing can be held out.

    Of a stratum with few members nothing is, or, if there must be some of `each`, of none.

    Examples:
        >>> import torch
        >>> train, held = hold_out(torch.tensor([0] * 20 + [1] * 10), 0.1, seed=0)
        >>> len(train), len(held), int((held >= 20).sum())
        (27, 3, 1)
    """
    held = torch.zeros(len(strata), dtype=torch.bool)
    for order in _shuffled(strata, seed):
        if len(order) >= FEWEST:
            held[order[: min(ceil(fraction * len(order)), len(order) - 1)]] = True
        elif each:
            return None
    if not held.any():
        return None
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def folds(strata: Tensor, number: int, seed: int) -> list[Split]:
    """Folds of which each holds about the same part of each stratum; none where there are too few for them.

    Examples:
        >>> import torch
        >>> [held.tolist() for _, held in folds(torch.tensor([0, 0, 0, 1, 1, 1]), 3, seed=0)]
        [[2, 4], [1, 5], [0, 3]]
    """
    if len(strata) < number:
        return []
    fold = torch.empty(len(strata), dtype=torch.int64)
    place = 0
    for order in _shuffled(strata, seed):  # each stratum goes on where the last ended, so that folds are of one size
        fold[order] = torch.arange(place, place + len(order)) % number
        place += len(order)
    return [((fold != k).nonzero().flatten(), (fold == k).nonzero().flatten()) for k in range(number)]


def splits_of(problem: Problem, number: int, seed: int) -> list[Split]:
    """Folds of bags, or of very many bags a held-out tenth; none of fewer than twice as many bags as folds.

    Units that must stay together (`Problem.together`) are held out together. Of a problem that needs some of each
    stratum, there is no split of fewer of one of them than folds either.
    """
    strata, each, of = _what_is_dealt(problem)
    if len(strata) < 2 * number or (each and int(strata.unique(return_counts=True)[1].min()) < number):
        return []
    if len(strata) > MANY or (problem.instances.size > LARGE and len(strata) > ENOUGH):
        held = hold_out(strata, 0.1, seed, each=each)
        dealt = [] if held is None else [held]
    else:
        dealt = folds(strata, number, seed)
    return [_of_units(split, of) for split in dealt]


def a_split_of(problem: Problem, fraction: float, seed: int) -> list[Split]:
    """A fraction of the bags, held out; none of the fraction 0, or of too few bags."""
    strata, each, of = _what_is_dealt(problem)
    held = hold_out(strata, fraction, seed, each=each) if fraction else None
    return [] if held is None else [_of_units(held, of)]


def folds_of(problem: Problem, number: int, seed: int) -> list[Split]:
    """Folds of whatever number of bags."""
    strata, _, of = _what_is_dealt(problem)
    return [_of_units(split, of) for split in folds(strata, number, seed)]


def _what_is_dealt(problem: Problem) -> tuple[Tensor, bool, Tensor | None]:
    """The strata of what is held out as a whole, whether some of each are needed, and which of these each unit is in.

    What holds units of several strata together is in the stratum that most of them are in.
    """
    strata = problem.strata
    if problem.together is None:
        return strata, problem.needs_each_stratum, None
    _, of = problem.together.unique(return_inverse=True)
    votes = torch.zeros(int(of.max()) + 1 if len(of) else 0, int(strata.max()) + 1 if len(strata) else 1)
    votes.index_put_((of, strata), torch.ones(len(of)), accumulate=True)
    return votes.argmax(1), problem.needs_each_stratum, of


def _of_units(split: Split, of: Tensor | None) -> Split:
    if of is None:
        return split
    held = torch.isin(of, split[1])
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def _shuffled(strata: Tensor, seed: int) -> list[Tensor]:
    """The members of each stratum, in an order of chance."""
    generator = generator_of(seed, 2)  # not that of the bags or of the weights
    members = [(strata == stratum).nonzero().flatten() for stratum in strata.unique()]
    return [each[torch.randperm(len(each), generator=generator)] for each in members]
