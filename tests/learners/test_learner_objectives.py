"""Objectives are the losses of `kofn.losses`, bag by bag, in a shape that travels."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import kofn
from kofn import losses
from kofn.learners import (
    BagObjective,
    ContaminationObjective,
    CountObjective,
    Objective,
    PooledObjective,
    ProportionObjective,
    PUObjective,
    between,
)
from kofn.learners._objectives import known_entries
from kofn.targets import Spread

SIZES = [3, 1, 5, 2]
OFFSETS = torch.tensor([0, 3, 4, 9, 11])
COUNTS = torch.tensor([2, 0, 5, 1])
LABELS = torch.tensor([1, 0, 1, 0])
KNOWN = torch.tensor([1, 2, 3])  # labelled positives of the PU bags
PU_OFFSETS = torch.tensor([0, 3, 7, 11])


def logits(m: int = 11) -> Tensor:
    return torch.randn(m, generator=torch.Generator().manual_seed(3), dtype=torch.float64).requires_grad_()


def one_by_one(loss: Any, labels: Tensor, x: Tensor, **options: Any) -> Tensor:
    """The mean over bags of a loss of one dense bag."""
    bags = x.split(SIZES)
    return torch.stack([loss(bag, label, **options) for bag, label in zip(bags, labels, strict=True)]).mean()


def pu_by_one(loss: Any, x: Tensor, **options: Any) -> Tensor:
    bags = [x[0:3], x[3:7], x[7:11]]
    parts = [loss(bag[:k], bag[k:], 0.4, **options) for bag, k in zip(bags, KNOWN.tolist(), strict=True)]
    return torch.stack(parts).mean()


BOUNDS = torch.tensor([[1, 2], [0, 0], [2, 5], [0, 1]])
SHARES = COUNTS / torch.tensor(SIZES)
CASES: dict[str, tuple[Objective, Tensor, Any]] = {
    "count": (CountObjective(), COUNTS, lambda x: one_by_one(losses.llp_loss, COUNTS, x)),
    "count, spread": (
        CountObjective(Spread),
        COUNTS * 0.9,
        lambda x: one_by_one(lambda b, y: kofn.count_loss(b, Spread(y)), COUNTS * 0.9, x),
    ),
    "count, between": (
        CountObjective(between),
        BOUNDS,
        lambda x: one_by_one(lambda b, y: kofn.count_loss(b, kofn.Between(*y.tolist())), BOUNDS, x),
    ),
    "count, at least": (
        CountObjective(kofn.AtLeast),
        COUNTS,
        lambda x: one_by_one(lambda b, y: kofn.count_loss(b, kofn.AtLeast(y)), COUNTS, x),
    ),
    "proportion": (ProportionObjective(), COUNTS, lambda x: one_by_one(losses.proportion_loss, SHARES, x)),
    "contamination": (
        ContaminationObjective(),
        COUNTS,
        lambda x: losses.mutual_contamination_loss(x, SHARES, offsets=OFFSETS),
    ),
    "mil": (BagObjective(), LABELS, lambda x: one_by_one(losses.mil_loss, LABELS, x)),
    "mil, weighted": (
        BagObjective(positive_weight=3.0),
        LABELS,
        lambda x: one_by_one(losses.mil_loss, LABELS, x, positive_weight=3.0),
    ),
    "max": (BagObjective("max"), LABELS, lambda x: one_by_one(losses.pooled_bag_loss, LABELS, x, pool="max")),
    "mean": (BagObjective("mean"), LABELS, lambda x: one_by_one(losses.pooled_bag_loss, LABELS, x, pool="mean")),
    "logsumexp": (
        BagObjective("logsumexp", positive_weight=2.0),
        LABELS,
        lambda x: one_by_one(losses.pooled_bag_loss, LABELS, x, pool="logsumexp", positive_weight=2.0),
    ),
}
PU_CASES: dict[str, tuple[Objective, Any]] = {
    "pu": (PUObjective(0.4), lambda x: pu_by_one(losses.pu_loss, x)),
    "pu, weighted": (
        PUObjective(0.4, positive_weight=3.0),
        lambda x: pu_by_one(losses.pu_loss, x, positive_weight=3.0),
    ),
    "expectation": (
        PUObjective(0.4, "expectation", 2.0),
        lambda x: pu_by_one(losses.pu_loss, x, match="expectation", positive_weight=2.0),
    ),
    "upu": (PUObjective(0.4, "upu"), lambda x: pu_by_one(losses.upu_loss, x)),
    "nnpu": (PUObjective(0.4, "nnpu"), lambda x: pu_by_one(losses.nnpu_loss, x)),
    "upu, logistic": (
        PUObjective(0.4, "upu", surrogate="logistic"),
        lambda x: pu_by_one(losses.upu_loss, x, surrogate="logistic"),
    ),
    "nnpu, logistic": (
        PUObjective(0.4, "nnpu", surrogate="logistic"),
        lambda x: pu_by_one(losses.nnpu_loss, x, surrogate="logistic"),
    ),
}


def same_value_and_gradient(loss: Tensor, oracle: Tensor, x: Tensor) -> None:
    torch.testing.assert_close(loss, oracle)
    (slope,) = torch.autograd.grad(loss, x, retain_graph=True)
    (wanted,) = torch.autograd.grad(oracle, x)
    torch.testing.assert_close(slope, wanted)
    assert slope.abs().max() > 0.01


@pytest.mark.parametrize("name", CASES)
def test_objective_is_the_loss(name: str) -> None:
    objective, labels, oracle = CASES[name]
    x = logits()
    same_value_and_gradient(objective(x, labels, OFFSETS).mean(), oracle(x), x)


@pytest.mark.parametrize("name", PU_CASES)
def test_pu_objective_is_the_loss_of_each_bag(name: str) -> None:
    objective, oracle = PU_CASES[name]
    x = logits()
    assert objective(x, KNOWN, PU_OFFSETS).shape == (3,)
    same_value_and_gradient(objective(x, KNOWN, PU_OFFSETS).mean(), oracle(x), x)


def test_cvir_ranks_all_bags_that_it_is_given() -> None:
    x = logits()
    known = known_entries(KNOWN, PU_OFFSETS)
    found = PUObjective(0.4, "cvir")(x, KNOWN, PU_OFFSETS)
    assert found.shape == (3,)
    same_value_and_gradient(found.mean(), losses.cvir_loss(x[known], x[~known], 0.4), x)
    assert (found.mean() - pu_by_one(losses.cvir_loss, x)).abs().item() > 1e-3  # in each bag by itself others are kept


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32])
def test_pooled_objective_is_cross_entropy_of_bags(dtype: torch.dtype) -> None:
    x = logits(4)
    loss = PooledObjective(positive_weight=3.0)(x, LABELS.to(dtype), OFFSETS)
    weight = torch.where(LABELS == 1, 3.0, 1.0)
    oracle = binary_cross_entropy_with_logits(x, LABELS.double(), reduction="none") * weight
    torch.testing.assert_close(loss, oracle)
    same_value_and_gradient(loss.mean(), oracle.mean(), x)


@pytest.mark.parametrize("name", [*CASES, *PU_CASES, "attention"])
def test_objectives_travel(name: str) -> None:
    made: Any = {"attention": PooledObjective(2.0)} | {k: v[0] for k, v in (CASES | PU_CASES).items()}
    assert pickle.loads(pickle.dumps(made[name])) == made[name]


@pytest.mark.parametrize(
    ("counts", "offsets"), [([1], [0, 2]), ([1, 2], [0, 2, 6]), ([0, 0, 0], [0, 1, 2, 6])], ids=["one", "equal", "none"]
)
def test_contamination_without_a_pair_says_nothing(counts: list[int], offsets: list[int]) -> None:
    x = logits(offsets[-1])
    loss = ContaminationObjective()(x, torch.tensor(counts), torch.tensor(offsets))
    assert loss.tolist() == [0.0] * len(counts)
    (slope,) = torch.autograd.grad(loss.mean(), x)
    assert slope.tolist() == [0.0] * len(x)
