"""What trees say of held-out bags: the loss that chose the rounds is that of the logits they keep."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import kofn
from kofn.learners import CountObjective, Problem
from kofn.learners._boosting import Boosting
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
    found = Boosting(problem, params, None).fold(0, splits, rounds=1, patience=1)
    rate = torch.full((400,), float(problem.rate), dtype=torch.float64).logit()
    assert found.losses[0] == pytest.approx(float(problem.take(splits[0][1]).mean_loss(rate)), rel=1e-6)


def test_validation_loss_is_that_of_the_held_out_logits() -> None:
    problem = rare_positives()
    fitted = kofn.Trees(max_rounds=30).fit(problem, seed=0)
    assert fitted.held_out_logits is not None
    assert fitted.validation_loss == pytest.approx(float(problem.mean_loss(torch.from_numpy(fitted.held_out_logits))))
