"""The objective of boosting and the weights of EM: the slope is the loss's own, the curvature that of a bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learner_cases import mil_bags, some_bags, some_pu
from torch import Tensor

import kofn
from kofn.learners import BagObjective, ContaminationObjective, ProportionObjective, PUObjective, boosting_objective
from kofn.learners._surrogate import SMALLEST, curvature, surrogate

SIZES = torch.tensor([3, 1, 6, 2])
OFFSETS = torch.tensor([0, 3, 4, 10, 12])
COUNTS = torch.tensor([1, 1, 4, 0])


def logits(n: int = 12, *, scale: float = 2.0, seed: int = 0) -> Tensor:
    return scale * torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_gradient_of_a_count_is_prior_less_posterior() -> None:
    x = logits()
    objective = boosting_objective(lambda x: kofn.count_loss(x, kofn.Exactly(COUNTS), offsets=OFFSETS, reduction="sum"))
    slope, bend = objective(x.numpy(), None)
    p = torch.sigmoid(x)
    torch.testing.assert_close(
        torch.from_numpy(slope), p - kofn.count_posteriors(x, COUNTS, offsets=OFFSETS), rtol=1e-12, atol=1e-13
    )
    torch.testing.assert_close(torch.from_numpy(bend), (p * (1 - p)).clamp(min=SMALLEST), rtol=1e-12, atol=1e-13)
    assert slope.dtype == bend.dtype == np.float64


def test_scores_of_any_dtype_and_without_gradients() -> None:
    objective = boosting_objective(lambda x: x.square().sum(), weight=torch.full((3,), 2.0, dtype=torch.float64))
    with torch.no_grad():
        slope, bend = objective(np.array([0.25, -0.25, 0.125], dtype=np.float32), object())
    assert slope.tolist() == [0.5, -0.5, 0.25]
    assert bend == pytest.approx(2 * np.array([0.2461, 0.2461, 0.2490]), abs=1e-3)


@given(
    rows=st.lists(
        st.tuples(st.floats(-40, 40), st.floats(-50, 50), st.floats(0, 5)),
        min_size=1,
        max_size=8,
    )
)
def test_the_surrogate_has_the_slope_of_any_loss(rows: list[tuple[float, float, float]]) -> None:
    x, slope, weight = torch.tensor(rows, dtype=torch.float64).T
    target, weights = surrogate(x, slope, weight)
    assert ((target >= 0) & (target <= 1)).all()
    assert (weights >= weight).all()
    p = torch.sigmoid(x)
    found = weights * (p - target)
    # Of a row that is sure already, less than SMALLEST from the end that it is pulled to, the slope is cut.
    room = torch.where(slope < 0, torch.sigmoid(-x), p)
    sure = room < SMALLEST
    torch.testing.assert_close(found[~sure], slope[~sure], rtol=1e-9, atol=1e-12)
    assert (found[sure].abs() <= slope[sure].abs() + 1e-12).all()
    assert (found * slope >= -1e-12).all()
    bend = curvature(x, slope, weight)
    assert (bend >= weights * SMALLEST * (1 - 1e-12)).all()


PROBLEMS = {
    "count": some_bags(20),
    "proportion": some_bags(20, objective=ProportionObjective()),
    "contamination": some_bags(20, objective=ContaminationObjective()),
    "mil": mil_bags(20),
    "max": mil_bags(20, pool="max"),
    "weighted": some_bags(20, objective=BagObjective(positive_weight=7.0), labels=mil_bags(20).labels),
    **{loss: some_pu(objective=PUObjective(0.5, loss)) for loss in ("count", "expectation", "upu", "nnpu", "cvir")},
    "upu, logistic": some_pu(objective=PUObjective(0.5, "upu", surrogate="logistic")),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_surrogate_of_every_loss(name: str) -> None:
    problem = PROBLEMS[name]
    x = logits(len(problem.instances)).requires_grad_()
    (slope,) = torch.autograd.grad(problem.total(problem.losses(x)), x)
    target, weight = surrogate(x.detach(), slope, problem.row_weights)
    torch.testing.assert_close(weight * (torch.sigmoid(x.detach()) - target), slope, rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 50), shift=st.floats(-3, 3))
def test_for_counts_it_is_a_bound_that_touches(seed: int, shift: float) -> None:
    """loss(y) <= loss(x) + CE(y) - CE(x): what makes every EM step go down."""
    x, y = logits(seed=seed), logits(seed=seed + 100) + shift

    def loss(z: Tensor) -> Tensor:
        return kofn.count_loss(z, kofn.Exactly(COUNTS), offsets=OFFSETS, reduction="sum")

    q = kofn.count_posteriors(x, COUNTS, offsets=OFFSETS)

    def cross_entropy(z: Tensor) -> Tensor:
        return torch.nn.functional.binary_cross_entropy_with_logits(z, q, reduction="sum")

    assert loss(y) <= loss(x) + cross_entropy(y) - cross_entropy(x) + 1e-9
