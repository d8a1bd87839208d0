"""What would be found if the mixture were another: a few rows of a table, from fits that differ in nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kofn.estimators._fit_warning import FitWarning

TOP = 0.1  # of the unlabelled, those with the highest scores


def mixture_sensitivity(
    estimator: Any, X: Any, y: Any, mixtures: Sequence[float], fold_by: Any = None
) -> list[dict[str, float]]:
    """A row for each mixture, by a fit to the same data with the same seed; see `PUClassifier.sensitivity`."""
    scores = estimator.decision_function(X)
    unlabeled = np.asarray(y) != estimator.classes_[1]
    found = []
    for mixture in mixtures:
        other = scores if mixture == estimator.mixture_ else _scores_with(estimator, X, y, mixture, fold_by)
        found.append({"mixture": float(mixture)} | compared(scores[unlabeled], other[unlabeled]))
    return found


def compared(ours: NDArray[np.float64], other: NDArray[np.float64]) -> dict[str, float]:
    """How many rows another model finds positive, and how differently it orders them.

    Examples:
        >>> import numpy as np
        >>> compared(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -2.0, -0.5, 3.0]))
        {'predicted_positive_share': 0.25, 'rank_correlation': 0.8, 'top_overlap': 1.0}
    """
    from scipy.stats import rankdata

    first, second = rankdata(ours), rankdata(other)
    spread = first.std() * second.std()
    # A model that scores all alike has no order to compare.
    correlation = float(np.cov(first, second, bias=True)[0, 1] / spread) if spread > 0 else 0.0
    top = max(round(TOP * len(ours)), 1)
    best = [set(np.argsort(-scores, kind="stable")[:top].tolist()) for scores in (ours, other)]
    return {
        "predicted_positive_share": float((other > 0).mean()),
        "rank_correlation": round(correlation, 12),
        "top_overlap": len(best[0] & best[1]) / top,
    }


def _scores_with(estimator: Any, X: Any, y: Any, mixture: float, fold_by: Any) -> Any:
    """Scores of all rows by a fit with this mixture and the seed of the fit that there is."""
    other = clone(estimator).set_params(prior=None, mixture=mixture, bootstrap=0, progress=None)
    if "checkpoint" in getattr(other.learner, "get_params", dict)():
        other.learner.set_params(checkpoint=None)  # which is that of the fit itself
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the rows of the table say it
        problem, classes, *_ = other._problem(X, y, estimator.seed_, fold_by)
        other._fit(problem, classes, estimator.seed_)
    return other.decision_function(X)
