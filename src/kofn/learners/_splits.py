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
    """Folds, or of many units or a large table a held-out tenth; none of fewer than twice as many units as folds.

    Of a problem that needs some of each stratum, none of fewer of one of them than folds either.
    """
    strata, each = problem.strata, problem.needs_each_stratum
    if len(strata) < 2 * number or (each and int(strata.unique(return_counts=True)[1].min()) < number):
        return []
    if len(strata) > MANY or problem.instances.size > LARGE:
        held = hold_out(strata, 0.1, seed, each=each)
        return [] if held is None else [held]
    return folds(strata, number, seed)


def _shuffled(strata: Tensor, seed: int) -> list[Tensor]:
    """The members of each stratum, in an order of chance."""
    generator = generator_of(seed, 2)  # not that of the bags or of the weights
    members = [(strata == stratum).nonzero().flatten() for stratum in strata.unique()]
    return [each[torch.randperm(len(each), generator=generator)] for each in members]
