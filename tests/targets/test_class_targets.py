"""Statements about the counts of several classes."""

from __future__ import annotations

import pytest
import torch

import kofn
from kofn.targets import ClassTarget, Statement

X = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
K = torch.tensor([[2, 1, 1, 1], [5, 0, 0, 0], [0, 3, 0, 2]])


def test_joint_and_marginal() -> None:
    joint = kofn.count_loss(X, kofn.ClassCounts(K), reduction="none")
    torch.testing.assert_close(joint, -kofn.log_class_count_prob(X, K))
    marginal = kofn.count_loss(X, kofn.MarginalClassCounts(K), reduction="none")
    truth = -kofn.log_count_prob(kofn.one_vs_rest(X), K).sum(-1)
    torch.testing.assert_close(marginal, truth)
    for target, each in ((kofn.ClassCounts(K), joint), (kofn.MarginalClassCounts(K), marginal)):
        assert isinstance(target, ClassTarget)
        assert isinstance(target, Statement)
        torch.testing.assert_close(kofn.count_loss(X, target), each.mean())
        torch.testing.assert_close(kofn.count_loss(X, target, reduction="sum"), each.sum())
        weight = torch.tensor([0.0, 2.0, 1.0])
        torch.testing.assert_close(kofn.count_loss(X, target, weight=weight, reduction="none"), each * weight)


def test_layouts_of_the_marginals() -> None:
    flat, offsets = X.flatten(0, 1), torch.tensor([0, 5, 10, 15])
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[:, 2] = False
    wide = torch.full((3, 6, 4), torch.nan, dtype=torch.float64)
    wide[mask] = flat
    target = kofn.MarginalClassCounts(K)
    each = kofn.count_loss(X, target, reduction="none")
    torch.testing.assert_close(kofn.count_loss(flat, target, offsets=offsets, reduction="none"), each)
    torch.testing.assert_close(kofn.count_loss(wide, target, mask=mask, reduction="none"), each)


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32, torch.float64])
def test_unknown_counts_are_left_out(dtype: torch.dtype) -> None:
    unknown = torch.nan if dtype.is_floating_point else -1
    counts = K.to(dtype)
    counts[0, 1] = counts[0, 3] = counts[2] = unknown
    x = X.clone().requires_grad_()
    each = kofn.count_loss(x, kofn.MarginalClassCounts(counts), reduction="none")
    log_odds = kofn.one_vs_rest(X[0])
    truth = -kofn.log_count_prob(log_odds[[0, 2]], K[0, [0, 2]]).sum()
    torch.testing.assert_close(each[0].detach(), truth)
    torch.testing.assert_close(each[1].detach(), kofn.count_loss(X[1], kofn.MarginalClassCounts(K[1])))
    assert each[2] == 0
    each.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[2] == 0).all()


def test_every_statement_can_be_made_of_a_class() -> None:
    log_odds = kofn.one_vs_rest(X)[:, 2]
    truth = 1 - kofn.log_count_prob(log_odds, 0).exp()
    torch.testing.assert_close(kofn.count_loss(log_odds, kofn.AtLeast(1), reduction="none").neg().exp(), truth)


def test_wrong_counts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"sum to the bag's size; bag 1 has 5 instances and counts \[5, 1, 0, 0\]"):
        kofn.count_loss(X, kofn.ClassCounts(K + torch.tensor([[0] * 4, [0, 1, 0, 0], [0] * 4])))
    with pytest.raises(ValueError, match=r"not exceed the bag's size; bag 1 has 5 instances and counts \[6, 1, 1, 1\]"):
        kofn.count_loss(X, kofn.MarginalClassCounts(K + 1))
    with pytest.raises(ValueError, match="or -1 where unknown; got -2"):
        kofn.count_loss(X, kofn.MarginalClassCounts(K - 2))
    with pytest.raises(ValueError, match="integers, or NaN where unknown"):
        kofn.count_loss(X, kofn.MarginalClassCounts(K / 2))
    with pytest.raises(ValueError, match="`method` must be one of 'auto', 'exact', 'limit'; got 'fast'"):
        kofn.count_loss(X, kofn.ClassCounts(K, method="fast"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`target` must say something"):
        kofn.count_loss(X, K)  # type: ignore[arg-type]
    assert (
        kofn.count_loss(torch.full((2, 2), -torch.inf).fill_diagonal_(0.0), kofn.ClassCounts(torch.tensor([2, 0])))
        == torch.inf
    )


@pytest.mark.slow
def test_marginals_have_every_derivative_and_one_graph() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return kofn.count_loss(x, kofn.MarginalClassCounts(K))

    x = X.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(f, x)
    torch.testing.assert_close(torch.func.grad(f)(X), torch.autograd.grad(f(x), x)[0])
    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), f(x))
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x), torch.autograd.grad(f(x), x))
