"""Permutation importance: the score is the library's, the column that matters comes first, limits hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kofn
from kofn.bags import Bags
from kofn.estimators import _permutation
from kofn.estimators._class_table import ClassTable
from kofn.estimators._permutation import label_losses, permutation_importance

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
    assert (len(found.drops), found.repeats) == (found.used, 5)
    assert found.drops[0].low > 5 * max(abs(one.mean) for one in found.drops[1:])
    assert (found.rows, found.bags) == (600, 120)
    again = permutation_importance(model, X, y, bags)
    assert again is not None
    assert found.drops == again.drops


def test_the_score_is_the_mean_log_likelihood_of_a_label(data: Arrays) -> None:
    X, truth, groups = data
    y, bags = counts(truth, groups), Bags.from_ids(groups)
    llp = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(X, y, groups=groups)
    assert -label_losses(llp, X, y, bags).mean() == pytest.approx(llp.score(X, y, groups=groups))
    told = (y > 3).astype(int)
    for loss in ("count", "mean"):
        mil = kofn.MILClassifier(kofn.Linear(l2=0.1), random_state=0, loss=loss).fit(X, told, groups=groups)
        given = mil.predict_bag_proba(X, groups)[np.arange(120), told[::5]]
        assert -label_losses(mil, X, told, bags).mean() == pytest.approx(np.log(given).mean())
    codes = truth + (X[:, 0] > 0)
    Y = np.stack([counts(codes == code, groups) for code in range(3)], 1)
    of_classes = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(X, Y, groups=groups)
    table = ClassTable.of(Y)
    assert -label_losses(of_classes, X, table, bags).mean() == pytest.approx(of_classes.score(X, Y, groups=groups))


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
    assert found.drops[0].low > 0


def test_wide_tables_and_many_rows_are_cut(data: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    X, truth, groups = data
    wide = np.concatenate([X, np.random.default_rng(1).normal(size=(600, 94)).astype(np.float32)], 1)
    y = counts(truth, groups)
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(wide, y, groups=groups)
    monkeypatch.setattr(_permutation, "MOST_ROWS", 200)
    monkeypatch.setattr(_permutation, "BUDGET", 8_000)
    found = permutation_importance(model, wide, y, Bags.from_ids(groups))
    assert found is not None
    assert found.columns[0] == 2
    assert len(found.columns) == 20
    assert found.used == 100
    assert (found.rows, found.bags, found.repeats) == (200, 40, 2)


def test_a_bootstrap_takes_no_rows_and_noise_stays_uncertain(data: Arrays) -> None:
    X, truth, groups = data
    y = counts(truth, groups)
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", bootstrap=20, random_state=0)
    found = permutation_importance(model.fit(X, y, groups=groups), X, y, Bags.from_ids(groups))
    assert found is not None
    assert (found.rows, found.bags) == (600, 120)
    assert found.columns[0] == 2
    assert found.drops[0].low > 0
    rng = np.random.default_rng(1)
    luck = rng.binomial(5, 0.5, 120)[groups]  # counts that no column tells
    model = kofn.LLPClassifier(kofn.Linear(l2=0.1), label="count", random_state=0).fit(X, luck, groups=groups)
    other, more_luck = rng.normal(size=X.shape).astype(np.float32), rng.binomial(5, 0.5, 120)[groups]
    found = permutation_importance(model, other, more_luck, Bags.from_ids(groups))
    assert found is not None
    assert sum(one.low > 0 for one in found.drops) <= 1


def test_nothing_to_measure(data: Arrays) -> None:
    X, truth, _ = data
    pu = kofn.PUClassifier(kofn.Linear(l2=0.1), mixture=0.3, random_state=0).fit(X, truth.astype(int))
    assert permutation_importance(pu, X, np.zeros(600), None) is None
