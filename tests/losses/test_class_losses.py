"""Baselines of several classes: cases by hand, and the laws of every loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.autograd import gradcheck

import kofn
from kofn import losses

COUNTS = torch.tensor([[2, 1, 1], [3, 0, 0], [0, 1, 1], [1, 0, 0], [1, 2, 2]])
SIZES = COUNTS.sum(1)
SHARES = COUNTS / SIZES[:, None].double()
OFFSETS = torch.cat([SIZES.new_zeros(1), SIZES.cumsum(0)])
BOTH: dict[str, Callable[..., Tensor]] = {
    "proportion": losses.class_proportion_loss,
    "transport": losses.transport_loss,
    "hard transport": lambda *args, **options: losses.transport_loss(*args, epsilon=0.3, **options),
}
each_loss = pytest.mark.parametrize("loss", BOTH.values(), ids=BOTH)


def logits(scale: float = 2.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(int(SIZES.sum()), 3, dtype=torch.float64, generator=generator)


def dense(x: Tensor, fill: float) -> tuple[Tensor, Tensor]:
    padded = torch.full((len(SIZES), 6, 3), fill, dtype=torch.float64)
    mask = torch.zeros(len(SIZES), 6, dtype=torch.bool)
    for row, bag in enumerate(x.split(SIZES.tolist())):
        padded[row, 1 : 1 + len(bag)], mask[row, 1 : 1 + len(bag)] = bag, True
    return padded, mask


def test_proportion_loss_by_hand() -> None:
    p = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.3, 0.6]], dtype=torch.float64)
    wanted = torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64)
    expected = -0.5 * math.log(0.3) - 0.5 * math.log(0.425)
    assert losses.class_proportion_loss(p.log(), wanted).item() == pytest.approx(expected, rel=1e-12)


def test_proportion_loss_of_two_classes_is_the_binary_one() -> None:
    x = torch.randn(4, 7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0.0, 0.3, 1.0, 0.5], dtype=torch.float64)
    two = losses.class_proportion_loss(x, torch.stack([1 - y, y], 1), reduction="none")
    torch.testing.assert_close(two, losses.proportion_loss(x[..., 1] - x[..., 0], y, reduction="none"))


def test_transport_by_hand() -> None:
    """Two instances, one of each class: q = (a, 1 - a) and (1 - a, a), whose odds are the root of the odds ratio."""
    x = torch.tensor([[1.0, 0.0], [-2.0, 0.0]], dtype=torch.float64)
    a = 1 / (1 + math.exp(-1.5))  # of log-odds 1 + t and -2 + t the t of opposite ones is 1/2
    q = torch.tensor([[a, 1 - a], [1 - a, a]], dtype=torch.float64)
    expected = (q * (q.log() - x.log_softmax(1))).sum() / 2
    torch.testing.assert_close(losses.transport_loss(x, torch.tensor([0.5, 0.5])), expected)


def test_transport_is_the_minimum_that_a_general_solver_finds() -> None:
    x = logits(1.0)[:4]
    cost, counts = -x.log_softmax(1).numpy(), COUNTS[0].numpy()
    for epsilon in (1.0, 0.3):

        def value(q: Any, epsilon: float = epsilon) -> float:
            q = q.reshape(4, 3).clip(1e-12)
            return float((q * cost).sum() + epsilon * (q * torch.from_numpy(q).log().numpy()).sum()) / 4

        constraints = [{"type": "eq", "fun": lambda q: q.reshape(4, 3).sum(1) - 1}]
        constraints += [{"type": "eq", "fun": lambda q: q.reshape(4, 3).sum(0)[:2] - counts[:2]}]
        start = (counts / 4)[None].repeat(4, 0).ravel()
        found = minimize(value, start, bounds=[(0, 1)] * 12, constraints=constraints, method="SLSQP", tol=1e-12)
        ours = losses.transport_loss(x, SHARES[0], epsilon=epsilon)
        assert ours.item() == pytest.approx(found.fun, abs=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0, 30.0])
def test_transport_is_chernoffs_bound_of_the_count_loss(scale: float) -> None:
    x = logits(scale)
    bound = losses.transport_loss(x, SHARES, offsets=OFFSETS, reduction="none") * SIZES
    exact = kofn.count_loss(x, kofn.ClassCounts(COUNTS), offsets=OFFSETS, reduction="none")
    assert (bound <= exact + 1e-9).all()
    assert (bound >= -1e-12).all()


def test_the_slope_of_transport_is_prior_less_pseudo_label() -> None:
    x = logits().requires_grad_()
    loss = losses.transport_loss(x, SHARES, offsets=OFFSETS, reduction="none")
    (slope,) = torch.autograd.grad((loss * SIZES).sum(), x)
    q = x.detach().softmax(1) - slope
    torch.testing.assert_close(q.sum(1), torch.ones(len(x), dtype=torch.float64))
    assert (q > -1e-12).all()
    sums = torch.stack([bag.sum(0) for bag in q.split(SIZES.tolist())])
    torch.testing.assert_close(sums, COUNTS.double(), rtol=1e-9, atol=1e-9)


@each_loss
def test_single_instances_have_the_cross_entropy(loss: Callable[..., Tensor]) -> None:
    x, y = logits(), torch.arange(15) % 3
    expected = torch.nn.functional.cross_entropy(x, y, reduction="none")
    torch.testing.assert_close(loss(x.unsqueeze(1), torch.eye(3)[y], reduction="none"), expected)


@each_loss
def test_ragged_is_looped_is_dense_is_masked(loss: Callable[..., Tensor]) -> None:
    x = logits().requires_grad_()
    ragged = loss(x, SHARES, offsets=OFFSETS, reduction="none")
    looped = torch.stack([loss(bag, share) for bag, share in zip(x.split(SIZES.tolist()), SHARES, strict=True)])
    torch.testing.assert_close(ragged, looped, rtol=1e-9, atol=1e-11)
    (slope,) = torch.autograd.grad(ragged.sum(), x)
    for fill in (0.0, 700.0, math.inf, math.nan):
        y, mask = dense(x.detach(), fill)
        y.requires_grad_()
        masked = loss(y, SHARES, mask=mask, reduction="none")
        torch.testing.assert_close(masked, ragged, rtol=1e-9, atol=1e-11)
        (of_dense,) = torch.autograd.grad(masked.sum(), y)
        torch.testing.assert_close(of_dense[mask], slope, rtol=1e-7, atol=1e-9)
        assert (of_dense[~mask] == 0).all()


@each_loss
def test_reductions_permutations_and_derivatives(loss: Callable[..., Tensor]) -> None:
    x = logits()
    each = loss(x, SHARES, offsets=OFFSETS, reduction="none")
    torch.testing.assert_close(loss(x, SHARES, offsets=OFFSETS), each.mean())
    torch.testing.assert_close(loss(x, SHARES, offsets=OFFSETS, reduction="sum"), each.sum())
    order = [2, 0, 1]
    torch.testing.assert_close(loss(x[:, order], SHARES[:, order], offsets=OFFSETS, reduction="none"), each)
    torch.testing.assert_close(loss(x + 5.0, SHARES, offsets=OFFSETS, reduction="none"), each)  # no constant matters
    assert gradcheck(lambda z: loss(z, SHARES, offsets=OFFSETS, reduction="none"), (x.requires_grad_(),))


@each_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_class_losses_are_computed_in_float64(loss: Callable[..., Tensor], dtype: torch.dtype) -> None:
    small = logits().to(dtype)
    value = loss(small, SHARES, offsets=OFFSETS, reduction="none")
    assert value.dtype == dtype
    wide = loss(small.double(), SHARES, offsets=OFFSETS, reduction="none")
    torch.testing.assert_close(value, wide.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-7)


@each_loss
@pytest.mark.parametrize("scale", [50.0, 1e4])
def test_class_losses_are_finite_at_any_logit(loss: Callable[..., Tensor], scale: float) -> None:
    x = logits(scale).requires_grad_()
    value = loss(x, SHARES, offsets=OFFSETS, reduction="none")
    (slope,) = torch.autograd.grad(value.sum(), x)
    assert value.isfinite().all()
    assert slope.isfinite().all()


def test_transport_of_large_logits_is_an_assignment() -> None:
    """With logits of thousands each instance has one class, and the loss is the price of the best assignment."""
    from scipy.optimize import linear_sum_assignment

    x = logits(1e4)
    value = losses.transport_loss(x, SHARES, offsets=OFFSETS, reduction="none") * SIZES
    for bag, counts, found in zip(x.split(SIZES.tolist()), COUNTS, value, strict=True):
        prices = -bag.log_softmax(1)[:, torch.arange(3).repeat_interleave(counts)].numpy()
        assert found.item() == pytest.approx(prices[linear_sum_assignment(prices)].sum(), rel=1e-6)


@each_loss
def test_class_losses_without_bags_and_instances(loss: Callable[..., Tensor]) -> None:
    assert loss(torch.zeros(0, 4, 3), torch.zeros(0, 3), reduction="none").shape == (0,)
    assert loss(torch.zeros(0, 3), torch.zeros(0, 3), offsets=torch.tensor([0]), reduction="none").shape == (0,)
    assert loss(torch.zeros(0, 3), SHARES[0]).isnan()


@each_loss
def test_errors_of_class_losses(loss: Callable[..., Tensor]) -> None:
    with pytest.raises(ValueError, match=r"must sum to 1 over the classes; those of bag 1 sum to 0\.5\. Counts are"):
        loss(torch.zeros(2, 4, 3), torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.0, 0.0]]))
    with pytest.raises(ValueError, match="`proportions` must"):
        loss(torch.zeros(4, 3), torch.tensor([1.5, -0.5, 0.0]))
    with pytest.raises(ValueError, match=r"shape \(3,\); got shape \(2,\)"):
        loss(torch.zeros(4, 3), torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="`reduction` must be one of"):
        loss(torch.zeros(4, 3), SHARES[0], reduction="average")
    with pytest.raises(ValueError, match="`epsilon` must be above 0"):
        losses.transport_loss(torch.zeros(4, 3), SHARES[0], epsilon=0.0)
