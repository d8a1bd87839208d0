"""Logistic regression on any loss, by L-BFGS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits
from torch import Tensor

from kofn import _require
from kofn.learners._design import Design
from kofn.learners._held_out import HeldOut, mean_curve, validation
from kofn.learners._learner import Fitted, Instances, Learner, Logits, Progress, require_table
from kofn.learners._objectives import CountObjective
from kofn.learners._problem import Problem
from kofn.learners._splits import Split, splits_of

Weights = NDArray[np.float64]
LARGEST_PENALTY = 1e6
ENOUGH = 5  # bags for each coefficient, so that they can do without a penalty
PRIOR = 2.5  # standard deviation of a coefficient, of which a penalty says next to nothing (Gelman et al. 2008)
UNCHOSEN = 1e-2  # penalty, where there are too few bags to choose it on


class Linear(Learner):
    """Logistic regression, logit = w x + b, for several classes multinomial, with a penalty chosen on held-out bags.

        loss of the bags / number of instances + l2 / 2 |w|^2,

    with weights of each class where there are several, by L-BFGS (scipy). Columns are standardised; a missing number
    becomes the mean with a column that says so, a category a column of its own. Penalties are tried from the largest
    down, each from the weights of the last, until held-out bags have been worse twice. With a loss that saturates (uPU
    and nnPU with the sigmoid surrogate) all are tried, each from the start: under a large penalty it makes one class of
    all, which no smaller one would leave.

    Args:
        l2: L2 penalty; None chooses it on held-out bags.
        penalties: the penalties to choose from.
        folds: number of folds of bags, on which the penalty is chosen. With more than 5,000 bags, or a table of more
            than four million values, a tenth of the bags is held out instead.
        max_steps: maximum number of steps of L-BFGS for each penalty.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(400, 2)), np.repeat(np.arange(100), 4)
        >>> y = (X[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
        >>> model = kofn.LLPClassifier(kofn.Linear(), random_state=0).fit(X, y, groups=groups)
        >>> bool((model.predict(X) == (X[:, 0] > 0)).mean() > 0.95)
        True
    """

    def __init__(
        self,
        *,
        l2: float | None = None,
        penalties: Sequence[float] = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5),
        folds: int = 5,
        max_steps: int = 200,
    ) -> None:
        self.l2 = l2
        self.penalties = penalties
        self.folds = folds
        self.max_steps = max_steps

    def fit(self, problem: Problem, *, seed: int, progress: Progress | None = None) -> FittedLinear:
        self.require_options()
        require_table(problem, "Linear")
        # Of vectors this short BLAS threads do nothing but wait for each other, 9 ms a step on a busy machine.
        with threadpool_limits(1, user_api="blas"):
            return self._fit(problem, seed, progress)

    def _fit(self, problem: Problem, seed: int, progress: Progress | None) -> FittedLinear:
        splits = [] if self.l2 is not None else splits_of(problem, self.folds, seed)
        penalties = sorted(map(float, self.penalties), reverse=True)
        if not splits:
            last = UNCHOSEN if self.l2 is None else float(self.l2)
            down = [*(penalty for penalty in penalties if penalty > last), last]
            path = list(self._path(problem, down))
            history = [{"penalty": float(i + 1), "l2": down[i], "train_loss": loss} for i, (_, loss) in enumerate(path)]
            return replace(path[-1][0], history=history)
        tried = self._try(splits, problem, penalties, progress)
        curve = mean_curve(tried)
        best = int(np.argmin(curve))
        path = list(self._path(problem, penalties[: best + 1]))
        history = [{"penalty": float(i + 1), "l2": penalties[i], "val_loss": loss} for i, loss in enumerate(curve)]
        for entry, (_, train_loss) in zip(history, path, strict=False):
            entry["train_loss"] = train_loss
        return replace(path[best][0], history=history, splits=splits, **validation(problem, tried, best))

    def from_model(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FittedLinear:
        design, weights = Design.from_model(facts["design"], tensors), tensors["weights"].numpy()
        if weights.ndim not in (1, 2) or len(weights) != design.width + 1:
            raise ValueError(f"the model must have {design.width + 1} weights; it has {weights.shape}.")
        return FittedLinear(design, weights)

    def settled(self, fitted: Fitted, problem: Problem) -> Linear:
        learner = copy(self)
        learner.l2 = fitted.history[-1 if fitted.best is None else fitted.best]["l2"]
        if fitted.best is not None and isinstance(fitted, FittedLinear):  # else it was given, or could not be chosen
            learner.l2 = weak_penalty(learner.l2, problem, coefficients=len(fitted.weights))
        learner.penalties = (learner.l2,)
        return learner

    def _try(
        self, splits: list[Split], problem: Problem, penalties: list[float], progress: Progress | None
    ) -> list[HeldOut]:
        """Penalties from the largest down on all folds, until the held-out bags together have been worse twice.

        One fold by itself may turn up by chance long before the others have begun to learn.
        """
        parts = [tuple(problem.take(units).compact() for units in split) for split in splits]
        paths = [self._path(train, penalties) for (_, train), _ in parts]
        losses: list[list[float]] = [[] for _ in parts]
        scores: list[list[Logits]] = [[] for _ in parts]
        tried = [
            HeldOut(losses[number], float(held.bag_weights.sum()), rows.numpy(), scores[number].__getitem__)
            for number, (_, (rows, held)) in enumerate(parts)
        ]
        for step in range(len(penalties)):
            for number, (path, (_, (_, held))) in enumerate(zip(paths, parts, strict=True)):
                scores[number].append(next(path)[0].logits(held.instances))
                losses[number].append(float(held.mean_loss(torch.from_numpy(scores[number][-1]))))
                if progress is not None:
                    done = {"val_loss": losses[number][-1]}
                    progress(f"penalty {step + 1} of {len(penalties)}", number + 1, len(splits), done)
            curve = mean_curve(tried)
            if step >= 2 and min(curve[:-2]) < min(curve[-2:]) and not problem.saturates:
                break
        return tried

    def _path(self, problem: Problem, penalties: Sequence[float]) -> Iterator[tuple[FittedLinear, float]]:
        """The models of these penalties and their training losses, each found from the one before."""
        design = Design.learn(problem.instances, problem.categories, problem.row_weights)
        x = torch.from_numpy(design(problem.instances))
        start = fresh = np.zeros((design.width + 1, *problem.outputs))
        fresh[-1] = problem.start
        instances = float(problem.row_weights.sum())

        def objective(weights: Weights, penalty: float) -> tuple[float, Weights]:
            w = torch.from_numpy(weights).reshape(start.shape)  # scipy knows vectors only
            # The products with the table in its float32, all else in float64.
            logits = (x @ w[:-1].float()).double() + w[-1]
            losses, slope = problem.losses_and_slope(logits)
            slope = slope / instances
            gradient = torch.cat([(x.T @ slope.float()).double() + penalty * w[:-1], slope.sum(0, keepdim=True)])
            loss = float(problem.total(losses)) / instances
            return loss + penalty / 2 * float(w[:-1].square().sum()), gradient.flatten().numpy()

        for penalty in penalties:
            found = minimize(
                objective,
                (fresh if problem.saturates else start).ravel(),
                args=(penalty,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.max_steps, "ftol": 1e-7, "gtol": 1e-6},
            )
            start = found.x.reshape(start.shape)
            model = FittedLinear(design, start)
            yield model, float(problem.mean_loss(torch.from_numpy(model.logits(problem.instances))))

    def require_options(self) -> None:
        if self.l2 is not None:
            _require.number("l2", self.l2, low=0, high=LARGEST_PENALTY)
        if not len(self.penalties):
            raise ValueError("`penalties` must hold one or more numbers to choose from; got none.")
        for penalty in self.penalties:
            _require.number("penalties", penalty, low=0, high=LARGEST_PENALTY)
        _require.whole_number("folds", self.folds, low=2, high=_require.LARGEST_INT)
        _require.whole_number("max_steps", self.max_steps, low=1, high=_require.LARGEST_INT)


def weak_penalty(chosen: float, problem: Problem, *, coefficients: int) -> float:
    """The penalty for fits to resampled bags, whose bias is small against their standard error.

    Held-out bags choose the penalty that predicts best, and its bias is about as large as the standard error, or larger
    where they chose by chance. But a resample does not show a bias that all of them share: 90 % intervals of simulated
    votes held the truth 73 % of the time (`bench/intervals.py`). With enough bags for each coefficient a fit does not
    need the penalty. A normal prior of standard deviation 2.5 for each coefficient, of a standardised column or a
    category, says next to nothing of log-odds; its penalty of a mean over n instances is 1 / (2.5^2 n). With fewer bags
    that would be no model at all, and a tenth of the chosen penalty is a compromise. A loss that saturates is no
    likelihood, and keeps its penalty.
    """
    if problem.saturates:
        return chosen
    if len(problem.strata) >= ENOUGH * coefficients and isinstance(problem.objective, CountObjective):
        return min(chosen, 1 / (PRIOR**2 * float(problem.row_weights.sum())))
    return chosen / 10


@dataclass(eq=False)
class FittedLinear(Fitted):
    """Weights (width + 1,), or (width + 1, C), of the design's columns, the intercept last."""

    design: Design
    weights: Weights

    def logits(self, instances: Instances) -> Logits:
        x = torch.from_numpy(self.design(instances))
        w = torch.from_numpy(self.weights)
        logits: Logits = ((x @ w[:-1].float()).double() + w[-1]).numpy()
        return logits

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of an instance's logits."""
        return self.weights.shape[1:]

    @property
    def coefficients(self) -> Weights:
        """(width,) or (width, C) of the standardised columns."""
        return self.weights[:-1]

    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        facts, tensors = self.design.to_model()
        return {"design": facts}, tensors | {"weights": torch.from_numpy(self.weights)}
