"""Multiple instance learning, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from kofn import _require
from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.estimators._columns import Floats
from kofn.estimators._count_classifier import CountClassifier
from kofn.estimators._ensemble import mixed, mixed_posteriors
from kofn.estimators._row_labels import (
    Array,
    bag_weights,
    bags_of,
    known_classes,
    require_bags,
    rows_of,
    signed_classes,
    together,
)
from kofn.learners import (
    BagObjective,
    ByLoss,
    ByLossAndError,
    Learner,
    Objective,
    PooledObjective,
    Problem,
    Progress,
)
from kofn.learners._best_rate import best_rate
from kofn.learners._network import FittedNetwork
from kofn.learners._problem import Pooling
from kofn.metrics import bag_scores

ATTENTION = ("attention", "gated-attention")


class MILClassifier(CountClassifier):
    """Learns to classify instances, and bags, from whether each bag has a positive instance.

    `learner`, `progress`, `random_state` and the attributes are those of `LLPClassifier`.

    Args:
        learner: what is fitted; "auto" is the better of trees and a linear model for tables, by the Brier score of
            held-out bags, and a network for images. For attention a network: a `torch.nn.Sequential` that ends in a
            `kofn.learners.Logit`, or a `kofn.learners.AttentionMIL`.
        loss: "count", -log P(S >= 1) or -log P(S = 0); "max", "mean" or "logsumexp" of the instances; "attention" or
            "gated-attention" over their embeddings.
        positive_weight: factor for positive bags, or "balanced": negative bags over positive ones.
        pos_label: the label of bags with at least one positive instance. By default the larger of two numbers, and of
            words the one that says it (yes, true, positive); other words need it.
        bootstrap: as in `LLPClassifier`.
        n_jobs: as in `LLPClassifier`.
        max_categories: as in `LLPClassifier`.
        diagnostics: as in `LLPClassifier`.
        progress: as in `LLPClassifier`.
        random_state: as in `LLPClassifier`.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(600, 2)), np.repeat(np.arange(200), 3)
        >>> y = (X[:, 0] > 1).reshape(200, 3).any(1).repeat(3)  # the bag's label, on each of its rows
        >>> model = kofn.MILClassifier("linear", random_state=0).fit(X, y, groups=groups)
        >>> model.predict_bag_proba(X, groups).shape  # no and at least one positive
        (200, 2)
        >>> bool((model.predict(X) == (X[:, 0] > 1)).mean() > 0.95)
        True

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """

    # Pipelines and searches hand these on without set_fit_request(groups=True).
    __metadata_request__fit = {"groups": True, "bag_weight": True, "fold_by": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True}  # noqa: RUF012
    LOSSES = ("count", "max", "mean", "logsumexp", *ATTENTION)

    def __init__(
        self,
        learner: str | Learner | nn.Module = "auto",
        *,
        loss: Literal["count", "max", "mean", "logsumexp", "attention", "gated-attention"] = "count",
        positive_weight: float | Literal["balanced"] = 1.0,
        pos_label: Any = None,
        bootstrap: int = 0,
        n_jobs: int | None = None,
        max_categories: int = 256,
        diagnostics: bool = True,
        progress: Progress | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.loss = loss
        self.positive_weight = positive_weight
        self.pos_label = pos_label
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.max_categories = max_categories
        self.diagnostics = diagnostics
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None, *, bag_weight: Any = None, fold_by: Any = None) -> MILClassifier:
        """Learn from bags.

        Args:
            X: as in `LLPClassifier.fit`.
            y: (n,) the label of each row's bag, one of two classes, the same on all rows of a bag; `pos_label`
                says that at least one instance is positive.
            groups: (n,) the bag of each row, any hashable. They are required, and None is the default only because
                scikit-learn asks for it: rows whose label is that of a bag would otherwise pass for bags of one.
            bag_weight: (n,) weight of the loss of each row's bag, the same on all rows of a bag; by default 1.
            fold_by: as in `LLPClassifier.fit`, such as the patient of each slide.

        Returns:
            The estimator itself.

        Raises:
            ValueError: no groups; a group with two different labels; more than two classes; words as classes,
                and no `pos_label`.

        Warns:
            FitWarning: as in `LLPClassifier`.
        """
        require_bags(groups, method="fit")
        return self._fit(*self._problem(X, y, groups, bag_weight, fold_by), self._seed())

    def _problem(
        self, X: Any, y: Any, groups: Any, bag_weight: Any = None, fold_by: Any = None
    ) -> tuple[Problem, Array]:
        """What a learner is given, and the two classes; arguments as for `fit`."""
        self._check_options()
        instances, labels = self._check_training(X, y)
        classes, positive = signed_classes(labels, self.pos_label, positive="bags with at least one positive instance")
        bags = bags_of(groups, len(instances))
        bag_labels = bags.common(positive, name="y")
        weight = bag_weights(bag_weight, bags, len(instances), name="bag_weight")
        times = torch.ones(len(bags), dtype=torch.float64) if weight is None else weight
        objective = self._objective(bag_labels, times)
        pools = self.loss in ATTENTION
        problem = Problem(
            instances=instances,
            bags=bags,
            labels=bag_labels,
            objective=objective,
            # A pooled prediction is the bag's own.
            rate=best_rate(objective, bag_labels, torch.ones_like(bags.sizes) if pools else bags.sizes, weight),
            proportions=bag_labels.double(),
            weight=weight,
            together=together(fold_by, bags, len(instances)),
            rule=ByLossAndError() if pools else ByLoss(),
            pooling=cast(Pooling, self.loss) if pools else None,
            **self._problem_of_table(),
        )
        return problem, classes

    def predict_bag_proba(self, X: Any, groups: Any, copies: Any = None) -> NDArray[np.float64]:
        """Probability of each bag to have no positive instance, and at least one, by the distribution of its count.

        With loss="attention" it is the attention model's own.

        Args:
            X: (n, ...) instances.
            groups: (n,) the bag of each instance; bags come in the order in which they first appear.
            copies: (n,) how many times each instance is in its bag; by default once.

        Returns:
            (bags, 2).
        """
        scores = torch.from_numpy(self.bag_decision_function(X, groups, copies))
        return torch.stack([torch.sigmoid(-scores), torch.sigmoid(scores)], 1).numpy()

    def bag_decision_function(self, X: Any, groups: Any, copies: Any = None) -> NDArray[np.float64]:
        """Log-odds of each bag to have a positive instance: `predict_bag_proba` without rounding to 0 or 1. (bags,)."""
        check_is_fitted(self)
        if isinstance(self.fitted_, FittedNetwork) and self.fitted_.pooling is not None:
            instances = self._instances(X)
            return self._pooled_logits(instances, bags_of(groups, len(instances), copies).repeated())
        logits, bags = self._bag_logits(X, groups, copies)
        each = [bag_scores(member, offsets=bags.offsets, copies=bags.copies) for member in logits]
        return mixed(torch.stack(each)).numpy()

    def predict_bags(self, X: Any, groups: Any, copies: Any = None) -> Array:
        """The more probable class of each bag, (bags,), in the order in which bags first appear."""
        classes: Array = self.classes_
        return classes[(self.bag_decision_function(X, groups, copies) > 0).astype(np.int64)]

    def posterior_proba(self, X: Any, y: Any, groups: Any = None, copies: Any = None) -> NDArray[np.float64]:
        """Probability of each instance to be of each class, given its bag's label: in a negative bag none is positive.

            P(y_i = 1 | S >= 1) = p_i / P(S >= 1)

        Args:
            X: (n, ...) instances.
            y: (n,) labels as for `fit`.
            groups: (n,) as for `fit`.
            copies: (n,) how many times each instance is in its bag; by default once.

        Returns:
            (n, 2).
        """
        require_bags(groups, method="posterior_proba")
        logits, bags = self._bag_logits(X, groups, copies)
        positive = torch.from_numpy(self.predict_proba(X)[:, 1])
        positive[bags.index] = self._bag_posteriors(logits, y, bags, len(positive))
        return torch.stack([1 - positive, positive], 1).numpy()

    def _bag_posteriors(self, logits: Tensor, y: Any, bags: Bags, rows: int) -> Tensor:
        """P(y_i = 1 | label of the bag) of the entries of bags, (m,), from their logits by each member, (B, m)."""
        bag_labels = self._bag_labels(y, bags, rows)
        dists = [CountDistribution(member, offsets=bags.offsets, copies=bags.copies) for member in logits]
        bounds = bag_labels, torch.where(bag_labels == 1, bags.sizes, 0)
        losses = torch.stack([-dist.log_prob_between(*bounds) for dist in dists])
        each = torch.stack([dist.posteriors_between(*bounds) for dist in dists])
        return mixed_posteriors(each, losses, bags)

    def score(self, X: Any, y: Any, groups: Any = None, *, sample_weight: Any = None) -> float:
        """The accuracy of bags: the share of them whose class is predicted.

        Predictions of instances are never compared with labels of bags. If you know the class of each instance, their
        accuracy is ``sklearn.metrics.accuracy_score(truth, model.predict(X))``.

        Args:
            X: (n, ...) instances.
            y: (n,) labels as for `fit`.
            groups: (n,) as for `fit`, required.
            sample_weight: (n,) the weight of each row's bag, the same on all rows of a bag.

        Raises:
            ValueError: no groups; labels that are not classes of the estimator, or that differ within a bag.
        """
        require_bags(groups, method="score")
        predicted = self.predict_bags(X, groups)
        bags = bags_of(groups, len(X))
        truth = self.classes_[self._bag_labels(y, bags, len(X)).numpy()]
        weights = bag_weights(sample_weight, bags, len(X), name="sample_weight")
        return float(accuracy_score(truth, predicted, sample_weight=weights))

    def _pooled_logits(self, instances: Floats, bags: Bags) -> NDArray[np.float64]:
        """Log-odds of bags, (b,), by a network that pools, or by the mean probabilities of several."""
        networks = cast(list[FittedNetwork], self.members_ or [self.fitted_])
        return mixed(torch.stack([torch.from_numpy(each.bag_logits(instances, bags)) for each in networks])).numpy()

    def _bag_labels(self, y: Any, bags: Bags, rows: int) -> Tensor:
        """0 or 1 for each bag, from labels of the classes seen in training, one for each row."""
        return bags.common(known_classes(rows_of(y, rows), self.classes_), name="y")

    def _check_options(self) -> None:
        super()._check_options()
        if isinstance(self.positive_weight, str):
            _require.option("positive_weight", self.positive_weight, ("balanced",))
        else:
            _require.number("positive_weight", self.positive_weight, low=0)

    def _objective(self, labels: Tensor, times: Tensor) -> Objective:
        if self.positive_weight == "balanced":
            positives = float((labels * times).sum())
            weight = ((float(times.sum()) - positives) or 1.0) / (positives or 1.0)
        else:
            weight = float(self.positive_weight)
        if self.loss in ATTENTION:
            return PooledObjective(weight)
        pool: Any = None if self.loss == "count" else self.loss
        return BagObjective(pool, weight)
