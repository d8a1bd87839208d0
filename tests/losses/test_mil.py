"""Multiple instance learning: the two-term cross-entropy at every logit, and pooling by hand."""

from __future__ import annotations

import math

import mpmath
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits

from kofn import losses


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize(
    "logits", [[50.0] * 4, [-50.0] * 4, [50.0, -50.0], [-50.0, -49.0, -51.0], [0.3, -0.2, 1.0], [50.0], [-50.0]], ids=str
)  # fmt: skip
def test_two_terms_at_50_digits(logits: list[float], label: int, weight: float) -> None:
    x = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    loss = losses.mil_loss(x, label, positive_weight=weight)
    (slope,) = torch.autograd.grad(loss, x)
    with mpmath.workdps(120):
        odds = [mpmath.exp(v) for v in logits]
        none = mpmath.mpf(1) / math.prod(1 + o for o in odds)
        value = float(-weight * mpmath.log(1 - none) if label else -mpmath.log(none))
        factor = -weight * none / (1 - none) if label else mpmath.mpf(1)
        slopes = [float(factor * o / (1 + o)) for o in odds]
    assert loss.item() == pytest.approx(value, rel=1e-13, abs=0)
    torch.testing.assert_close(slope.tolist(), slopes, rtol=1e-12, atol=0)


@pytest.mark.parametrize("scale", [-30.0, -11.0, 0.0])
def test_bags_of_100_000(scale: float) -> None:
    n = 100_000
    x = torch.full((2, n), scale, dtype=torch.float64, requires_grad=True)
    each = losses.mil_loss(x, torch.tensor([1, 0]), reduction="none")
    with mpmath.workdps(40):
        log_none = -n * mpmath.log(1 + mpmath.exp(scale))
        some = float(-mpmath.log(-mpmath.expm1(log_none))) if scale else 0.0  # e^-69315
    assert each[0].item() == pytest.approx(some, rel=1e-11, abs=1e-300)
    assert each[1].item() == pytest.approx(float(-log_none), rel=1e-11)
    (slope,) = torch.autograd.grad(each.sum(), x)
    assert slope.isfinite().all()
    assert slope[1, 0].item() == pytest.approx(torch.sigmoid(x[0, 0]).item(), rel=1e-12)


def test_labels_of_every_dtype() -> None:
    x = torch.randn(2, 3)
    expected = losses.mil_loss(x, torch.tensor([1, 0]))
    for dtype in (torch.bool, torch.uint8, torch.float32, torch.float64):
        assert torch.equal(losses.mil_loss(x, torch.tensor([1, 0]).to(dtype)), expected)
    for wrong in (torch.tensor([1, -1]), torch.tensor([0.5, 1.0])):
        with pytest.raises(ValueError, match=r"`bag_labels` must be 0 .* or 1 .*; got"):
            losses.mil_loss(x, wrong)


class TestPooling:
    P = torch.tensor([0.1, 0.5, 0.7], dtype=torch.float64)

    @pytest.mark.parametrize("label", [0.0, 1.0])
    def test_by_hand(self, label: float) -> None:
        x = torch.logit(self.P)
        y = torch.tensor(label, dtype=torch.float64)
        by_hand = {
            "max": torch.tensor(0.7, dtype=torch.float64),
            "mean": torch.tensor(1.3 / 3, dtype=torch.float64),
            "logsumexp": torch.sigmoid(torch.log((1 / 9 + 1 + 7 / 3) / torch.tensor(3.0, dtype=torch.float64))),
        }
        for pool, probability in by_hand.items():
            loss = losses.pooled_bag_loss(x, y, pool=pool)  # type: ignore[arg-type]  # a str from parametrize
            torch.testing.assert_close(loss, binary_cross_entropy(probability, y), rtol=1e-13, atol=0)

    def test_between_the_mean_and_the_maximum(self) -> None:
        x = torch.randn(50, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        smooth = losses.pooled_bag_loss(x, 1, pool="logsumexp", reduction="none")
        assert (smooth >= losses.pooled_bag_loss(x, 1, pool="max", reduction="none")).all()
        assert (smooth <= binary_cross_entropy_with_logits(x.mean(-1), torch.ones(50).double(), reduction="none")).all()

    def test_the_maximum_alone_has_a_gradient(self) -> None:
        x = torch.tensor([1.0, 3.0, -2.0], requires_grad=True)
        (slope,) = torch.autograd.grad(losses.pooled_bag_loss(x, 0), x)
        assert slope.tolist() == pytest.approx([0, float(torch.sigmoid(torch.tensor(3.0))), 0])

    def test_weight(self) -> None:
        x, y = torch.randn(4, 3), torch.tensor([1, 0, 1, 0])

        def each(weight: float) -> Tensor:
            return losses.pooled_bag_loss(x, y, pool="mean", positive_weight=weight, reduction="none")

        torch.testing.assert_close(each(3.0), each(1.0) * torch.tensor([3.0, 1.0, 3.0, 1.0]))

    def test_unknown(self) -> None:
        with pytest.raises(ValueError, match="`pool` must be one of 'max', 'mean', 'logsumexp'; got 'min'"):
            losses.pooled_bag_loss(torch.zeros(3), 1, pool="min")  # type: ignore[arg-type]  # wrong on purpose
