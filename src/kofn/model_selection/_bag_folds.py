"""Folds of whole bags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from torch import Tensor

from kofn import _require
from kofn.estimators._row_labels import as_array, bags_of
from kofn.learners._splits import folds


class BagKFold(BaseCrossValidator):  # type: ignore[misc]  # scikit-learn has no types
    """K folds of whole bags, for `cv=` of scikit-learn: no bag is in both the training and the test data.

    All folds have the same number of bags, give or take one. If labels have two values, such as 0 and 1 for "no" and
    "at least one" positive, each fold also has about the same number of bags of either label. Without groups the folds
    are of rows, as positive and unlabelled data (PU) need them, with about the same number of labelled rows in each.

    Groups are bags. Where bags belong together, such as the slides of a patient, pass scikit-learn's folds of patients
    in its place: ``cv=list(GroupKFold(5).split(X, y, patients))``.

    With metadata routing enabled, `groups` reach it from `cross_validate` and the searches without
    ``set_split_request(groups=True)``.

    Args:
        n_splits: number of folds, at least 2.
        random_state: the random seed by which bags are assigned to folds. The default gives the same folds each time,
            so that models are compared on the same ones.

    Raises:
        ValueError: fewer than 2 folds; on `split`, fewer bags than folds.

    Examples:
        >>> import numpy as np, kofn
        >>> groups = np.repeat(["a", "b", "c", "d"], 2)
        >>> y = np.repeat([1, 1, 0, 0], 2)  # the label of each row's bag
        >>> X = np.zeros((8, 1))
        >>> for train, test in kofn.model_selection.BagKFold(2).split(X, y, groups):
        ...     print(groups[test], y[test])
        ['b' 'b' 'd' 'd'] [1 1 0 0]
        ['a' 'a' 'c' 'c'] [1 1 0 0]
    """

    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(self, n_splits: int = 5, *, random_state: int | np.random.RandomState | None = 0) -> None:
        _require.whole_number("n_splits", n_splits, low=2)
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def _iter_test_indices(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[NDArray[np.int64]]:
        """The rows of each fold."""
        bags = bags_of(groups, len(X))
        if len(bags) < self.n_splits:
            unit = "rows" if groups is None else "bags"
            raise ValueError(
                f"`n_splits` must be at most the number of {unit}; got {self.n_splits} for {len(bags)} {unit}."
            )
        strata = torch.zeros(len(bags), dtype=torch.int64) if y is None else _strata(y, bags.index[bags.offsets[:-1]])
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        for _, held in folds(strata, self.n_splits, seed):
            yield bags.select(held).index.numpy()


def _strata(y: Any, first_rows: Tensor) -> Tensor:
    """Which of two labels each bag has; all are alike where there are more labels, such as proportions or intervals."""
    labels = np.asarray(as_array(y))[first_rows.numpy()]
    if labels.ndim == 1:
        values, stratum = np.unique(labels, return_inverse=True)
        if len(values) == 2:
            return torch.from_numpy(stratum.astype(np.int64))
    return torch.zeros(len(labels), dtype=torch.int64)
