"""The statement that the values of a bag's instances have a certain sum."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

import kofn
from kofn.counts import SumDistribution
from kofn.targets import Statement

X = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
VALUES = torch.tensor([0, 1, 2, 5])
TOTAL = torch.tensor([7, 0, 12])
WEIGHTS = torch.tensor([1, 2, 3, 4, 5])


def test_the_loss_is_minus_the_log_probability() -> None:
    target = kofn.Sum(TOTAL, VALUES)
    assert isinstance(target, Statement)
    each = kofn.count_loss(X, target, reduction="none")
    torch.testing.assert_close(each, -kofn.log_sum_prob(X, VALUES, TOTAL))
    torch.testing.assert_close(kofn.count_loss(X, target), each.mean())
    torch.testing.assert_close(kofn.count_loss(X, target, reduction="sum"), each.sum())
    weight = torch.tensor([0.0, 2.0, 1.0])
    torch.testing.assert_close(kofn.count_loss(X, target, weight=weight, reduction="none"), each * weight)
    of_weights = kofn.count_loss(X[..., 0], kofn.Sum(TOTAL, WEIGHTS), reduction="none")
    torch.testing.assert_close(of_weights, -kofn.log_sum_prob(X[..., 0], WEIGHTS, TOTAL))


@pytest.mark.parametrize("categories", [True, False])
def test_layouts_and_copies(categories: bool) -> None:
    x = X if categories else X[..., 0]
    values: Tensor = VALUES if categories else WEIGHTS
    target, each = kofn.Sum(TOTAL, values), torch.zeros(3)
    each = kofn.count_loss(x, target, reduction="none")
    flat = kofn.Sum(TOTAL, values if categories else values.repeat(3))
    ragged = kofn.count_loss(x.flatten(0, 1), flat, offsets=torch.tensor([0, 5, 10, 15]), reduction="none")
    torch.testing.assert_close(ragged, each)
    wide = torch.cat([x, torch.full_like(x[:, :2], torch.nan)], 1)
    mask = torch.arange(7).expand(3, 7) < 5
    masked = kofn.Sum(TOTAL, values if categories else torch.cat([values, values[:2]]))
    torch.testing.assert_close(kofn.count_loss(wide, masked, mask=mask, reduction="none"), each)
    copies = torch.tensor([1, 2, 0, 1, 3])
    order = torch.arange(5).repeat_interleave(copies)
    repeated = kofn.Sum(TOTAL, values if categories else values[order])
    torch.testing.assert_close(
        kofn.count_loss(x, target, copies=copies, reduction="none"),
        kofn.count_loss(x[:, order], repeated, reduction="none"),
    )


def by_enumeration(p: Tensor, values: Tensor, known: list[int], total: int) -> Tensor:
    """-log P(T = total, known labels) of probabilities (n, C) and values (n, C)."""
    found = torch.zeros((), dtype=torch.float64)
    for labels in product(range(p.shape[-1]), repeat=len(p)):
        right = all(k in (-1, y) for k, y in zip(known, labels, strict=True))
        if right and sum(int(v[y]) for v, y in zip(values, labels, strict=True)) == total:
            found = found + torch.stack([row[y] for row, y in zip(p, labels, strict=True)]).prod()
    return -found.log()


@pytest.mark.parametrize("known", [[-1] * 5, [1, -1, 0, -1, -1], [1, -1, -1, -1, 1]])
@pytest.mark.parametrize("categories", [True, False])
def test_known_labels(known: list[int], categories: bool) -> None:
    labels = torch.tensor(known)
    x = (X if categories else X[..., 0])[0].clone().requires_grad_()
    values = VALUES.expand(5, 4) if categories else torch.stack([torch.zeros_like(WEIGHTS), WEIGHTS], -1)
    p = x.softmax(-1) if categories else torch.stack([torch.sigmoid(-x), torch.sigmoid(x)], -1)
    target = kofn.Sum(8, VALUES if categories else WEIGHTS)
    found, expected = kofn.count_loss(x, target, known=labels), by_enumeration(p, values, known, 8)
    torch.testing.assert_close(found, expected)
    slopes = [torch.autograd.grad(value, x, retain_graph=True)[0] for value in (found, expected)]
    torch.testing.assert_close(*slopes)


def test_known_labels_that_leave_no_others() -> None:
    with pytest.raises(ValueError, match="`known` must agree with the target"):
        kofn.count_loss(torch.zeros(3), kofn.Sum(5, [1, 3, 5]), known=[1, -1, -1])
    with pytest.raises(ValueError, match="`known` must be labels from 0 to 3"):
        kofn.count_loss(X[0], kofn.Sum(5, VALUES), known=torch.tensor([4, 0, 0, 0, 0]))


@pytest.mark.parametrize(
    ("logits", "target", "words"),
    [
        (torch.zeros(2, 3), kofn.Sum(torch.tensor([2, 7]), 2), "bag 1 has 3 instances and total 7"),
        (torch.zeros(3, 3), kofn.Sum(-1, [0, 1, 2]), "bag 0 has 3 instances and total -1, which no labels have"),
        (torch.zeros(2), kofn.Sum(4, [3, 5]), "which no labels have"),
    ],
)
def test_totals_that_no_labels_have(logits: Tensor, target: Any, words: str) -> None:
    with pytest.raises(ValueError, match=r"`total` must be the sum of some values.*" + words):
        kofn.count_loss(logits, target)


def test_a_bag_of_weight_zero_and_infinite_logits_are_no_errors() -> None:
    weight = torch.tensor([1.0, 0.0])
    loss = kofn.count_loss(torch.zeros(2, 3), kofn.Sum(torch.tensor([2, 7]), 2), weight=weight, reduction="none")
    torch.testing.assert_close(loss, torch.tensor([3 / 8, 1.0]).log().neg())
    x = torch.tensor([torch.inf, 0.0]).requires_grad_()
    loss = kofn.count_loss(x, kofn.Sum(2, [1, 2]))
    assert loss == torch.inf
    loss.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0]


def test_a_bag_effect_is_refused() -> None:
    with pytest.raises(ValueError, match="`bag_effect` must be None for a sum of values"):
        kofn.count_loss(torch.zeros(3), kofn.Sum(1, 1), bag_effect=0.5)


def test_its_distribution() -> None:
    dist = kofn.Sum(TOTAL, VALUES).distribution(X)
    assert isinstance(dist, SumDistribution)
    assert dist.categories
    assert dist.shape == (3,)
    assert not kofn.Sum(TOTAL, WEIGHTS).distribution(X[..., 0]).categories
