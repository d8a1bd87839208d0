"""Boosted trees on any loss, by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kofn import _require
from kofn._io.mapped import blocks
from kofn.learners._best_rate import at_its_own_rate
from kofn.learners._boosting import Boosting
from kofn.learners._cluster import fit_on_cluster
from kofn.learners._held_out import held_out_curve, history_of, is_over, validation
from kofn.learners._learner import Fitted, Instances, Learner, Logits, Progress, require_table
from kofn.learners._problem import Problem
from kofn.learners._splits import Split, splits_of
from kofn.learners._tree_text import require_sound_trees

LARGEST_FACTOR = 1e6  # of the learning rate and the penalty
UNCHOSEN = 100  # rounds, where there are too few bags to choose their number on
AT_ONCE = 8  # rounds of a fold before it waits for the others
SMALL = 1_000_000  # values in a table that one thread is done with sooner than several agree


# What LightGBM calls, by all its names, what `Trees` has a parameter of its own for, or takes from the problem.
OWN_PARAMETERS: Mapping[str, str] = {
    "rounds": "num_iterations num_iteration n_iter num_tree num_trees num_round num_rounds nrounds num_boost_round "
    "n_estimators max_iter",
    "patience": "early_stopping_round early_stopping_rounds early_stopping n_iter_no_change",
    "learning_rate": "learning_rate shrinkage_rate eta",
    "leaves": "num_leaves num_leaf max_leaves max_leaf max_leaf_nodes",
    "min_rows": "min_data_in_leaf min_data_per_leaf min_data min_child_samples min_samples_leaf",
    "l2": "lambda_l2 reg_lambda lambda l2_regularization",
    "row_fraction": "bagging_fraction sub_row subsample bagging",
    "column_fraction": "feature_fraction sub_feature colsample_bytree",
    "threads": "num_threads num_thread nthread nthreads n_jobs",
    "": "objective objective_type app application loss num_class num_classes metric metrics metric_types seed "
    "random_seed random_state verbose verbosity categorical_feature cat_feature categorical_column cat_column",
}


class Trees(Learner):
    """Gradient-boosted decision trees (LightGBM), with the number of rounds chosen on held-out bags.

    Each round fits a tree, for several classes one for each of them, to the gradient of the loss and to the curvature
    p (1 - p) of its EM bound (`boosting_objective`), starting from the best constant. Missing values and categories
    are taken as they are; nothing needs to be scaled. Folds of bags are boosted side by side, and the number of rounds
    with the smallest mean loss of the left-out bags is then run on all bags.

    Args:
        rounds: number of trees; None chooses it on held-out bags.
        max_rounds: maximum number of trees, where their number is chosen.
        learning_rate: learning rate: each tree is multiplied by it.
        leaves: maximum number of leaves of a tree.
        min_rows: minimum number of rows in a leaf; on small data at most a twentieth of the rows, and a quarter of the
            expected number of the rarest class.
        l2: L2 penalty on the values of the leaves.
        row_fraction: fraction of the rows that each tree is fitted to, drawn anew for each tree.
        column_fraction: fraction of the columns that each tree may split on, drawn anew for each tree.
        folds: number of folds of bags, on which the number of trees is chosen. With more than 5,000 bags, or more
            than 1,000 in a table of more than four million values, a tenth of the bags is held out instead.
        patience: number of rounds without a better mean loss of the left-out bags after which the search ends, unless
            the loss is falling again.
        threads: maximum number of threads; None takes as many as torch uses. With a table of less than a million values
            each thread works on a fold of its own, with a larger one all work on the same tree.
        cluster: address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``, on all of whose workers the trees are
            grown, each with its share of the bags; None for this process. Needs ``pip install kofn[cluster]``.
        options: further parameters of LightGBM by its own names, such as ``{"monotone_constraints": [1, 0]}``; none
            that another argument sets, or the problem, such as its objective.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(800, 3)), np.repeat(np.arange(200), 4)
        >>> y = (X[:, 0] > 0).reshape(200, 4).mean(1).repeat(4)
        >>> model = kofn.LLPClassifier(kofn.Trees(leaves=7), random_state=0).fit(X, y, groups=groups)
        >>> int(model.feature_importances_.argmax())
        0
    """

    def __init__(
        self,
        *,
        rounds: int | None = None,
        max_rounds: int = 1000,
        learning_rate: float = 0.06,
        leaves: int = 15,
        min_rows: int = 20,
        l2: float = 1.0,
        row_fraction: float = 0.7,
        column_fraction: float = 0.7,
        folds: int = 5,
        patience: int = 100,
        threads: int | None = None,
        cluster: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.rounds = rounds
        self.max_rounds = max_rounds
        self.learning_rate = learning_rate
        self.leaves = leaves
        self.min_rows = min_rows
        self.l2 = l2
        self.row_fraction = row_fraction
        self.column_fraction = column_fraction
        self.folds = folds
        self.patience = patience
        self.threads = threads
        self.cluster = cluster
        self.options = options

    def splits(self, problem: Problem, seed: int) -> list[Split]:
        return [] if self.rounds is not None else splits_of(problem, self.folds, seed)

    def fit(self, problem: Problem, *, seed: int, progress: Progress | None = None) -> FittedTrees:
        self.require_options()
        require_table(problem, "Trees")
        splits = self.splits(problem, seed)
        rates = [at_its_own_rate(problem.take(train)).rate for train, _ in splits]
        if self.cluster is not None:
            fitted: FittedTrees = fit_on_cluster(self, problem, splits, rates, seed=seed, progress=progress)
            return fitted
        params = self.params(problem, seed, threads=self._threads())
        return self.boosted(Boosting(problem, params, progress), splits, rates)

    def boosted(self, boosting: Boosting, splits: list[Split], rates: Sequence[Any]) -> FittedTrees:
        """Boost with the number of rounds that is best on the held-out bags of splits; every process of a cluster does.

        Args:
            boosting: on the bags of this process.
            splits: of these bags, where the number is chosen.
            rates: at which the folds start.
        """
        problem = boosting.problem
        if not boosting.can_split:
            return FittedTrees("", boosting.start, self.threads)
        if not splits:
            rounds = self.rounds or UNCHOSEN
            text, losses = boosting.run(rounds)
            return FittedTrees(text, boosting.start, self.threads, history=history_of("round", train_loss=losses))
        folds = boosting.folds(splits, rates)
        curve = held_out_curve(
            folds,
            self.max_rounds,
            partial(is_over, patience=self.patience),
            at_once=AT_ONCE,
            threads=self._threads() if problem.instances.size < SMALL and self.cluster is None else 1,
            in_each_thread=boosting.be_quiet,
            progress=partial(boosting.tell_curve, rounds=self.max_rounds),
        )
        best = int(np.argmin(curve))
        judged = validation(problem, folds, best)
        del folds  # whose trees and binned parts are needed no more
        text, losses = boosting.run(best + 1)
        found = history_of("round", train_loss=losses, val_loss=curve)
        return FittedTrees(text, boosting.start, self.threads, history=found, splits=splits, **judged)

    def from_model(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FittedTrees:
        text = tensors["trees"].numpy().tobytes().decode()
        start = np.array(facts["start"], dtype=np.float64)
        if start.ndim > 1 or not np.isfinite(start).all():
            raise ValueError("the model's trees must be added to a finite number, or to one for each class.")
        if text:
            require_sound_trees(text, classes=start.size)
        return FittedTrees(text=text, start=start, threads=self.threads)

    def settled(self, fitted: Fitted, problem: Problem) -> Trees:
        learner = copy(self)
        # Without a column that can be split there is no round.
        learner.rounds = max(len(fitted.history), 1) if fitted.best is None else fitted.best + 1
        return learner

    def require_options(self) -> None:
        """Require numbers that LightGBM would refuse late, or not at all."""
        if self.rounds is not None:
            _require.whole_number("rounds", self.rounds, low=1, high=_require.LARGEST_INT)
        for name, low in {"max_rounds": 1, "min_rows": 1, "folds": 2, "patience": 1}.items():
            _require.whole_number(name, getattr(self, name), low=low, high=_require.LARGEST_INT)
        _require.whole_number("leaves", self.leaves, low=2, high=131072)  # LightGBM's own limit
        if self.threads is not None:  # OpenMP ends the process if it cannot have them
            _require.whole_number("threads", self.threads, low=1, high=1024)
        if self.cluster is not None and not (isinstance(self.cluster, str) and "://" in self.cluster):
            raise ValueError(
                f"`cluster` must be the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'; got "
                f"{self.cluster!r}."
            )
        _require.number("learning_rate", self.learning_rate, low=0, high=LARGEST_FACTOR)
        if self.learning_rate == 0:  # which LightGBM refuses
            raise ValueError("`learning_rate` must be above 0, or no tree would change anything; got 0.")
        _require.number("l2", self.l2, low=0, high=LARGEST_FACTOR)
        for name in ("row_fraction", "column_fraction"):
            if _require.fraction(name, getattr(self, name)) == 0:
                raise ValueError(f"`{name}` must be above 0, or a tree has nothing to learn from; got 0.")

        for name in self.options or {}:
            own = next((own for own, theirs in OWN_PARAMETERS.items() if name in theirs.split()), None)
            if own is not None:
                cure = f"say `{own}` of Trees" if own else "it follows from the problem. Leave it out"
                raise ValueError(f"`options` must be what nothing else sets; {name!r} would be overridden: {cure}.")

    def _threads(self) -> int:
        return self.threads or torch.get_num_threads()

    def params(self, problem: Problem, seed: int, *, threads: int) -> dict[str, Any]:
        """Parameters of LightGBM for a whole table."""
        instances = problem.instances
        rates = torch.as_tensor(problem.rate, dtype=torch.float64)
        rarest = float(rates.min() if rates.dim() else torch.minimum(rates, 1 - rates)) * len(instances)
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            # A few positives among many rows must fit into a leaf of their own.
            "min_data_in_leaf": max(min(self.min_rows, len(instances) // 20, int(rarest / 4)), 1),
            "lambda_l2": self.l2,
            "bagging_fraction": self.row_fraction,
            "bagging_freq": 1,
            "feature_fraction": self.column_fraction,
            "seed": seed % 2**31,
            # LightGBM would draw the rows that it bins in one way from a matrix, in another from blocks of it.
            "data_random_seed": seed % 2**31,
            "num_threads": 1 if instances.size < SMALL else threads,
            "deterministic": True,
            "force_col_wise": True,
            "metric": "None",
            "verbose": -1,
        } | dict(self.options or {})


@dataclass(eq=False)
class FittedTrees(Fitted):
    """Trees as LightGBM's text, empty where no column could be split, and the logits, () or (C,), they are added to."""

    text: str
    start: Logits
    threads: int | None = None

    def __post_init__(self) -> None:
        lightgbm = _require.package("lightgbm", extra="train")
        self.booster = None
        if not self.text:
            return
        try:
            self.booster = lightgbm.Booster(model_str=self.text)
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(f"the model must hold trees as LightGBM writes them; {error}") from None

    def logits(self, instances: Instances) -> Logits:
        if self.booster is None:
            return np.broadcast_to(self.start, (len(instances), *self.start.shape)).copy()
        threads = self.threads or (1 if instances.size < SMALL else torch.get_num_threads())
        scores: Logits = np.empty((len(instances), *self.start.shape))
        for rows in blocks(instances):
            trees = self.booster.predict(instances[rows], raw_score=True, num_threads=threads)
            scores[rows] = trees + self.start
        return scores

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of an instance's logits."""
        return self.start.shape

    def takes(self, shape: tuple[int, ...], categories: Mapping[int, int]) -> bool:
        return self.booster is None or shape == (self.booster.num_feature(),)

    def importances(self, features: int) -> Logits:
        """(features,) the share of each column in what all splits gained; 0 of all where no tree has a split."""
        gains: Logits = np.zeros(features) if self.booster is None else self.booster.feature_importance("gain")
        shares: Logits = gains / max(gains.sum(), np.finfo(np.float64).tiny)
        return shares

    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        text = np.frombuffer(self.text.encode(), dtype=np.uint8).copy()
        return {"start": self.start.tolist()}, {"trees": torch.from_numpy(text)}
