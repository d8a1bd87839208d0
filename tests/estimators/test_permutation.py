"""Permutation importance: the score is the library's, the column that matters comes first, limits hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kofn
from kofn import metrics
from kofn.bags import Bags
from kofn.estimators import _permutation
from kofn.estimators._class_table import ClassTable
from kofn.estimators._permutation import _score, permutation_importance

pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")
Arrays = tuple[Any, Any, Any]


@pytest.fixture(scope="module")
def data() -> Arrays:
    """Rows of six columns of which the third says all, bags of 5, and the true classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)).astype(np.float32)
    return X, X[:, 2] > 0.2, np.repeat(np.arange(120), 5)


def counts(truth: Any, groups: Any) -> Any:
    return np.bincount(groups, truth)[groups].astype(int)


@pytest.mark.parametrize(
    "learner",
    [kofn.Trees(rounds=30), kofn.Linear(l2=0.1), kofn.Network(hidden=(8,), lr=0.05, epochs=15)],
    ids=["trees", "linear", "network"],
)
def test_the_column_that_matters_comes_first(data: Arrays, learner: Any) -> None:
    X, truth, groups = data
    y, bags = counts(truth, groups), Bags.from_ids(groups)
    model = kofn.LLPClassifier(learner, label="count", random_state=0).fit(X, y, groups=groups)
    before = X.copy()
    found = permutation_importance(model, X, y, bags)
    assert found is not None
    np.testing.assert_array_equal(X, before)
    assert found.columns[0] == 2
    assert found.drops.shape == (found.used, 5)
    assert found.drops[0].min() > 5 * abs(found.drops[1:]).max()
    assert (found.rows, found.bags) == (600, 120)
    again = permutation_importance(model, X, y, bags)
    assert again is not None
    np.testing.assert_array_equal(found.drops, again.drops)


def test_the_score_is_the_mean_log_likelihood_of_a_label(data: Arrays) -> None:
    X, truth, groups = data
    y, bags = counts(truth, groups), Bags.from_ids(groups)
    llp = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", bootstrap=3, random_state=0).fit(X, y, groups=groups)
    assert _score(llp, y, bags)(X) == pytest.approx(llp.score(X, y, groups=groups))
    told = (y > 3).astype(int)
    for loss in ("count", "mean"):
        mil = kofn.MILClassifier(kofn.Linear(l2=0.1), random_state=0, loss=loss).fit(X, told, groups=groups)
        given = mil.predict_bag_proba(X, groups)[np.arange(120), told[::5]]
        assert _score(mil, told, bags)(X) == pytest.approx(np.log(given).mean())
    labelled = (truth & (np.arange(600) % 2 == 0)).astype(int)
    pu = kofn.PUClassifier(kofn.Linear(l2=0.1), mixture=0.3, random_state=0).fit(X, labelled)
    scores = pu.decision_function(X)
    assert _score(pu, labelled, None)(X) == pytest.approx(metrics.pu_auc(scores[labelled == 1], scores[labelled == 0]))
    codes = truth + (X[:, 0] > 0)
    Y = np.stack([counts(codes == code, groups) for code in range(3)], 1)
    of_classes = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(X, Y, groups=groups)
    table = ClassTable.of(Y)
    assert _score(of_classes, table, bags)(X) == pytest.approx(of_classes.score(X, Y, groups=groups))


@pytest.mark.parametrize("task", ["mil", "pu", "classes", "attention"])
def test_every_task(data: Arrays, task: str) -> None:
    X, truth, groups = data
    bags: Bags | None = Bags.from_ids(groups)
    model: Any
    y: Any
    if task == "pu":
        y, bags = (truth & (np.arange(600) % 2 == 0)).astype(int), None
        model = kofn.PUClassifier(kofn.Trees(rounds=30), mixture=0.3, random_state=0).fit(X, y)
    elif task == "classes":
        y = ClassTable.of(np.stack([counts(truth == code, groups) for code in (0, 1)] + [np.zeros(600)], 1))
        model = kofn.LLPClassifier(kofn.Trees(rounds=30), label="count", random_state=0).fit(X, y, groups=groups)
    else:
        y = (X[:, 2] > 1).reshape(120, 5).any(1).repeat(5).astype(int)
        learner = kofn.Trees(rounds=30) if task == "mil" else kofn.Network(hidden=(16,), lr=0.05, epochs=30)
        model = kofn.MILClassifier(learner, loss="count" if task == "mil" else "attention", random_state=0)
        model.fit(X, y, groups=groups)
    found = permutation_importance(model, X, y, bags)
    assert found is not None
    assert found.columns[0] == 2
    assert found.drops[0].min() > 0


def test_wide_tables_and_many_rows_are_cut(data: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    X, truth, groups = data
    wide = np.concatenate([X, np.random.default_rng(1).normal(size=(600, 94)).astype(np.float32)], 1)
    y = counts(truth, groups)
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(wide, y, groups=groups)
    monkeypatch.setattr(_permutation, "BUDGET", 20_000)
    found = permutation_importance(model, wide, y, Bags.from_ids(groups))
    assert found is not None
    assert found.columns[0] == 2
    assert len(found.columns) == 20
    assert found.used == 100
    assert (found.rows, found.bags) == (200, 40)


def test_nothing_to_measure(data: Arrays) -> None:
    X, truth, _ = data
    pu = kofn.PUClassifier(kofn.Linear(l2=0.1), mixture=0.3, random_state=0).fit(X, truth.astype(int))
    assert permutation_importance(pu, X, np.zeros(600), None) is None
