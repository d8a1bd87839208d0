"""Logistic regression on any loss, by L-BFGS."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from torch import Tensor

from kofn import _require
from kofn._io.mapped import blocks
from kofn.learners._best_rate import at_its_own_rate
from kofn.learners._design import Design, Features
from kofn.learners._held_out import held_out_curve, history_of, is_over, mean_losses, validation
from kofn.learners._learner import Fitted, Instances, Learner, Logits, Progress, one_thread, require_table
from kofn.learners._objectives import CountObjective, criteria
from kofn.learners._problem import Problem
from kofn.learners._splits import Split, splits_of

Weights = NDArray[np.float64]
LARGEST_PENALTY = 1e6
LEAST_SPREAD = 0.01  # of logits under the strongest penalty that is tried
WIDEST = 30.0  # standard deviation of the prior that the weakest penalty is
A_DECADE = 2  # penalties
TURNED, RISING = 6, 4  # steps after its best at which a curve may have turned, and steps that it has risen by then
ENOUGH = 5  # bags for each coefficient, so that they can do without a penalty
ON_THE_WAY = 200  # steps of L-BFGS at most for a penalty that is not the chosen one of all bags
ROUGH, FINE = 1e-7, 1e-11  # changes of the loss at which a penalty on the way, and the chosen one, are left
MANY_SCORES = 1 << 21  # logits of a problem from which on torch may take several threads
SMALL = 300_000  # values that one thread is done with sooner than several
PRIOR = 2.5  # standard deviation of a coefficient, of which a penalty says next to nothing (Gelman et al. 2008)


class Linear(Learner):
    """Logistic regression, logit = w x + b, for several classes multinomial, with a penalty chosen on held-out bags.

        mean loss of the bags + l2 / 2 |w|^2,

    with weights of each class where there are several, by L-BFGS (scipy). Columns are standardised; a missing number
    becomes the mean with a column that says so, a category a column of its own. Penalties are tried from the largest
    down, each from the weights of the last, until the loss of held-out bags has turned for good. With a loss that
    saturates (uPU and nnPU with the sigmoid surrogate) all are tried, each from the start: under a large penalty it
    makes one class of all, which no smaller one would leave.

    Args:
        l2: L2 penalty; None chooses it on held-out bags.
        penalties: the penalties to choose from; None takes half decades from one under which nothing is learned to one
            that says next to nothing.
        folds: number of folds of bags, on which the penalty is chosen. With very many bags a tenth is held out instead.
        max_steps: maximum number of steps of L-BFGS for each penalty.

    Warns:
        sklearn.exceptions.ConvergenceWarning: L-BFGS needs more steps.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(400, 2)), np.repeat(np.arange(100), 4)
        >>> y = (X[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
        >>> model = kofn.LLPClassifier(kofn.Linear(), random_state=0).fit(X, y, groups=groups)
        >>> bool((model.predict(X) == (X[:, 0] > 0)).mean() > 0.95)
        True
    """

    _near: Weights | None = None  # of a fit to all bags, where a fit to some of them drawn anew begins

    def __init__(
        self,
        *,
        l2: float | None = None,
        penalties: Sequence[float] | None = None,
        folds: int = 5,
        max_steps: int = 1000,
    ) -> None:
        self.l2 = l2
        self.penalties = penalties
        self.folds = folds
        self.max_steps = max_steps

    def splits(self, problem: Problem, seed: int) -> list[Split]:
        return [] if self.l2 is not None else splits_of(problem, self.folds, seed)

    def fit(self, problem: Problem, *, seed: int, progress: Progress | None = None) -> FittedLinear:
        self.require_options()
        require_table(problem, "Linear")
        threads = torch.get_num_threads()
        scores = len(problem.bags.index) * prod(problem.outputs)
        # Of vectors this short threads do nothing but wait for each other, 9 ms a step on a busy machine.
        with threadpool_limits(1, user_api="blas"), one_thread() if scores < MANY_SCORES else nullcontext():
            return self._fit(problem, seed, progress, threads)

    def _fit(self, problem: Problem, seed: int, progress: Progress | None, threads: int) -> FittedLinear:
        splits = [] if self.l2 is not None else self.splits(problem, seed)
        # With too few bags to choose on, that of a normal prior of standard deviation 1 for each coefficient.
        last = 1 / problem.mean_of if self.l2 is None else float(self.l2)
        design = Design.learn(problem.instances, problem.categories, problem.row_weights)
        features = design.features(problem.instances)
        everything = Path(problem, features, self.max_steps)
        penalties = everything.penalties() if self.penalties is None else sorted(map(float, self.penalties))[::-1]
        found: dict[str, list[float]] = {}
        judged: dict[str, Any] = {}
        if splits:
            folds = [FoldOfPenalties(problem, features, split, penalties, self.max_steps) for split in splits]
            curve = held_out_curve(
                folds,
                len(penalties),
                (lambda _: False) if problem.saturates else has_turned,
                threads=min(threads, len(folds)) if len(problem.bags.index) * design.width > SMALL else 1,
                progress=None if progress is None else partial(_tell, progress, len(penalties)),
            )
            best = int(np.argmin(curve))
            found = {"val_loss": mean_losses(folds, len(curve)), "criterion": curve}
            judged = {"splits": splits, **validation(problem, folds, best)}
            down = penalties[: best + 1]
        elif self._near is not None and self._near.shape == everything.weights.shape:  # no category is missing
            everything.weights, down = self._near, [last]
        else:
            # A given penalty is gone to in some large steps: a loss of bags is not convex.
            down = [*(penalty for penalty in penalties[:: 2 * A_DECADE] if penalty > last), last]
        losses = [everything.step(penalty) for penalty in down[:-1]]
        losses.append(everything.step(down[-1], tolerance=FINE))
        everything.warn_if_unfinished()
        tried = penalties[: len(found["val_loss"])] if splits else down
        history = history_of("penalty", l2=tried, train_loss=losses, **found)
        return FittedLinear(design, everything.weights, history=history, **judged)

    def from_model(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FittedLinear:
        design, weights = Design.from_model(facts["design"], tensors), tensors["weights"].numpy()
        if weights.dtype != np.float64 or weights.ndim not in (1, 2) or len(weights) != design.width + 1:
            raise ValueError(
                f"the model must have {design.width + 1} weights; it has {weights.shape}, of {weights.dtype}."
            )
        return FittedLinear(design, weights)

    def settled(self, fitted: Fitted, problem: Problem) -> Linear:
        learner = copy(self)
        learner.l2 = fitted.history[-1 if fitted.best is None else fitted.best]["l2"]
        if fitted.best is not None and isinstance(fitted, FittedLinear):  # else it was given, or could not be chosen
            learner.l2 = weak_penalty(learner.l2, problem, coefficients=len(fitted.weights))
        learner._near = fitted.weights if isinstance(fitted, FittedLinear) else None
        learner.penalties = (learner.l2,)
        return learner

    def narrowed(self, fitted: Fitted) -> Linear:
        if fitted.best is None:
            return self
        learner = copy(self)
        learner.penalties = [e["l2"] for e in fitted.history[max(fitted.best - 1, 0) : fitted.best + 2]]
        return learner

    def require_options(self) -> None:
        if self.l2 is not None:
            _require.number("l2", self.l2, low=0, high=LARGEST_PENALTY)
        if self.penalties is not None and not len(self.penalties):
            raise ValueError("`penalties` must hold one or more numbers to choose from; got none.")
        for penalty in self.penalties or ():
            _require.number("penalties", penalty, low=0, high=LARGEST_PENALTY)
        _require.whole_number("folds", self.folds, low=2, high=_require.LARGEST_INT)
        _require.whole_number("max_steps", self.max_steps, low=1, high=_require.LARGEST_INT)


class Path:
    """Models of one problem along penalties, each found from the one before.

        mean loss of the bags + l2 / 2 |w|^2

    Args:
        problem: whose bags are learned from.
        features: of all its instances.
        max_steps: maximum number of steps of L-BFGS for a penalty.

    Attributes:
        weights: (width + 1,) or (width + 1, C), after the last penalty; the intercept comes last.
    """

    def __init__(self, problem: Problem, features: Features, max_steps: int) -> None:
        self.problem, self.max_steps = problem, max_steps
        self._features = features
        self._start = np.zeros((features.width + 1, *problem.outputs))
        self._start[-1] = problem.start
        self.weights = self._start
        self._found: Any = None

    def step(self, penalty: float, *, tolerance: float = ROUGH) -> float:
        """Go on to a penalty, until a step changes the loss by less than the tolerance; the training loss there."""
        start = self._start if self.problem.saturates else self.weights
        steps = self.max_steps if tolerance == FINE else min(self.max_steps, ON_THE_WAY)
        self._found = minimize(
            self._objective,
            start.ravel(),
            args=(penalty,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxfun": 2 * steps, "ftol": tolerance, "gtol": 1e-6},
        )
        self.weights = self._found.x.reshape(start.shape)
        return float(self.problem.mean_loss(self.logits()))

    def penalties(self) -> list[float]:
        """Penalties to choose from: from one that leaves nothing of the weights to one that says next to nothing.

        Near w = 0 a penalty makes w = -g / l2 of the gradient g there; columns are standardised, so that logits then
        have about the standard deviation |g| / l2. The first penalty makes that 0.01, the last is that of a normal
        prior of standard deviation 30 for each coefficient: 1 / (30^2 b) for b bags.
        """
        _, gradient = self._objective(self._start.ravel(), 0.0)
        steepest = float(np.linalg.norm(gradient.reshape(self._start.shape)[:-1]))
        weakest = 1 / (WIDEST**2 * self.problem.mean_of)
        strongest = max(steepest / LEAST_SPREAD, weakest)
        number = int(np.ceil(np.log10(strongest / weakest) * A_DECADE)) + 1
        # Three digits, as they are shown, so that whoever types in what was chosen has the same fit.
        return [float(f"{penalty:.3g}") for penalty in np.geomspace(strongest, weakest, max(number, 2))]

    def warn_if_unfinished(self) -> None:
        """Warn of weights at which the optimiser was stopped before it had converged."""
        if not self._found.success and self.problem.slopes_are_gradients:
            words = self._found.message
            warnings.warn(
                f"L-BFGS has not converged after {self._found.nit} steps ({words}): the weights are not those of the "
                f"smallest loss. Allow more steps (`max_steps`), or say a larger penalty (`l2`).",
                ConvergenceWarning,
                stacklevel=2,
            )

    def logits(self) -> Tensor:
        """Of all instances, by the weights."""
        return linear_logits(self._features, self.weights)

    def _objective(self, weights: Weights, penalty: float) -> tuple[float, Weights]:
        w = torch.from_numpy(weights).reshape(self._start.shape)  # scipy knows vectors only
        losses, slope = self.problem.losses_and_slope(linear_logits(self._features, w.numpy()))
        slope = slope.double() / self.problem.mean_of
        gradient = torch.cat([self._features.transposed_times(slope) + penalty * w[:-1], slope.sum(0, keepdim=True)])
        loss = float(self.problem.total(losses)) / self.problem.mean_of
        return loss + penalty / 2 * float(w[:-1].square().sum()), gradient.flatten().numpy()


class FoldOfPenalties:
    """Models of some of the bags along penalties, judged on the others; a `kofn.learners._held_out.Fold`."""

    def __init__(
        self, problem: Problem, features: Features, split: Split, penalties: Sequence[float], max_steps: int
    ) -> None:
        # Of all rows the features are the same, and stay where they are: a copy for each fold could be too much.
        train, self._held = (problem.take(units) for units in split)
        train = at_its_own_rate(train)
        rows = self._held.bags.index.unique()
        self.losses: list[float] = []
        self.criteria: list[float] = []
        self.rows, self.weight = rows.numpy(), float(self._held.bag_weights.sum())
        self._path, self._penalties = Path(train, features, max_steps), penalties
        self._scores: list[Logits] = []

    def advance(self, steps: int) -> None:
        for penalty in self._penalties[len(self.losses) : len(self.losses) + steps]:
            self._path.step(penalty)
            logits = self._path.logits()
            self._scores.append(logits[self.rows].numpy())
            losses = self._held.losses(logits)
            self.losses.append(float(self._held.mean(losses)))
            self.criteria.append(float(self._held.mean(criteria(self._held.objective, losses, self._held.labels))))

    def scores(self, step: int) -> Logits:
        return self._scores[step]


def linear_logits(features: Features, weights: Weights) -> Tensor:
    """Logits (n,) or (n, C) by weights (width + 1,) or (width + 1, C), the intercept last."""
    w = torch.from_numpy(weights)
    return features.times(w[:-1]) + w[-1]


def has_turned(curve: Sequence[float]) -> bool:
    """Whether a curve has been worse than its best for some steps, and worse at each of the last ones.

    Where features are many or labels say little, nothing is learned under the first penalties, and the loss goes up
    and down by chance before it falls.

    Examples:
        >>> has_turned([1.0, 1.1, 1.0, 1.1, 1.2]), has_turned([2.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6])
        (False, True)
    """
    last = list(curve[-RISING:])
    return is_over(curve, TURNED) and all(after > before for before, after in pairwise(last))


def _tell(progress: Progress, penalties: int, curve: Sequence[float]) -> None:
    progress("choosing the penalty", len(curve), penalties, {"criterion": curve[-1]})


def weak_penalty(chosen: float, problem: Problem, *, coefficients: int) -> float:
    """The penalty for fits to resampled bags, whose bias is small against their standard error.

    Held-out bags choose the penalty that predicts best, and its bias is about as large as the standard error, or larger
    where they chose by chance. But a resample does not show a bias that all of them share: 90 % intervals of simulated
    votes held the truth 73 % of the time (`bench/intervals.py`). With enough bags for each coefficient a fit does not
    need the penalty. A normal prior of standard deviation 2.5 for each coefficient, of a standardised column or a
    category, says next to nothing of log-odds; its penalty of a mean over b bags is 1 / (2.5^2 b). With fewer bags
    that would be no model at all, and a tenth of the chosen penalty is a compromise. A loss that saturates is no
    likelihood, and keeps its penalty.
    """
    if problem.saturates:
        return chosen
    if len(problem.strata) >= ENOUGH * coefficients and isinstance(problem.objective, CountObjective):
        return min(chosen, 1 / (PRIOR**2 * problem.mean_of))
    return chosen / 10


@dataclass(eq=False)
class FittedLinear(Fitted):
    """Weights (width + 1,), or (width + 1, C), of the design's columns, the intercept last."""

    design: Design
    weights: Weights

    def logits(self, instances: Instances) -> Logits:
        found: Logits = np.empty((len(instances), *self.outputs))
        for rows in blocks(instances):
            found[rows] = linear_logits(self.design.features(instances[rows]), self.weights)
        return found

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of an instance's logits."""
        return self.weights.shape[1:]

    def takes(self, shape: tuple[int, ...], categories: Mapping[int, int]) -> bool:
        return self.design.takes(shape, categories)

    @property
    def coefficients(self) -> Weights:
        """(width,) or (width, C) of the standardised columns."""
        return self.weights[:-1]

    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        facts, tensors = self.design.to_model()
        return {"design": facts}, tensors | {"weights": torch.from_numpy(self.weights)}
