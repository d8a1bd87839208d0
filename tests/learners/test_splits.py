"""What is held out: whole bags, some of each stratum, and never so many that nothing is left to learn from."""

from __future__ import annotations

from dataclasses import replace
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
from kofn.learners._splits import FEWEST, MANY, folds, hold_out, splits_of


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


grouped = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), min_size=1, max_size=60)


@given(units=grouped, number=st.integers(2, 4), seed=st.integers(0, 3))
def test_what_belongs_together_is_held_out_together(units: list[tuple[int, int]], number: int, seed: int) -> None:
    owner, strata = torch.tensor(units).T
    owners = len(owner.unique())
    dealt = folds(strata, number, seed, together=owner)
    assert len(dealt) == (number if owners >= number else 0)
    if dealt:
        assert sorted(torch.cat([held for _, held in dealt]).tolist()) == list(range(len(units)))
        of_fold = [len(owner[held].unique()) for _, held in dealt]
        assert max(of_fold) - min(of_fold) <= 1  # of patients there are as many in each
    held_out = hold_out(strata, 0.2, seed, together=owner)
    for train, held in dealt if held_out is None else [*dealt, held_out]:
        assert sorted(torch.cat([train, held]).tolist()) == list(range(len(units)))
        assert not set(owner[train].tolist()) & set(owner[held].tolist())


def test_owners_of_something_rare_are_in_all_folds() -> None:
    """Each of six patients has nine negative slides and, four of them, one positive one: by a majority all are alike."""
    owner = torch.arange(6).repeat_interleave(10)
    strata = torch.zeros(60, dtype=torch.int64)
    strata[:40:10] = 1
    for seed in range(10):
        assert [int(strata[held].sum()) for _, held in folds(strata, 2, seed, together=owner)] == [2, 2]


def test_bags_that_belong_together_count_as_one() -> None:
    """Of nine patients there are no five folds, however many bags they have."""
    problem = whose_strata_are(torch.zeros(90, dtype=torch.int64))
    assert splits_of(replace(problem, together=torch.arange(90) % 9), 5, 0) == []
    assert len(splits_of(replace(problem, together=torch.arange(90) % 10), 5, 0)) == 5


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
@pytest.mark.parametrize("users", [3, 40])
@pytest.mark.parametrize("known", [1, 4, 30])
def test_labelled_rows_of_few_users(learner: str, users: int, known: int) -> None:
    """All users are mostly unlabelled; a part without a labelled row can neither be learned from nor judged on."""
    rows = torch.arange(120)
    made = some_pu(120)
    options: dict[str, Any] = {"instances": made.instances, "objective": made.objective, "rate": 0.5}
    problem = PUProblem.of(rows < known, size=8, seed=0, together=rows % users, **options)
    fitted = LEARNERS[learner].fit(problem, seed=0)
    assert np.isfinite(fitted.logits(problem.instances)).all()
    for train, held in fitted.splits:
        assert len(problem.strata[train].unique()) == len(problem.strata[held].unique()) == 2
        assert not set((train % users).tolist()) & set((held % users).tolist())


@each_learner
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.95])
def test_something_is_left_to_learn_from(learner: str, fraction: float) -> None:
    if learner in ("trees", "linear"):
        pytest.skip("has folds")
    chosen = LEARNERS[learner].set_params(validation_fraction=fraction)
    fitted = chosen.fit(some_bags(8), seed=0)
    assert len(fitted.splits) == (fraction > 0)
    chosen.set_params(validation_fraction=0.1)
