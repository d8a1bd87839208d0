"""Several learners on one problem, of which the one that is best on held-out bags is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor

from kofn.learners._learner import Fitted, Learner, Progress
from kofn.learners._objectives import criteria
from kofn.learners._problem import Problem
from kofn.learners._splits import Split


class BestOf(Learner):
    """Fits several learners and takes the one with the best held-out bags; the first where nothing is held out.

    What "auto" is for tables of bags with labels 0 and 1: trees find steps and interactions, and a linear model a
    direction in hundreds of columns, of which trees see one at a time. They are compared by `criteria`, which a few
    sure bags do not rule.

    Args:
        learners: that hold out the same bags, as `Trees` and `Linear` with as many folds do.

    Examples:
        >>> import numpy as np, kofn
        >>> from kofn.learners._best_of import BestOf
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(600, 2)), np.repeat(np.arange(200), 3)
        >>> y = (X.sum(1) > 1.5).reshape(200, 3).any(1).repeat(3)
        >>> learner = BestOf([kofn.Trees(), kofn.Linear()])
        >>> type(kofn.MILClassifier(learner, random_state=0).fit(X, y, groups=groups).fitted_learner_).__name__
        'Linear'
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = learners

    def splits(self, problem: Problem, seed: int) -> list[Split]:
        return self.learners[0].splits(problem, seed)

    def fit(self, problem: Problem, *, seed: int, progress: Progress | None = None) -> Fitted:
        best, least = None, float("inf")
        for learner in self.learners:
            fitted = learner.fit(problem, seed=seed, progress=_of(learner, progress))
            fitted.learner = copy(learner)
            value = _criterion(problem, fitted)
            if best is None or value < least:
                best, least = fitted, value
            if fitted.held_out_logits is None:  # nothing to compare by
                break
        assert best is not None  # there is a learner
        return best

    def require_options(self) -> None:
        if not len(self.learners):
            raise ValueError("`learners` must hold one or more learners; got none.")
        for learner in self.learners:
            learner.require_options()

    def from_model(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Fitted:
        raise ValueError("a model is one of the learners that were compared, and knows which.")


def _criterion(problem: Problem, fitted: Fitted) -> float:
    """The mean criterion of the held-out bags, each by a model that had not seen it."""
    if fitted.held_out_logits is None:
        return float("inf")
    part = problem.take(torch.cat([held for _, held in fitted.splits]))
    losses = part.losses(torch.from_numpy(fitted.held_out_logits))
    return float(part.mean(criteria(part.objective, losses, part.labels)))


def _of(learner: Learner, progress: Progress | None) -> Progress | None:
    if progress is None:
        return None
    name = type(learner).__name__.lower()
    return lambda what, step, of, losses: progress(f"{name}, {what}", step, of, losses)
