"""The best constant for what is known of bags: where every learner starts, and what it must be better than."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from kofn.learners._objectives import CountObjective, Objective, losses_of_entries
from kofn.learners._problem import Problem
from kofn.learners._pu_problem import PUProblem
from kofn.targets import Exactly, Spread

TRIED = 25  # rates from which the search for the best one begins


def best_rate(objective: Objective, labels: Tensor, sizes: Tensor, weight: Tensor | None) -> float:
    """The rate of all instances under which a loss of bags is smallest, above 0 and below 1.

    For a likelihood it is the maximum-likelihood rate of the statement, whatever it is: of intervals it is not the mean
    of their middles.

    Args:
        objective: of the bags.
        labels: (b, ...) that it reads.
        sizes: (b,) of the bags; ones for an objective that reads one logit of each bag.
        weight: (b,) of the bags, or None for ones.

    Examples:
        >>> from kofn.learners import between
        >>> low_and_high = torch.tensor([[0, 9], [0, 9], [10, 100]])  # two suppressed cells and one that is not
        >>> rate = best_rate(CountObjective(between), low_and_high, torch.tensor([100, 100, 100]), None)
        >>> round(rate, 3)  # and not the mean of the middles, 0.213
        0.084
    """
    weights = torch.ones(len(sizes), dtype=torch.float64) if weight is None else weight.double()
    table = torch.cat([sizes.double().unsqueeze(1), labels.reshape(len(labels), -1).double()], 1)
    _, of = table.unique(dim=0, return_inverse=True)  # bags alike have the same loss
    first = torch.full((int(of.max()) + 1,), len(of)).scatter_reduce(0, of, torch.arange(len(of)), "amin")
    times = torch.zeros(len(first), dtype=torch.float64).index_add(0, of, weights)
    there = times > 0
    chosen, times = first[there], times[there]
    n = sizes[chosen]
    one_each = torch.arange(len(n) + 1)
    factor = times * n if objective.unit == "instance" else times

    def loss(logit: float) -> float:
        alike = torch.full((len(n),), logit, dtype=torch.float64)
        losses = losses_of_entries(objective, alike, labels[chosen], one_each, n)
        return float((losses * factor).sum())

    # A rate that is 0 or 1 is only known to be near it.
    end = float(np.log(2 * float(sizes[weights > 0].sum()) - 1))
    grid = np.linspace(-end, end, TRIED)
    best = int(np.argmin([loss(logit) for logit in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, TRIED - 1)]
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return float(1 / (1 + np.exp(-found.x)))


def at_its_own_rate(problem: Problem) -> Problem:
    """A part of a problem that starts at the best constant for its own bags, and not for those of the whole.

    A fold that started at the rate of all bags would know something of those that it is judged on. The mixture of
    positives and unlabelled is given from outside.
    """
    if isinstance(problem, PUProblem):
        return problem
    sizes, objective = problem.bags.sizes, problem.objective
    exact = isinstance(objective, CountObjective) and objective.target in (Exactly, Spread)
    if exact or problem.outputs or objective.unit == "instance":
        return replace(problem, rate=_share(problem))
    of_bags = torch.ones_like(sizes) if problem.pooling is not None else sizes
    return replace(problem, rate=best_rate(objective, problem.labels, of_bags, problem.weight))


def _share(problem: Problem) -> float | Tensor:
    """The share of positives in all bags, or (C,) of the classes."""
    n = problem.bags.sizes * problem.bag_weights
    half = 0.5 / float(problem.bags.sizes[n > 0].sum())  # a rate that is 0 or 1 is only known to be near it
    if not problem.outputs:
        return min(max(float((problem.proportions * n).sum() / n.sum()), half), 1 - half)
    rates = ((problem.proportions * n.unsqueeze(1)).sum(0) / n.sum()).clamp(min=half)
    return rates / rates.sum()
