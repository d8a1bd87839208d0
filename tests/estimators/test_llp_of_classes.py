"""`LLPClassifier` with a column of `y` for each class: what it learns, says, saves and refuses."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from class_cases import class_task
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kofn
from kofn.estimators import _class_table

TASK = class_task()
NAMES = ["ant", "bee", "cat"]
QUICK: dict[str, Any] = {
    "trees": kofn.Trees(max_rounds=60, learning_rate=0.2),
    "linear": kofn.Linear(penalties=(0.1, 0.01, 1e-3)),
    "network": kofn.Network(hidden=(16,), epochs=30, lr=0.02),
    "em": kofn.EM(LogisticRegression(C=10.0), rounds=10),
}
LINEAR = QUICK["linear"]


def model(learner: Any = LINEAR, **options: Any) -> kofn.LLPClassifier:
    chosen: dict[str, Any] = {"label": "count", "random_state": 0} | options
    return kofn.LLPClassifier(learner, **chosen)


@pytest.fixture(scope="module")
def fitted() -> kofn.LLPClassifier:
    return model().fit(TASK.X, TASK.counts, groups=TASK.groups)


@pytest.mark.parametrize("learner", QUICK.values(), ids=QUICK)
def test_each_learner_learns_three_classes(learner: Any, tmp_path: Path) -> None:
    made = model(learner).fit(TASK.X, TASK.counts, groups=TASK.groups)
    assert made.score(TASK.X, TASK.truth) > 0.9
    assert made.classes_.tolist() == [0, 1, 2]
    assert made.loss_ == "joint"
    proba = made.predict_proba(TASK.X)
    assert proba.shape == (600, 3)
    np.testing.assert_allclose(proba.sum(1), 1)
    assert (made.classes_[proba.argmax(1)] == made.predict(TASK.X)).all()
    np.testing.assert_allclose(torch.from_numpy(made.decision_function(TASK.X)).softmax(1), proba)
    assert made.validation_loss_ is not None
    assert made.validation_loss_ < min(made.baselines_.values())
    assert set(made.baselines_) == {"no features", "bag means"}
    if isinstance(learner, kofn.EM):
        return
    made.save(tmp_path / "model")
    back = kofn.LLPClassifier.load(tmp_path / "model")
    assert np.array_equal(back.predict_proba(TASK.X), proba)
    assert back.loss_ == "joint"
    np.testing.assert_array_equal(back.rate_, made.rate_)
    assert back.score(TASK.X, TASK.counts, TASK.groups) == made.score(TASK.X, TASK.counts, TASK.groups)


@pytest.mark.parametrize("loss", ["marginal", "proportion", "transport"])
def test_each_loss_learns(loss: Any) -> None:
    made = model(loss=loss).fit(TASK.X, TASK.counts, groups=TASK.groups)
    assert made.loss_ == loss
    assert made.score(TASK.X, TASK.truth) > 0.9
    assert np.isfinite(made.score(TASK.X, TASK.counts, TASK.groups))


def test_proportions_say_what_counts_say(fitted: kofn.LLPClassifier) -> None:
    proportions = model(label="proportion").fit(TASK.X, TASK.shares, groups=TASK.groups)
    assert np.array_equal(proportions.decision_function(TASK.X), fitted.decision_function(TASK.X))
    tensor = model(label="proportion").fit(TASK.X, torch.from_numpy(TASK.shares).float(), groups=TASK.groups)
    assert np.array_equal(tensor.decision_function(TASK.X), fitted.decision_function(TASK.X))


def test_two_columns_are_two_classes() -> None:
    counts = np.stack([TASK.counts[:, 0] + TASK.counts[:, 1], TASK.counts[:, 2]], 1)
    table = pd.DataFrame(counts, columns=["no", "yes"])
    two = model().fit(TASK.X, table, groups=TASK.groups)
    one = model().fit(TASK.X, counts[:, 1], groups=TASK.groups)
    assert two.classes_.tolist() == ["no", "yes"]
    assert two.loss_ == "count"
    assert np.array_equal(two.decision_function(TASK.X), one.decision_function(TASK.X))
    assert two.predict_proba(TASK.X).shape == (600, 2)
    assert two.score(TASK.X, table, TASK.groups) == one.score(TASK.X, counts[:, 1], TASK.groups)
    counts[:, 0] = np.nan  # follows from the other
    assert np.array_equal(
        model().fit(TASK.X, counts, groups=TASK.groups).decision_function(TASK.X), one.decision_function(TASK.X)
    )
    with pytest.raises(ValueError, match="for two classes; got 'joint', which is of several"):
        model(loss="joint").fit(TASK.X, table, groups=TASK.groups)


def test_columns_name_the_classes(fitted: kofn.LLPClassifier, tmp_path: Path) -> None:
    y = pd.DataFrame(TASK.counts, columns=NAMES)
    made = model().fit(TASK.X, y, groups=TASK.groups)
    assert made.classes_.tolist() == NAMES
    assert np.array_equal(made.predict(TASK.X), np.array(NAMES)[fitted.predict(TASK.X)])
    assert made.score(TASK.X, np.array(NAMES)[TASK.truth]) == fitted.score(TASK.X, TASK.truth)
    made.save(tmp_path / "model")
    assert kofn.LLPClassifier.load(tmp_path / "model").predict(TASK.X[:5]).tolist() == made.predict(TASK.X[:5]).tolist()
    with pytest.raises(ValueError, match=re.escape("must have the columns that were trained with, ['ant', 'bee',")):
        made.score(TASK.X, y[["bee", "ant", "cat"]], TASK.groups)
    with pytest.raises(ValueError, match="a column for each of 3 classes; got 2"):
        made.score(TASK.X, TASK.counts[:, :2], TASK.groups)
    with pytest.raises(ValueError, match="columns of different names"):
        model().fit(TASK.X, y.set_axis(["a", "a", "b"], axis=1), groups=TASK.groups)


def test_joint_where_all_counts_are_known() -> None:
    assert _class_table.class_objective("count", torch.tensor([[4, 1, 1, 2]]))[0] == "joint"
    assert _class_table.class_objective("count", torch.full((1, 10), 100))[0] == "joint"
    assert _class_table.class_objective("count", torch.tensor([[4, -1, -1, 2]]))[0] == "marginal"


def test_large_bags_of_ten_classes_learn_from_joint_counts() -> None:
    rng = np.random.default_rng(0)
    centres, truth = rng.normal(size=(10, 6)) * 2, rng.integers(0, 10, 6400)
    X, groups = centres[truth] + rng.normal(size=(6400, 6)), np.repeat(np.arange(100), 64)
    counts = np.eye(10)[truth].reshape(100, 64, 10).sum(1).repeat(64, axis=0)
    made = kofn.LLPClassifier(kofn.Linear(l2=1e-3), label="count").fit(X, counts, groups=groups)
    assert made.loss_ == "joint"
    assert made.score(X, truth) > 0.9
    given = made.posterior_proba(X, counts, groups)
    np.testing.assert_allclose(given.reshape(100, 64, 10).sum(1), counts[::64], atol=0.3)
    assert (given.argmax(1) == truth).mean() >= made.score(X, truth)


def test_unknown_counts_go_through_the_marginals() -> None:
    counts = TASK.counts.copy()
    counts[: len(counts) // 2, 1:] = np.nan
    made = model().fit(TASK.X, counts, groups=TASK.groups)
    assert made.loss_ == "marginal"
    assert made.score(TASK.X, TASK.truth) > 0.85
    assert np.isfinite(made.score(TASK.X, counts, TASK.groups))
    nullable = pd.DataFrame(counts).astype("Int64")
    assert np.array_equal(
        model().fit(TASK.X, nullable.set_axis(NAMES, axis=1), groups=TASK.groups).decision_function(TASK.X),
        made.decision_function(TASK.X),
    )
    with pytest.raises(ValueError, match="`loss` must be 'marginal' where some counts are not known; got 'joint'"):
        model(loss="joint").fit(TASK.X, counts, groups=TASK.groups)


def test_without_groups_it_is_ordinary_classification() -> None:
    hot = np.eye(3)[TASK.truth]
    made = model(kofn.Linear(l2=0.01), label="proportion").fit(TASK.X, hot)
    scaled = StandardScaler().fit_transform(TASK.X)
    usual = LogisticRegression(C=1 / (0.01 * 600), tol=1e-8, max_iter=1000).fit(scaled, TASK.truth)
    np.testing.assert_allclose(made.predict_proba(TASK.X), usual.predict_proba(scaled), atol=0.01)
    assert made.score(TASK.X, hot) == made.score(TASK.X, TASK.truth)
    with pytest.raises(ValueError, match="without `groups` each row is a bag of its own, of one class"):
        model(label="proportion").fit(TASK.X, TASK.shares)


def test_copies_and_weights(fitted: kofn.LLPClassifier) -> None:
    """A row that is there twice is two rows; a bag of weight 0 is not there."""
    copies = np.where(np.arange(600) % 6 == 0, 2, 1)
    first = np.eye(3)[TASK.truth[::6]].repeat(6, 0)
    fixed = kofn.Linear(l2=0.01)
    made = model(fixed).fit(TASK.X, TASK.counts + first, groups=TASK.groups, copies=copies)
    rows = np.arange(600).repeat(copies)
    again = model(fixed).fit(TASK.X[rows], (TASK.counts + first)[rows], groups=TASK.groups[rows])
    np.testing.assert_allclose(made.decision_function(TASK.X), again.decision_function(TASK.X), atol=0.02)
    weight = (TASK.groups < 50) * 1.0
    part = model(fixed).fit(TASK.X, TASK.counts, groups=TASK.groups, bag_weight=weight)
    half = model(fixed).fit(TASK.X[:300], TASK.counts[:300], groups=TASK.groups[:300])
    assert np.array_equal(part.decision_function(TASK.X), half.decision_function(TASK.X))


def test_distributions_and_posteriors(fitted: kofn.LLPClassifier) -> None:
    laws = fitted.predict_bag_proba(TASK.X, TASK.groups)
    assert laws.shape == (100, 3, 7)
    np.testing.assert_allclose(laws.sum(2), 1)
    means = (laws * np.arange(7)).sum(2)
    np.testing.assert_allclose(means, fitted.predict_proba(TASK.X).reshape(100, 6, 3).sum(1))
    assert (fitted.predict_bags(TASK.X, TASK.groups) == laws.argmax(2)).all()
    q = fitted.posterior_proba(TASK.X, TASK.counts, TASK.groups)
    np.testing.assert_allclose(q.sum(1), 1)
    np.testing.assert_allclose(q.reshape(100, 6, 3).sum(1), TASK.counts[::6], atol=1e-12)
    assert (q.argmax(1) == TASK.truth).mean() > fitted.score(TASK.X, TASK.truth)


def test_scikit_learn_behaviours(fitted: kofn.LLPClassifier) -> None:
    again = clone(fitted)
    assert not hasattr(again, "classes_")
    assert again.get_params()["label"] == "count"
    assert np.array_equal(
        again.fit(TASK.X, TASK.counts, groups=TASK.groups).decision_function(TASK.X),
        fitted.decision_function(TASK.X),
    )
    assert fitted.n_features_in_ == 4
    search = GridSearchCV(model(kofn.Linear()), {"learner__l2": [10.0, 0.01]}, cv=GroupKFold(3))
    with config_context(enable_metadata_routing=True):
        search.fit(TASK.X, TASK.counts, groups=TASK.groups)
    assert search.best_params_ == {"learner__l2": 0.01}
    pipe = make_pipeline(StandardScaler(), model(label="proportion")).fit(TASK.X, np.eye(3)[TASK.truth])
    assert pipe.score(TASK.X, TASK.truth) > 0.9


def test_a_fit_that_learns_nothing_warns() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=TASK.X.shape)
    with pytest.warns(UserWarning, match="no better than a model without features"):
        model(kofn.Trees(max_rounds=1, learning_rate=3.0)).fit(noise, TASK.counts, groups=TASK.groups)


def test_categories_of_a_frame() -> None:
    frame = pd.DataFrame(TASK.X[:, :3]).set_axis(["a", "b", "c"], axis=1)
    frame["kind"] = pd.Categorical(np.array(["x", "y"])[np.arange(600) % 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = model(QUICK["trees"]).fit(frame, TASK.counts, groups=TASK.groups)
    assert made.score(frame, TASK.truth) > 0.9


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, TASK.counts[:-1], "an entry for each of the 600 rows"),
        ({}, TASK.shares, "`y`: counts of classes must be integers"),
        ({"label": "proportion"}, TASK.counts, "`y`: `proportions` must lie between 0 and 1; bag 0 has"),
        ({"noise": "laplace:1"}, TASK.counts, "must be a single column with noise='laplace:1'"),
        ({"rounding": "spread"}, TASK.counts, "must be a single column with rounding='spread'"),
        ({"loss": "mutual-contamination"}, TASK.counts, "for several classes; got 'mutual-contamination'"),
        ({}, TASK.counts.astype(str).astype(object) + "x", "must have numbers in the columns of all classes"),
        ({}, np.eye(3)[TASK.truth], "`y` must be the same on all instances of a bag"),
        ({"loss": "joint"}, TASK.counts[:, 0], "`loss` must be 'count', 'proportion' or 'mutual-contamination'"),
    ],
)
def test_errors_of_class_labels(options: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        model(**options).fit(TASK.X, y, groups=TASK.groups)


def test_rounded_proportions_of_classes() -> None:
    rounded = TASK.shares.round(2)
    with pytest.raises(
        ValueError, match=r"`y`: proportions of classes times the size of the bag must be integers: bag 0"
    ):
        model(label="proportion").fit(TASK.X, rounded, groups=TASK.groups)
    made = model(label="proportion", rounding="nearest").fit(TASK.X, rounded, groups=TASK.groups)
    exact = model(label="proportion").fit(TASK.X, TASK.shares, groups=TASK.groups)
    assert np.array_equal(made.decision_function(TASK.X), exact.decision_function(TASK.X))
