"""Scorers of bags, and of positive and unlabelled data, for `scoring=` of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from sklearn.utils.metadata_routing import MetadataRequest

from kofn import _require
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._bag_losses import MODEL, bag_losses
from kofn.estimators._pu_classifier import require_both_kinds
from kofn.estimators._row_labels import bags_of, known_classes, rows_of
from kofn.losses import nnpu_loss
from kofn.metrics import auc
from kofn.model_selection._final_step import Kind, fitted_final_step, kind_of

ScorerName = Literal["log_likelihood", "bag_auc", "bag_accuracy", "pu_auc", "pu_risk"]


def bag_scorer(name: ScorerName) -> BagScorer:
    """A scorer for `GridSearchCV`, `cross_validate` and `search` that is right for labels of bags, or for PU data.

    scikit-learn's own scorers compare predictions of rows with `y`. Here `y` has labels of bags, or says which rows
    are labelled, so their results would be wrong without an error. These are right, and higher is better for all:

    | name | of | what |
    |---|---|---|
    | "log_likelihood" | LLP, MIL | the mean over bags of log P(label of the bag) |
    | "bag_auc" | MIL | the AUC of bags, by the log-odds of at least one positive |
    | "bag_accuracy" | MIL | the share of bags whose class is predicted |
    | "pu_auc" | PU | the AUC of labelled positives against unlabelled rows, which needs no negatives |
    | "pu_risk" | PU | minus the non-negative PU risk (`kofn.losses.nnpu_loss`, sigmoid) at the estimator's `mixture_` |

    Neither score of PU data can choose a mixture: "pu_auc" does not depend on it, and values of "pu_risk" with
    different mixtures are not comparable.

    The scorer asks for `groups` and `copies` itself, so metadata routing has to be enabled, but needs no
    ``set_score_request``. It scores the last step of a pipeline, on what the other steps make of the rows.

    Args:
        name: one of these.

    Returns:
        A scorer ``scorer(estimator, X, y, groups=None, copies=None)``, which gives a float.

    Raises:
        ValueError: an unknown name. When called: an estimator that it cannot score, no groups where it scores bags, or
            labels of one class only where it needs two.

    Examples:
        >>> import numpy as np, kofn
        >>> from sklearn import config_context
        >>> from sklearn.model_selection import cross_val_score
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(300, 2)), np.repeat(np.arange(100), 3)
        >>> y = (X[:, 0] > 1).reshape(100, 3).any(1).repeat(3)  # the bag's label, on each of its rows
        >>> model = kofn.MILClassifier(kofn.Linear(l2=0.001), random_state=0)
        >>> folds, scorer = kofn.model_selection.BagKFold(2), kofn.model_selection.bag_scorer("bag_auc")
        >>> with config_context(enable_metadata_routing=True):
        ...     scores = cross_val_score(model, X, y, params={"groups": groups}, cv=folds, scoring=scorer)
        >>> bool(scores.min() > 0.95)
        True
    """
    _require.option("name", name, get_args(ScorerName))
    return BagScorer(name)


@dataclass(frozen=True)
class BagScorer:
    """What `bag_scorer` returns."""

    name: ScorerName

    def __call__(self, estimator: Any, X: Any, y: Any, groups: Any = None, copies: Any = None) -> float:
        final, X = fitted_final_step(estimator, X)
        self.require_kind(type(final))
        if groups is None and not isinstance(final, PUClassifier):
            raise ValueError(
                f"`groups` must name the bag of each row for the scorer {self.name!r}; got None. In cross-validation "
                f"or a search pass them in params= or fit(X, y, groups=groups) with metadata routing enabled "
                f"(sklearn.set_config(enable_metadata_routing=True)), or use kofn.model_selection.search."
            )
        _, score = SCORERS[self.name]
        return score(final, X, y, groups, copies)

    def get_metadata_routing(self) -> Any:
        """What scikit-learn hands on to the scorer."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="groups", alias=True)
        request.score.add_request(param="copies", alias=True)
        return request

    def require_kind(self, estimator: type) -> None:
        """Require the class of an estimator that has this score."""
        kinds, _ = SCORERS[self.name]
        if issubclass(estimator, kinds):
            return
        kind = kind_of(estimator)
        cure = "" if kind is None else f" For {kind.__name__} use {names_for(kind)}."
        raise ValueError(
            f"the scorer {self.name!r} is for {' and '.join(each.__name__ for each in kinds)}, or a pipeline that ends "
            f"in one; got {estimator.__name__}.{cure}"
        )


def names_for(kind: Kind) -> str:
    """The scorers of an estimator, for a sentence."""
    names = [repr(name) for name, (kinds, _) in SCORERS.items() if kind in kinds]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _log_likelihood(estimator: Any, X: Any, y: Any, groups: Any, copies: Any) -> float:
    if isinstance(estimator, LLPClassifier):
        return estimator.score(X, y, groups, copies)
    scores = estimator.bag_decision_function(X, groups, copies)
    losses = bag_losses(estimator, rows_of(y, len(X)), bags_of(groups, len(X)), bag_logits=scores)
    return -float(losses[MODEL].mean())


def _bag_auc(estimator: Any, X: Any, y: Any, groups: Any, copies: Any) -> float:
    positive = estimator._bag_labels(y, bags_of(groups, len(X)), len(X)).bool()
    if bool(positive.all()) or not bool(positive.any()):
        raise ValueError(
            f"`y` must have bags of both classes for the scorer 'bag_auc'; all of the {len(positive)} bags are "
            f"{'positive' if bool(positive.all()) else 'negative'}. Take fewer folds or kofn.model_selection.BagKFold, "
            f"which shares the positive bags out among the folds, or the scorer 'log_likelihood'."
        )
    return auc(positive, estimator.bag_decision_function(X, groups, copies))


def _bag_accuracy(estimator: Any, X: Any, y: Any, groups: Any, _: Any) -> float:
    return float(estimator.score(X, y, groups))


def _pu_auc(estimator: Any, X: Any, y: Any, *_: Any) -> float:
    return float(estimator.score(X, y))


def _pu_risk(estimator: Any, X: Any, y: Any, *_: Any) -> float:
    scores = torch.from_numpy(estimator.decision_function(X))
    labeled = known_classes(rows_of(y, len(scores)), estimator.classes_) == 1
    require_both_kinds(labeled, estimator.classes_)
    return -float(nnpu_loss(scores[labeled], scores[~labeled], estimator.mixture_, surrogate="sigmoid"))


_Score = Callable[[Any, Any, Any, Any, Any], float]
SCORERS: dict[str, tuple[tuple[Kind, ...], _Score]] = {
    "log_likelihood": ((LLPClassifier, MILClassifier), _log_likelihood),
    "bag_auc": ((MILClassifier,), _bag_auc),
    "bag_accuracy": ((MILClassifier,), _bag_accuracy),
    "pu_auc": ((PUClassifier,), _pu_auc),
    "pu_risk": ((PUClassifier,), _pu_risk),
}
