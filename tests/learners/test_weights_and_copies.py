"""A weight of 2 is the bag twice, a weight of 0 none, and copies are repeated rows: for every loss and learner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import SGD, mil_bags, network, some_bags, train
from sklearn.linear_model import LogisticRegression
from torch import Tensor

import kofn
from kofn.bags import Bags
from kofn.learners import CountObjective, Problem, ProportionObjective, between, boosting_objective
from kofn.learners._em import _expectation

BAGS = 12
COUNTS = some_bags(BAGS).labels
PROBLEMS: dict[str, Problem] = {
    "count": some_bags(BAGS),
    "interval": some_bags(
        BAGS, labels=torch.stack([(COUNTS - 1).clamp(min=0), COUNTS], 1), objective=CountObjective(between)
    ),
    "proportion": some_bags(BAGS, objective=ProportionObjective()),
    **{f"mil {pool}": mil_bags(BAGS, pool=pool) for pool in (None, "max", "mean", "logsumexp")},
}
each = pytest.mark.parametrize("name", PROBLEMS)


def logits(problem: Problem) -> Tensor:
    return torch.randn(len(problem.instances), generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def weighted(problem: Problem) -> tuple[Problem, Problem]:
    """Bags of weight 0, 1, 2, 0, ...; and bags that are there so often."""
    times = torch.arange(BAGS) % 3
    return replace(problem, weight=times.double()), problem.take(torch.arange(BAGS).repeat_interleave(times))


def copied(problem: Problem) -> tuple[Problem, Problem]:
    """Rows once, twice and three times in their bags; and rows that are there so often. Labels that still hold."""
    times = torch.arange(len(problem.instances)) % 3 + 1
    once = replace(problem, bags=problem.bags.with_copies(times))
    people = once.bags.repeated()
    assert torch.equal(people.sizes, problem.bags.sum(times))
    rows = problem.instances[people.index.numpy()]
    again = replace(problem, instances=rows, bags=Bags(torch.arange(len(rows)), people.offsets))
    return once, again


def gradients(problem: Problem, x: Tensor) -> tuple[Tensor, Tensor]:
    """As trees ask for them."""
    objective = boosting_objective(lambda z: problem.total(problem.losses(z)), weight=problem.row_weights)
    slope, bend = objective(x.numpy(), None)
    return torch.from_numpy(slope), torch.from_numpy(bend)


@each
def test_a_weight_of_2_is_the_bag_twice_and_of_0_none(name: str) -> None:
    once, again = weighted(PROBLEMS[name])
    x = logits(once)
    torch.testing.assert_close(once.mean_loss(x), again.mean_loss(x))
    torch.testing.assert_close(once.total(once.losses(x)), again.total(again.losses(x)))
    torch.testing.assert_close(once.row_weights, again.row_weights)
    # Trees and EM. A row in no bag has neither slope nor weight.
    torch.testing.assert_close(gradients(once, x), gradients(again, x))
    torch.testing.assert_close(_expectation(once, x), _expectation(again, x))
    assert (gradients(once, x)[0][once.row_weights == 0] == 0).all()
    # Linear, and a network in one step.
    one, other = (kofn.Linear(l2=0.01).fit(each, seed=0) for each in (once, again))
    assert np.allclose(one.weights, other.weights, atol=2e-3)
    assert np.array_equal(one.design.mean, other.design.mean)
    steps = [train(each, optimizer=SGD, batch_size=100) for each in (once, again)]
    torch.testing.assert_close(steps[0].weights, steps[1].weights, rtol=1e-4, atol=1e-6)
    assert steps[0].history[0]["train_loss"] == pytest.approx(steps[1].history[0]["train_loss"], rel=1e-5)


@each
def test_copies_are_repeated_rows(name: str) -> None:
    once, again = copied(PROBLEMS[name])
    x = logits(once)
    entries = once.bags.repeated().index
    torch.testing.assert_close(once.losses(x), again.losses(x[entries]))
    (slope, bend), (slopes, bends) = gradients(once, x), gradients(again, x[entries])
    torch.testing.assert_close(slope, torch.zeros_like(slope).index_add(0, entries, slopes))
    torch.testing.assert_close(bend, torch.zeros_like(bend).index_add(0, entries, bends), rtol=1e-9, atol=1e-3)
    one, other = (kofn.Linear(l2=0.01).fit(each, seed=0) for each in (once, again))
    assert np.allclose(one.weights, other.weights, atol=2e-3)
    assert np.array_equal(one.design.mean, other.design.mean)
    steps = [train(each, optimizer=SGD, batch_size=100, net=network()) for each in (once, again)]
    torch.testing.assert_close(steps[0].weights, steps[1].weights, rtol=1e-4, atol=1e-6)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2)).round(1)
GROUPS = np.repeat(np.arange(40), 3)
Y = (X[:, 0] + 0.5 * RNG.normal(size=120) > 0).reshape(40, 3).mean(1)[GROUPS]
ANY = (Y > 0).astype(int)
LEARNERS: dict[str, Any] = {
    "trees": kofn.Trees(max_rounds=20, patience=5),
    "linear": kofn.Linear(penalties=(0.1, 0.01)),
    "network": kofn.Network(hidden=(4,), epochs=4, lr=0.01),
    "em": kofn.EM(LogisticRegression(), rounds=5),
}


@pytest.mark.filterwarnings("ignore:this fit is no better")
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("task", ["llp", "mutual-contamination", "mil"])
def test_a_bag_of_weight_0_is_absent(learner: str, task: str) -> None:
    """The folds, the start and the bins too: the same model bit for bit."""
    weight = (GROUPS % 4 != 1).astype(float)
    there = weight > 0
    model: Any
    if task == "mil":
        model, y = kofn.MILClassifier(LEARNERS[learner], positive_weight="balanced", random_state=0), ANY
    else:
        loss: Any = "count" if task == "llp" else task
        model, y = kofn.LLPClassifier(LEARNERS[learner], loss=loss, random_state=0), Y
    model.fit(X, y, groups=GROUPS, bag_weight=weight)
    scores, baselines, logits_, held = (
        model.decision_function(X),
        model.baselines_,
        model.held_out_logits_,
        model.held_out_,
    )
    model.fit(X[there], y[there], groups=GROUPS[there], bag_weight=weight[there])
    assert np.array_equal(model.decision_function(X), scores)
    assert model.baselines_ == pytest.approx(baselines)
    assert np.array_equal(logits_[there], model.held_out_logits_, equal_nan=True)
    assert np.isnan(logits_[~there]).all()
    assert held.tolist() == np.unique(GROUPS[there])[model.held_out_].tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_row_of_which_there_is_none_is_absent(learner: str) -> None:
    copies = np.tile([1, 0, 2], 40)
    y = np.bincount(GROUPS, copies * (X[:, 0] > 0)) / 3
    model = kofn.LLPClassifier(LEARNERS[learner], random_state=0)
    scores = model.fit(X, y[GROUPS], GROUPS, copies).decision_function(X)
    there = copies > 0
    model.fit(X[there], y[GROUPS][there], GROUPS[there], copies[there])
    assert np.array_equal(model.decision_function(X), scores)


def test_copies_of_rows_in_the_estimator() -> None:
    copies = np.tile([1, 3, 2], 40)
    y = (np.bincount(GROUPS, copies * (X[:, 0] > 0)) / 6)[GROUPS]
    rows = np.arange(120).repeat(copies)
    once = kofn.LLPClassifier(kofn.Linear(l2=0.01), random_state=0).fit(X, y, GROUPS, copies)
    again = kofn.LLPClassifier(kofn.Linear(l2=0.01), random_state=0).fit(X[rows], y[rows], GROUPS[rows])
    assert np.allclose(once.decision_function(X), again.decision_function(X), atol=5e-3)
    assert np.allclose(once.predict_bag_proba(X, GROUPS, copies), once.predict_bag_proba(X[rows], GROUPS[rows]))
    assert once.score(X, y, GROUPS, copies) == pytest.approx(once.score(X[rows], y[rows], GROUPS[rows]))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.arange(120), "`bag_weight` must be the same on all instances of a bag"),
        (np.ones(119), "`bag_weight` must have an entry for each of the 120 rows"),
        (-np.ones(120), "`bag_weight` must be at least 0, and above 0 for some bag; got -1"),
        (np.zeros(120), "`bag_weight` must be at least 0, and above 0 for some bag; got 0"),
        (np.full(120, np.nan), "`bag_weight` must not be NaN"),
        (np.full(120, np.inf), "`bag_weight` must be finite"),
    ],
)
def test_weights_that_are_none(weight: Any, message: str) -> None:
    for model, y in ((kofn.LLPClassifier("linear"), Y), (kofn.MILClassifier("linear"), ANY)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, groups=GROUPS, bag_weight=weight)


@pytest.mark.parametrize(
    ("copies", "message"),
    [
        (np.full(120, -1), "`copies` must be"),
        (np.ones(119, dtype=int), "`copies` must have a number for each of the 120 rows; got 119"),
        (np.where(GROUPS == 3, 0, 1), "`copies` must leave something in each bag; bag 3 has 0 of every row"),
    ],
)
def test_copies_that_are_none(copies: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kofn.LLPClassifier("linear").fit(X, Y, GROUPS, copies)
