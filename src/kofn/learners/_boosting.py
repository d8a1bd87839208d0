"""LightGBM's boosting on a problem: on parts of its bags, judged on the others, and on all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from kofn import _require
from kofn.learners._boosting_objective import boosting_objective
from kofn.learners._held_out import HeldOut
from kofn.learners._learner import Logits, Progress
from kofn.learners._problem import Problem
from kofn.learners._splits import Split


class Boosting:
    """Boosting on one problem, whose columns are binned once.

    Args:
        problem: of a table.
        params: of LightGBM.
        progress: called every ten rounds.

    Attributes:
        start: the log-odds of every instance before the first tree.
        can_split: whether a column has two values that a tree could tell apart; without any LightGBM fails.
    """

    def __init__(self, problem: Problem, params: dict[str, Any], progress: Progress | None) -> None:
        self.lightgbm = _require.package("lightgbm", extra="train")
        self.problem, self.params, self.progress = problem, params, progress
        self.start = float(np.log(problem.rate) - np.log1p(-problem.rate))
        categorical = sorted(problem.categories) or "auto"
        self._data = self.lightgbm.Dataset(
            problem.instances, categorical_feature=categorical, params=params, free_raw_data=False
        ).construct()
        self.can_split = any(self._data.feature_num_bin(i) > 1 for i in range(self._data.num_feature()))

    def run(self, rounds: int) -> tuple[str, list[float]]:
        """Boost all bags so many rounds: the trees as text, and the training loss before each round."""
        losses: list[float] = []
        booster = self._train(self.problem, rounds, losses, callbacks=[self._tell("all bags", rounds, losses)])
        return booster.model_to_string(), losses

    def fold(self, number: int, splits: list[Split], rounds: int, patience: int) -> HeldOut:
        """Boost a part of the bags until the held-out ones have not been better for `patience` rounds."""
        train, held = (self.problem.take(units) for units in splits[number])
        rows, judged = held.compact()
        losses: list[float] = []

        def held_out_loss(scores: Any, _: Any) -> tuple[str, float, bool]:
            losses.append(float(judged.mean_loss(torch.from_numpy(np.array(scores)))))
            return "loss", losses[-1], False

        what = f"fold {number + 1} of {len(splits)}" if len(splits) > 1 else "choosing the number of rounds"
        booster = self._train(
            train,
            rounds,
            None,
            valid_sets=[self._part(rows)],
            feval=held_out_loss,
            keep_training_booster=True,  # else the trees after its own best round are thrown away
            callbacks=[
                self.lightgbm.early_stopping(patience, verbose=False),
                self._tell(what, rounds, losses, name="val_loss"),
            ],
        )

        def scores(after: int) -> Logits:
            trees: Logits = booster.predict(judged.instances, raw_score=True, num_iteration=after + 1)
            return self.start + trees

        return HeldOut(losses, float(held.bag_weights.sum()), rows.numpy(), scores)

    def _train(self, problem: Problem, rounds: int, losses: list[float] | None, **options: Any) -> Any:
        rows, part = problem.compact()

        def loss(logits: Tensor) -> Tensor:
            found = part.losses(logits)
            if losses is not None:
                losses.append(float(part.mean(found.detach())))
            return part.total(found)

        objective = boosting_objective(loss, weight=part.row_weights)
        return self.lightgbm.train(self.params | {"objective": objective}, self._part(rows), rounds, **options)

    def _part(self, rows: Tensor) -> Any:
        """Some rows of the binned table, which start at the base rate."""
        part = self._data if len(rows) == len(self.problem.instances) else self._data.subset(rows.numpy())
        # Constructed first: of a subset that is not, LightGBM forgets the scores without a word.
        return part.construct().set_init_score(np.full(len(rows), self.start))

    def _tell(self, what: str, rounds: int, losses: list[float], *, name: str = "train_loss") -> Any:
        def tell(environment: Any) -> None:
            if self.progress is not None and environment.iteration % 10 == 0:
                self.progress(what, environment.iteration, rounds, {name: losses[-1]})

        return tell
