"""Module faces are the functions."""

from __future__ import annotations

import torch

from kofn import losses

X, K, Y = (
    torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    torch.tensor([0, 2, 1]),
    torch.tensor([0, 1, 1]),
)


def test_llp() -> None:
    assert torch.equal(losses.LLPLoss()(X, K), losses.llp_loss(X, K))
    mask = torch.arange(4) < 3
    each = losses.LLPLoss(reduction="none")(X, K, mask=mask)
    assert torch.equal(each, losses.llp_loss(X, K, mask=mask, reduction="none"))


def test_mil() -> None:
    offsets = torch.tensor([0, 3, 8, 12])
    module = losses.MILLoss(positive_weight=2.0, reduction="sum")
    expected = losses.mil_loss(X.flatten(), Y, offsets=offsets, positive_weight=2.0, reduction="sum")
    assert torch.equal(module(X.flatten(), Y, offsets=offsets), expected)


def test_pu() -> None:
    assert torch.equal(losses.PULoss(0.3)(X[0], X), losses.pu_loss(X[0], X, 0.3))
    module = losses.PULoss(0.3, match="expectation", positive_weight=4.0)
    assert torch.equal(module(X[0], X), losses.pu_loss(X[0], X, 0.3, match="expectation", positive_weight=4.0))
