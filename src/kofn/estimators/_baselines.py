"""What a fit is measured against: no features at all, and a linear model of the means of bags."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from kofn.estimators._bag_effects import bag_effect_of, with_bag_effect
from kofn.estimators._bag_means import BagFeatures, BagMeans
from kofn.estimators._fit_warning import FitWarning
from kofn.estimators._rates import LabelShares, label_shares, losses_without_features
from kofn.learners import Fitted, Problem, PUProblem
from kofn.learners._problem import start_at
from kofn.learners._splits import Split

NO_FEATURES, BAG_MEANS = "no features", "bag means"


@dataclass(frozen=True, eq=False)
class Baselines:
    """Two models that anybody would try first, fitted to the bags that a learner learns from.

        "no features": the best constant for what is known of the bags (`_rates.py`): one rate of all instances, or the
                       shares of the labels.
        "bag means":   ridge regression of the bags' proportions, of each class if there are several, on the means of
                       their features; of multiple instances logistic regression of their labels. For positives and
                       unlabelled, logistic regression of which rows are labelled, its intercept moved until the mean
                       probability is the mixture.

    They are fitted before the learner is, so that nothing can go wrong with them when a model is there to be lost.

    Attributes:
        splits: bags that are learned from, and bags that are held out.
        shares: of the labels in each part that is learned from, or None.
        predicted: logits (k,) or (k, C) of the units that each split holds out, by the linear model of the others; None
            for instances that are no table, or where none was asked for.
        bag_means: the linear model of all bags; None likewise, and if there is one label or one bag only.
    """

    splits: Sequence[Split]
    shares: list[LabelShares | None]
    predicted: list[Tensor] | None
    bag_means: BagMeans | None

    @classmethod
    def fit(cls, problem: Problem, splits: Sequence[Split], *, linear: bool = True, to_all: bool = True) -> Baselines:
        """Fit both to the parts that are learned from, and the linear model to all bags.

        Args:
            problem: all bags.
            splits: bags to learn from, and bags to judge on, as a learner has them.
            linear: whether the linear model is wanted at all.
            to_all: whether the linear model of all bags is wanted.
        """
        shares = [label_shares(problem.take(train)) for train, _ in splits]
        with threadpool_limits(1, user_api="blas"):  # whose threads cost more than they bring on tables of some columns
            features = BagFeatures.of(problem) if linear else None
            if features is None:
                return cls(splits, shares, None, None)
            predicted = [_predicted(problem, features, train, held) for train, held in splits]
            return cls(splits, shares, predicted, BagMeans.fit(problem, features) if to_all else None)

    def losses(self, problem: Problem) -> dict[str, float]:
        """Mean losses of the held-out bags by name; none where nothing was held out.

        Args:
            problem: that they were fitted to, perhaps with a bag effect that has been found since.
        """
        if not self.splits:
            return {}
        parts = [problem.take(held) for _, held in self.splits]
        found = {
            NO_FEATURES: [
                float(part.mean(_losses_without(part, each))) for part, each in zip(parts, self.shares, strict=True)
            ]
        }
        if self.predicted is not None:
            each = zip(parts, self.splits, self.predicted, strict=True)
            found[BAG_MEANS] = [_loss(problem, part, held, logits) for part, (_, held), logits in each]
        weights = [float(part.bag_weights.sum()) for part in parts]
        return {name: float(np.average(losses, weights=weights)) for name, losses in found.items()}

    @property
    def held_out(self) -> NDArray[np.float64] | None:
        """(k,) or (k, C) logits of the held-out units, in ascending order, by the linear model of the others."""
        if not self.predicted:
            return None
        units = torch.cat([held for _, held in self.splits])
        found: NDArray[np.float64] = torch.cat(self.predicted)[units.argsort()].numpy()
        return found


def judge_with_bag_effects(problem: Problem, split: Split) -> dict[str, float]:
    """Their losses of the bags of a split, each with the bag effect that it finds in the bags that it learned from.

    A model that explains less needs a larger effect: with that of a better one it would look worse than it is.
    """
    train, sizes = problem.take(split[0]), problem.bags.sizes[split[0]]
    start = start_at(problem.rate)
    predicted = {NO_FEATURES: start.expand(len(sizes), *start.shape)}
    with threadpool_limits(1, user_api="blas"):
        features = BagFeatures.of(problem)
        if features is not None:
            predicted[BAG_MEANS] = _predicted(problem, features, split[0], split[0])
    baselines = Baselines.fit(problem, [split], to_all=False)
    losses = {}
    for name, each in predicted.items():
        logits = torch.full((len(train.instances), *problem.outputs), torch.nan, dtype=torch.float64)
        logits[train.bags.index] = each.double()[train.bags.bag_of()]
        losses[name] = baselines.losses(with_bag_effect(problem, bag_effect_of(train, logits).sigma))[name]
    return losses


def warn_if_useless(problem: Problem, fitted: Fitted, baselines: Baselines, *, stacklevel: int) -> None:
    """Warn of a fit whose gain over the baseline without features is not above its standard error.

    The step of a fit was chosen on the held-out bags, where one that has learned nothing is somewhat better than no
    features by chance, about as often as not.
    """
    if fitted.validation_loss is None:
        return
    without = baselines.losses(problem)[NO_FEATURES]
    error = _error_of_gain(problem, fitted, baselines)
    if without - fitted.validation_loss <= error:
        within = f" within its standard error, {error:.2g}" if without > fitted.validation_loss else ""
        warnings.warn(
            f"this fit is no better than a model without features{within}: the loss of held-out bags is "
            f"{fitted.validation_loss:.4g}, and {without:.4g} by the best constant. Check that the features can "
            f"distinguish the classes, that rows and bags belong together, and that there are enough bags; or try "
            f"another learner.",
            FitWarning,
            stacklevel=stacklevel + 1,
        )


def _error_of_gain(problem: Problem, fitted: Fitted, baselines: Baselines) -> float:
    """The standard error of the mean gain of held-out bags over no features; 0 where it is not known."""
    if fitted.held_out_logits is None:
        return 0.0
    logits = torch.from_numpy(fitted.held_out_logits)
    gains, weights = [], []
    for (_, held), shares in zip(baselines.splits, baselines.shares, strict=True):
        part = problem.take(held)
        gains.append(_losses_without(part, shares).double() - part.losses(logits).double())
        weights.append(part.bag_weights)
    gain, share = torch.cat(gains), torch.cat(weights) / torch.cat(weights).sum()
    gain, share = gain[share > 0], share[share > 0]
    if len(gain) < 2:
        return 0.0
    return float(((gain - (gain * share).sum()) * share).square().sum().sqrt())


def _losses_without(part: Problem, shares: LabelShares | None) -> Tensor:
    return losses_without_features(part.objective, part.labels, part.bags.sizes, part.rate, shares)


def _predicted(problem: Problem, features: BagFeatures, train: Tensor, held: Tensor) -> Tensor:
    """Logits (k,) or (k, C) of one instance of each held-out bag, or of held-out rows."""
    model = BagMeans.fit(problem, features, train)
    if model is None:  # one label or one bag only: of positives and unlabelled there is nothing to say
        value = torch.tensor(torch.nan) if isinstance(problem, PUProblem) else problem.start
        return value.double().expand(len(held), *value.shape)
    # A tensor of one position would be taken for a number.
    return model.logits(features.rows(held), torch.ones(0) if model.kind == "row" else problem.bags.sizes[held])


def _loss(problem: Problem, held: Problem, units: Tensor, predicted: Tensor) -> float:
    """The mean loss where all instances of a bag have the same logits, (k,) or (k, C), or of logits of rows."""
    if isinstance(problem, PUProblem):
        logits = torch.full((len(problem.instances),), torch.nan, dtype=torch.float64)
        logits[problem.chosen[units]] = predicted
        return float(held.mean_loss(logits))
    logits = predicted if held.pooling is not None else predicted[held.bags.bag_of()]
    return float(held.mean(held.losses_of(logits, held.labels, held.bags.offsets, held.bags.copies)))
