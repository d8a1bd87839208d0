"""Logistic regression on bags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import FEATURES, some_bags
from sklearn.linear_model import LogisticRegression

import kofn
from kofn.bags import Bags
from kofn.learners import Problem
from kofn.learners._design import Design
from kofn.learners._linear import Path, has_turned


def rows_alone(n: int = 300) -> tuple[Problem, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = (rng.random(n) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.0]))).astype(np.int64)
    made = replace(
        some_bags(),
        instances=x,
        bags=Bags.from_sizes(np.ones(n, dtype=int)),
        labels=torch.from_numpy(y),
        proportions=torch.from_numpy(y).double(),
        rate=float(y.mean()),
    )
    return made, y


@pytest.mark.parametrize("l2", [1e-4, 0.01, 1.0])
def test_bags_of_one_are_logistic_regression(l2: float) -> None:
    """scikit-learn's C is 1 / (n l2), on standardised columns."""
    problem, y = rows_alone()
    x = (problem.instances - problem.instances.mean(0)) / problem.instances.std(0)
    theirs = LogisticRegression(C=1 / (len(y) * l2), tol=1e-8, max_iter=1000).fit(x, y)
    ours = kofn.Linear(l2=l2).fit(problem, seed=0)
    assert np.allclose(ours.logits(problem.instances), theirs.decision_function(x), atol=5e-3)
    assert np.allclose(ours.coefficients, theirs.coef_[0], atol=2e-3)


def test_the_penalty_is_the_best_of_the_held_out_curve() -> None:
    fitted = kofn.Linear().fit(some_bags(60), seed=0)
    val = [entry["val_loss"] for entry in fitted.history]
    assert fitted.best == int(np.argmin(val))
    assert fitted.validation_loss == pytest.approx(min(val))
    assert [entry["l2"] for entry in fitted.history] == sorted((e["l2"] for e in fitted.history), reverse=True)


def test_held_out_scores_are_of_fits_on_the_other_folds() -> None:
    problem = some_bags(60)
    penalties = (1.0, 0.1, 0.01)
    fitted = kofn.Linear(penalties=penalties).fit(problem, seed=0)
    assert fitted.best is not None
    assert fitted.held_out_logits is not None
    for train, held in fitted.splits:
        # Columns are standardised by all rows, whatever bags are held out.
        alone = Path(problem.take(train), fitted.design.features(problem.instances), 1000)
        for penalty in penalties[: fitted.best + 1]:
            alone.step(penalty)
        out = problem.take(held).bags.index.numpy()
        assert np.allclose(fitted.held_out_logits[out], alone.logits()[out], atol=1e-9)


def test_a_penalty_of_your_own_has_a_history() -> None:
    problem = some_bags(20)
    fitted = kofn.Linear(l2=0.1).fit(problem, seed=0)
    loss = float(problem.mean_loss(torch.from_numpy(fitted.logits(problem.instances))))
    assert fitted.history[-1]["l2"] == 0.1
    assert fitted.history[-1]["train_loss"] == pytest.approx(loss)
    assert fitted.best is None


def test_design_of_gaps_and_categories() -> None:
    nan = np.nan
    table = np.array([[1, 0, 5], [3, 2, 5], [nan, nan, 5], [1, 1, 5]], dtype=np.float32)
    design = Design.learn(table, {1: 3})
    x = design(table)
    assert design.width == x.shape[1] == 6
    mean, sd = 5 / 3, np.std([1, 3, 1])
    assert x[:, 0] == pytest.approx([(1 - mean) / sd, (3 - mean) / sd, 0, (1 - mean) / sd], abs=1e-6)
    assert x[:, 1].tolist() == [0, 0, 0, 0]  # a constant column is 0
    assert x[:, 2].tolist() == [0, 0, 1, 0]  # what was missing
    assert x[:, 3:].tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
    new = design(np.array([[2, nan, nan]], dtype=np.float32))  # a gap where training had none is the mean
    assert new[0, 1:].tolist() == [0, 0, 0, 0, 0]
    facts, tensors = design.to_model()
    assert np.array_equal(Design.from_model(facts, tensors)(table), x)


