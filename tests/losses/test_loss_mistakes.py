"""One test for each mistake that public code of this field has made and that concerns losses (DESIGN, 5)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from loss_cases import PER_BAG
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

import kofn
from kofn import losses


@pytest.mark.parametrize("size", [20.0, 200.0, 1e4])
def test_2_a_confidently_wrong_instance_has_a_gradient(size: float) -> None:
    # log_sigmoid(x).clamp(max=-eps) has gradient 0 past x = 16.
    cases: dict[int, list[Callable[[Tensor], Tensor]]] = {
        +1: [
            lambda x: losses.llp_loss(x, 0),
            lambda x: losses.mil_loss(x, 0),
            lambda x: losses.proportion_loss(x, 0.0),
            lambda x: losses.pooled_bag_loss(x, 0),
            lambda x: losses.pooled_bag_loss(x, 0, pool="mean"),
            lambda x: losses.pooled_bag_loss(x, 0, pool="logsumexp"),
            lambda x: kofn.count_loss(x, kofn.AtMost(0)),
            lambda x: kofn.count_loss(x, kofn.OneOf([0])),
            lambda x: kofn.count_loss(x, kofn.Noisy(0, kofn.targets.DiscreteLaplace(1e-5))),
            lambda x: losses.pu_loss(torch.zeros(1), x, 0.0),
            lambda x: losses.upu_loss(torch.zeros(1), x, 0.0, surrogate="logistic"),
            lambda x: losses.cvir_loss(torch.zeros(1), x, 0.0),
        ],
        -1: [
            lambda x: losses.llp_loss(x, 1),
            lambda x: losses.mil_loss(x, 1),
            lambda x: losses.proportion_loss(x, 1.0),
            lambda x: losses.pooled_bag_loss(x, 1, pool="mean"),
            lambda x: kofn.count_loss(x, kofn.AtLeast(1)),
            lambda x: losses.pu_loss(torch.zeros(1), x, 1.0, match="expectation"),
            lambda x: losses.pu_loss(x, torch.zeros(3), 0.5, positive_weight=1.0),
            lambda x: losses.cvir_loss(x, torch.zeros(3), 0.5),
        ],
    }
    for sign, each_loss in cases.items():
        for each in each_loss:
            x = torch.tensor([sign * size], requires_grad=True)
            (slope,) = torch.autograd.grad(each(x), x)
            assert slope.item() == pytest.approx(sign, rel=1e-6)


@pytest.mark.parametrize("n", [4, 200, 5000])
def test_4_the_divergence_is_finite_and_not_divided_by_the_number_of_counts(n: int) -> None:
    # A binomial pmf underflows past n = 1000; reduction="batchmean" of one bag divides by n + 1.
    x = torch.full((n,), 0.2, dtype=torch.float64)
    p = torch.sigmoid(x[0]).item()
    each = 0.5 * math.log(0.5 / p) + 0.5 * math.log(0.5 / (1 - p))
    assert losses.pu_loss(torch.ones(1), x, 0.5, positive_weight=0.0).item() == pytest.approx(n * each, rel=1e-9)


def test_6_negative_bags_have_a_term_of_their_own() -> None:
    # y log P(S >= 1) + (1 - y) log 1 teaches nothing to bags without positives.
    x = torch.tensor([[1.0, -0.5, 0.3]], dtype=torch.float64, requires_grad=True)
    for loss in (losses.mil_loss, losses.pooled_bag_loss):
        value = loss(x, torch.tensor([0]))
        (slope,) = torch.autograd.grad(value, x)
        assert value.item() > 0.5
        assert slope.max() > 0.5
    assert losses.mil_loss(x, torch.tensor([0])).item() == pytest.approx(softplus(x).sum().item(), rel=1e-14)


def test_8_the_correction_of_nnpu_leaves_the_positive_risk_out() -> None:
    p = torch.tensor([4.0], dtype=torch.float64, requires_grad=True)
    u = torch.tensor([-5.0], dtype=torch.float64)
    (slope,) = torch.autograd.grad(losses.nnpu_loss(p, u, 0.5, surrogate="logistic"), p)
    positive_risk = -0.5 * torch.sigmoid(-p)
    torch.testing.assert_close(slope, 0.5 * torch.sigmoid(p))  # of -R-: no more, and of the other sign
    assert (slope - positive_risk).abs() > 1e-3


def test_9_probabilities_are_averaged_not_their_logarithms() -> None:
    x = torch.logit(torch.tensor([0.9, 0.1], dtype=torch.float64))
    mean_of_logs = -logsigmoid(x).mean().item()
    for loss in (losses.proportion_loss(x, 1.0), losses.pooled_bag_loss(x, 1, pool="mean")):
        assert loss.item() == pytest.approx(-math.log(0.5), rel=1e-14)
        assert abs(loss.item() - mean_of_logs) > 0.1


@pytest.mark.parametrize("name", PER_BAG)
def test_3_no_nan_from_dead_branches(name: str) -> None:
    loss, labels = PER_BAG[name]
    for x in (18.0, 40.0, 750.0, -18.0, -40.0, -750.0):
        logits = torch.full((6, 5), x, requires_grad=True)
        each: Tensor = loss(logits, *labels, reduction="none")
        (slope,) = torch.autograd.grad(each.sum(), logits)
        assert not each.isnan().any()
        assert slope.isfinite().all()
