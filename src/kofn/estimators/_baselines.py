"""What a fit is measured against: no features at all, and a linear model of the means of bags."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._bag_effects import bag_effect_of, with_bag_effect
from kofn.estimators._bag_means import BagFeatures, BagMeans
from kofn.estimators._fit_warning import FitWarning
from kofn.learners import Objective, Problem, PUProblem
from kofn.learners._problem import start_at
from kofn.learners._splits import Split

NO_FEATURES, BAG_MEANS = "no features", "bag means"


@dataclass(frozen=True, eq=False)
class Baselines:
    """How good two models are that anybody would try first.

        "no features": every instance has the base rate.
        "bag means":   ridge regression of the bags' proportions, of each class if there are several, on the means of
                       their features; of multiple instances logistic regression of their labels. For positives and
                       unlabelled, logistic regression of which rows are labelled, its intercept moved until the mean
                       probability is the mixture.

    Attributes:
        losses: mean losses of the held-out bags by name; none where nothing was held out, "no features" alone for
            instances that are no table.
        held_out: (k,) or (k, C) logits of the held-out units, in ascending order, by the linear model that was fitted
            to the others; None where there is none.
        bag_means: the linear model of all bags; None for instances that are no table, and if there is one label or one
            bag only.
    """

    losses: dict[str, float]
    held_out: NDArray[np.float64] | None = None
    bag_means: BagMeans | None = None


def fit_baselines(problem: Problem, splits: Sequence[Split], *, to_all: bool = True) -> Baselines:
    """Fit both to the parts that a learner learned from, judge them on those held out, and fit them to all bags.

    Args:
        problem: all bags.
        splits: bags to learn from, and bags to judge on, as a learner had them.
        to_all: whether the linear model of all bags is wanted.
    """
    with threadpool_limits(1, user_api="blas"):  # whose threads cost more than they bring on tables of some columns
        features = BagFeatures.of(problem)
        losses, held_out = _judged(problem, splits, features) if splits else ({}, None)
        return Baselines(losses, held_out, BagMeans.fit(problem, features) if features and to_all else None)


def judge_with_bag_effects(problem: Problem, split: Split) -> dict[str, float]:
    """Their losses of the bags of a split, each with the bag effect that it finds in the bags that it learned from.

    A model that explains less needs a larger effect: with that of a better one it would look worse than it is.
    """
    losses = {}
    with threadpool_limits(1, user_api="blas"):
        features = BagFeatures.of(problem)
        train, sizes = problem.take(split[0]), problem.bags.sizes[split[0]]
        start = start_at(problem.rate)
        predicted = {NO_FEATURES: start.expand(len(sizes), *start.shape)}
        if features is not None:
            predicted[BAG_MEANS] = _predicted(problem, features, split[0], split[0])
        for name, each in predicted.items():
            logits = torch.full((len(train.instances), *problem.outputs), torch.nan, dtype=torch.float64)
            logits[train.bags.index] = each.double().repeat_interleave(sizes, 0)
            sigma = bag_effect_of(train, logits).sigma
            losses[name] = _judged(with_bag_effect(problem, sigma), [split], features)[0][name]
    return losses


def warn_if_useless(validation_loss: float | None, losses: Mapping[str, float], *, stacklevel: int) -> None:
    """Warn of a fit that is no better than a model without features."""
    if validation_loss is not None and validation_loss >= losses[NO_FEATURES]:
        warnings.warn(
            f"this fit is no better than a model without features: the loss of held-out bags is "
            f"{validation_loss:.4g}, and {losses[NO_FEATURES]:.4g} if every instance has the base "
            f"rate. Check that the features can distinguish the classes, that rows and bags belong together, and "
            f"that there are enough bags; or try another learner.",
            FitWarning,
            stacklevel=stacklevel + 1,
        )


def _judged(
    problem: Problem, splits: Sequence[Split], features: BagFeatures | None
) -> tuple[dict[str, float], NDArray[np.float64] | None]:
    found: dict[str, list[float]] = {NO_FEATURES: []}
    weights, units, logits = [], [], []
    if features is not None:
        found[BAG_MEANS] = []
    for train_units, held_units in splits:
        held = problem.take(held_units)
        without = losses_without_features(
            held.objective, held.labels, held.bags, problem.rate, pooled=held.pooling is not None
        )
        found[NO_FEATURES].append(float(held.mean(without)))
        if features is not None:
            predicted = _predicted(problem, features, train_units, held_units)
            found[BAG_MEANS].append(_loss(problem, held, held_units, predicted))
            units.append(held_units)
            logits.append(predicted)
        weights.append(float(held.bag_weights.sum()))
    means = {name: float(np.average(losses, weights=weights)) for name, losses in found.items()}
    return means, torch.cat(logits)[torch.cat(units).argsort()].numpy() if logits else None


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


def _predicted(problem: Problem, features: BagFeatures, train: Tensor, held: Tensor) -> Tensor:
    """Logits (k,) or (k, C) of one instance of each held-out bag, or of held-out rows."""
    model = BagMeans.fit(problem, features, train)
    if model is None:  # one label or one bag only: of positives and unlabelled there is nothing to say
        value = torch.tensor(torch.nan) if isinstance(problem, PUProblem) else problem.start
        return value.double().expand(len(held), *value.shape)
    # A tensor of one position would be taken for a number.
    return model.logits(
        features.table[held.numpy()], torch.ones(0) if model.kind == "row" else problem.bags.sizes[held]
    )


def _loss(problem: Problem, held: Problem, units: Tensor, predicted: Tensor) -> float:
    """The mean loss where all instances of a bag have the same logits, (k,) or (k, C), or of logits of rows."""
    if isinstance(problem, PUProblem):
        logits = torch.full((len(problem.instances),), torch.nan, dtype=torch.float64)
        logits[problem.chosen[units]] = predicted
        return float(held.mean_loss(logits))
    logits = predicted if held.pooling is not None else predicted.repeat_interleave(held.bags.sizes, 0)
    return float(held.mean(held.objective(logits, held.labels, held.bags.offsets)))
