"""Pipelines, searches and cross-validation with bags, and the two ways in which they would fail in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from estimator_cases import UNLEARNT, bags_task, learns, pu_task, quick
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import kofn
from kofn.model_selection import search

TASK = bags_task(bags=24)
X, Y, GROUPS = TASK.X, TASK.y, TASK.groups
SOME = (np.bincount(GROUPS, X[:, 0] > 0.8) > 0).astype(int)[GROUPS]
pytestmark = UNLEARNT


def steps() -> dict[str, Any]:
    return learns(batch_size=4)


ODD = np.append(np.repeat(np.arange(9), 5), [9, 9, 9])  # bags that three plain folds cut


@pytest.fixture
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_pipeline_with_routing() -> None:
    pipe = make_pipeline(StandardScaler(), kofn.LLPClassifier(**learns())).fit(X * 100, Y, groups=GROUPS)
    alone = kofn.LLPClassifier(**learns()).fit(StandardScaler().fit_transform(X * 100), Y, groups=GROUPS)
    assert np.array_equal(pipe.decision_function(X * 100), alone.decision_function(pipe[:-1].transform(X * 100)))
    assert pipe.score(X * 100, TASK.truth) > 0.9
    assert pipe.score(X * 100, Y, groups=GROUPS) == alone.score(pipe[:-1].transform(X * 100), Y, groups=GROUPS) < 0


def test_pipeline_with_the_name_of_the_step() -> None:
    pipe = Pipeline([("scale", StandardScaler()), ("llp", kofn.LLPClassifier(**quick()))])
    pipe.fit(X, Y, llp__groups=GROUPS)
    alone = kofn.LLPClassifier(**quick()).fit(StandardScaler().fit_transform(X), Y, groups=GROUPS)
    assert np.array_equal(pipe.predict_proba(X), alone.predict_proba(StandardScaler().fit_transform(X)))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(("kind", "y"), [(kofn.LLPClassifier, Y), (kofn.MILClassifier, SOME)], ids=["llp", "mil"])
def test_grid_search(kind: Any, y: Any) -> None:
    grid = GridSearchCV(kind(**steps()), {"learner__lr": [1e-7, 0.1]}, cv=GroupKFold(2)).fit(X, y, groups=GROUPS)
    assert grid.best_params_ == {"learner__lr": 0.1}
    # The fold's score is that of a model trained on the other folds, groups and all.
    train, test = next(GroupKFold(2).split(X, y, GROUPS))
    model = kind(**steps()).fit(X[train], y[train], groups=GROUPS[train])
    assert grid.cv_results_["split0_test_score"][1] == model.score(X[test], y[test], groups=GROUPS[test])


@pytest.mark.usefixtures("routing")
def test_cross_validation() -> None:
    found = cross_validate(kofn.LLPClassifier(**quick()), X, Y, cv=GroupKFold(3), params={"groups": GROUPS})
    assert found["test_score"].shape == (3,)
    assert (found["test_score"] < 0).all()  # mean log-likelihoods


def test_cross_validation_of_pu() -> None:
    rows, _, y = pu_task(rows=120)
    scores = cross_val_score(kofn.PUClassifier(mixture=0.4, **quick()), rows, y, cv=3)
    assert scores.shape == (3,)


@pytest.mark.slow
def test_search_in_parallel() -> None:
    pipe = make_pipeline(StandardScaler(), kofn.LLPClassifier(**quick()))
    grid = {"llpclassifier__learner__lr": [0.1]}
    two = search(pipe, grid, X, Y, GROUPS, cv=2, n_jobs=2)
    one = search(pipe, grid, X, Y, GROUPS, cv=2)
    assert two.best_params_ == one.best_params_ == {"llpclassifier__learner__lr": 0.1}
    assert np.array_equal(two.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"])
    assert np.array_equal(two.predict_proba(X), one.predict_proba(X))


def test_search_of_bags_with_names() -> None:
    names = np.array([f"bag {group}" for group in GROUPS])
    found = search(kofn.MILClassifier(**quick()), {"loss": ["count", "max"]}, X, TASK.any, names, cv=np.int64(2))
    assert set(found.cv_results_["param_loss"]) == {"count", "max"}


@pytest.mark.parametrize("cv", [GroupKFold(2), GroupShuffleSplit(2, random_state=0), LeaveOneGroupOut()], ids=str)
def test_search_takes_splitters_by_groups(cv: Any) -> None:
    few = GROUPS % 3
    y = np.full(len(X), 0.5)
    found = search(kofn.LLPClassifier(**quick(**{"epochs": 1})), {"learner__lr": [0.1]}, X, y, few, cv=cv)
    assert found.n_splits_ == (3 if isinstance(cv, LeaveOneGroupOut) else 2)


@pytest.mark.parametrize("kind", [kofn.LLPClassifier, kofn.MILClassifier], ids=["llp", "mil"])
def test_search_refuses_to_cut_bags(kind: Any) -> None:
    y = np.zeros(48)
    with pytest.raises(ValueError, match="`cv` must not cut bags; it puts bag 3 into training and test data"):
        search(kind(**quick()), {"learner__lr": [0.1]}, X[:48], y, ODD, cv=KFold(3))


def test_search_checks_groups() -> None:
    with pytest.raises(ValueError, match="`groups` must name the bag of each of the 96 rows; got 95"):
        search(kofn.LLPClassifier(**quick()), {"learner__lr": [0.1]}, X, Y, GROUPS[1:])


def test_without_routing_groups_do_not_arrive_and_that_is_said() -> None:
    grid = GridSearchCV(kofn.LLPClassifier(**quick()), {"learner__lr": [0.1]}, cv=GroupKFold(3), error_score="raise")
    with pytest.raises(
        ValueError,
        match=r"without `groups` each row is a bag of its own.*metadata routing, or use kofn\.model_selection",
    ):
        grid.fit(X, Y, groups=GROUPS)


def test_without_routing_scores_of_rows_are_not_taken_for_scores_of_bags() -> None:
    """`fit` gets its groups by params, but `score` does not."""
    cases: list[Any] = [
        (kofn.LLPClassifier, Y, "must be the class of each row"),
        (kofn.MILClassifier, SOME, "`groups`"),
    ]
    for kind, y, message in cases:
        with pytest.raises(ValueError, match=message):
            cross_val_score(
                kind(**quick()), X, y, groups=GROUPS, params={"groups": GROUPS}, cv=GroupKFold(2), error_score="raise"
            )


def test_without_groups_rows_are_not_trained_on_as_bags() -> None:
    with pytest.raises(ValueError, match=r"`groups` must name the bag of each row.*metadata routing"):
        cross_val_score(kofn.MILClassifier(**quick()), X, SOME, groups=GROUPS, cv=GroupKFold(2), error_score="raise")


@pytest.mark.usefixtures("routing")
def test_a_split_that_cuts_bags_is_noticed() -> None:
    y = np.bincount(ODD, TASK.truth[:48]) / np.bincount(ODD)
    grid = GridSearchCV(kofn.LLPClassifier(**quick()), {"learner__lr": [0.1]}, cv=KFold(3), error_score="raise")
    with pytest.raises(
        ValueError,
        match=r"a proportion times the size of its bag must be an integer: .* keep bags whole \(GroupKFold\)",
    ):
        grid.fit(X[:48], y[ODD], groups=ODD)


@pytest.mark.usefixtures("routing")
def test_steps_that_know_no_groups() -> None:
    pipe = make_pipeline(PCA(2), kofn.MILClassifier(**quick())).fit(X, TASK.any, groups=GROUPS)
    assert 0 <= pipe.score(X, TASK.any, groups=GROUPS) <= 1


@pytest.mark.usefixtures("routing")
def test_weights_and_copies_are_routed() -> None:
    weights, copies = (GROUPS % 3).astype(float), np.tile([1, 2, 1, 0], 24)
    y = (np.bincount(GROUPS, copies * (X[:, 0] > 0)) / 4)[GROUPS]
    learner = kofn.Linear(l2=0.01)
    pipe = make_pipeline(StandardScaler(), kofn.LLPClassifier(learner)).fit(
        X, y, groups=GROUPS, copies=copies, bag_weight=weights
    )
    alone: Any = kofn.LLPClassifier(learner).fit(
        StandardScaler().fit_transform(X), y, GROUPS, copies, bag_weight=weights
    )
    assert np.array_equal(pipe[-1].fitted_.weights, alone.fitted_.weights)


def test_learners_side_by_side() -> None:
    learners = [kofn.Trees(max_rounds=5), kofn.Linear(l2=0.1), "linear"]
    found = search(kofn.LLPClassifier(random_state=0), {"learner": learners}, X, Y, GROUPS, cv=2)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
