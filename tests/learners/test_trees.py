"""Boosted trees: rounds chosen on bags that a fit had not seen, the same seed the same trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import some_bags, some_pu

import kofn
from kofn.bags import Bags
from kofn.learners import CountObjective, Problem
from kofn.learners._best_rate import at_its_own_rate
from kofn.learners._boosting import Boosting
from kofn.learners._splits import MANY


def whole_numbers(bags: int = 60, *, size: int = 4) -> Problem:
    """Features of a few values, each in every fold: its bins are the same for all rows and for some."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, size=(bags * size, 3)).astype(np.float32)
    truth = torch.from_numpy(x[:, 0] + 0.7 * rng.normal(size=len(x)) > 1.5)
    where = Bags.from_sizes(torch.full((bags,), size))
    counts = where.sum(truth.long())
    return Problem(
        instances=x,
        bags=where,
        labels=counts,
        objective=CountObjective(),
        rate=float(truth.double().mean()),
        proportions=counts / size,
    )


TREES: Any = {"max_rounds": 30, "patience": 5, "row_fraction": 1.0, "column_fraction": 1.0}


def test_held_out_scores_are_of_fits_on_the_other_folds() -> None:
    problem = whole_numbers()
    trees: Any = TREES | {"patience": 30, "min_rows": 9}  # fewer than a twentieth of the rows of any fold
    fitted = kofn.Trees(**trees).fit(problem, seed=0)
    assert fitted.best is not None
    assert fitted.held_out_logits is not None
    total = 0.0
    for train, held in fitted.splits:
        rows, part = problem.take(train).compact()
        alone = kofn.Trees(rounds=fitted.best + 1, **trees).fit(at_its_own_rate(part), seed=0)
        out = problem.take(held).bags.index.numpy()
        assert not set(out) & set(rows.tolist())
        assert np.allclose(fitted.held_out_logits[out], alone.logits(problem.instances[out]), atol=1e-6)
        total += float(problem.take(held).losses(torch.from_numpy(fitted.held_out_logits)).sum())
    assert fitted.validation_loss == pytest.approx(total / len(problem.bags))


def test_labels_of_held_out_bags_do_not_matter_to_their_scores() -> None:
    """At the chosen round. What changes with them is the choice alone, so it is fixed by a single round."""
    problem = whole_numbers()
    one = kofn.Trees(**(TREES | {"max_rounds": 1})).fit(problem, seed=0)
    held = one.splits[2][1]
    other = problem.labels.clone()
    other[held] = problem.bags.sizes[held] - other[held]
    two = kofn.Trees(**(TREES | {"max_rounds": 1})).fit(replace(problem, labels=other), seed=0)
    out = problem.take(held).bags.index.numpy()
    assert one.held_out_logits is not None
    assert two.held_out_logits is not None
    assert np.array_equal(one.held_out_logits[out], two.held_out_logits[out])
    assert not np.array_equal(one.held_out_logits, two.held_out_logits)


def test_rounds_are_those_of_the_best_of_the_curve() -> None:
    problem = whole_numbers()
    fitted = kofn.Trees(**TREES).fit(problem, seed=0)
    assert fitted.best is not None
    assert fitted.booster is not None
    assert fitted.booster.num_trees() == fitted.best + 1
    assert {"round", "train_loss", "val_loss"} == set(fitted.history[0])
    losses = [entry["train_loss"] for entry in fitted.history[: fitted.best + 1]]
    assert all(np.diff(losses) < 1e-9)
    assert losses[-1] == pytest.approx(float(problem.mean_loss(torch.from_numpy(fitted.logits(problem.instances)))))


def test_a_number_of_rounds_of_your_own() -> None:
    fitted = kofn.Trees(rounds=7).fit(whole_numbers(), seed=0)
    assert fitted.booster is not None
    assert fitted.booster.num_trees() == 7
    assert fitted.splits == ()
    assert fitted.validation_loss is None


def test_of_many_bags_a_tenth_is_held_out() -> None:
    fitted = kofn.Trees(max_rounds=2).fit(whole_numbers(MANY + 1, size=1), seed=0)
    ((_, held),) = fitted.splits
    assert len(held) == 501


