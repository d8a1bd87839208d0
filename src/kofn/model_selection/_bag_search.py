"""Searching parameters without cutting bags."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, check_cv

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._row_labels import bags_of
from kofn.model_selection._bag_folds import BagKFold
from kofn.model_selection._bag_scorers import SCORERS, BagScorer, bag_scorer, names_for
from kofn.model_selection._comparable import require_comparable
from kofn.model_selection._final_step import Kind, final_step, kind_of

DEFAULT: Mapping[Kind, Any] = {
    LLPClassifier: "log_likelihood",
    MILClassifier: "log_likelihood",
    PUClassifier: "pu_auc",
}
WHY: Mapping[Kind, str] = {  # a scorer of rows is wrong
    LLPClassifier: "it compares predictions of rows with labels of bags",
    MILClassifier: "it compares predictions of rows with labels of bags",
    PUClassifier: "it takes unlabelled rows, of which some are positive, for negatives",
}


def search(
    estimator: Any,
    param_grid: Any,
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    copies: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    **options: Any,
) -> GridSearchCV:
    """Grid search over whole bags with a score that is right for their labels.

    It is scikit-learn's `GridSearchCV` without four of its traps: bags are never cut into training and test data
    (`BagKFold`), groups reach the estimator and the scorer (metadata routing), the score is one of bags
    (`bag_scorer`), and a fit or a score that fails is an error.

    Fits to folds leave out the diagnostics of a fit, such as its baselines, if the estimator can switch them off
    (``diagnostics=False``); the fit of the best setting to all data has those that you asked for. A `PUClassifier`
    without `mixture` and `prior` estimates its mixture in every fit, which takes longer than most fits: give it if you
    know it.

    Args:
        estimator: an `LLPClassifier`, a `MILClassifier` or a `PUClassifier`, or a pipeline that ends in one.
        param_grid: as for `GridSearchCV`.
        X: (n, ...) instances.
        y: (n,) labels as the estimator's `fit` takes them.
        groups: (n,) the bag of each row. None for `PUClassifier`, and for `LLPClassifier` if each row is its own bag.
        copies: (n,) how many times each row is in its bag, with `LLPClassifier`; by default once.
        cv: number of folds, or a splitter that respects groups.
        scoring: a name of `bag_scorer` or such a scorer, several of them as in `GridSearchCV`, or a callable of your
            own. The default is "log_likelihood", or "pu_auc" for `PUClassifier`. scikit-learn's names, such as
            "accuracy", are refused: they compare predictions of rows with labels of bags.
        **options: of `GridSearchCV`, such as ``n_jobs`` and ``refit``. ``error_score`` is "raise" by default.

    Returns:
        The fitted `GridSearchCV`.

    Raises:
        ValueError: another estimator; a scorer that would be wrong; values of `mixture` or `prior` of `PUClassifier`,
            or of `label`, `noise` or `rounding` of `LLPClassifier`, between which no score can choose; a splitter that
            cuts bags; scores that are NaN.

    Examples:
        >>> import numpy as np, kofn
        >>> X = np.random.default_rng(0).normal(size=(90, 2))
        >>> groups = np.repeat(np.arange(30), 3)
        >>> y = (X[:, 0] > 0).reshape(30, 3).mean(1).repeat(3)
        >>> model = kofn.LLPClassifier(kofn.Linear(), random_state=0)
        >>> found = kofn.model_selection.search(model, {"learner__l2": [1e3, 1e-2]}, X, y, groups, cv=3)
        >>> found.best_params_
        {'learner__l2': 0.01}
    """
    prefix, final, parameters = final_step(estimator)
    kind = kind_of(type(final))
    if kind is None:
        raise ValueError(
            f"`estimator` must be a kofn.LLPClassifier, MILClassifier or PUClassifier, or a pipeline that ends in one; "
            f"got {type(final).__name__}. For other estimators there is sklearn.model_selection.GridSearchCV."
        )
    scoring = _scorer(DEFAULT[kind] if scoring is None else scoring, kind)
    require_comparable(estimator, param_grid, y)
    groups = _groups(groups, copies, kind, len(X))
    folds = _folds(cv, X, y, groups)
    metadata = {name: value for name, value in (("groups", groups), ("copies", copies)) if value is not None}
    refit = options.pop("refit", True)
    options = {"error_score": "raise"} | options
    if isinstance(scoring, Mapping):
        _require_refit(refit, scoring)
    without = {f"{prefix}diagnostics": False} if "diagnostics" in parameters else {}
    with config_context(enable_metadata_routing=True):
        quick = clone(estimator).set_params(**without)
        found = GridSearchCV(quick, param_grid, cv=folds, scoring=scoring, refit=False, **options)
        found.fit(X, y, **metadata)
        _require_scores(found)
        found.set_params(estimator=estimator, refit=refit)
        if refit:
            _choose(found)
            found.best_estimator_ = clone(estimator).set_params(**clone(found.best_params_, safe=False))
            found.best_estimator_.fit(X, y, **metadata)
            if hasattr(found.best_estimator_, "feature_names_in_"):
                found.feature_names_in_ = found.best_estimator_.feature_names_in_
    return found


def _scorer(scoring: Any, kind: Kind) -> Any:
    """What `GridSearchCV` takes as `scoring`: our scorers for their names, a user's callable as it is."""
    if isinstance(scoring, Mapping):
        return {name: _scorer(each, kind) for name, each in scoring.items()}
    if isinstance(scoring, list | tuple | set | frozenset):
        return {each: _scorer(each, kind) for each in scoring}
    if isinstance(scoring, str) and scoring in SCORERS:
        scoring = bag_scorer(scoring)  # type: ignore[arg-type]  # one of its names
    if isinstance(scoring, BagScorer):
        scoring.require_kind(kind)
    elif not callable(scoring):
        raise ValueError(
            f"`scoring` must be {names_for(kind)} for {kind.__name__}, or a callable; got {scoring!r}. A scorer of "
            f"scikit-learn would be wrong here: {WHY[kind]}."
        )
    return scoring


