"""Learning from positive and unlabelled data, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from torch import nn

from kofn import _require
from kofn.estimators._count_classifier import CountClassifier
from kofn.estimators._row_labels import Array, two_classes
from kofn.learners import (
    ByLabelAccuracy,
    ByLoss,
    ByPredictedShare,
    Learner,
    Progress,
    PUObjective,
    PUProblem,
    StoppingRule,
)
from kofn.learners._objectives import PULossName, Ranking
from kofn.losses import mixture_proportion
from kofn.losses._pu import Surrogate

Stopping = Literal["loss", "predicted-share", "label-accuracy"]


class PUClassifier(CountClassifier):
    """Learns to classify from labelled positives and unlabelled instances of which a known fraction is positive.

    `learner`, `progress`, `random_state` and the attributes are those of `LLPClassifier`; what is held out are rows.

    Args:
        learner: what is fitted.
        prior: fraction of positives in all the data, labelled or not; the mixture follows from it and from how many
            are labelled (`kofn.mixture_proportion`).
        mixture: fraction of positives among the unlabelled, in place of `prior`.
        loss: "count", the divergence of the distribution of a bag's count from the binomial; "expectation", its
            expected count; "upu", "nnpu" or "cvir".
        positive_weight: factor for the labelled positives, with "count" and "expectation"; None for the mixture times
            the size of the bag, so that they count as much as the expected number of positives in it.
        bag_size: unlabelled instances in a bag, which has as many labelled positives. By default a 32nd of the
            unlabelled, at least 32 and at most 200. A network deals new bags each epoch.
        surrogate: the loss of one instance, with "upu" and "nnpu": "sigmoid", their authors', whose scores classify and
            rank but are no log-odds; or "logistic" (`kofn.losses.upu_loss`).
        ranking: what a network ranks together with "cvir": all unlabelled before each "epoch", as its authors do, or
            those of a "batch" in each step. Other learners see all rows in each step, and held-out rows are ranked in
            batches.
        stopping: what makes a network's epoch the best: "loss", the validation loss; "predicted-share", that as many
            unlabelled validation instances are predicted positive as the mixture says; "label-accuracy", the paper's
            rule, that the accuracy against the given labels is a perfect classifier's
            (`kofn.learners.ByLabelAccuracy`). An untrained network may meet the last two by chance when validation
            instances are few.
        bootstrap: as in `LLPClassifier`; rows are drawn, among the labelled and among the unlabelled.
        n_jobs: as in `LLPClassifier`.
        progress: as in `LLPClassifier`.
        random_state: as in `LLPClassifier`.

    Attributes:
        mixture_: the fraction of positives among the unlabelled that was trained with.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 2))
        >>> truth = X[:, 0] > 0
        >>> y = np.where(truth & (rng.random(2000) < 0.5), 1, -1)  # half of the positives are labelled
        >>> model = kofn.PUClassifier("linear", prior=0.5, random_state=0).fit(X, y)
        >>> bool(((model.predict(X) == 1) == truth).mean() > 0.9)
        True

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """

    LOSSES = ("count", "expectation", "upu", "nnpu", "cvir")

    def __init__(
        self,
        learner: str | Learner | nn.Module = "auto",
        *,
        prior: float | None = None,
        mixture: float | None = None,
        loss: PULossName = "count",
        positive_weight: float | None = None,
        bag_size: int | None = None,
        surrogate: Surrogate = "sigmoid",
        ranking: Ranking = "epoch",
        stopping: Stopping = "loss",
        bootstrap: int = 0,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.prior = prior
        self.mixture = mixture
        self.loss = loss
        self.positive_weight = positive_weight
        self.bag_size = bag_size
        self.surrogate = surrogate
        self.ranking = ranking
        self.stopping = stopping
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PUClassifier:
        """Learn from labelled positives and unlabelled instances.

        Args:
            X: as in `LLPClassifier.fit`.
            y: (n,) 1 for labelled positives, -1 for unlabelled; or any two classes, of which the larger is labelled.

        Returns:
            The estimator itself.

        Raises:
            ValueError: neither `prior` nor `mixture`, or both; one class only.
        """
        seed = self._seed()
        problem, classes, mixture = self._problem(X, y, seed)
        self._fit(problem, classes, seed)
        self.mixture_ = mixture
        return self

    def _problem(self, X: Any, y: Any, seed: int) -> tuple[PUProblem, Array, float]:
        """What a learner is given, the two classes and the mixture; arguments as for `fit`."""
        self._check_options()
        instances, labels = self._check_training(X, y)
        classes, kind = two_classes(labels)
        labeled = torch.from_numpy(kind == 1)
        if bool(labeled.all()) or not bool(labeled.any()):
            raise ValueError(
                f"`y` must have two classes, labelled positives (1) and unlabelled rows (-1); there is only one class: "
                f"all of the {len(labeled)} rows are {'labelled' if labeled.all() else 'unlabelled'}."
            )
        mixture = self._mixture(float(labeled.double().mean()))
        unlabeled = int((~labeled).sum())
        half = 0.5 / len(labeled)
        problem = PUProblem.of(
            labeled,
            size=min(max(unlabeled // 32, 32), 200) if self.bag_size is None else self.bag_size,
            seed=seed,
            instances=instances,
            objective=PUObjective(
                mixture, cast(PULossName, self.loss), self.positive_weight, self.surrogate, self.ranking
            ),
            rate=min(max(mixture, half), 1 - half),
            rule=self._rule(mixture, (len(labeled) - unlabeled) / unlabeled),
            **self._problem_of_table(),
        )
        return problem, classes, mixture

    def _rule(self, mixture: float, labeled_per_unlabeled: float) -> StoppingRule:
        """What makes a network's epoch the best."""
        if self.stopping == "label-accuracy":
            return ByLabelAccuracy(mixture, labeled_per_unlabeled)
        return ByPredictedShare(mixture) if self.stopping == "predicted-share" else ByLoss()

    def _check_options(self) -> None:
        super()._check_options()
        for name, kinds in (("stopping", Stopping), ("surrogate", Surrogate), ("ranking", Ranking)):
            _require.option(name, getattr(self, name), get_args(kinds))
        if (self.prior is None) == (self.mixture is None):
            raise ValueError(
                f"either `prior` (fraction of positives in all the data) or `mixture` (among the unlabelled) must be "
                f"given, not both; got {self.prior} and {self.mixture}. Unlabelled data alone do not determine it."
            )
        for name in ("prior", "mixture"):
            if getattr(self, name) is not None:
                _require.fraction(name, getattr(self, name))
        if self.positive_weight is not None:
            _require.number("positive_weight", self.positive_weight, low=0)
        if self.bag_size is not None:
            _require.whole_number("bag_size", self.bag_size, low=1)

    def _mixture(self, labeled_fraction: float) -> float:
        if self.mixture is not None:
            return float(self.mixture)
        prior = float(self.prior or 0.0)
        if prior < labeled_fraction:
            raise ValueError(
                f"`prior` must be at least the fraction of rows that are labelled, since these are positives too; got "
                f"{prior:g}, and {labeled_fraction:g} of the rows are labelled. Of the unlabelled alone: mixture=..."
            )
        return mixture_proportion(prior, labeled_fraction)
