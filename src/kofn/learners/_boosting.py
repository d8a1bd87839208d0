"""LightGBM's boosting on a problem: on parts of its bags, judged on the others, and on all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kofn import _require
from kofn._mapped import release, trim
from kofn.learners._binning import binned
from kofn.learners._held_out import HeldOut
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
        self._over = Event()  # when nobody waits for the folds any more
        self.start: Logits = problem.start.numpy()
        self._data = binned(problem.instances, categories=problem.categories, params=params, reference=reference)
        self.can_split = any(self._data.feature_num_bin(i) > 1 for i in range(self._data.num_feature()))

    def run(self, rounds: int) -> tuple[str, list[float]]:
        """Boost all bags so many rounds: the trees as text, and the training loss before each round."""
        rows, part = self.problem.compact(columns=False)
        booster = self.lightgbm.Booster(self.params, self._part(rows))
        mine: list[float] = []
        losses: list[float] = []
        objective, weight = boosting_gradient(part, mine), float(part.bag_weights.sum())
        for number in range(rounds):
            booster.update(fobj=objective)
            losses.append(self.peers.mean(mine[-1], weight))
            _tell(self.progress, "all bags", number, rounds, train_loss=losses[-1])
        return booster.model_to_string(), losses

    def folds(self, splits: list[Split], rounds: int, patience: int, *, threads: int) -> list[HeldOut]:
        """Boost each part, `threads` of them at the same time: LightGBM and kofn's core let other threads run.

        This thread takes part, so that progress is reported, and Ctrl-C is received, where the fit was asked for.
        """
        numbers = iter(range(len(splits)))
        found: dict[int, HeldOut] = {}

        def work(progress: Progress | None) -> None:
            for number in numbers:  # each takes the next one
                found[number] = self.fold(number, splits, rounds, patience, progress)

        with ThreadPoolExecutor(threads) as pool:
            helpers = [pool.submit(copy_context().run, work, None) for _ in range(min(threads, len(splits)) - 1)]
            try:
                work(self.progress)
                for helper in helpers:
                    helper.result()
            finally:
                self._over.set()
        return [found[number] for number in range(len(splits))]

    def fold(
        self, number: int, splits: list[Split], rounds: int, patience: int, progress: Progress | None = None
    ) -> HeldOut:
        """Boost a part of the bags until the held-out ones have not been better for `patience` rounds."""
        train, held = (self.problem.take(units) for units in splits[number])
        (rows, part), (held_rows, judged) = train.compact(columns=False), held.compact()
        booster = self.lightgbm.Booster(self.params, self._part(rows))
        losses: list[float] = []
        objective, parts = boosting_gradient(part), parts_of(judged)
        judges = len(held_rows) > 0  # or its peers do
        if judges:
            booster.add_valid(self._part(held_rows), "held out")
        weight = float(held.bag_weights.sum())
        mine = 0.0

        def held_out_loss(scores: Any, _: Any) -> list[Any]:
            nonlocal mine
            mine = float(mean_loss(parts, judged, torch.from_numpy(scores) + judged.start))
            return []

        what = f"fold {number + 1} of {len(splits)}" if len(splits) > 1 else "choosing the number of rounds"
        best = 0
        for step in range(rounds):
            booster.update(fobj=objective)
            if judges:
                booster.eval_valid(held_out_loss)
            losses.append(self.peers.mean(mine, weight))
            _tell(progress, what, step, rounds, val_loss=losses[-1])
            if losses[-1] < losses[best]:
                best = step
            if step - best >= patience or self._over.is_set():
                break

        def scores(after: int) -> Logits:
            if not judges:
                return np.empty((0, *self.problem.outputs))
            trees: Logits = booster.predict(judged.instances, raw_score=True, num_iteration=after + 1)
            return self.start + trees

        return HeldOut(losses, self.peers.total(weight), held_rows.numpy(), scores)

    def _part(self, rows: Tensor) -> Any:
        """Some rows of the binned table."""
        return self._data if len(rows) == len(self.problem.instances) else self._data.subset(rows.numpy()).construct()


def boosting_gradient(problem: Problem, losses: list[float] | None = None) -> Any:
    """The objective of a booster: gradient and curvature of a problem's loss by the scores of its rows, float32.

    Scores are what the trees add to the logit that every row starts at. Rows are gone through part by part.

    Args:
        problem: of the rows of the booster's data set, whose columns are not looked at.
        losses: the training loss of each call is added to it.
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
