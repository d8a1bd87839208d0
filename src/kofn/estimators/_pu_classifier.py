"""Learning from positive and unlabelled data, as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from kofn import _require
from kofn.estimators._count_classifier import CountClassifier
from kofn.estimators._fit_warning import FitWarning
from kofn.estimators._label_scores import label_scores
from kofn.estimators._mixture import FEWEST, estimate_mixture
from kofn.estimators._row_labels import (
    Array,
    bags_of,
    known_classes,
    rows_of,
    signed_classes,
    together,
)
from kofn.estimators._sensitivity import mixture_sensitivity
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
from kofn.metrics import pu_auc

Stopping = Literal["loss", "predicted-share", "label-accuracy"]
# Options that some losses alone have: the default, and these losses.
OF_LOSSES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "positive_weight": (None, ("count", "expectation")),
    "surrogate": ("sigmoid", ("upu", "nnpu")),
    "ranking": ("epoch", ("cvir",)),
    "warm_up": (0, ("cvir",)),
}
TOO_WIDE = 0.5  # an interval of the mixture that is warned of


class PUClassifier(CountClassifier):
    """Learns to classify from labelled positives and unlabelled instances of which some fraction is positive.

    If that fraction is not known, it is estimated from how much the unlabelled look like the labelled, which assumes
    that some positives look like no negative (`kofn.estimate_mixture`).

    `learner`, `progress`, `random_state` and the attributes are those of `LLPClassifier`; what is held out are rows.

    Args:
        learner: what is fitted.
        prior: fraction of positives in all the data, labelled or not; the mixture follows from it and from how many
            are labelled (`kofn.mixture_proportion`).
        mixture: fraction of positives among the unlabelled, in place of `prior`. With neither it is estimated, by
            boosted trees of labelled against unlabelled rows and `kofn.estimate_mixture`.
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
        warm_up: so many first epochs of a network with "cvir" take all unlabelled for negatives, before any are
            ignored; its authors begin with 100 of 2,000. Images of several kinds need it: the ranking of a network
            that knows nothing would decide which of them are learned as negatives.
        stopping: what makes a network's epoch the best: "loss", the validation loss; "predicted-share", that as many
            unlabelled validation instances are predicted positive as the mixture says; "label-accuracy", the paper's
            rule, that the accuracy against the given labels is a perfect classifier's
            (`kofn.learners.ByLabelAccuracy`). An untrained network may meet the last two by chance when validation
            instances are few.
        pos_label: the label of labelled positives. By default the larger of two numbers, and of words the one that says
            it (yes, true, positive); other words need it.
        bootstrap: as in `LLPClassifier`; rows are drawn, among the labelled and among the unlabelled.
        n_jobs: as in `LLPClassifier`.
        max_categories: as in `LLPClassifier`.
        diagnostics: as in `LLPClassifier`.
        progress: as in `LLPClassifier`.
        random_state: as in `LLPClassifier`.

    Attributes:
        mixture_: the fraction of positives among the unlabelled that was trained with.
        mixture_interval_: the ends of its 90 % interval, if it was estimated; None if it was given.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 2))
        >>> truth = X[:, 0] > 0
        >>> y = np.where(truth & (rng.random(2000) < 0.5), 1, -1)  # half of the positives are labelled
        >>> model = kofn.PUClassifier("linear", prior=0.5, random_state=0).fit(X, y)
        >>> bool(((model.predict(X) == 1) == truth).mean() > 0.9)
        True
        >>> model = kofn.PUClassifier("linear", random_state=0).fit(X, y)  # of the unlabelled a third is positive
        >>> low, high = model.mixture_interval_
        >>> bool(0.2 < low < 1 / 3 < high < 0.5)
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
        warm_up: int = 0,
        stopping: Stopping = "loss",
        pos_label: Any = None,
        bootstrap: int = 0,
        n_jobs: int | None = None,
        max_categories: int = 256,
        diagnostics: bool = True,
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
        self.warm_up = warm_up
        self.stopping = stopping
        self.pos_label = pos_label
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.max_categories = max_categories
        self.diagnostics = diagnostics
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, fold_by: Any = None) -> PUClassifier:
        """Learn from labelled positives and unlabelled instances.

        Args:
            X: as in `LLPClassifier.fit`.
            y: (n,) 1 for labelled positives, -1 for unlabelled; or any two classes, of which `pos_label` is labelled.
            fold_by: (n,) what each row belongs to, such as a user: rows that belong together are held out together.

        Returns:
            The estimator itself.

        Raises:
            ValueError: both `prior` and `mixture`; one class only; words as classes, and no `pos_label`; neither prior
                nor mixture, and too few rows to estimate it; an option that the loss does not have.

        Warns:
            FitWarning: the estimate of the mixture has an interval that is wider than a half; as in
                `LLPClassifier`.
        """
        seed = self._seed()
        problem, classes, mixture, interval = self._problem(X, y, seed, fold_by)
        self._fit(problem, classes, seed)
        self.mixture_, self.mixture_interval_ = mixture, interval
        return self

    def score(self, X: Any, y: Any) -> float:
        """The AUC of labelled positives against unlabelled rows (`kofn.metrics.pu_auc`).

            AUC_PU = P(score of a labelled positive > score of an unlabelled row),   ties count half

        A better ranking raises it. It depends on the order of the scores alone, so it cannot choose a mixture or a
        prior: leave these out to estimate them, or see `kofn.estimate_mixture`. Unlabelled positives hold it down: with
        a fraction `mixture` of them it is at most 1 - mixture / 2.

        Args:
            X: (n, ...) instances, of which the labelled ones should not have been trained on.
            y: (n,) labels as for `fit`; or, for an AUC of positives against negatives, the true classes.

        Raises:
            ValueError: one class only; labels that are not classes of the estimator.

        Examples:
            >>> import numpy as np, kofn
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(1000, 2))
            >>> y = np.where((X[:, 0] > 0) & (rng.random(1000) < 0.5), 1, -1)
            >>> scores = [
            ...     kofn.PUClassifier(kofn.Linear(l2=0.01), mixture=mixture, random_state=0).fit(X, y).score(X, y)
            ...     for mixture in (0.05, 0.33)
            ... ]
            >>> [round(score, 2) for score in scores]
            [0.83, 0.83]
        """
        scores = self.decision_function(X)
        labeled = known_classes(rows_of(y, len(scores)), self.classes_) == 1
        require_both_kinds(labeled, self.classes_)
        return pu_auc(scores[labeled], scores[~labeled])

    def sensitivity(
        self, X: Any, y: Any, *, mixtures: Sequence[float] | None = None, fold_by: Any = None
    ) -> list[dict[str, float]]:
        """What would be found if the mixture were another: fits to the same data that differ in nothing else.

        No truth is needed. Nothing in the data says which of the fits is the best.

        Args:
            X: the instances that were fitted to.
            y: (n,) their labels.
            mixtures: to be tried; by default the estimate and the ends of its interval. Each but the mixture of this
                model is one more fit.
            fold_by: (n,) as for `fit`.

        Returns:
            A dict for each mixture: mixture; predicted_positive_share, of the unlabelled rows; rank_correlation,
            Spearman's, between the scores of the unlabelled rows and those by this model; top_overlap, the share of the
            tenth of them with the highest scores that is in that of this model.

        Raises:
            sklearn.exceptions.NotFittedError: not fitted.
            ValueError: no mixtures, and the model was given its own; mixtures that are not between 0 and 1.

        Examples:
            >>> import numpy as np, kofn
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(1000, 2))
            >>> y = np.where((X[:, 0] > 0) & (rng.random(1000) < 0.5), 1, -1)
            >>> model = kofn.PUClassifier(kofn.Linear(l2=0.01), mixture=0.33, random_state=0).fit(X, y)
            >>> rows = model.sensitivity(X, y, mixtures=[0.2, 0.33])
            >>> rows[0]["predicted_positive_share"] < rows[1]["predicted_positive_share"], rows[1]["top_overlap"]
            (True, 1.0)
        """
        check_is_fitted(self)
        if mixtures is None:
            if self.mixture_interval_ is None:
                raise ValueError("`mixtures` must be given for a model whose mixture was given, not estimated.")
            mixtures = sorted({self.mixture_, *self.mixture_interval_})
        return mixture_sensitivity(self, X, y, [_require.fraction("mixtures", each) for each in mixtures], fold_by)

    def _problem(
        self, X: Any, y: Any, seed: int, fold_by: Any = None
    ) -> tuple[PUProblem, Array, float, tuple[float, float] | None]:
        """What a learner is given, the two classes, the mixture and its interval; arguments as for `fit`."""
        self._check_options()
        instances, labels = self._check_training(X, y)
        classes, kind = signed_classes(labels, self.pos_label, positive="labelled positives")
        require_both_kinds(kind == 1, np.array([-1, 1]))
        labeled = torch.from_numpy(kind == 1)
        owners = together(fold_by, bags_of(None, len(labeled)), len(labeled))
        interval = None
        if self.prior is None and self.mixture is None:
            mixture, interval = self._estimate(instances, labeled, seed, owners)
        else:
            mixture = self._mixture(float(labeled.double().mean()))
        unlabeled = int((~labeled).sum())
        half = 0.5 / len(labeled)
        problem = PUProblem.of(
            labeled,
            size=self._size_of_bags(unlabeled),
            seed=seed,
            instances=instances,
            objective=PUObjective(
                mixture, cast(PULossName, self.loss), self.positive_weight, self.surrogate, self.ranking, self.warm_up
            ),
            rate=min(max(mixture, half), 1 - half),
            together=owners,
            rule=self._rule(mixture, (len(labeled) - unlabeled) / unlabeled),
            **self._problem_of_table(),
        )
        return problem, classes, mixture, interval

    def _size_of_bags(self, unlabeled: int) -> int:
        """As given; else some thirty bags of the unlabelled, of 32 to 200."""
        return min(max(unlabeled // 32, 32), 200) if self.bag_size is None else self.bag_size

    def _rule(self, mixture: float, labeled_per_unlabeled: float) -> StoppingRule:
        """What makes a network's epoch the best."""
        if self.stopping == "label-accuracy":
            return ByLabelAccuracy(mixture, labeled_per_unlabeled)
        return ByPredictedShare(mixture) if self.stopping == "predicted-share" else ByLoss()

    def _check_options(self) -> None:
        super()._check_options()
        for name, kinds in (("stopping", Stopping), ("surrogate", Surrogate), ("ranking", Ranking)):
            _require.option(name, getattr(self, name), get_args(kinds))
        if self.prior is not None and self.mixture is not None:
            raise ValueError(
                f"`prior` (fraction of positives in all the data) or `mixture` (among the unlabelled) may be given, "
                f"not both; got {self.prior} and {self.mixture}. With neither it is estimated."
            )
        for name in ("prior", "mixture"):
            if getattr(self, name) is not None:
                _require.fraction(name, getattr(self, name))
        _require.whole_number("warm_up", self.warm_up, low=0)
        for name, (default, losses) in OF_LOSSES.items():
            if getattr(self, name) != default and self.loss not in losses:
                raise ValueError(
                    f"`{name}` goes with `loss` {' or '.join(map(repr, losses))}; {self.loss!r} has none, and it would "
                    f"do nothing. Leave it out."
                )
        if self.positive_weight is not None:
            _require.number("positive_weight", self.positive_weight, low=0)
        if self.bag_size is not None:
            _require.whole_number("bag_size", self.bag_size, low=1)

    def _estimate(
        self, instances: NDArray[np.float32], labeled: Tensor, seed: int, owners: Tensor | None
    ) -> tuple[float, tuple[float, float]]:
        """The mixture and its interval, from scores of rows by models that had not seen them."""
        fewest = min(int(labeled.sum()), int((~labeled).sum()))
        if fewest < FEWEST:
            raise ValueError(
                f"`prior` or `mixture` must be given where there are fewer than {FEWEST} labelled or unlabelled rows "
                f"to estimate it from; there are {fewest}."
            )
        options = {"categories": {}} | self._problem_of_table()
        scores, rows = label_scores(instances, labeled, seed=seed, together=owners, progress=self.progress, **options)
        known = labeled[rows].numpy()
        found = estimate_mixture(scores[known], scores[~known])
        low, high = found.interval
        if high - low > TOO_WIDE:
            warnings.warn(
                f"these data hardly tell the mixture, the share of positives among the unlabelled: the estimate is "
                f"{found.mixture:.2g}, its 90 % interval {low:.2g} to {high:.2g}. If you know more, say `prior` or "
                f"`mixture`; or label more positives, or take features that distinguish the classes.",
                FitWarning,
                stacklevel=4,
            )
        return found.mixture, found.interval

    def _mixture(self, labeled_fraction: float) -> float:
        if self.mixture is not None:
            return float(self.mixture)
        prior = float(self.prior or 0.0)
        if prior < labeled_fraction:
            raise ValueError(
                f"`prior` must be at least the fraction of rows that are labelled, since these are positives too; got "
                f"{prior:g}, and {labeled_fraction:g} of the rows are labelled. `mixture` takes the share "
                f"of positives among the unlabelled rows alone."
            )
        return mixture_proportion(prior, labeled_fraction)


def require_both_kinds(labeled: NDArray[np.bool_], classes: Array) -> None:
    """Require labelled positives and unlabelled rows, some of each."""
    if labeled.all() or not labeled.any():
        unlabelled, positive = classes.tolist()
        raise ValueError(
            f"`y` must have two classes, labelled positives ({positive}) and unlabelled rows ({unlabelled}); there is "
            f"only one class: all of the {len(labeled)} rows are {'labelled' if labeled.all() else 'unlabelled'}."
        )
