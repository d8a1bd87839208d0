"""What trees say of held-out bags: the loss that chose the rounds is that of the logits they keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import kofn
from kofn.learners import CountObjective, Problem, between
from kofn.learners._best_rate import at_its_own_rate
from kofn.learners._boosting import Boosting
from kofn.learners._held_out import is_over
from kofn.learners._splits import splits_of


def rare_positives() -> Problem:
    rng = np.random.default_rng(0)
    instances = rng.normal(size=(400, 3)).astype(np.float32)
    positive = torch.from_numpy(instances[:, 0] > 1.2)  # so that the base rate is far from one half
    bags = kofn.Bags.from_sizes([4] * 100)
    counts = bags.sum(positive.long())
    return Problem(
        instances=instances,
        bags=bags,
        labels=counts,
        objective=CountObjective(),
        rate=float(counts.sum()) / 400,
        proportions=counts / 4,
    )


def test_a_fold_starts_at_the_base_rate() -> None:
    problem = rare_positives()
    params = {"learning_rate": 1e-9, "verbose": -1, "metric": "None", "num_threads": 1}
    splits = splits_of(problem, 5, seed=0)
    found = Boosting(problem, params, None).folds(splits, [problem.rate] * 5)[0]
    found.advance(1)
    rate = torch.full((400,), float(problem.rate), dtype=torch.float64).logit()
    assert found.losses[0] == pytest.approx(float(problem.take(splits[0][1]).mean_loss(rate)), rel=1e-6)


def test_validation_loss_is_that_of_the_held_out_logits() -> None:
    problem = rare_positives()
    fitted = kofn.Trees(max_rounds=30).fit(problem, seed=0)
    assert fitted.held_out_logits is not None
    assert fitted.validation_loss == pytest.approx(float(problem.mean_loss(torch.from_numpy(fitted.held_out_logits))))


def noise_but_for_one_fold(seed: int = 0) -> Problem:
    """Bags whose features say nothing: folds are best at rounds that differ by chance alone."""
    rng = np.random.default_rng(seed)
    bags = kofn.Bags.from_sizes([8] * 60)
    counts = torch.from_numpy(rng.binomial(8, 0.3, size=60))
    return Problem(
        instances=rng.normal(size=(480, 3)).astype(np.float32),
        bags=bags,
        labels=counts,
        objective=CountObjective(),
        rate=float(counts.sum()) / 480,
        proportions=counts / 8,
    )


def test_the_number_of_rounds_is_the_best_of_the_mean_curve() -> None:
    """One fold that learns for long by chance does not decide: it was the mean of the folds' best rounds."""
    problem = noise_but_for_one_fold()
    fitted = kofn.Trees(learning_rate=0.3, patience=20).fit(problem, seed=0)
    curve = [entry["val_loss"] for entry in fitted.history]
    assert fitted.best == int(np.argmin(curve))
    assert fitted.validation_loss == pytest.approx(min(curve))
    assert is_over(curve, 20)
    assert not is_over(curve[:-1], 20)  # it ends as soon as patience is over
    assert fitted.booster is not None
    assert fitted.booster.num_trees() == fitted.best + 1
    assert [("train_loss" in entry) for entry in fitted.history] == [n <= fitted.best for n in range(len(curve))]


def test_folds_are_judged_at_the_chosen_round_and_no_other() -> None:
    """A fold that had stopped sooner was judged where it stopped, at its best, which was too good."""
    problem = noise_but_for_one_fold(1)
    fitted = kofn.Trees(learning_rate=0.3, patience=5).fit(problem, seed=0)
    assert fitted.best is not None
    assert fitted.held_out_logits is not None
    for train, held in fitted.splits:
        # The same trees, grown alone: with all rows and columns there is no chance in them.
        params = kofn.Trees(learning_rate=0.3).params(problem, 0, threads=1)
        alone = Boosting(problem, params, None).folds([(train, held)], [at_its_own_rate(problem.take(train)).rate])[0]
        alone.advance(fitted.best + 1)
        assert np.allclose(fitted.held_out_logits[alone.rows], alone.scores(fitted.best))


def test_training_losses_are_those_after_the_rounds() -> None:
    problem = rare_positives()
    fitted = kofn.Trees(rounds=5).fit(problem, seed=0)
    after = float(problem.mean_loss(torch.from_numpy(fitted.logits(problem.instances))))
    assert fitted.history[-1]["train_loss"] == pytest.approx(after)
    assert len(fitted.history) == 5


def test_a_fold_starts_at_the_rate_of_the_bags_that_it_learns_from() -> None:
    """At the rate of all bags it knew something of those that it is judged on."""
    problem = noise_but_for_one_fold()
    for each in (problem, replace(problem, labels=torch.stack([problem.labels, problem.labels], 1))):
        interval = each.labels.dim() == 2
        part = replace(each, objective=CountObjective(between)) if interval else each
        train = part.take(torch.arange(20))
        share = float(problem.labels[:20].sum()) / 160
        assert at_its_own_rate(train).rate == pytest.approx(share, rel=1e-6)
    fitted = kofn.Trees(learning_rate=1e-9, max_rounds=1).fit(problem, seed=0)
    assert fitted.held_out_logits is not None
    for train_bags, held in fitted.splits:
        rows = problem.take(held).bags.index.numpy()
        share = float(problem.labels[train_bags].sum()) / (8 * len(train_bags))
        assert fitted.held_out_logits[rows] == pytest.approx(np.log(share / (1 - share)), rel=1e-5)
