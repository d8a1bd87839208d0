"""What is held out: whole bags, some of each stratum, and never so many that nothing is left to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learner_cases import mil_bags, some_bags, some_pu
from sklearn.linear_model import LogisticRegression

import kofn
from kofn.learners import CountObjective, Problem, PUProblem
from kofn.learners._splits import FEWEST, MANY, hold_out, splits_of


def whose_strata_are(strata: torch.Tensor) -> Problem:
    """Bags of one instance, of which these are positive."""
    return Problem(
        instances=np.zeros((len(strata), 1), dtype=np.float32),
        bags=kofn.Bags.from_sizes(torch.ones_like(strata)),
        labels=strata,
        objective=CountObjective(),
        rate=0.5,
        proportions=strata.double(),
    )


@given(
    strata=st.lists(st.integers(0, 2), min_size=1, max_size=60), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 3)
)
def test_a_held_out_part(strata: list[int], fraction: float, seed: int) -> None:
    of = torch.tensor(strata)
    split = hold_out(of, fraction, seed)
    if split is None:
        assert all(strata.count(each) < FEWEST for each in set(strata))
        return
    train, held = split
    assert sorted(torch.cat([train, held]).tolist()) == list(range(len(strata)))
    for each in set(strata):
        n, out = strata.count(each), int((of[held] == each).sum())
        assert out == (min(int(np.ceil(fraction * n)), n - 1) if n >= FEWEST else 0)


@given(strata=st.lists(st.integers(0, 1), min_size=1, max_size=60), number=st.integers(2, 6), seed=st.integers(0, 3))
def test_folds(strata: list[int], number: int, seed: int) -> None:
    of = torch.tensor(strata)
    splits = splits_of(whose_strata_are(of), number, seed)
    if len(strata) < 2 * number:
        assert splits == []
        return
    assert len(splits) == number
    assert sorted(torch.cat([held for _, held in splits]).tolist()) == list(range(len(strata)))
    for train, held in splits:
        assert sorted(torch.cat([train, held]).tolist()) == list(range(len(strata)))
    for each in set(strata):
        parts = [int((of[held] == each).sum()) for _, held in splits]
        assert max(parts) - min(parts) <= 1


def test_of_many_a_tenth() -> None:
    ((train, held),) = splits_of(whose_strata_are(torch.zeros(MANY + 1, dtype=torch.int64)), 5, 0)
    assert len(held) == 501
    assert len(train) == 4500


def test_the_seed_matters() -> None:
    strata = torch.zeros(30, dtype=torch.int64)
    one, same, other = (hold_out(strata, 0.3, seed) for seed in (0, 0, 1))
    assert one is not None
    assert same is not None
    assert other is not None
    assert torch.equal(one[1], same[1])
    assert not torch.equal(one[1], other[1])


LEARNERS: dict[str, Any] = {
    "trees": kofn.Trees(max_rounds=5, patience=2),
    "linear": kofn.Linear(penalties=(0.1,)),
    "network": kofn.Network(hidden=(3,), epochs=2),
    "em": kofn.EM(LogisticRegression(), rounds=2),
}
each_learner = pytest.mark.parametrize("learner", LEARNERS)


@each_learner
@pytest.mark.parametrize("bags", [1, 2, 4, 5, 9, 10])
@pytest.mark.parametrize("kind", [some_bags, mil_bags])
def test_few_bags(learner: str, bags: int, kind: Any) -> None:
    problem = kind(bags)
    rate = min(max(problem.rate, 0.1), 0.9)
    fitted = LEARNERS[learner].fit(kind(bags) if rate == problem.rate else _with_rate(problem, rate), seed=0)
    assert np.isfinite(fitted.logits(problem.instances)).all()
    check_held_out(problem, fitted)


def _with_rate(problem: Problem, rate: float) -> Problem:
    from dataclasses import replace

    return replace(problem, rate=rate)


def check_held_out(problem: Problem, fitted: Any) -> None:
    """Held-out instances have a score, the others none."""
    if not fitted.splits:
        assert fitted.validation_loss is None
        assert fitted.best is None
        return
    assert np.isfinite(fitted.validation_loss)
    units = torch.cat([held for _, held in fitted.splits]).unique()
    rows = problem.take(units).bags.index.unique()
    there = torch.zeros(len(problem.instances), dtype=torch.bool)
    there[rows] = True
    assert np.array_equal(np.isfinite(fitted.held_out_logits), there.numpy())


@each_learner
@pytest.mark.parametrize(("known", "unknown"), [(1, 60), (2, 60), (4, 60), (7, 60), (60, 1), (60, 3), (1, 1), (30, 30)])
def test_few_positives_or_few_unlabelled(learner: str, known: int, unknown: int) -> None:
    labeled = torch.arange(known + unknown) < known
    made = some_pu(known + unknown)
    problem = PUProblem.of(labeled, size=8, seed=0, instances=made.instances, objective=made.objective, rate=0.5)
    fitted = LEARNERS[learner].fit(problem, seed=0)
    assert np.isfinite(fitted.logits(problem.instances)).all()
    for train, held in fitted.splits:  # both kinds, on both sides
        assert len(labeled[train].unique()) == len(labeled[held].unique()) == 2


@each_learner
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.95])
def test_something_is_left_to_learn_from(learner: str, fraction: float) -> None:
    if learner in ("trees", "linear"):
        pytest.skip("has folds")
    chosen = LEARNERS[learner].set_params(validation_fraction=fraction)
    fitted = chosen.fit(some_bags(8), seed=0)
    assert len(fitted.splits) == (fraction > 0)
    chosen.set_params(validation_fraction=0.1)