def _groups(groups: Any, copies: Any, kind: Kind, rows: int) -> Any:
    """The bag of each row; None for rows that have no bags."""
    if copies is not None and kind is not LLPClassifier:
        raise ValueError(f"`copies` goes with LLPClassifier; {kind.__name__} has none. Leave it out.")
    if kind is PUClassifier:
        if groups is not None:
            raise ValueError(
                "`groups` must be None for PUClassifier, whose rows have no bags. To keep groups of rows in one fold, "
                "give their folds: cv=list(GroupKFold(5).split(X, y, groups))."
            )
        return None
    if kind is MILClassifier and groups is None:
        raise ValueError("`groups` must name the bag of each row for MILClassifier; got None.")
    return np.arange(rows) if groups is None else groups


def _folds(cv: Any, X: Any, y: Any, groups: Any) -> list[Any]:
    """Rows to fit to and rows to score, of each fold, without a bag in both."""
    splitter = check_cv(BagKFold(int(cv)) if isinstance(cv, Integral) else cv)
    if groups is None:
        return list(splitter.split(X, y))
    bags = bags_of(groups, len(X))
    bag_of = torch.empty_like(bags.index)
    bag_of[bags.index] = bags.bag_of()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")  # checked below
        folds = list(splitter.split(X, y, bag_of.numpy()))
    for train, test in folds:
        cut = np.intersect1d(bag_of[train], bag_of[test])
        if len(cut):
            raise ValueError(
                f"`cv` must not cut bags; it puts bag {bags.names[int(cut[0])]!r} into training and test data. "
                f"Give a number of folds, or a splitter by groups such as kofn.model_selection.BagKFold, GroupKFold or "
                f"LeaveOneGroupOut."
            )
    return folds


def _require_scores(found: GridSearchCV) -> None:
    """Require scores by which settings can be compared."""
    for name, scores in found.cv_results_.items():
        if not name.startswith("mean_test_"):
            continue
        missing = np.isnan(scores)
        if not np.isfinite(scores).any() or (missing.any() and found.error_score == "raise"):
            first = int((~np.isfinite(scores)).argmax())
            setting = found.cv_results_["params"][first]
            raise ValueError(
                f"`scoring` must give finite numbers; it gave {scores[first]} for {setting}. "
                f"kofn.model_selection.bag_scorer has scorers that are right for bags."
            )


def _choose(found: GridSearchCV) -> None:
    """Set the best setting by `refit`, as `GridSearchCV` does when it fits it itself."""
    results, refit = found.cv_results_, found.refit
    if callable(refit):
        best = int(refit(results))
    else:
        if found.multimetric_:
            _require_refit(refit, [name[len("mean_test_") :] for name in results if name.startswith("mean_test_")])
        metric = refit if found.multimetric_ else "score"
        best = int(results[f"rank_test_{metric}"].argmin())
        found.best_score_ = results[f"mean_test_{metric}"][best]
    found.best_index_, found.best_params_ = best, results["params"][best]


def _require_refit(refit: Any, names: Iterable[str]) -> None:
    """Require the name of the score that chooses, where there are several."""
    if refit is not False and not callable(refit) and refit not in names:
        raise ValueError(
            f"`refit` must be one of {', '.join(map(repr, names))}, which chooses, or False; got {refit!r}."
        )
