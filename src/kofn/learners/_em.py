"""Any classifier of scikit-learn that takes weights, by expectation-maximisation."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor

from kofn import _require
from kofn.learners._design import Design
from kofn.learners._learner import Fitted, Instances, Learner, Logits, Progress, require_table
from kofn.learners._problem import Problem
from kofn.learners._splits import Split, a_split_of
from kofn.learners._surrogate import surrogate


class EM(Learner):
    """Any scikit-learn classifier that takes sample weights, by expectation-maximisation.

    Expectation: the posterior q_i = P(y_i = 1 | label of the bag) of each row, exact, from its logit and those
    of its bag. Maximisation: the classifier is fitted to each row twice, as positive with weight q and as negative with
    weight 1 - q; for several classes, to each row as each of them with its posterior as weight. For likelihoods of
    counts this never makes the training loss larger, if the classifier finds its optimum; for other losses the weights
    are those whose cross-entropy has the slope of the loss. Rounds end when held-out bags have not been better for a
    while, and the best round is kept.

    The classifier sees standardised columns without gaps, categories as columns of 0 and 1. One that memorises
    its rows, such as a forest of deep trees, confirms its own first guess: regularise it (``min_samples_leaf``).

    Args:
        estimator: a classifier with `predict_proba` whose `fit` takes `sample_weight`, or a pipeline that ends in one;
            it is cloned.
        rounds: maximum number of rounds.
        patience: number of rounds without a better held-out loss after which the fit ends.
        validation_fraction: fraction of the bags to hold out, on which the best round is chosen; 0 runs all rounds.

    Examples:
        >>> import numpy as np, kofn
        >>> from sklearn.naive_bayes import GaussianNB
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(400, 2)), np.repeat(np.arange(100), 4)
        >>> y = (X[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
        >>> model = kofn.LLPClassifier(kofn.EM(GaussianNB()), random_state=0).fit(X, y, groups=groups)
        >>> bool((model.predict(X) == (X[:, 0] > 0)).mean() > 0.95)
        True
    """

    def __init__(
        self, estimator: Any, *, rounds: int = 50, patience: int = 5, validation_fraction: float = 0.1
    ) -> None:
        self.estimator = estimator
        self.rounds = rounds
        self.patience = patience
        self.validation_fraction = validation_fraction

    def splits(self, problem: Problem, seed: int) -> list[Split]:
        return a_split_of(problem, self.validation_fraction, seed)

    def fit(self, problem: Problem, *, seed: int, progress: Progress | None = None) -> FittedEM:
        self.require_options()
        require_table(problem, "EM")
        split = next(iter(self.splits(problem, seed)), None)
        train = problem if split is None else problem.take(split[0])
        _, train = train.compact()
        held = None if split is None else problem.take(split[1])
        design = Design.learn(train.instances, problem.categories, train.row_weights)
        x = design(train.instances)
        logits = problem.start.expand(len(x), *problem.outputs)
        history: list[dict[str, float]] = []
        best, kept = 0, FittedEM(design, None, 0, problem.outputs)
        for step in range(self.rounds):
            target, weight = _expectation(train, logits)
            model = FittedEM(design, self._maximisation(x, target, weight, seed), len(x), problem.outputs)
            logits = torch.from_numpy(model.logits(train.instances))
            entry = {"round": float(step + 1), "train_loss": float(train.mean_loss(logits))}
            if held is not None:
                entry["val_loss"] = float(held.mean_loss(torch.from_numpy(model.logits(problem.instances))))
            history.append(entry)
            if progress is not None:
                progress("expectation-maximisation", step + 1, self.rounds, entry)
            judged = entry.get("val_loss", -float(step))  # without held-out bags the last is kept
            if step == 0 or judged < history[best].get("val_loss", -float(best)):
                best, kept = step, model
            if step - best >= self.patience:
                break
        kept.history = history
        if held is not None and split is not None:
            kept.best, kept.splits, kept.validation_loss = best, [split], history[best]["val_loss"]
            kept.held_out_logits = np.full((len(problem.instances), *problem.outputs), np.nan)
            at = held.compact()[0].numpy()
            kept.held_out_logits[at] = kept.logits(problem.instances[at])
        return kept

    def from_model(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FittedEM:
        raise ValueError("a model of EM cannot be in a file, because its classifier is code.")

    def settled(self, fitted: Fitted, problem: Problem) -> EM:
        learner = copy(self)
        learner.rounds = len(fitted.history) if fitted.best is None else fitted.best + 1
        learner.validation_fraction = 0.0
        return learner

    def _maximisation(self, x: Instances, target: Tensor, weight: Tensor, seed: int) -> Any:
        """The classifier, fitted to each row as each class; what has no weight is left out."""
        each = target.unbind(1) if target.dim() == 2 else (1 - target, target)
        weights = torch.cat([weight * share for share in each]).numpy()
        y = np.repeat(np.arange(len(each)), len(x))
        there = weights > 0
        if len(np.unique(y[there])) < 2:  # all bags say the same, which many classifiers refuse to learn
            return DummyClassifier().fit(x, np.broadcast_to(y[there][0], len(x)))
        classifier = clone(self.estimator)
        seeds = {name: seed % 2**31 for name, value in classifier.get_params().items() if _is_free_seed(name, value)}
        options = {_weight_name(classifier): weights[there]}
        return classifier.set_params(**seeds).fit(np.tile(x, (len(each), 1))[there], y[there], **options)

    def require_options(self) -> None:
        if not hasattr(self.estimator, "predict_proba") or not has_fit_parameter(
            self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator, "sample_weight"
        ):
            raise ValueError(
                f"`estimator` must be a classifier with predict_proba whose fit takes sample_weight; got "
                f"{self.estimator!r}."
            )
        _require.whole_number("rounds", self.rounds, low=1)
        _require.whole_number("patience", self.patience, low=1)
        if _require.fraction("validation_fraction", self.validation_fraction) == 1:
            raise ValueError("`validation_fraction` must be below 1, or nothing is left to learn from; got 1.")


@dataclass(eq=False)
class FittedEM(Fitted):
    """A fitted classifier of designed columns, on how many rows it was fitted, and the shape of a row's logits."""

    design: Design
    classifier: Any
    rows: int
    outputs: tuple[int, ...]

    def logits(self, instances: Instances) -> Logits:
        classes = self.outputs[0] if self.outputs else 2
        p = np.zeros((len(instances), classes))  # of a class that the classifier never saw it stays 0
        p[:, self.classifier.classes_] = self.classifier.predict_proba(self.design(instances))
        # A classifier that counts, such as a forest, says 0 and 1 of what it has not seen otherwise. A row of doubt,
        # shared by the classes, keeps a bag's label possible.
        log_p: Logits = np.log((p * self.rows + 1 / classes) / (self.rows + 1))
        return log_p if self.outputs else log_p[:, 1] - log_p[:, 0]

    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        raise ValueError(
            "a model of EM cannot be saved: its classifier is code, and kofn files hold none. Learn with Trees, Linear "
            "or Network, or keep the classifier by its own means: model.fitted_.classifier."
        )


def _expectation(problem: Problem, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Targets and weights of the rows, from the slope of the loss."""
    _, slope = problem.losses_and_slope(logits)
    return surrogate(logits, slope, problem.row_weights)


def _weight_name(classifier: Any) -> str:
    return f"{classifier.steps[-1][0]}__sample_weight" if isinstance(classifier, Pipeline) else "sample_weight"


def _is_free_seed(name: str, value: Any) -> bool:
    return name.split("__")[-1] == "random_state" and value is None
