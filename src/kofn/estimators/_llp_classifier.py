"""Learning from label proportions, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from torch import Tensor, nn

from kofn import _require
from kofn.bags import Bags
from kofn.estimators._bag_effects import fit_with_bag_effect, warn_if_narrow, with_bag_effect
from kofn.estimators._class_table import ClassTable, class_objective
from kofn.estimators._count_classifier import CountClassifier
from kofn.estimators._ensemble import mixed_losses
from kofn.estimators._noise import noise_distribution
from kofn.estimators._posteriors import member_posteriors
from kofn.estimators._rates import count_rates
from kofn.estimators._row_labels import Array, bag_weights, bags_of, require_classes, rows_of, together
from kofn.estimators._statements import class_statement, count_statement
from kofn.learners import (
    ContaminationObjective,
    CountObjective,
    Fitted,
    Learner,
    Problem,
    Progress,
    ProportionObjective,
)
from kofn.learners._best_rate import best_rate
from kofn.learners._objectives import losses_of_entries
from kofn.targets import Exactly, Spread


class LLPClassifier(CountClassifier):
    """Learns to classify instances from the proportion of positives, or of each of several classes, in each bag.

    Args:
        learner: what is fitted: "auto" (trees for tables, a network for images), "trees", "linear", "network", a
            learner with its options, such as ``kofn.Trees(rounds=200)`` or ``kofn.EM(classifier)``, or a
            `torch.nn.Module`.
        loss: "count", -log P(S = count); "proportion", the cross-entropy of the mean; "mutual-contamination", LMMCM.
            For several classes "count" is "joint", -log P(all counts), or where some counts are not known "marginal",
            the sum over the classes of -log P(count of the class); either can be asked for. "proportion" and
            "transport" (`kofn.losses.transport_loss`) are baselines.
        label: what `y` says of a row's bag: its "proportion" of positives (or, without groups, the row's class), its
            "count", or the "interval" (n, 2) in which its count lies, ends included. For several classes, proportions
            or counts of each, (n, C).
        rounding: for proportions that are not an integer count of their bag: "error", "nearest", or, for two
            classes, "spread" over the two nearest counts.
        noise: distribution of the noise that was added to the counts: "laplace:SCALE", "normal:SD",
            "discrete-laplace:SCALE", or any noise that `kofn.Noisy` takes. With it, `y` may be any number.
        bag_effect: standard deviation of a normal shift that the logits of a bag have in common, so that bags differ by
            more than their instances explain, as voters of one ballot box do; "fit" estimates it, at the cost
            of some more fits. At most 1e6. None for independent labels. With loss="count", or of several classes
            "joint" or "marginal".
        bootstrap: number B of further fits, each to as many bags as there are, drawn with replacement, with what the
            fit to all bags chose (rounds, epochs) kept, but with a weaker penalty of `Linear`, for intervals that hold
            the truth. Predictions are then the mean of these B, and `predict_interval` tells their spread. 50 is a
            good number; 0, the default, makes none.
        n_jobs: number of processes for these fits, as in scikit-learn: None for one, -1 for one for each CPU. The
            models do not depend on it.
        max_categories: a column of text with more different values is refused: it is likely an identifier.
        diagnostics: whether a fit is compared with a regression on the means of bags, its training data are remembered
            by hashes, and its intervals are checked on held-out bags. Searches and cross-validation do without.
        progress: called while the learner learns, with what is being done, how many steps are done, of how many, and
            the losses.
        random_state: int or `numpy.random.RandomState`; with an int two fits are identical. None takes a random
            seed from numpy's global stream, as in scikit-learn.

    Attributes:
        classes_: the two classes, of which the second is positive; of `y` with a column for each class, the names of
            the columns of a DataFrame, or 0 to C - 1.
        loss_: the loss that was minimised: "joint" or "marginal" where "count" is asked for of several classes.
        bag_effect_: the standard deviation of the shift of bags; 0 for independent labels, also where the data show
            no effect that chance would not.
        bag_effect_error_: the standard error of its estimate; None where it was given.
        fitted_: the fitted model.
        fitted_learner_: the learner that made it, with its options, also if it was given by name.
        members_: list of the fitted models of the bootstrap; empty without.
        rate_: the probability of a positive before anything is learned, the best constant for what is known of the
            bags; for several classes (C,).
        history_: a dict for each step of the learner: its number (epoch, round or penalty), train_loss, val_loss.
        best_step_: the number of the step that was chosen, counted from 1; None where nothing was held out.
        held_out_: (k,) bags of the validation data, numbered in the order in which they first appear.
        held_out_logits_: (n,) or (n, C) logits of their instances by models that had not seen them, NaN elsewhere.
        held_out_parts_: the number of parts in which they were held out: 5 for five folds, 1 for one part, 0 for none.
        validation_loss_: mean loss of these bags after the chosen step.
        baselines_: mean losses of the same bags: by the best constant, without features, and by a regression on the
            means of bags.
        bag_means_: that regression, fitted to all bags; None for images. fingerprint_: hashes of the training data.
        held_out_bag_means_: logits of the bags `held_out_` by that regression, fitted to the others.
        feature_importances_: (features,) of trees: the share of each column in the gain of all splits.
        network_: the trained module, if the learner is a network.
        n_features_in_: as in scikit-learn.
        feature_names_in_: as in scikit-learn, of a DataFrame.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(800, 2))
        >>> truth, groups = X[:, 0] > 0, np.repeat(np.arange(200), 4)
        >>> y = truth.reshape(200, 4).mean(1).repeat(4)  # the bag's proportion, on each of its rows
        >>> model = kofn.LLPClassifier(random_state=0).fit(X, y, groups=groups)
        >>> bool((model.predict(X) == truth).mean() > 0.95)
        True
        >>> model.validation_loss_ < model.baselines_["no features"]
        True

        Three classes, of which each bag tells how many are in it:

        >>> classes = np.digitize(X[:, 0], [-0.5, 0.5])
        >>> counts = np.eye(3)[classes].reshape(200, 4, 3).sum(1).repeat(4, axis=0)
        >>> model = kofn.LLPClassifier(label="count", random_state=0).fit(X, counts, groups=groups)
        >>> model.loss_, bool((model.predict(X) == classes).mean() > 0.95)
        ('joint', True)

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """

    # Pipelines and searches hand these on without set_fit_request(groups=True).
    __metadata_request__fit = {"groups": True, "copies": True, "bag_weight": True, "fold_by": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "copies": True}  # noqa: RUF012
    bag_effect_error_: float | None = None
    LOSSES = ("count", "proportion", "mutual-contamination", "joint", "marginal", "transport")

    def __init__(
        self,
        learner: str | Learner | nn.Module = "auto",
        *,
        loss: Literal["count", "proportion", "mutual-contamination", "joint", "marginal", "transport"] = "count",
        label: Literal["proportion", "count", "interval"] = "proportion",
        rounding: Literal["error", "nearest", "spread"] = "error",
        noise: str | Callable[[Tensor], Tensor] | torch.distributions.Distribution | None = None,
        bag_effect: float | Literal["fit"] | None = None,
        bootstrap: int = 0,
        n_jobs: int | None = None,
        max_categories: int = 256,
        diagnostics: bool = True,
        progress: Progress | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.loss = loss
        self.label = label
        self.rounding = rounding
        self.noise = noise
        self.bag_effect = bag_effect
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.max_categories = max_categories
        self.diagnostics = diagnostics
        self.progress = progress
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        copies: Any = None,
        *,
        bag_weight: Any = None,
        fold_by: Any = None,
    ) -> LLPClassifier:
        """Learn from bags.

        Args:
            X: (n, features) numbers, NaN where a value is missing; a DataFrame, of which text and categories are taken
                too; or (n, ...) for a network that takes more dimensions.
            y: (n,) the label of each row's bag, the same on all rows of a bag; for several classes (n, C), a column for
                each, NaN where the number of one is not known.
            groups: (n,) the bag of each row, any hashable; None makes each row its own bag, and this ordinary
                classification.
            copies: (n,) how many times each row is in its bag, integers; by default once.
            bag_weight: (n,) weight of the loss of each row's bag, the same on all rows of a bag; by default 1.
            fold_by: (n,) what each row's bag belongs to, such as its region, the same on all rows of a bag: bags that
                belong together are held out together. By default each bag stands for itself.

        Returns:
            The estimator itself.

        Raises:
            ValueError: a group with two different labels; a label that its bag cannot have; NaN in y; a network that
                does not take the instances; options out of range.
        """
        return self._fit(*self._problem(X, y, groups, copies, bag_weight, fold_by), self._seed())

    def _problem(
        self, X: Any, y: Any, groups: Any, copies: Any = None, bag_weight: Any = None, fold_by: Any = None
    ) -> tuple[Problem, Array]:
        """What a learner is given, and the two classes; arguments as for `fit`."""
        self._check_options()
        interval = self.label == "interval"
        table = None if interval else ClassTable.of(y)
        instances, labels = self._check_training(X, y if table is None else table, multi_output=interval)
        if table is not None:
            table.require(len(instances))
        bags = bags_of(groups, len(instances), copies)
        classes, stated, objective, counts = self._statement(labels, bags)
        weight = bag_weights(bag_weight, bags, len(instances), name="bag_weight")
        rate, shares = count_rates(counts, bags.sizes, weight)
        if table is None and objective.target not in (
            Exactly,
            Spread,
        ):  # bounds or noisy counts tell about a count only
            rate = best_rate(objective, stated, bags.sizes, weight)
        self.loss_, objective = self._objective(objective, stated)
        self.bag_effect_, self.bag_effect_error_ = 0.0, None
        problem = Problem(
            instances=instances,
            bags=bags,
            labels=stated,
            objective=objective,
            rate=rate,
            proportions=shares,
            weight=weight,
            together=together(fold_by, bags, len(instances)),
            **self._problem_of_table(),
        )
        if self.bag_effect is not None and self.bag_effect != "fit":
            self.bag_effect_ = float(self.bag_effect)
        return with_bag_effect(problem, self.bag_effect_) if self.bag_effect is not None else problem, classes

    def _learn(self, learner: Learner, problem: Problem, seed: int) -> tuple[Problem, Fitted]:
        if self.bag_effect != "fit":
            _, fitted = super()._learn(learner, problem, seed)
            if self.bag_effect is None and self.diagnostics:
                warn_if_narrow(problem, fitted)
            return problem, fitted
        problem, fitted, found = fit_with_bag_effect(learner, problem, seed=seed, progress=self.progress)
        self.bag_effect_, self.bag_effect_error_ = found.sigma, found.error
        return problem, fitted

    def posterior_proba(self, X: Any, y: Any, groups: Any = None, copies: Any = None) -> NDArray[np.float64]:
        """Probability of each instance to be of each class, given what is known of its bag: P(y_i | label of the bag).

        The posterior of each instance given the label of its bag, once a model is trained. Of a bag whose count
        is known the second column sums to that count; for several classes each column sums to the count of its
        class, jointly with all others, for which all counts must be known.

        Args:
            X: (n, ...) instances.
            y: (n,) or (n, C) labels as for `fit`.
            groups: (n,) as for `fit`.
            copies: (n,) as for `fit`. All copies of an instance have the same posterior; one that is in no bag has
                its probability.

        Returns:
            (n, 2) or (n, C).
        """
        logits, bags = self._bag_logits(X, groups, copies)
        found = torch.from_numpy(self.predict_proba(X))
        given = self._bag_posteriors(logits, y, bags, len(found))
        found[bags.index] = given if logits.dim() == 3 else torch.stack([1 - given, given], 1)
        return found.numpy()

    def _bag_posteriors(self, logits: Tensor, y: Any, bags: Bags, rows: int) -> Tensor:
        """The same of the entries of bags, (m,) or (m, C), from their logits by each member, (B, m) or (B, m, C)."""
        _, stated, objective, _ = self._statement(self._labels(y, rows), bags, self.classes_)
        if logits.dim() == 3:
            objective = class_objective("joint", stated)[1]
        return member_posteriors(objective, logits, stated, bags)

    def score(self, X: Any, y: Any, groups: Any = None, copies: Any = None, *, sample_weight: Any = None) -> float:
        """Without groups the accuracy of instances; with groups the mean over bags of log P(label of the bag).

        For intervals and noisy counts always the latter. For several classes log P is that of the joint or the marginal
        counts, as in training. Weights, (n,), are repeated on the rows of a bag, as labels are.

        Raises:
            ValueError: without groups, a label that is not a class of the estimator, such as a proportion; and as in
                `fit`.
        """
        rows = len(X)
        if groups is None and copies is None and self.label != "interval" and self.noise is None:
            labels = self._labels(y, rows)
            truth = self.classes_[labels.values.argmax(1)] if isinstance(labels, ClassTable) else labels
            require_classes(truth, self.classes_)
            return float(accuracy_score(truth, self.predict(X), sample_weight=sample_weight))
        logits, bags = self._bag_logits(X, groups, copies)
        _, stated, objective, _ = self._statement(self._labels(y, rows), bags, self.classes_)
        each = [losses_of_entries(objective, member, stated, bags.offsets, bags.copies) for member in logits]
        losses = mixed_losses(torch.stack(each)).numpy()
        weights = bag_weights(sample_weight, bags, rows, name="sample_weight")
        return -float(np.average(losses, weights=weights))

    def _check_options(self) -> None:
        super()._check_options()
        _require.option("label", self.label, ("proportion", "count", "interval"))
        _require.option("rounding", self.rounding, ("error", "nearest", "spread"))
        if self.noise is not None and self.label == "interval":
            raise ValueError("`noise` goes with label='count' or 'proportion'; an interval says all that it can mean.")
        if self.noise is not None:
            noise_distribution(self.noise)
        if self.bag_effect == "fit":
            if getattr(self.learner, "checkpoint", None) is not None:
                raise ValueError(
                    "`checkpoint` goes with a given `bag_effect`, not with 'fit', which fits the learner again. Fit "
                    "without a checkpoint first, and then with the bag_effect_ that was found."
                )
        elif self.bag_effect is not None:
            _require.number("bag_effect", self.bag_effect, low=0, high=_require.LARGEST_BAG_EFFECT)

    def _labels(self, y: Any, rows: int) -> Array | ClassTable:
        """Labels to compare with a fitted estimator's: one for each row, or a table of classes."""
        table = None if self.label == "interval" else ClassTable.of(y)
        if table is None:
            return rows_of(y, rows)
        table.require(rows, self.classes_)
        return table

    def _statement(
        self, y: Array | ClassTable, bags: Bags, classes: Array | None = None
    ) -> tuple[Array, Tensor, Any, Tensor]:
        """The classes, those given if any; the label of each bag, the count loss that reads it, about its counts."""
        found, stated, objective, counts = self._statement_alone(y, bags, classes)
        if classes is not None and self.bag_effect_ and isinstance(objective, CountObjective):
            objective = replace(objective, bag_effect=self.bag_effect_)
        return found, stated, objective, counts

    def _statement_alone(
        self, y: Array | ClassTable, bags: Bags, classes: Array | None
    ) -> tuple[Array, Tensor, Any, Tensor]:
        """The same without a bag effect."""
        if not isinstance(y, ClassTable):
            return count_statement(y, bags, label=self.label, noise=self.noise, rounding=self.rounding, classes=classes)
        if self.noise is not None or self.rounding == "spread":
            option = "rounding='spread'" if self.noise is None else f"noise={self.noise!r}"
            raise ValueError(f"`y` must be a single column with {option}; got a column for each class. Leave it out.")
        loss = "count" if classes is None or self.loss_ not in ("joint", "marginal") else self.loss_
        found = class_statement(y, bags, label=self.label, rounding=self.rounding, loss=loss)
        return y.names if classes is None else classes, *found

    def _objective(self, count: Any, stated: Tensor) -> tuple[str, Any]:
        """The name of the loss that is minimised, and the loss."""
        if stated.dim() == 2 and self.label != "interval":
            return class_objective(self.loss, stated)
        if self.loss in ("joint", "marginal", "transport"):
            raise ValueError(
                f"`loss` must be 'count', 'proportion' or 'mutual-contamination' for two classes; got {self.loss!r}, "
                f"which is of several. Of two the joint and the marginal loss are 'count'."
            )
        if self.loss == "count":
            return "count", count
        if count.target not in (Exactly, Spread):
            raise ValueError(
                f"`loss` must be 'count' for intervals and noisy counts; got {self.loss!r}, which needs a proportion."
            )
        return self.loss, ProportionObjective() if self.loss == "proportion" else ContaminationObjective()
