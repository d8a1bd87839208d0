"""Searching parameters without cutting bags."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, check_cv

from kofn.estimators._row_labels import bags_of


def search(estimator: Any, param_grid: Any, X: Any, y: Any, groups: Any, *, cv: Any = 5, **options: Any) -> Any:
    """Grid search over bags: `GridSearchCV`, with the two settings that would otherwise be silently wrong.

    Bags are never cut (`GroupKFold`), and `groups` reach the estimator (metadata routing), in a pipeline too. Without
    the first, half a bag would keep the label of the whole; without the second, every row would be taken for a bag.

    Args:
        estimator: an `LLPClassifier`, a `MILClassifier`, or a pipeline that ends in one.
        param_grid: as for `GridSearchCV`.
        X: (n, ...) instances.
        y: (n,) labels of their bags.
        groups: (n,) bags.
        cv: number of folds, or a splitter that respects groups.
        **options: of `GridSearchCV`, such as ``n_jobs``, ``scoring``, ``refit``.

    Returns:
        The fitted `GridSearchCV`.

    Raises:
        ValueError: a splitter that cuts bags.

    Examples:
        >>> import numpy as np, kofn
        >>> X = np.random.default_rng(0).normal(size=(90, 2))
        >>> groups = np.repeat(np.arange(30), 3)
        >>> y = (X[:, 0] > 0).reshape(30, 3).mean(1).repeat(3)
        >>> model = kofn.LLPClassifier(kofn.Linear(), random_state=0)
        >>> found = kofn.estimators.search(model, {"learner__l2": [1e3, 1e-2]}, X, y, groups, cv=3)
        >>> found.best_params_
        {'learner__l2': 0.01}
    """
    splitter = check_cv(GroupKFold(cv) if isinstance(cv, Integral) else cv)
    bags = bags_of(groups, len(X))
    bag_of = torch.empty_like(bags.index)
    bag_of[bags.index] = bags.bag_of()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")  # we look ourselves
        folds = list(splitter.split(X, y, bag_of.numpy()))
    for train, test in folds:
        cut = np.intersect1d(bag_of[train], bag_of[test])
        if len(cut):
            raise ValueError(
                f"`cv` must not cut bags; it puts bag {bags.names[int(cut[0])]!r} into training and test data. "
                f"Give a number of folds, or a splitter by groups such as GroupKFold or LeaveOneGroupOut."
            )
    with config_context(enable_metadata_routing=True):
        return GridSearchCV(estimator, param_grid, cv=folds, **options).fit(X, y, groups=groups)
