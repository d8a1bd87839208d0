"""What a fit is measured against: no features at all, and a linear model of the means of bags."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from kofn.bags import Bags
from kofn.learners import BagObjective, Objective, PooledObjective, Problem, PUProblem
from kofn.learners._design import Design
from kofn.learners._problem import start_at
from kofn.learners._splits import Split

MOST = 20_000  # bags or rows that a baseline is fitted to: it is to take a second
NO_FEATURES, BAG_MEANS = "no features", "bag means"


def baseline_losses(problem: Problem, splits: Sequence[Split]) -> dict[str, float]:
    """Mean losses of the held-out bags by two models that anybody would try first.

        "no features": every instance has the base rate.
        "bag means":   ridge regression of the bags' proportions, of each class if there are several, on the means of
                       their features; of multiple instances logistic regression of their labels. For positives and
                       unlabelled, logistic regression of which rows are labelled, its intercept moved until the mean
                       probability is the mixture.

    Args:
        problem: all bags.
        splits: bags to learn from, and bags to judge on, as a learner had them.

    Returns:
        A loss by name; none where nothing was held out, "no features" alone for instances that are no table.
    """
    if not splits:
        return {}
    with threadpool_limits(1, user_api="blas"):  # whose threads cost more than they bring on tables of some columns
        return _baseline_losses(problem, splits)


def _baseline_losses(problem: Problem, splits: Sequence[Split]) -> dict[str, float]:
    found: dict[str, list[float]] = {NO_FEATURES: []}
    weights = []
    table = _bag_features(problem) if problem.instances.ndim == 2 else None
    if table is not None:
        found[BAG_MEANS] = []
    for train_units, held_units in splits:
        train, held = problem.take(train_units), problem.take(held_units)
        without = losses_without_features(
            held.objective, held.labels, held.bags, problem.rate, pooled=held.pooling is not None
        )
        found[NO_FEATURES].append(float(held.mean(without)))
        if table is not None:
            if isinstance(train, PUProblem) and isinstance(held, PUProblem):
                found[BAG_MEANS].append(_labelled_against_unlabelled(table, train, held))
            else:
                found[BAG_MEANS].append(_loss(held, _predicted(table, problem, train_units, held_units)))
        weights.append(float(held.bag_weights.sum()))
    return {name: float(np.average(losses, weights=weights)) for name, losses in found.items()}


def losses_without_features(
    objective: Objective,
    labels: Tensor,
    bags: Bags,
    rate: float | Tensor | NDArray[np.float64],
    *,
    pooled: bool = False,
) -> Tensor:
    """Losses (b,) of bags of which every instance (of a pooled loss, every bag) has the base rate, or rates (C,).

    Examples:
        >>> import torch, kofn
        >>> from kofn.learners import CountObjective
        >>> bags = kofn.Bags.from_sizes([2, 1])
        >>> losses_without_features(CountObjective(), torch.tensor([1, 0]), bags, 0.5).neg().exp()
        tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    entries = len(bags) if pooled else len(bags.index)
    start = start_at(rate)
    return objective(start.expand(entries, *start.shape).contiguous(), labels, bags.offsets)


def _bag_features(problem: Problem) -> NDArray[np.float64]:
    """Means (b, width) of the standardised features of each bag; of positives and unlabelled, features of the rows."""
    x = Design.learn(problem.instances, problem.categories)(problem.instances)
    return x.astype(np.float64) if isinstance(problem, PUProblem) else problem.bags.mean(x).double().numpy()


def _predicted(table: NDArray[np.float64], problem: Problem, train: Tensor, held: Tensor) -> Tensor:
    """Logits (b,) or (b, C) of one instance of each held-out bag, by a linear model of the means."""
    from sklearn.linear_model import LogisticRegression, RidgeCV

    train = train[:MOST]
    sizes = problem.bags.sizes[held].double()
    y = problem.proportions[train].double().numpy()
    known, unknown = table[train.numpy()], table[held.numpy()]  # a tensor of one position would be taken for a number
    objective = problem.objective
    if not isinstance(objective, (BagObjective, PooledObjective)):
        share = torch.from_numpy(RidgeCV(alphas=np.logspace(-1, 5, 13)).fit(known, y).predict(unknown))
        # Nearer to 0 or 1 than half an instance nobody knows a bag.
        half = 0.5 / (sizes + 1)
        if problem.outputs:
            return torch.maximum(share, half.unsqueeze(1)).log()
        return torch.logit(torch.clamp(share, half, 1 - half))
    if len(np.unique(y)) < 2:
        return problem.start.expand(len(held))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is no matter here
        model = LogisticRegression(max_iter=200).fit(known, y)
    bag = torch.from_numpy(model.decision_function(unknown)).double()
    if isinstance(objective, PooledObjective) or objective.pool is not None:
        return bag  # of equal instances every pool is one of them
    # P(S >= 1) = 1 - (1 - p)^n, so with t = -log P(S = 0) / n the odds p / (1 - p) are e^t - 1.
    return torch.log(torch.expm1(torch.nn.functional.softplus(bag) / sizes))


def _labelled_against_unlabelled(table: NDArray[np.float64], train: PUProblem, held: PUProblem) -> float:
    from scipy.optimize import brentq
    from sklearn.linear_model import LogisticRegression

    rows = train.chosen[torch.linspace(0, len(train.chosen) - 1, min(MOST, len(train.chosen))).long()]
    y = train.labeled[rows].numpy()
    if y.all() or not y.any():
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=200).fit(table[rows.numpy()], y)
    scores = torch.from_numpy(model.decision_function(table)).double()
    unlabelled = scores[train.chosen[~train.labeled[train.chosen]]]
    shift = brentq(lambda b: float(torch.sigmoid(unlabelled + b).mean()) - train.rate, -100.0, 100.0)
    return float(held.mean_loss(scores + shift))


def _loss(problem: Problem, bag_logits: Tensor) -> float:
    """The mean loss where all instances of a bag have the same logits, (b,) or (b, C)."""
    logits = bag_logits if problem.pooling is not None else bag_logits.repeat_interleave(problem.bags.sizes, 0)
    return float(problem.mean(problem.objective(logits, problem.labels, problem.bags.offsets)))