@pytest.mark.parametrize("problem", [some_bags(60), some_pu(400, size=20)], ids=["llp", "pu"])
def test_the_same_seed_gives_the_same_trees(problem: Problem) -> None:
    """With one thread or two, for columns and for rows that are drawn."""

    def text(seed: int, threads: int) -> str:
        trees = kofn.Trees(max_rounds=15, patience=3, threads=threads).fit(problem, seed=seed).text
        return "\n".join(line for line in trees.splitlines() if "num_threads" not in line)

    assert text(0, 1) == text(0, 1) == text(0, 2)
    assert text(0, 1) != text(1, 1)


def test_the_first_round_is_a_newton_step_from_the_base_rate() -> None:
    """One leaf of a stump: -sum of slopes / (sum of curvatures + l2), times the learning rate."""
    problem = whole_numbers()
    fitted = kofn.Trees(rounds=1, leaves=2, learning_rate=0.5, l2=3.0, row_fraction=1.0).fit(problem, seed=0)
    start = torch.full((len(problem.instances),), float(fitted.start), dtype=torch.float64)
    assert torch.sigmoid(start[0]).item() == pytest.approx(problem.rate)
    slope = torch.sigmoid(start) - kofn.count_posteriors(start, problem.labels, offsets=problem.bags.offsets)
    found = torch.from_numpy(fitted.logits(problem.instances)) - float(fitted.start)
    for value in found.unique():
        leaf = found == value
        p = problem.rate
        step = -0.5 * slope[leaf].sum() / (leaf.sum() * p * (1 - p) + 3.0)
        assert value.item() == pytest.approx(step.item(), rel=1e-4)


def test_columns_that_cannot_be_split() -> None:
    problem = some_bags(40)
    constant = replace(problem, instances=np.ones_like(problem.instances))
    fitted = kofn.Trees().fit(constant, seed=0)
    assert fitted.logits(constant.instances) == pytest.approx(np.log(problem.rate / (1 - problem.rate)))
    assert fitted.importances(3).tolist() == [0, 0, 0]
    facts, tensors = fitted.to_model()
    assert np.array_equal(
        kofn.Trees().from_model(facts, tensors).logits(np.zeros((2, 3), np.float32)), [fitted.start] * 2
    )


def test_options_reach_lightgbm() -> None:
    problem = some_bags(60)
    fitted = kofn.Trees(rounds=20, options={"monotone_constraints": [-1, 0, 0]}).fit(problem, seed=0)
    x = np.zeros((50, 3), dtype=np.float32)
    x[:, 0] = np.linspace(-2, 2, 50)
    assert (np.diff(fitted.logits(x)) <= 0).all()


def test_threads_of_a_small_table() -> None:
    problem = some_bags(4)
    assert kofn.Trees().params(problem, 0, threads=3)["num_threads"] == 1
    large = np.empty((2000, 600), dtype=np.float32)
    assert kofn.Trees().params(replace(problem, instances=large), 0, threads=3)["num_threads"] == 3
    assert Boosting(problem, kofn.Trees().params(problem, 0, threads=1), None).start == pytest.approx(
        np.log(problem.rate / (1 - problem.rate))
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "`rounds` must be at least 1; got 0"),
        ({"max_rounds": 0}, "`max_rounds` must be at least 1"),
        ({"leaves": 1}, "`leaves` must be from 2"),
        ({"min_rows": 0}, "`min_rows` must be at least 1"),
        ({"folds": 1}, "`folds` must be at least 2"),
        ({"patience": 0}, "`patience` must be at least 1"),
        ({"threads": 0}, "`threads` must be from 1"),
        ({"learning_rate": -1}, "`learning_rate` must be from 0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be above 0"),
        ({"l2": -1}, "`l2` must be from 0"),
        ({"row_fraction": 0.0}, "`row_fraction` must be above 0"),
        ({"column_fraction": 1.5}, "`column_fraction` must lie between 0 and 1"),
    ],
)
def test_options_that_are_none(options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        kofn.Trees(**options).fit(some_bags(), seed=0)


@pytest.mark.parametrize(
    ("name", "cure"),
    [("eta", "say `learning_rate` of Trees"), ("n_estimators", "say `rounds`"), ("objective", "follows from the")],
)
def test_options_that_would_be_overridden(name: str, cure: str) -> None:
    with pytest.raises(ValueError, match=rf"`options` must be what nothing else sets; '{name}' .*{cure}"):
        kofn.Trees(options={name: 1}).fit(whole_numbers(), seed=0)
