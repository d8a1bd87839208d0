"""What every learner is: options, and a fit of a problem that gives a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from kofn.learners._problem import Problem
from kofn.learners._splits import Split

Instances = NDArray[np.float32]
Logits = NDArray[np.float64]
Progress = Callable[[str, int, int, Mapping[str, float]], None]
"""Called while a learner learns: what is being done, how many steps are done, of how many, and the losses so far."""


@dataclass(eq=False, kw_only=True)
class Fitted(ABC):
    """What became of a fit.

    Attributes:
        history: a dict for each step (a round, an epoch, a penalty): its number, counted from 1, train_loss and, where
            bags were held out, val_loss.
        best: the place in `history` of the step that was taken; None where nothing was held out.
        splits: bags that were learned from, and bags that the choice was made on.
        validation_loss: mean loss of the held-out bags, each scored by a model that had not seen it.
        held_out_logits: (n,) or (n, C) of the instances of these bags, by such a model; NaN for the others.
        learner: that made it, where several were compared.
    """

    history: list[dict[str, float]] = field(default_factory=list)
    best: int | None = None
    splits: Sequence[Split] = ()
    validation_loss: float | None = None
    held_out_logits: Logits | None = None
    learner: Learner | None = None

    @abstractmethod
    def logits(self, instances: Instances) -> Logits:
        """Log-odds (n,) of instances (n, ...), or log-probabilities (n, C) of classes but for a constant."""

    def takes(self, shape: tuple[int, ...], categories: Mapping[int, int]) -> bool:
        """Whether it was fitted to instances of this shape, with so many categories by column; True if not known."""
        return True

    @abstractmethod
    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What a model file keeps: plain facts and tensors, from which the learner's `from_model` makes the same."""


class Learner(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Minimises the loss of a problem. Its options are parameters as in scikit-learn."""

    @abstractmethod
    def splits(self, problem: Problem, seed: int) -> list[Split]:
        """The bags that a fit with this seed learns from, and those that it holds out; none where it chooses nothing.

        Every bag is held out once at most. What a fit is compared with is judged on the same bags.
        """

    @abstractmethod
    def fit(self, problem: Problem, *, seed: int, progress: Progress | None = None) -> Fitted:
        """Fit a model to a problem.

        Args:
            problem: what a task makes of its labels.
            seed: random seed; the same seed gives the same model.
            progress: called every now and then.

        Raises:
            ValueError, TypeError: options out of range.
        """

    @abstractmethod
    def require_options(self) -> None:
        """Require options in range, before anything is done; `fit` does so itself.

        Raises:
            ValueError, TypeError: one that is not, by its name.
        """

    def settled(self, fitted: Fitted, problem: Problem) -> Learner:
        """The learner that makes a model such as `fitted` of other bags of its problem, with what it chose set.

        By default itself, of a learner that chooses nothing.
        """
        return self

    def narrowed(self, fitted: Fitted) -> Learner:
        """The learner that looks around what it chose in a fit to nearly the same problem; by default itself."""
        return self

    @abstractmethod
    def from_model(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Fitted:
        """The fitted model that `Fitted.to_model` described."""


def step_name(history: Sequence[Mapping[str, float]]) -> str:
    """What a step of a history is: "round", "epoch" or "penalty".

    Examples:
        >>> step_name([{"epoch": 1.0, "train_loss": 0.7}])
        'epoch'
    """
    return next((name for name in ("round", "epoch", "penalty") if history and name in history[0]), "step")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: several that wait for each other cost more than they save on small problems."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def require_table(problem: Problem, learner: str) -> None:
    """Require instances with columns, and a loss that reads instances."""
    if problem.instances.ndim != 2:
        raise ValueError(
            f"`learner` must be a network for instances of shape {problem.instances.shape[1:]}; {learner} learns from "
            f"columns. Say learner='network', or flatten the instances."
        )
    if problem.pooling is not None:
        raise ValueError(
            f"`loss` must be a loss of instances for {learner}, such as 'count'; got {problem.pooling!r}, which pools "
            f"them in a network. Say learner='network'."
        )
