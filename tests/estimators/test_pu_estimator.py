"""PUClassifier learns from labelled positives and unlabelled data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import UNLEARNT, learns, pu_task, quick
from sklearn.metrics import roc_auc_score

import kofn
from kofn.metrics import pu_auc

X, TRUTH, Y = pu_task()
MIXTURE = float((TRUTH[Y == -1] == 1).mean())
BAGS: dict[str, Any] = {"bag_size": 32, "batch_size": 1}
pytestmark = UNLEARNT


@pytest.mark.parametrize("loss", kofn.PUClassifier.LOSSES)
def test_every_loss_learns(loss: Any) -> None:
    model = kofn.PUClassifier(mixture=MIXTURE, **learns(**(BAGS | {"loss": loss}))).fit(X, Y)
    assert roc_auc_score(TRUTH, model.decision_function(X)) > 0.95
    assert model.classes_.tolist() == [-1, 1]


def test_count_finds_the_unlabelled_positives() -> None:
    model = kofn.PUClassifier(prior=float((TRUTH == 1).mean()), **learns(**BAGS)).fit(X, Y)
    assert (model.predict(X) == TRUTH).mean() > 0.9
    assert (model.predict(X) == Y).mean() < 0.9  # not what it was told, but what it was told about


def test_the_score_is_an_auc_that_does_not_depend_on_the_mixture() -> None:
    """The share of right predictions, labelled or unlabelled, was highest where nothing but the labelled is positive."""
    ranks = pu_auc(X[Y == 1, 0], X[Y == -1, 0])  # by the column that decides
    for mixture in (0.05, MIXTURE):
        model = kofn.PUClassifier(kofn.Linear(l2=1e-3), mixture=mixture, random_state=0).fit(X, Y)
        assert model.score(X, Y) == pytest.approx(ranks, abs=0.01)
        assert model.score(X[:, ::-1], Y) < 0.6
        assert model.score(X, TRUTH) == roc_auc_score(TRUTH, model.decision_function(X))


def test_a_score_needs_labelled_and_unlabelled_rows() -> None:
    model = kofn.PUClassifier(mixture=MIXTURE, **quick()).fit(X, Y)
    with pytest.raises(ValueError, match=r"labelled positives \(1\) and unlabelled rows \(-1\).*are labelled"):
        model.score(X[Y == 1], Y[Y == 1])
    with pytest.raises(ValueError, match=r"`y` must be one of the classes \[-1, 1\]; got 0"):
        model.score(X, (Y == 1).astype(int))


def test_the_prior_gives_the_mixture() -> None:
    model = kofn.PUClassifier(prior=float((TRUTH == 1).mean()), **quick()).fit(X, Y)
    assert model.mixture_ == pytest.approx(MIXTURE, rel=1e-12)
    assert kofn.PUClassifier(mixture=0.25, **quick()).fit(X, Y).mixture_ == 0.25


@pytest.mark.parametrize("stopping", ["loss", "predicted-share", "label-accuracy"])
def test_stopping_rules(stopping: Any) -> None:
    model = kofn.PUClassifier(
        mixture=MIXTURE, **learns(**(BAGS | {"stopping": stopping, "validation_fraction": 0.2}))
    ).fit(X, Y)
    criteria = [entry["criterion"] for entry in model.history_]
    assert model.best_step_ == int(np.argmin(criteria)) + 1
    if stopping != "loss":  # whole instances and a fraction for the loss
        assert all(value % 1 > 0 for value in criteria)
        assert max(criteria) >= 1
    else:
        assert criteria == [entry["val_loss"] for entry in model.history_]


@pytest.mark.parametrize("names", [(0, 1), (False, True), ("a", "b"), ("b", "a"), (1, 0)], ids=str)
def test_any_two_classes_of_which_one_is_labelled(names: tuple[Any, Any]) -> None:
    pos_label = names[1] if names[0] in ("a", "b", 1) else None
    named = kofn.PUClassifier(mixture=MIXTURE, pos_label=pos_label, **quick()).fit(
        X, np.array(names)[(Y == 1).astype(int)]
    )
    plain = kofn.PUClassifier(mixture=MIXTURE, **quick()).fit(X, Y)
    assert named.classes_.tolist() == list(names)
    assert np.array_equal(named.decision_function(X), plain.decision_function(X))


def test_too_few_labelled_to_hold_one_out() -> None:
    y = np.where(np.arange(len(X)) == np.argmax(TRUTH), 1, -1)
    model = kofn.PUClassifier(mixture=0.5, **quick()).fit(X, y)
    assert model.best_step_ is None


@pytest.mark.parametrize(("size", "expected"), [(None, 32), (10, 10)])
def test_size_of_a_bag(size: int | None, expected: int) -> None:
    sizes: list[int] = []

    class Watch(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.training:
                sizes.append(len(x))
            return super().forward(x)

    learner = kofn.Network(Watch(2, 1), epochs=1, batch_size=1, validation_fraction=0.0)
    kofn.PUClassifier(learner, mixture=MIXTURE, bag_size=size, random_state=0).fit(X, Y)
    assert 2 * expected - 2 <= min(sizes) <= max(sizes) <= 2 * expected  # as many labelled positives


@pytest.mark.parametrize("learner", ["linear", "trees"])
@pytest.mark.parametrize("loss", ["upu", "nnpu"])
def test_the_sigmoid_surrogate_does_not_make_one_class_of_all(learner: str, loss: Any) -> None:
    """A third are positive, so that "none is" is a local minimum of a loss that is flat far from zero."""
    rng = np.random.default_rng(1)
    truth = rng.random(2400) < 1 / 3
    x = rng.normal(size=(2400, 3)) + 2 * truth[:, None]
    labelled = truth & (rng.random(2400) < 0.4)
    mixture = float(truth[~labelled].mean())
    model = kofn.PUClassifier(learner, mixture=mixture, loss=loss, random_state=0).fit(x, np.where(labelled, 1, -1))
    found = model.predict(x[~labelled]) == 1
    assert abs(found.mean() - mixture) < 0.1
    assert (found == truth[~labelled]).mean() > 0.9
