"""How far bags differ by more than their instances explain: the standard deviation of their common shift, estimated."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from scipy.optimize import brentq, minimize_scalar
from torch import Tensor

from kofn.estimators._fit_warning import FitWarning
from kofn.learners import CountObjective, Fitted, Learner, Problem, Progress
from kofn.metrics import count_calibration
from kofn.targets import Exactly

LEVEL = 0.9  # of the intervals that are checked
FITS = 8  # at most, until a learner and the effect agree
NEAR = 0.02  # standard errors, within which they do
LEAST, MOST = 1e-3, 20.0  # standard deviations that are looked at
# Twice the gain in log-likelihood at which an effect is believed: of bags without one it is 0 in half of all cases and
# otherwise a chi-square variable of one degree of freedom, which is above this in 10 % of them.
BELIEVED = 2.705543


@dataclass(frozen=True)
class BagEffect:
    """An estimate of the standard deviation of the shift of bags.

    Attributes:
        sigma: the estimate.
        error: its standard error: half the width of the interval in which the log-likelihood is at most 1/2 below its
            largest value.
    """

    sigma: float
    error: float


def with_bag_effect(problem: Problem, sigma: float) -> Problem:
    """The problem with the count loss of bags that have this effect.

    Raises:
        ValueError: a loss that knows no distribution of counts.
    """
    objective = problem.objective
    if not isinstance(objective, CountObjective):
        raise ValueError(
            "`bag_effect` goes with loss='count', or of several classes with 'joint' or 'marginal': other losses do "
            "not ask for the distribution of a count."
        )
    return replace(problem, objective=replace(objective, bag_effect=sigma))


def fit_with_bag_effect(
    learner: Learner, problem: Problem, *, seed: int, progress: Progress | None
) -> tuple[Problem, Fitted, BagEffect]:
    """Fit a learner and the bag effect together.

    Of a fit with the effect sigma, the effect g(sigma) is estimated; together they are at their best where g(sigma) =
    sigma. The first fit has no effect, the second has what is estimated from it, and from then on the secant through
    the last two gaps g(sigma) - sigma says where to go, until what is left of the gap is nothing beside the standard
    error of the estimate.

    Returns:
        The problem that the learner was fitted to at last, what it became, and the estimate.
    """
    sigma, last = 0.0, None
    for number in range(FITS):
        part = with_bag_effect(problem, sigma)
        fitted = learner.fit(part, seed=seed, progress=progress)
        if number:  # with about the effect of the next fit
            learner = learner.narrowed(fitted)
        found = estimate_bag_effect(part, fitted)
        gap = found.sigma - sigma
        if found.sigma == 0 or abs(gap) <= NEAR * found.error:
            break
        following = found.sigma
        if last is not None and last[0] > 0 and gap != last[1]:
            secant = sigma - gap * (sigma - last[0]) / (gap - last[1])
            if 0 < secant < 2 * max(sigma, found.sigma):
                following = secant
        last, sigma = (sigma, gap), following
    return part, fitted, found


def estimate_bag_effect(problem: Problem, fitted: Fitted) -> BagEffect:
    """The standard deviation of the shift of bags, by maximum likelihood, from a fitted learner.

    The logits are those of models that had not seen the bags, where the learner has held some out: of bags that were
    learned from, the logits have followed the shifts, which would look too small. If bags without an effect would show
    as much of one by chance in one case of twenty or more, the estimate is 0.
    """
    return bag_effect_of(*_held_out(problem, fitted))


def bag_effect_of(problem: Problem, logits: Tensor) -> BagEffect:
    """The same from logits of the instances, float64, by whatever model."""

    def loss(sigma: float) -> float:
        part = with_bag_effect(problem, sigma)
        return float((part.losses(logits) * part.bag_weights).sum())

    none = loss(0.0)
    best = minimize_scalar(
        lambda log_sigma: loss(math.exp(log_sigma)), bounds=(math.log(LEAST), math.log(MOST)), method="bounded"
    )
    sigma, least = math.exp(best.x), float(best.fun)
    if none <= least:
        sigma, least = 0.0, none

    def gap(value: float) -> float:
        return loss(value) - least - 0.5

    high = _crossing(gap, max(sigma, LEAST), MOST)
    low = _crossing(gap, sigma, 0.0) if gap(0.0) > 0 else 0.0
    believed = 2 * (none - least) > BELIEVED
    return BagEffect(sigma if believed else 0.0, (high - low) / 2)


def warn_if_narrow(problem: Problem, fitted: Fitted) -> None:
    """Warn where intervals of held-out bags hold too few of their counts, as they do where bags have an effect."""
    exact = isinstance(problem.objective, CountObjective) and problem.objective.target is Exactly
    if not exact or problem.weight is not None or fitted.held_out_logits is None:
        return
    held, logits = _held_out(problem, fitted)
    if int(held.bags.sizes.max()) == 1:
        return
    x = logits[held.bags.index]
    offsets, copies = held.bags.offsets, held.bags.copies
    (coverage,) = count_calibration(x, held.labels, offsets=offsets, copies=copies, levels=[LEVEL]).coverage
    if coverage + 3 * math.sqrt(LEVEL * (1 - LEVEL) / len(held.bags)) < LEVEL:
        warnings.warn(
            f"the distributions of counts are too narrow: {100 * LEVEL:g} % intervals hold the counts of "
            f"{100 * coverage:.0f} % of {len(held.bags)} held-out bags. Bags differ by more than this model explains: "
            f"their instances have something in common, or the model is too sure. With bag_effect='fit' (kofn fit llp "
            f"--bag-effect fit) the difference is learned, and the intervals are as wide as they should be.",
            FitWarning,
            stacklevel=5,
        )


def _held_out(problem: Problem, fitted: Fitted) -> tuple[Problem, Tensor]:
    """Bags that were held out, or all if none were, and logits of the instances, float64."""
    if fitted.held_out_logits is None:
        return problem, torch.from_numpy(fitted.logits(problem.instances))
    logits = torch.from_numpy(fitted.held_out_logits)
    units = torch.unique(torch.cat([held for _, held in fitted.splits]))
    return problem.take(units), logits


def _crossing(gap: Callable[[float], float], inside: float, outside: float) -> float:
    """Where the log-likelihood has fallen by 1/2, between a point where it has not and one where it has."""
    if gap(inside) >= 0:
        return inside
    if gap(outside) <= 0:
        return outside
    return float(brentq(gap, inside, outside, xtol=1e-4))
