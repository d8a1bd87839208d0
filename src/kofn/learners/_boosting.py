"""LightGBM's boosting on a problem: on parts of its bags, judged on the others, and on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kofn import _require
from kofn._io.mapped import release, trim
from kofn.learners._binning import binned
from kofn.learners._learner import Logits, Progress
from kofn.learners._peers import ALONE, Peers
from kofn.learners._problem import Problem
from kofn.learners._problem_parts import mean_loss, parts_of
from kofn.learners._splits import Split
from kofn.learners._surrogate import curvature

TRIM = 8  # parts of a problem after which freed memory is given back


class Boosting:
    """Boosting on one problem, whose columns are binned once.

    Rounds are asked of LightGBM's booster one by one: `lightgbm.train` spends as long on its callbacks as a small loss
    takes.

    Args:
        problem: of a table.
        params: of LightGBM.
        progress: called every ten rounds.
        peers: the processes that grow the same trees, each with its own share of the bags as its problem.
        reference: a data set of LightGBM that has the bins; None finds them in the problem's instances.

    Attributes:
        start: the logit of every instance before the first tree, (), or those of the classes, (C,).
        can_split: whether a column has two values that a tree could separate; without any LightGBM fails.
    """

    def __init__(
        self,
        problem: Problem,
        params: dict[str, Any],
        progress: Progress | None,
        *,
        peers: Peers = ALONE,
        reference: Any = None,
    ) -> None:
        self.lightgbm = _require.package("lightgbm", extra="train")
        self.problem, self.progress, self.peers = problem, progress, peers
        # With C classes a round is C trees, one for each column of the logits.
        self.params = params | {"objective": "none", "num_class": problem.start.numel()}
        self.start: Logits = problem.start.numpy()
        self._data = binned(problem.instances, categories=problem.categories, params=params, reference=reference)
        self.can_split = any(self._data.feature_num_bin(i) > 1 for i in range(self._data.num_feature()))

    def run(self, rounds: int) -> tuple[str, list[float]]:
        """Boost all bags so many rounds: the trees as text, and the training loss after each round."""
        rows, part = self.problem.compact(columns=False)
        booster = self.lightgbm.Booster(self.params, self.part(rows))
        mine: list[float] = []  # before each round
        losses: list[float] = []
        objective, weight = boosting_gradient(part, mine), float(part.bag_weights.sum())
        for number in range(rounds):
            booster.update(fobj=objective)
            if number:
                losses.append(self.peers.mean(mine[-1], weight))
                _tell(self.progress, "all bags", number - 1, rounds, train_loss=losses[-1])
        losses.append(self.peers.mean(_loss_of_scores(booster.eval_train, parts_of(part), part), weight))
        _tell(self.progress, "all bags", rounds - 1, rounds, train_loss=losses[-1])
        return booster.model_to_string(), losses

    def folds(self, splits: Sequence[Split], rates: Sequence[Any]) -> list[FoldOfTrees]:
        """Each part of the bags, to be boosted from its rate and to be judged on the others."""
        return [FoldOfTrees(self, split, rate) for split, rate in zip(splits, rates, strict=True)]

    def be_quiet(self) -> None:
        """Let LightGBM print nothing in this thread: it keeps its verbosity for each, and learns it from parameters."""
        self.lightgbm.Dataset(np.zeros((1, 1)), params=self.params).construct()

    def tell_curve(self, curve: Sequence[float], rounds: int) -> None:
        """Report the held-out losses of the folds so far, of so many rounds at most."""
        if self.progress is not None:
            self.progress("choosing the number of rounds", len(curve), rounds, {"val_loss": curve[-1]})

    def part(self, rows: Tensor) -> Any:
        """Some rows of the binned table."""
        return self._data if len(rows) == len(self.problem.instances) else self._data.subset(rows.numpy()).construct()


class FoldOfTrees:
    """Boosting of some of the bags, judged on the others after each round; a `kofn.learners._held_out.Fold`.

    Args:
        boosting: whose bins, parameters and peers it has.
        split: bags to learn from, and to judge on.
        rate: at which it starts, of all bags that are learned from, also those of peers.
    """

    def __init__(self, boosting: Boosting, split: Split, rate: Any) -> None:
        train, held = (replace(boosting.problem.take(units), rate=rate) for units in split)
        (rows, part), (held_rows, judged) = train.compact(columns=False), held.compact()
        self.losses: list[float] = []
        self.criteria = self.losses
        self._trees: list[int] = []  # iterations after each round: one without a split adds none
        self.rows = held_rows.numpy()
        self._mine = float(held.bag_weights.sum())
        self._peers = boosting.peers
        self.weight = self._peers.total(self._mine)
        self._judged, self._parts = judged, parts_of(judged)
        self._booster = boosting.lightgbm.Booster(boosting.params, boosting.part(rows))
        self._objective = boosting_gradient(part)
        if len(self.rows):  # or its peers judge
            self._booster.add_valid(boosting.part(held_rows), "held out")

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self._booster.update(fobj=self._objective)
            loss = _loss_of_scores(self._booster.eval_valid, self._parts, self._judged) if len(self.rows) else 0.0
            self.losses.append(self._peers.mean(loss, self._mine))
            self._trees.append(self._booster.current_iteration())

    def scores(self, step: int) -> Logits:
        if not len(self.rows) or not self._trees[step]:  # LightGBM takes 0 for all
            return np.broadcast_to(self._judged.start.numpy(), (len(self.rows), *self._judged.outputs))
        trees: Logits = self._booster.predict(self._judged.instances, raw_score=True, num_iteration=self._trees[step])
        return self._judged.start.numpy() + trees


def _loss_of_scores(evaluate: Any, parts: list[tuple[slice, Problem]], problem: Problem) -> float:
    """The mean loss of a problem by a booster's scores of its rows, which `evaluate` hands on."""
    found = 0.0

    def look(scores: Any, _: Any) -> list[Any]:
        nonlocal found
        found = float(mean_loss(parts, problem, torch.from_numpy(scores) + problem.start))
        return []

    evaluate(look)
    return found


def boosting_gradient(problem: Problem, losses: list[float] | None = None) -> Any:
    """The objective of a booster: gradient and curvature of a problem's loss by the scores of its rows, float32.

    Scores are what the trees add to the logit that every row starts at. Rows are gone through part by part.

    Args:
        problem: of the rows of the booster's data set, whose columns are not looked at.
        losses: the training loss of each call, that is before each round, is added to it.
    """
    parts = parts_of(problem)
    shape = (len(problem.instances), *problem.outputs)
    release()
    slopes, bends = (np.empty(shape, np.float32, order="F") for _ in range(2))  # LightGBM takes class after class

    def objective(scores: Any, _: Any) -> tuple[Any, Any]:
        found = []
        for number, (rows, part) in enumerate(parts):
            logits = torch.from_numpy(scores[rows]) + problem.start
            each, slope = part.losses_and_slope(logits)
            slopes[rows], bends[rows] = slope, curvature(logits, slope, part.row_weights)
            found.append(each)
            if number % TRIM == TRIM - 1:
                trim()
        if losses is not None:
            losses.append(float(problem.mean(torch.cat(found))))
        return slopes, bends

    return objective


def _tell(progress: Progress | None, what: str, number: int, rounds: int, **losses: float) -> None:
    if progress is not None and number % 10 == 0:
        progress(what, number + 1, rounds, losses)
