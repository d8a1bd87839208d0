"""Baselines against computations by hand, and the warning of a fit that is no better."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import LEARNERS, UNLEARNT, bags_task, pu_task
from scipy.sparse import issparse
from scipy.stats import binom
from sklearn.linear_model import RidgeCV

import kofn
from kofn.estimators._bag_means import BagFeatures
from kofn.estimators._baselines import Baselines
from kofn.estimators._judged import judge
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


def test_no_features_of_multiple_instances_is_the_better_of_two_constants() -> None:
    """One rate of all instances ties a label to the size of its bag, and can be worse than a coin, or better."""
    any_positive = (COUNTS > 0).astype(np.int64)
    model = kofn.MILClassifier(LEARNERS["linear"](), random_state=0).fit(X, any_positive[GROUPS], groups=GROUPS)
    none = (1 - model.rate_) ** SIZES
    losses = []
    for train, held in model.fitted_.splits:
        share = (any_positive[train].sum() + 0.5) / (len(train) + 1)
        of_labels = -np.log(np.where(any_positive[held] == 1, share, 1 - share))
        of_sizes = -np.log(np.where(any_positive[held] == 1, 1 - none[held], none[held]))
        losses.append(min(of_labels, of_sizes, key=np.mean))
    assert model.baselines_["no features"] == pytest.approx(np.concatenate(losses).mean())


def test_no_features_of_multiple_instances_is_no_worse_than_a_coin() -> None:
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(60) % 2 == 0, rng.integers(1, 4, 60), rng.integers(100, 300, 60))
    groups = np.repeat(np.arange(60), sizes)
    y = (np.arange(60) % 4 < 2).astype(np.int64)[groups]  # half of the small bags, and half of the large ones
    model = kofn.MILClassifier(kofn.Linear(penalties=(1.0,)), random_state=0)
    with pytest.warns(UserWarning, match=NO_BETTER):
        model.fit(rng.normal(size=(len(groups), 2)), y, groups=groups)
    assert model.baselines_["no features"] == pytest.approx(np.log(2), abs=0.02)  # it was .98


def test_the_rate_of_intervals_is_that_of_the_largest_likelihood() -> None:
    """The mean of the ends was 35 % too high, for the start of every learner and for the baseline."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(50, 900, 300)
    counts = rng.binomial(sizes, 0.015)
    bounds = np.where((counts < 10)[:, None], [0, 9], counts[:, None])  # small cells are suppressed
    groups = np.repeat(np.arange(300), sizes)
    noise = rng.normal(size=(len(groups), 2))
    model = kofn.LLPClassifier(kofn.Linear(l2=1.0), label="interval").fit(noise, bounds[groups], groups=groups)
    assert model.rate_ == pytest.approx(counts.sum() / sizes.sum(), rel=0.05)
    assert model.rate_ < 0.8 * (bounds.mean(1) / sizes).mean()


def test_no_features_of_grades_are_their_frequencies() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 400, 200)
    grade = rng.integers(0, 3, 200)  # which have nothing to do with sizes
    low = np.choose(grade, [0, 1, sizes // 2])
    high = np.choose(grade, [0, sizes // 2 - 1, sizes])
    assert (low[grade == 0] == 0).all()
    bounds = np.column_stack([np.where(grade == 2, 7, low), np.where(grade == 1, 6, high)])  # none, 1 to 6, 7 or more
    groups = np.repeat(np.arange(200), sizes)
    model = kofn.LLPClassifier(kofn.Linear(penalties=(1e3,)), label="interval", random_state=0)
    with pytest.warns(
        UserWarning, match=NO_BETTER
    ):  # one rate of all instances, which is all it may say, had no warning
        model.fit(rng.normal(size=(len(groups), 2)), bounds[groups], groups=groups)
    assert model.baselines_["no features"] == pytest.approx(np.log(3), abs=0.05)


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
    losses = Baselines.fit(problem, [(torch.tensor([0]), torch.tensor([1, 2]))]).losses(problem)
    assert losses["bag means"] == pytest.approx(losses["no features"], rel=1e-12)


def test_categories_are_counted_and_not_spread_out() -> None:
    """A column for each of thousands of categories took 16 GB; wide or narrow, the regression is the same."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 4000).astype(np.float32)
    table = np.column_stack([rng.normal(size=4000), codes]).astype(np.float32)
    bags = kofn.Bags.from_sizes([20] * 200)
    problem = Problem(
        instances=table,
        bags=bags,
        labels=torch.from_numpy(rng.binomial(20, 0.3, 200)),
        objective=CountObjective(),
        rate=0.3,
        proportions=torch.full((200,), 0.3),
        categories={1: 40},
    )
    narrow = BagFeatures.of(problem)
    wide = BagFeatures.of(replace(problem, categories={1: 4000}))
    assert narrow is not None
    assert wide is not None
    assert issparse(wide.table)
    dense = wide.table.toarray()
    np.testing.assert_allclose(dense[:, :41], narrow.table)
    assert not dense[:, 41:].any()
    by_hand = np.stack([(codes[20 * bag : 20 * bag + 20, None] == np.arange(40)).mean(0) for bag in range(200)])
    np.testing.assert_allclose(narrow.table[:, 1:], by_hand)


def test_without_diagnostics_nothing_is_compared() -> None:
    model = llp("linear")
    bare = kofn.LLPClassifier(LEARNERS["linear"](), label="count", diagnostics=False, random_state=0)
    bare.fit(X, COUNTS[GROUPS], groups=GROUPS)
    assert bare.validation_loss_ == model.validation_loss_
    assert bare.baselines_ == {"no features": model.baselines_["no features"]}
    assert bare.fingerprint_ is None
    assert bare.bag_means_ is None
    with pytest.raises(ValueError, match="`diagnostics` must be True in the fit of a model that is to be judged"):
        judge(bare, X, groups=GROUPS)


def test_a_baseline_that_fails_does_not_lose_a_trained_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was fitted after the learner: hours of training were lost to an error of a regression on means."""
    trained = []

    def no_memory(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(BagFeatures, "of", no_memory)
    learner = kofn.Network(hidden=(), epochs=1, callback=lambda *_: trained.append(1))
    with pytest.raises(MemoryError):
        kofn.LLPClassifier(learner, label="count", random_state=0).fit(X, COUNTS[GROUPS], groups=GROUPS)
    assert not trained
