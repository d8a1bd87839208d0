"""Baselines against computations by hand, and the warning of a fit that is no better."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import LEARNERS, UNLEARNT, bags_task, pu_task
from scipy.stats import binom
from sklearn.linear_model import RidgeCV

import kofn
from kofn.estimators._baselines import fit_baselines
from kofn.learners import CountObjective, Problem

SIZES = np.random.default_rng(3).integers(1, 7, 60)
GROUPS = np.repeat(np.arange(60), SIZES)
X = np.random.default_rng(4).normal(size=(len(GROUPS), 3))
TRUTH = (X[:, 0] + X[:, 1] > 0.5).astype(np.int64)
COUNTS = np.bincount(GROUPS, TRUTH).astype(np.int64)
WEIGHTS = np.random.default_rng(5).integers(0, 3, 60)
NO_BETTER = "this fit is no better than a model without features"


def llp(learner: str, **options: Any) -> kofn.LLPClassifier:
    model = kofn.LLPClassifier(LEARNERS[learner](), label="count", random_state=0)
    return model.fit(X, COUNTS[GROUPS], groups=GROUPS, **options)


@UNLEARNT
@pytest.mark.parametrize("learner", LEARNERS)
def test_no_features_is_binomial(learner: str) -> None:
    model = llp(learner)
    assert model.rate_ == pytest.approx(TRUTH.mean())
    held = model.held_out_
    assert 0 < len(held) <= 60
    expected = -binom.logpmf(COUNTS[held], SIZES[held], TRUTH.mean()).mean()
    assert model.baselines_["no features"] == pytest.approx(expected)


@UNLEARNT
@pytest.mark.parametrize("learner", ["trees", "linear"])
def test_no_features_by_weight(learner: str) -> None:
    model = llp(learner, bag_weight=WEIGHTS[GROUPS])
    times = WEIGHTS[GROUPS]
    assert model.rate_ == pytest.approx(np.average(TRUTH, weights=times))
    assert model.held_out_.tolist() == np.flatnonzero(WEIGHTS).tolist()  # all folds
    losses = -binom.logpmf(COUNTS, SIZES, model.rate_)
    assert model.baselines_["no features"] == pytest.approx(np.average(losses, weights=WEIGHTS))


def test_no_features_of_multiple_instances() -> None:
    any_positive = (COUNTS > 0).astype(np.int64)
    model = kofn.MILClassifier(LEARNERS["linear"](), random_state=0).fit(X, any_positive[GROUPS], groups=GROUPS)
    none = (1 - model.rate_) ** SIZES
    assert (1 - none).mean() == pytest.approx(any_positive.mean())  # what the base rate is
    assert model.held_out_.tolist() == list(range(60))
    expected = -np.log(np.where(any_positive == 1, 1 - none, none)).mean()
    assert model.baselines_["no features"] == pytest.approx(expected)


@pytest.mark.parametrize("learner", ["linear", "network"])
@UNLEARNT
def test_bag_means_is_ridge_regression(learner: str) -> None:
    model = llp(learner)
    standard = (X - X.mean(0)) / X.std(0)
    means = np.stack([standard[bag == GROUPS].mean(0) for bag in range(60)])
    losses = []
    for train, held in model.fitted_.splits:
        ridge = RidgeCV(alphas=np.logspace(-1, 5, 13)).fit(means[train], (COUNTS / SIZES)[train])
        near = 0.5 / (SIZES[held] + 1)
        share = np.clip(ridge.predict(means[held]), near, 1 - near)
        losses.append(-binom.logpmf(COUNTS[held], SIZES[held], share))
    assert model.baselines_["bag means"] == pytest.approx(np.concatenate(losses).mean(), rel=1e-4)


def test_validation_loss_is_of_the_same_bags() -> None:
    model = llp("linear")
    assert model.held_out_logits_ is not None
    p = 1 / (1 + np.exp(-model.held_out_logits_))
    losses = []
    for bag in model.held_out_:
        law = np.ones(1)
        for each in p[bag == GROUPS]:
            law = np.convolve(law, [1 - each, each])
        losses.append(-np.log(law[COUNTS[bag]]))
    assert model.validation_loss_ == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("learner", [kofn.Trees(rounds=3), kofn.Linear(l2=0.1)], ids=["trees", "linear"])
def test_where_nothing_is_held_out_there_are_none(learner: Any) -> None:
    model = kofn.LLPClassifier(learner, label="count").fit(X, COUNTS[GROUPS], groups=GROUPS)
    assert model.baselines_ == {}
    assert model.validation_loss_ is None
    assert len(model.held_out_) == 0


def test_images_have_no_means() -> None:
    network = kofn.Network(hidden=(), epochs=30, lr=0.1)
    model = kofn.LLPClassifier(network, label="count", random_state=0)
    model.fit(X.reshape(-1, 1, 1, 3), COUNTS[GROUPS], groups=GROUPS)
    assert list(model.baselines_) == ["no features"]


TASK = bags_task(bags=120)


@pytest.mark.parametrize("learner", LEARNERS)
def test_shuffled_labels_are_warned_of(learner: str) -> None:
    # Bags are of one size, so that counts may change places.
    counts = np.random.default_rng(1).permutation(TASK.counts)
    noise = np.random.default_rng(2).normal(size=(len(TASK.X), 12))
    with pytest.warns(UserWarning, match=NO_BETTER) as caught:
        model = kofn.LLPClassifier(LEARNERS[learner](), random_state=0).fit(
            noise, TASK.repeated(counts / 4), groups=TASK.groups
        )
    assert caught[0].filename == __file__  # the user's line
    assert model.validation_loss_ is not None
    assert model.validation_loss_ >= model.baselines_["no features"]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("task", ["llp", "mil", "pu"])
def test_labels_that_can_be_learned_are_not_warned_of(learner: str, task: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model: Any
        if task == "pu":
            rows, _, labels = pu_task(rows=400)
            model = kofn.PUClassifier(LEARNERS[learner](), prior=0.5, random_state=0).fit(rows, labels)
        else:
            kind: Any = kofn.LLPClassifier if task == "llp" else kofn.MILClassifier
            y = TASK.y if task == "llp" else TASK.any
            model = kind(LEARNERS[learner](), random_state=0).fit(TASK.X, y, groups=TASK.groups)
    assert model.validation_loss_ < model.baselines_["no features"]


@pytest.mark.parametrize("classes", [2, 3])
def test_from_one_bag_nothing_is_learned_but_the_rate(classes: int) -> None:
    """A fold may have one bag to learn from; ridge regression on one row has no penalty to choose."""
    target: Any = kofn.Exactly if classes == 2 else kofn.MarginalClassCounts
    counts = torch.tensor([1, 2, 3]) if classes == 2 else torch.tensor([[2, 1, 1], [1, 2, 1], [1, 1, 2]])
    problem = Problem(
        instances=np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32),
        bags=kofn.Bags.from_sizes([4, 4, 4]),
        labels=counts,
        objective=CountObjective(target=target),
        rate=0.5 if classes == 2 else counts.sum(0) / 12,
        proportions=counts / 4,
    )
    found = fit_baselines(problem, [(torch.tensor([0]), torch.tensor([1, 2]))])
    assert found.losses["bag means"] == pytest.approx(found.losses["no features"], rel=1e-12)
