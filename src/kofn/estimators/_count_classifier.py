"""What the three estimators share: a learner's fit, its baselines, scores of instances and distributions of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from kofn import _require
from kofn._io.mapped import mapping_of
from kofn.bags import Bags
from kofn.classes import one_vs_rest
from kofn.counts import CountDistribution
from kofn.estimators._baselines import Baselines, warn_if_useless
from kofn.estimators._class_table import ClassTable
from kofn.estimators._columns import Columns, EncodedTable, Floats
from kofn.estimators._count_mixture import CountMixture, count_distribution
from kofn.estimators._ensemble import Ensemble, mixed
from kofn.estimators._fingerprint import Fingerprint
from kofn.estimators._frames import column_names, is_frame
from kofn.estimators._rates import LabelShares, label_shares
from kofn.estimators._row_labels import Array, as_array, bags_of, rows_of
from kofn.estimators._saving import load, save
from kofn.estimators._used_bags import used_bags
from kofn.learners import BagObjective, BestOf, Fitted, Learner, Linear, Network, Problem, Progress, PUProblem, Trees
from kofn.learners._network import FittedNetwork
from kofn.learners._resamples import fit_resamples
from kofn.learners._trees import FittedTrees

LEARNERS: Mapping[str, type[Learner]] = {"trees": Trees, "linear": Linear, "network": Network}
Self = TypeVar("Self", bound="CountClassifier")


class CountClassifier(Ensemble, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An instance classifier that is trained on counts. Use `LLPClassifier`, `MILClassifier` or `PUClassifier`."""

    classes_: Array
    fitted_learner_: Learner
    columns_: Columns | None
    rate_: Any  # a float, or (C,)
    learner: Any
    loss: str
    bootstrap: int
    n_jobs: int | None
    random_state: Any
    diagnostics: bool
    max_categories: int
    progress: Progress | None
    label_shares_: LabelShares | None
    bag_effect_: float = 0.0  # standard deviation of the shift of bags, which label proportions may have
    LOSSES: ClassVar[tuple[str, ...]]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds of each instance to be positive, (n, ...) to (n,). Positive ones are above 0.

        With a bag effect they are those in a bag without a shift, of which `predict_proba` is the mean over shifts.
        For several classes a score of each, (n, C): log-probabilities, but for a constant of the instance. An attention
        model scores an instance as a bag of one. With `bootstrap` these are of the mean of the members' probabilities.
        """
        check_is_fitted(self)
        return _mixed(self._member_logits(X)).numpy()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each instance to be of each class, (n, ...) to (n, 2), or (n, C)."""
        check_is_fitted(self)
        logits = _mixed(self._marginal(self._member_logits(X)))
        if logits.dim() == 2:
            return logits.softmax(1).numpy()
        return torch.stack([torch.sigmoid(-logits), torch.sigmoid(logits)], 1).numpy()

    def predict(self, X: Any) -> Array:
        """The most probable class of each instance, (n, ...) to (n,)."""
        scores = self.decision_function(X)
        found: Array = self.classes_[scores.argmax(1) if scores.ndim == 2 else (scores > 0).astype(np.int64)]
        return found

    def predict_bag_proba(self, X: Any, groups: Any, copies: Any = None) -> NDArray[np.float64]:
        """The exact distribution of each bag's number of positives, or of its number of instances of each class.

        With `bootstrap` it is the mixture of the members' distributions: one of them is right, on all rows of a bag.

        Args:
            X: (n, ...) instances.
            groups: (n,) the bag of each instance; bags come in the order in which they first appear.
            copies: (n,) how many times each instance is in its bag; by default once.

        Returns:
            (bags, largest bag + 1): P(S = k) in column k, 0 past a bag's size. For several classes (bags, C, largest
            bag + 1): P(K_c = k), of each class by itself.
        """
        each, _ = self._count_distributions(X, groups, copies)
        tables = [dist.count_layout.to_rows(dist.log_probs().exp(), 0.0) for dist in each]
        return (torch.stack(tables, 1) if len(self.classes_) > 2 else tables[0]).numpy()

    def predict_bags(self, X: Any, groups: Any, copies: Any = None) -> Array:
        """The most probable number of positives in each bag, (bags,), in the order in which bags first appear.

        For several classes that of each class by itself, (bags, C); they need not sum to the bag's size.
        """
        each, _ = self._count_distributions(X, groups, copies)
        modes = [dist.mode for dist in each]
        most: Array = (torch.stack(modes, 1) if len(self.classes_) > 2 else modes[0]).numpy()
        return most

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """(features,) the share of each column in what the splits of the trees gained."""
        check_is_fitted(self)
        if not isinstance(self.fitted_, FittedTrees):
            raise AttributeError("feature_importances_ are those of trees; this model has none.")
        return self.fitted_.importances(self.n_features_in_)

    @property
    def network_(self) -> nn.Module:
        """The trained network, in evaluation mode."""
        check_is_fitted(self)
        if not isinstance(self.fitted_, FittedNetwork):
            raise AttributeError("network_ is that of a Network; this model has none.")
        return self.fitted_.network

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one safetensors file; see `kofn.estimators.load`.

        The file appears whole or not at all. A module, a factory or a distribution of noise of your own is code, which
        is not saved: give it again when loading. Options of the machine are not saved either.

        Raises:
            ValueError: `path` is something else than a model; a model of `EM`, whose classifier is code.
        """
        check_is_fitted(self)
        save(self, Path(path))

    @classmethod
    def load(cls: type[Self], path: str | Path, *, module: Any = None, **code_parameters: Any) -> Self:
        """Read an estimator of this class from a file written by `save`.

        Args:
            path: the file.
            module: the network or factory that it was trained with, if that was not a name.
            **code_parameters: other parameters that were not saved because they are code, such as ``noise``.

        Raises:
            FileNotFoundError, ValueError: no such model; one of another class or a newer version; an altered or cut
                file; a parameter that was not saved and is not given.
        """
        loaded: Self = load(Path(path), kinds=[cls], code_parameters={"module": module, **code_parameters})[0]
        return loaded

    def _fit(self: Self, problem: Problem, classes: Array, seed: int) -> Self:
        """Let the learner minimise the problem's loss, and keep the result."""
        rows = len(problem.instances)
        of_bags = None if isinstance(problem, PUProblem) else problem.bags
        self.fingerprint_ = Fingerprint.of(problem.instances, of_bags) if self.diagnostics else None
        bags, used, problem = used_bags(problem)
        learner = self._learner(problem)
        learner.require_options()
        baselines = Baselines.fit(problem, learner.splits(problem, seed), linear=self.diagnostics)
        problem, fitted = self._learn(learner, problem, seed)
        learner = fitted.learner or learner
        members: list[Fitted] = []
        if self.bootstrap:
            settled, number = learner.settled(fitted, problem), self.bootstrap
            options: dict[str, Any] = {"n_jobs": self.n_jobs, "progress": self.progress}
            members = fit_resamples(settled, problem, number=number, seed=seed, **options)
        self.fitted_learner_ = copy(learner)  # its options may be set anew, and a file must have those of the fit
        self.classes_, self.seed_ = classes, seed
        self.fitted_, self.members_ = fitted, members
        self.rate_ = problem.rate.numpy() if isinstance(problem.rate, Tensor) else problem.rate
        self.instance_shape_ = problem.instances.shape[1:]
        self.history_ = fitted.history
        self.best_step_ = None if fitted.best is None else fitted.best + 1  # counted from 1, as in the history
        held = [bags[held].numpy() for _, held in fitted.splits]
        self.held_out_parts_ = len(held)
        self.held_out_ = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *held]))
        self.held_out_logits_ = fitted.held_out_logits
        if fitted.held_out_logits is not None and not (len(used) == rows and bool((used.diff() > 0).all())):
            self.held_out_logits_ = np.full((rows, *problem.outputs), np.nan)
            self.held_out_logits_[used.numpy()] = fitted.held_out_logits
        self.validation_loss_ = fitted.validation_loss
        self.baselines_ = baselines.losses(problem)
        self.bag_means_, self.held_out_bag_means_ = baselines.bag_means, baselines.held_out
        self.label_shares_ = label_shares(problem)
        warn_if_useless(problem, fitted, baselines, stacklevel=3)
        return self

    def _learn(self, learner: Learner, problem: Problem, seed: int) -> tuple[Problem, Fitted]:
        """The problem that the learner was fitted to at last, and what it became."""
        return problem, learner.fit(problem, seed=seed, progress=self.progress)

    def _learner(self, problem: Problem) -> Learner:
        """The learner that is asked for."""
        learner = self.learner
        if isinstance(learner, nn.Module):
            return Network(learner)
        if isinstance(learner, str) and learner == "auto":
            is_table, labels = problem.instances.ndim == 2, isinstance(problem.objective, BagObjective)
            names = auto_learners(is_table=is_table, pools=problem.pooling is not None, labels_of_bags=labels)
            learner = best_of([LEARNERS[name]() for name in names])
        if isinstance(learner, BestOf) and mapping_of(problem.instances) is not None:
            return learner.learners[0]  # trees read a table in a file, a linear model would take it into memory
        if isinstance(learner, Learner):
            return learner
        if isinstance(learner, str) and learner in LEARNERS:
            return LEARNERS[learner]()
        if hasattr(learner, "fit") and not isinstance(learner, type):
            name = type(learner).__name__
            raise ValueError(
                f"`learner` must be one of kofn; got a {name}, which learns from labels of rows. A classifier of "
                f"scikit-learn is fitted to counts by expectation-maximisation: kofn.EM({name}(...))."
            )
        raise ValueError(
            f"`learner` must be 'auto', {', '.join(map(repr, LEARNERS))}, a learner such as kofn.Trees(rounds=200), or "
            f"a torch.nn.Module; got {learner!r}."
        )

    def _check_options(self) -> None:
        """Require options of the task."""
        _require.option("loss", self.loss, self.LOSSES)
        _require.whole_number("bootstrap", self.bootstrap, low=0)
        _require.whole_number("max_categories", self.max_categories, low=1)
        if self.n_jobs is not None:
            _require.whole_number("n_jobs", self.n_jobs)
            if self.n_jobs == 0:
                raise ValueError("`n_jobs` must be a number of processes, or -1 for one on each processor; got 0.")
        if self.bootstrap == 1:
            raise ValueError("`bootstrap` must be 0 or at least 2: one fit has no spread; got 1. 50 is a good number.")

    def _check_training(self, X: Any, y: Any, **checks: Any) -> tuple[Floats, Any]:
        """Instances as float32, NaN where a table has no value, and labels as an array, without NaN.

        Labels of several classes, a `ClassTable`, come back as they are.
        """
        if isinstance(X, EncodedTable) or is_frame(X):
            self.columns_ = (
                X.columns if isinstance(X, EncodedTable) else Columns(max_categories=self.max_categories).learn(X)
            )
            self.n_features_in_ = len(self.columns_.names)
            self.feature_names_in_ = np.array(self.columns_.names, dtype=object)
            if is_frame(X) and not all(isinstance(name, str) for name in column_names(X)):
                del self.feature_names_in_  # as scikit-learn has it: numbers name no columns
            values = X.values if isinstance(X, EncodedTable) else self.columns_(X)
            return values, y if isinstance(y, ClassTable) else rows_of(y, len(values))
        self.columns_ = None
        shape_and_values = {"dtype": np.float32, "allow_nd": True, "ensure_all_finite": _allowed(X)}
        if isinstance(y, ClassTable):
            return np.ascontiguousarray(validate_data(self, as_array(X), **shape_and_values)), y
        checks |= shape_and_values
        instances, labels = validate_data(self, as_array(X), as_array(y), **checks)
        return np.ascontiguousarray(instances), np.asarray(labels)

    def _instances(self, X: Any) -> Floats:
        """Instances to score, as those of training were."""
        if isinstance(X, EncodedTable):
            return X.values
        if self.columns_ is not None:
            if is_frame(X):
                return self.columns_(X)
            if self.columns_.categories:
                raise ValueError(
                    f"X must be a data frame with the columns that {type(self).__name__} was trained with; got "
                    f"{type(X).__name__}."
                )
        options = {"dtype": np.float32, "allow_nd": True, "reset": False, "ensure_all_finite": _allowed(X)}
        rows = validate_data(self, as_array(X), **options)
        if rows.shape[1:] != self.instance_shape_:
            raise ValueError(
                f"X has instances of shape {rows.shape[1:]}, but {type(self).__name__} is expecting instances of shape "
                f"{self.instance_shape_}, as it was trained with."
            )
        return np.ascontiguousarray(rows)

    def _problem_of_table(self) -> dict[str, Any]:
        """What a problem needs to know of the columns."""
        return {} if self.columns_ is None else {"categories": self.columns_.category_counts}

    def _seed(self) -> int:
        if getattr(self.learner, "checkpoint", None) is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                f"`random_state` must be an int with `checkpoint`, or the next fit would be another and could not go "
                f"on from it; got {self.random_state!r}."
            )
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _count_distributions(
        self, X: Any, groups: Any, copies: Any
    ) -> tuple[list[CountDistribution | CountMixture], Bags]:
        """The distribution of the number of positives of each bag, or one of these for each class, and the bags."""
        logits, bags = self._bag_logits(X, groups, copies)
        by_class = one_vs_rest(logits).movedim(1, 0) if logits.dim() == 3 else logits.unsqueeze(0)
        each = [count_distribution(one, bags.offsets, self.bag_effect_, bags.copies) for one in by_class]
        return each, bags

    def _bag_logits(self, X: Any, groups: Any, copies: Any = None) -> tuple[Tensor, Bags]:
        """Logits of instances by each member, (B, m, ...) float64, one bag after the other, and the bags."""
        check_is_fitted(self)
        logits = self._member_logits(X)
        bags = bags_of(groups, logits.shape[1], copies)
        return logits[:, bags.index], bags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")  # after a fit that failed there are other attributes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


def auto_learners(*, is_table: bool, pools: bool, labels_of_bags: bool) -> tuple[str, ...]:
    """The learners of which "auto" takes the best.

    Trees for tables, and for labels 0 and 1 of bags a linear model, too; a network for images, and for a loss that
    pools in a network.
    """
    if not is_table or pools:
        return ("network",)
    return ("trees", "linear") if labels_of_bags else ("trees",)


def best_of(learners: Sequence[Learner]) -> Learner:
    """A learner that takes the best of several, or the only one."""
    return learners[0] if len(learners) == 1 else BestOf(learners)


def _mixed(logits: Tensor) -> Tensor:
    return mixed(logits, classes=logits.dim() == 3)


def _allowed(X: Any) -> Any:
    """Missing values are allowed in tables, not in images."""
    return "allow-nan" if getattr(X, "ndim", 2) == 2 else True
