"""PUClassifier learns from labelled positives and unlabelled data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_cases import LEARNS, QUICK, pu_task
from sklearn.metrics import roc_auc_score

import kofn
from kofn.estimators._pu_classifier import LOSSES

X, TRUTH, Y = pu_task()
MIXTURE = float((TRUTH[Y == -1] == 1).mean())
BAGS = {"batch_size": 32}


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns(loss: Any) -> None:
    model = kofn.PUClassifier(mixture=MIXTURE, **(LEARNS | BAGS | {"loss": loss})).fit(X, Y)
    assert roc_auc_score(TRUTH, model.decision_function(X)) > 0.95
    assert model.classes_.tolist() == [-1, 1]


def test_count_finds_the_unlabelled_positives() -> None:
    model = kofn.PUClassifier(prior=float((TRUTH == 1).mean()), **(LEARNS | BAGS)).fit(X, Y)
    assert model.score(X, TRUTH) > 0.9
    assert (model.predict(X) == Y).mean() < 0.9  # not what it was told, but what it was told about


def test_the_prior_gives_the_mixture() -> None:
    model = kofn.PUClassifier(prior=float((TRUTH == 1).mean()), **QUICK).fit(X, Y)
    assert model.mixture_ == pytest.approx(MIXTURE, rel=1e-12)
    assert kofn.PUClassifier(mixture=0.25, **QUICK).fit(X, Y).mixture_ == 0.25


@pytest.mark.parametrize("stopping", ["loss", "prior"])
def test_stopping_rules(stopping: Any) -> None:
    model = kofn.PUClassifier(
        mixture=MIXTURE, **(LEARNS | BAGS | {"stopping": stopping, "validation_fraction": 0.2})
    ).fit(X, Y)
    criteria = [entry["criterion"] for entry in model.history_]
    assert model.best_epoch_ == int(np.argmin(criteria))
    if stopping == "prior":  # whole instances and a fraction for the loss
        assert all(value % 1 > 0 for value in criteria)
        assert max(criteria) >= 1
    else:
        assert criteria == [entry["val_loss"] for entry in model.history_]


@pytest.mark.parametrize("names", [(0, 1), (False, True), ("a", "b")], ids=str)
def test_any_two_classes_the_larger_labelled(names: tuple[Any, Any]) -> None:
    named = kofn.PUClassifier(mixture=MIXTURE, **QUICK).fit(X, np.array(names)[(Y == 1).astype(int)])
    plain = kofn.PUClassifier(mixture=MIXTURE, **QUICK).fit(X, Y)
    assert named.classes_.tolist() == list(names)
    assert np.array_equal(named.decision_function(X), plain.decision_function(X))


def test_too_few_labelled_to_hold_one_out() -> None:
    y = np.where(np.arange(len(X)) == np.argmax(TRUTH), 1, -1)
    model = kofn.PUClassifier(mixture=0.5, **QUICK).fit(X, y)
    assert model.best_epoch_ is None


def test_size_of_a_bag() -> None:
    sizes = [[kofn.PUClassifier(batch_size=size)._bag_size(n) for n in (5, 3200, 10**6)] for size in (None, 10)]
    assert sizes == [[32, 100, 200], [10, 10, 10]]