def test_design_by_weight_is_design_of_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20, 3)).astype(np.float32)
    table[3, 1] = table[4, 2] = np.nan
    times = rng.integers(0, 3, 20)
    times[4] = 0  # the only gap of the last column does not count
    one = Design.learn(table, {}, torch.from_numpy(times).double())
    two = Design.learn(table.repeat(times, 0), {})
    assert np.allclose(one.mean, two.mean, rtol=1e-6)
    assert np.allclose(one.scale, two.scale, rtol=1e-6)
    assert one.missing.tolist() == two.missing.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": -1.0}, "`l2` must be from 0"),
        ({"penalties": ()}, "`penalties` must hold one or more numbers"),
        ({"penalties": (-1.0,)}, "`penalties` must be from 0"),
        ({"folds": 1}, "`folds` must be at least 2"),
        ({"max_steps": 0}, "`max_steps` must be at least 1"),
    ],
)
def test_options_that_are_none(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kofn.Linear(**options).fit(some_bags(), seed=0)


@pytest.mark.parametrize(
    "learner", [kofn.Trees(), kofn.Linear(), kofn.EM(LogisticRegression())], ids=lambda x: type(x).__name__
)
def test_what_needs_a_network(learner: Any) -> None:
    problem = some_bags()
    images = replace(problem, instances=problem.instances.reshape(-1, 1, 3))
    with pytest.raises(ValueError, match=r"`learner` must be a network for instances of shape \(1, 3\)"):
        learner.fit(images, seed=0)
    with pytest.raises(ValueError, match=r"`loss` must be a loss of instances for .* got 'attention'"):
        learner.fit(replace(problem, pooling="attention"), seed=0)


def test_a_fold_that_turns_up_by_chance_does_not_end_the_search() -> None:
    """In multiple instance problems the loss falls late: penalties from 1 to 0.1 differ by chance alone."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(600, 3)), np.repeat(np.arange(60), 10)
    truth = rng.random(600) < (X[:, 0] > 1.2) * 0.9
    y = truth.reshape(60, 10).any(1).repeat(10)
    model = kofn.MILClassifier("linear", random_state=0).fit(X, y, groups=groups)
    assert model.validation_loss_ is not None
    assert model.validation_loss_ < 0.3  # it was 0.675 where one fold could end it; without features 0.684


def slides(bags: int = 24, rows: int = 40, columns: int = 30, *, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows of noise but for one column that is the label of the row, of which a positive bag has one."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(bags * rows, columns)), np.repeat(np.arange(bags), rows)
    truth = np.zeros(bags * rows)
    truth[rows * np.arange(0, bags, 2)] = 1
    X[:, 0] = truth
    return X, np.repeat(np.arange(bags) % 2 == 0, rows).astype(int), groups


def test_a_leaked_label_is_found_among_many_columns() -> None:
    """The search began at a penalty where nothing is learned, and gave up after two worse steps: bag AUC .53."""
    X, y, groups = slides()
    model = kofn.MILClassifier("linear", random_state=0).fit(X, y, groups=groups)
    assert ((model.bag_decision_function(X, groups) > 0) == (np.arange(24) % 2 == 0)).all()
    assert model.validation_loss_ is not None
    assert model.validation_loss_ < 0.2


def test_the_search_goes_on_until_the_curve_has_turned_for_good() -> None:
    assert not has_turned([])
    assert not has_turned([1.0, 2.0, 3.0])  # two worse steps are not enough
    assert not has_turned([1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 4.5])  # far from the best, and falling
    assert has_turned([2.0, 1.0, 1.5, 1.4, 1.5, 1.6, 1.7, 1.8])


def test_a_penalty_means_the_same_at_any_size_of_bags() -> None:
    """It was a penalty of the mean over instances: with a bag effect the weights shrank as bags grew."""
    rng = np.random.default_rng(0)
    share, shift = rng.uniform(0.1, 0.9, 60), rng.normal(size=60) * 0.5
    found = []
    for people in (200, 20_000):
        copies = np.column_stack([share, 1 - share]) * people
        p = 1 / (1 + np.exp(-(np.array([1.0, -1.0]) + shift[:, None])))
        votes = (copies.round() * p).sum(1).round().astype(int)
        model = kofn.LLPClassifier(kofn.Linear(l2=1e-3), label="count", bag_effect=0.5, random_state=0)
        model.fit(
            np.tile([[1.0], [0.0]], (60, 1)),
            votes.repeat(2),
            groups=np.arange(60).repeat(2),
            copies=copies.round().astype(int).ravel(),
        )
        logits = model.decision_function(np.array([[1.0], [0.0]]))
        found.append(logits[0] - logits[1])
    assert found[0] == pytest.approx(found[1], rel=0.1)
