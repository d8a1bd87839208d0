"""LLPClassifier learns instances from what is said of bags, in every way to say it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import UNLEARNT, bags_task, learns, quick
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch.distributions import Laplace

import kofn
from kofn.estimators._noise import noise_distribution
from kofn.targets import DiscreteLaplace

pytestmark = UNLEARNT
TASK = bags_task()
RNG = np.random.default_rng(1)
NOISY = TASK.counts + RNG.laplace(size=len(TASK.counts))


def auc(model: Any) -> float:
    return float(roc_auc_score(TASK.truth, model.decision_function(TASK.X)))


@pytest.mark.parametrize("loss", ["count", "proportion", "mutual-contamination"])
def test_every_loss_learns(loss: Any) -> None:
    model = kofn.LLPClassifier(**learns(loss=loss)).fit(TASK.X, TASK.y, groups=TASK.groups)
    assert auc(model) > 0.95
    assert model.history_[-1]["train_loss"] < model.history_[0]["train_loss"]


def bounds(low: int, high: int) -> np.ndarray[Any, Any]:
    return np.stack([TASK.repeated(TASK.counts - low), TASK.repeated(TASK.counts + high)], 1)


@pytest.mark.parametrize(
    ("options", "y"),
    [
        ({"label": "count"}, TASK.repeated(TASK.counts)),
        ({"label": "count"}, TASK.repeated(TASK.counts.astype(np.float64))),
        ({"label": "interval"}, bounds(1, 0)),
        ({"label": "interval"}, bounds(0, 0)),
        ({"label": "count", "noise": "laplace:1.0"}, TASK.repeated(NOISY)),
        ({"label": "count", "noise": "normal:1"}, TASK.repeated(NOISY)),
        ({"label": "count", "noise": "discrete-laplace:1"}, TASK.repeated(NOISY.round())),
        ({"label": "count", "noise": Laplace(0.0, 1.0)}, TASK.repeated(NOISY)),
        ({"label": "proportion", "noise": "laplace:1.0"}, TASK.repeated(NOISY / 4)),
        ({"label": "proportion", "noise": "discrete-laplace:1"}, TASK.repeated(NOISY.round() / 4)),
        ({"rounding": "nearest"}, TASK.y.round(1)),
        ({"rounding": "spread"}, TASK.y.round(1)),
        ({"rounding": "spread", "loss": "proportion"}, TASK.y.round(1)),
        ({"rounding": "spread", "loss": "mutual-contamination"}, TASK.y.round(1)),
    ],
    ids=str,
)
def test_every_label_learns(options: dict[str, Any], y: Any) -> None:
    model = kofn.LLPClassifier(**learns(**options)).fit(TASK.X, y, groups=TASK.groups)
    assert auc(model) > 0.9
    assert model.classes_.tolist() == [0, 1]


def test_counts_are_proportions_in_other_words() -> None:
    by_share = kofn.LLPClassifier(**quick()).fit(TASK.X, TASK.y, groups=TASK.groups)
    by_count = kofn.LLPClassifier(label="count", **quick()).fit(TASK.X, TASK.repeated(TASK.counts), groups=TASK.groups)
    by_bounds = kofn.LLPClassifier(label="interval", **quick()).fit(TASK.X, bounds(0, 0), groups=TASK.groups)
    scores = by_share.decision_function(TASK.X)
    assert np.array_equal(by_count.decision_function(TASK.X), scores)
    assert np.allclose(by_bounds.decision_function(TASK.X), scores, atol=1e-4)


def test_without_groups_it_is_ordinary_classification() -> None:
    alone = kofn.LLPClassifier(**quick()).fit(TASK.X, TASK.truth)
    ones = kofn.LLPClassifier(**quick()).fit(TASK.X, TASK.truth, groups=np.arange(len(TASK.X)))
    assert np.array_equal(alone.decision_function(TASK.X), ones.decision_function(TASK.X))
    # A bag of one with count y has -log P(S = y): cross-entropy.
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    expected = loss(torch.tensor(alone.decision_function(TASK.X)), torch.tensor(TASK.truth).double())
    assert alone.score(TASK.X, TASK.truth, groups=np.arange(len(TASK.X))) == pytest.approx(-float(expected))


def test_without_groups_it_finds_what_logistic_regression_finds() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(len(TASK.X)) < 1 / (1 + np.exp(-TASK.X @ [1.0, -0.5]))).astype(int)
    ours = kofn.LLPClassifier(**quick(epochs=150, lr=0.05, batch_size=192, validation_fraction=0))
    theirs = LogisticRegression(C=1e9).fit(TASK.X, y)
    assert np.allclose(ours.fit(TASK.X, y).decision_function(TASK.X), theirs.decision_function(TASK.X), atol=0.02)


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "<U3", "object"])
def test_classes_keep_their_type(dtype: str) -> None:
    y = np.array(["no", "yes"])[TASK.truth].astype(dtype) if dtype in ("<U3", "object") else TASK.truth.astype(dtype)
    model = kofn.LLPClassifier(**quick()).fit(TASK.X, y)
    assert model.classes_.dtype == y.dtype
    assert model.predict(TASK.X).dtype == y.dtype
    assert model.score(TASK.X, y) == (model.predict(TASK.X) == y).mean() > 0.9


def test_all_counts_zero() -> None:
    model = kofn.LLPClassifier(**quick()).fit(TASK.X, np.zeros(len(TASK.X)), groups=TASK.groups)
    assert model.classes_.tolist() == [0, 1]
    assert model.predict_proba(TASK.X)[:, 1].mean() < 0.5  # they become less probable, and nothing breaks
    assert model.history_[-1]["train_loss"] < model.history_[0]["train_loss"]


def test_bags_of_many_sizes() -> None:
    groups = np.repeat(np.arange(40), np.resize([1, 2, 3, 7, 1], 40))
    rows, truth = bags_task(bags=len(groups), size=1)[:2]
    y = (np.bincount(groups, truth) / np.bincount(groups))[groups]
    model = kofn.LLPClassifier(**learns(max_instances=20, batch_size=None)).fit(rows, y, groups=groups)
    assert roc_auc_score(truth, model.decision_function(rows)) > 0.95


def test_order_of_rows_does_not_matter_to_bags() -> None:
    model = kofn.LLPClassifier(**quick()).fit(TASK.X, TASK.y, groups=TASK.groups)
    order = np.arange(len(TASK.X)).reshape(4, -1).T.ravel()  # bags are torn apart
    assert not np.array_equal(TASK.groups[order], TASK.groups)
    again = model.score(TASK.X[order], TASK.y[order], groups=TASK.groups[order])
    assert again == pytest.approx(model.score(TASK.X, TASK.y, groups=TASK.groups), rel=1e-6)


def test_noise_by_name() -> None:
    assert noise_distribution("laplace:1.5").scale == 1.5
    assert noise_distribution("normal:2").scale == 2
    law = noise_distribution("discrete-laplace:0.5")
    assert isinstance(law, DiscreteLaplace)
    assert law.scale == 0.5


def test_noisy_proportions_of_whole_counts_are_whole() -> None:
    # 0.07 * 100 is 7.000000000000001, which a discrete law would give probability 0.
    model = kofn.LLPClassifier(**quick(**{"noise": "discrete-laplace:1", "epochs": 1}))
    task = np.zeros((100, 1)), np.full(100, 0.07), np.zeros(100)
    assert np.isfinite(model.fit(*task).history_[0]["train_loss"])
    assert np.isfinite(model.score(*task))
    share, y = model.score(*task), np.full(100, 7)
    assert model.set_params(label="count").score(task[0], y, task[2]) == share


def test_early_stopping_keeps_the_best_epoch() -> None:
    model = kofn.LLPClassifier(**quick(**{"validation_fraction": 0.5, "patience": 2, "epochs": 60, "lr": 1.0}))
    model.fit(TASK.X, TASK.y, groups=TASK.groups)
    criteria = [entry["criterion"] for entry in model.history_]
    assert model.best_step_ == int(np.argmin(criteria)) + 1
    assert len(criteria) == model.best_step_ + 2 < 60


def test_small_data_are_all_trained_on() -> None:
    model = kofn.LLPClassifier(**quick()).fit(
        TASK.X[:8], TASK.y[:8], groups=TASK.groups[:8]
    )  # a tenth of 2 bags is none
    assert model.best_step_ is None
    assert set(model.history_[0]) == {"epoch", "train_loss"}
