"""Folds of whole bags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_cases import UNLEARNT, bags_task, pu_task, quick
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_validate

import kofn
from kofn.model_selection import BagKFold

SIZES = np.random.default_rng(0).integers(1, 9, 50)
GROUPS = np.random.default_rng(1).permutation(np.repeat(np.arange(50), SIZES))  # rows of bags are not together
X = np.zeros((len(GROUPS), 2))


def test_bags_stay_whole_and_each_row_is_tested_once() -> None:
    folds = list(BagKFold(4).split(X, None, GROUPS))
    assert len(folds) == BagKFold(4).get_n_splits() == 4
    assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(len(X)))
    for train, test in folds:
        assert not set(GROUPS[train]) & set(GROUPS[test])
        assert len(set(GROUPS[test])) in (12, 13)


@pytest.mark.parametrize("labels", [(0, 1), (-1.0, 1.0), ("no", "yes")], ids=str)
def test_folds_share_the_bags_of_each_label(labels: tuple[Any, Any]) -> None:
    positive = np.arange(50) < 11
    y = np.array(labels)[positive.astype(int)][GROUPS]
    for _, test in BagKFold(5).split(X, y, GROUPS):
        assert positive[np.unique(GROUPS[test])].sum() in (2, 3)


def test_without_groups_folds_are_of_rows() -> None:
    rows, _, y = pu_task(rows=203)
    labelled = int((y == 1).sum())
    for train, test in BagKFold(5).split(rows, y):
        assert len(test) in (40, 41)
        assert len(train) + len(test) == 203
        assert abs((y[test] == 1).sum() - labelled / 5) < 1


def test_labels_that_are_no_two_classes_do_not_matter() -> None:
    """Proportions, intervals and counts of classes."""
    plain = [test.tolist() for _, test in BagKFold(3).split(X, None, GROUPS)]
    for y in (GROUPS / 50, np.stack([GROUPS, GROUPS], 1), np.ones(len(X))):
        assert [test.tolist() for _, test in BagKFold(3).split(X, y, GROUPS)] == plain


def test_the_random_state_decides() -> None:
    def tests(**options: Any) -> list[list[int]]:
        return [test.tolist() for _, test in BagKFold(3, **options).split(X, None, GROUPS)]

    assert tests() == tests() == tests(random_state=0)
    assert tests() != tests(random_state=1)
    assert repr(clone(BagKFold(3, random_state=7), safe=False)) == "BagKFold(n_splits=3, random_state=7)"


def test_folds_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="`n_splits` must be at least 2; got 1"):
        BagKFold(1)
    with pytest.raises(ValueError, match="`n_splits` must be at most the number of bags; got 51 for 50 bags"):
        list(BagKFold(51).split(X, None, GROUPS))
    with pytest.raises(ValueError, match="`n_splits` must be at most the number of rows; got 5 for 4 rows"):
        list(BagKFold().split(X[:4], [1, 1, 0, 0]))


@UNLEARNT
def test_groups_reach_it_without_a_request() -> None:
    task = bags_task(bags=12)
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            kofn.MILClassifier(**quick()),
            task.X,
            task.any,
            cv=BagKFold(3),
            params={"groups": task.groups},
            return_indices=True,
        )
    for train, test in zip(*found["indices"].values(), strict=True):
        assert not set(task.groups[train]) & set(task.groups[test])
