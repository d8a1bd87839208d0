"""The gradient that learners are given: that of autograd, whichever way it was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import some_bags

import kofn
from kofn.learners import BagObjective, CountObjective, Problem, ProportionObjective, between

SIZES = {"equal": [3, 3, 3, 3], "ragged": [1, 5, 2, 4]}
ORDERS = {"in order": list(range(12)), "shuffled": [7, 3, 11, 0, 5, 9, 1, 10, 4, 2, 8, 6], "repeated": [0, 1, 1, 2] * 3}
COUNTS = torch.tensor([1, 2, 1, 3])
LABELS: dict[str, tuple[Any, torch.Tensor]] = {
    "exact": (CountObjective(), COUNTS),
    "interval": (CountObjective(between), torch.stack([COUNTS - 1, COUNTS], 1)),
    "proportion": (ProportionObjective(), COUNTS),
    "at least one": (BagObjective(), torch.tensor([1, 0, 1, 0])),
}


@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 0.0, 2.0, 0.5])], ids=["plain", "weighted"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("labels", LABELS)
def test_the_slope_is_that_of_autograd(labels: str, sizes: str, order: str, weight: torch.Tensor | None) -> None:
    objective, stated = LABELS[labels]
    bags = kofn.Bags(torch.tensor(ORDERS[order]), torch.tensor([0, *np.cumsum(SIZES[sizes])]))
    problem = Problem(
        instances=np.zeros((12, 1), dtype=np.float32),
        bags=bags,
        labels=stated if sizes == "equal" else torch.minimum(stated, bags.sizes.reshape(-1, *[1] * (stated.dim() - 1))),
        objective=objective,
        rate=0.5,
        proportions=torch.full((4,), 0.5),
        weight=weight,
    )
    x = torch.randn(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    expected = objective(x[bags.index], problem.labels, bags.offsets)  # straight, without what a problem knows of bags
    (gradient,) = torch.autograd.grad(problem.total(expected), x)
    losses, slope = problem.losses_and_slope(x.detach())
    torch.testing.assert_close(losses, expected.detach(), rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(slope, gradient, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(problem.losses(x).detach(), expected.detach(), rtol=1e-13, atol=1e-15)


def test_ctrl_c_ends_the_folds_of_other_threads() -> None:
    """They would go on for a million rounds."""

    def press(*_: Any) -> None:
        raise KeyboardInterrupt

    trees = kofn.Trees(max_rounds=1_000_000, patience=1_000_000, threads=3)
    with pytest.raises(KeyboardInterrupt):
        trees.fit(some_bags(60), seed=0, progress=press)


def test_folds_in_threads_use_the_backend_that_was_asked_for() -> None:
    used: list[str] = []

    class Telling(CountObjective):
        def __call__(
            self,
            logits: torch.Tensor,
            labels: torch.Tensor,
            offsets: torch.Tensor | None,
            copies: torch.Tensor | None = None,
        ) -> torch.Tensor:
            used.append(kofn.counts.backend())
            return super().__call__(logits, labels, offsets, copies)

    made = some_bags(60)
    problem = Problem(
        instances=made.instances,
        bags=kofn.Bags.from_sizes([len(made.instances) // 12] * 12),
        labels=torch.ones(12, dtype=torch.int64),
        objective=Telling(),
        rate=0.5,
        proportions=torch.full((12,), 0.5),
    )
    with kofn.counts.use("torch"):
        kofn.Trees(max_rounds=2, threads=3).fit(problem, seed=0)
    assert used
    assert set(used) == {"torch"}
