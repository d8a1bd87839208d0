"""Positive and unlabelled data: both count objectives against 50 digits, baselines by hand."""

from __future__ import annotations

import math
from typing import Any, Literal

import mpmath
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn.functional import softplus

import kofn
from kofn import losses

P = torch.tensor([1.5, -0.2, 0.7], dtype=torch.float64)
U = torch.tensor([0.4, -1.3, 2.2, -0.6, 0.1], dtype=torch.float64)

MATCHES: tuple[Literal["distribution", "expectation"], ...] = ("distribution", "expectation")


def binomial_law(n: int, p: float) -> list[mpmath.mpf]:
    return [mpmath.binomial(n, s) * mpmath.mpf(p) ** s * (1 - mpmath.mpf(p)) ** (n - s) for s in range(n + 1)]


class TestCountLoss:
    @pytest.mark.parametrize("mixture", [0.0, 0.3, 0.5, 1.0])
    def test_divergence_by_hand(self, mixture: float) -> None:
        law = kofn.log_count_distribution(U).exp().tolist()
        q = [float(b) for b in binomial_law(5, mixture)]
        divergence = sum(b * math.log(b / p) for b, p in zip(q, law, strict=True) if b)
        expected = divergence + 2 * softplus(-P).mean().item()
        assert losses.pu_loss(P, U, mixture, positive_weight=2.0).item() == pytest.approx(expected, rel=1e-12)

    def test_divergence_of_5_000(self) -> None:
        # Binomial(5000, 0.5) is e^-3465 at its ends. Equal logits: both laws are binomial, and their divergence is
        # n times that of one coin from the other.
        n, mixture = 5000, 0.5
        for p in (0.5, 0.4, 0.9, 1e-4):
            x = torch.full((n,), math.log(p / (1 - p)), dtype=torch.float64, requires_grad=True)
            loss = losses.pu_loss(P, x, mixture, positive_weight=0.0)
            coin = mixture * math.log(mixture / p) + (1 - mixture) * math.log((1 - mixture) / (1 - p))
            assert loss.item() == pytest.approx(n * coin, rel=1e-10, abs=1e-10)
            (slope,) = torch.autograd.grad(loss, x)
            torch.testing.assert_close(slope, torch.full_like(slope, p - mixture), rtol=1e-8, atol=1e-10)

    def test_divergence_of_unequal_logits_at_50_digits(self) -> None:
        n = 5000
        x = torch.cat([torch.full((n // 2,), 1.0), torch.full((n // 2,), -2.0)]).double()
        with mpmath.workdps(30):
            half = [[float(mpmath.log(v)) for v in binomial_law(n // 2, p)]
                    for p in (1 / (1 + mpmath.exp(-1)), 1 / (1 + mpmath.exp(2)))]  # fmt: skip
            log_q = [float(mpmath.log(v)) for v in binomial_law(n, 0.4)]
        first, second = (torch.tensor(h, dtype=torch.float64) for h in half)
        expected = 0.0
        for s, q in enumerate(log_q):  # the law of the sum is a convolution
            if q > -60:
                k = torch.arange(max(0, s - n // 2), min(s, n // 2) + 1)
                expected += math.exp(q) * (q - torch.logsumexp(first[k] + second[s - k], 0).item())
        loss = losses.pu_loss(P, x, 0.4, positive_weight=0.0)
        assert loss.item() == pytest.approx(expected, rel=1e-9)

    def test_expectation(self) -> None:
        whole = losses.pu_loss(P, U, 0.4, match="expectation", positive_weight=3.0)
        torch.testing.assert_close(whole, -kofn.log_count_prob(U, 2) + 3 * softplus(-P).mean())

    @pytest.mark.parametrize(("mixture", "weight"), [(0.0, 1.0), (0.1, 1.0), (0.4, 2.0), (1.0, 5.0)])
    @pytest.mark.parametrize("match", MATCHES)
    def test_the_positives_weigh_as_much_as_those_of_a_bag(self, match: Any, mixture: float, weight: float) -> None:
        said = losses.pu_loss(P, U, mixture, match=match, positive_weight=weight)
        assert losses.pu_loss(P, U, mixture, match=match).item() == pytest.approx(said.item(), rel=1e-14)

    def test_expectation_between_two_counts(self) -> None:
        law = -kofn.log_count_distribution(U)
        half = losses.pu_loss(P, U, 0.5, match="expectation", positive_weight=0.0)  # 2.5 of 5
        torch.testing.assert_close(half, (law[2] + law[3]) / 2 - math.log(2))
        just = losses.pu_loss(P, U, 0.4 + 1e-9, match="expectation", positive_weight=0.0)
        torch.testing.assert_close(just, law[2], rtol=1e-6, atol=0)  # continuous in the mixture

    def test_several_bags_are_averaged(self) -> None:
        bags = torch.stack([U, -U, U + 1])
        for match in MATCHES:
            together = losses.pu_loss(P, bags, 0.4, match=match)
            alone = torch.stack([losses.pu_loss(P, bag, 0.4, match=match) for bag in bags])
            torch.testing.assert_close(together, alone.mean())
            assert losses.pu_loss(P, U[None], 0.4, match=match) == losses.pu_loss(P, U, 0.4, match=match)

    def test_mixture_for_each_bag(self) -> None:
        bags, mixture = torch.stack([U, -U]), torch.tensor([0.2, 0.6])  # 1 and 3 positives, so that weights differ
        alone = [losses.pu_loss(P, bag, float(m)) for bag, m in zip(bags, mixture, strict=True)]
        torch.testing.assert_close(losses.pu_loss(P, bags, mixture), torch.stack(alone).mean(), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "loss",
    [losses.pu_loss, lambda p, u, m: losses.pu_loss(p, u, m, match="expectation"), losses.upu_loss, losses.nnpu_loss,
     lambda p, u, m: losses.upu_loss(p, u, m, surrogate="logistic"), losses.cvir_loss],
    ids=["distribution", "expectation", "upu", "nnpu", "upu logistic", "cvir"],
)  # fmt: skip
class TestAll:
    def test_derivatives(self, loss: object) -> None:
        assert callable(loss)
        assert gradcheck(lambda p, u: loss(p, u, 0.3), (P.clone().requires_grad_(), U.clone().requires_grad_()))

    def test_dtype(self, loss: object) -> None:
        assert callable(loss)
        value = loss(P.float(), U.float(), 0.3)
        assert value.dtype == torch.float32
        assert value.shape == ()
        torch.testing.assert_close(value.double(), loss(P, U, 0.3), rtol=1e-6, atol=1e-6)

    def test_errors(self, loss: object) -> None:
        assert callable(loss)
        with pytest.raises(ValueError, match="`mixture` must lie between 0 and 1; got 50"):
            loss(P, U, 50.0)
        with pytest.raises(ValueError, match="`positive_logits` must hold at least one instance"):
            loss(P[:0], U, 0.5)
        with pytest.raises(ValueError, match="`unlabeled_logits` must hold at least one instance"):
            loss(P, U[:0], 0.5)
        with pytest.raises(TypeError, match="`positive_logits` must be floating point"):
            loss(P.long(), U, 0.5)

    def test_confidently_wrong_positives_have_a_gradient(self, loss: object) -> None:
        assert callable(loss)
        p = torch.tensor([-200.0], requires_grad=True)
        u = torch.zeros(4)
        (slope,) = torch.autograd.grad(loss(p, u, 0.5), p)
        assert slope.isfinite().all()
        if loss in (losses.pu_loss, losses.cvir_loss):  # the weight of the former is two of four
            assert slope.item() == pytest.approx(-2 if loss is losses.pu_loss else -1)


def mean_softplus(x: Tensor) -> float:
    return sum(math.log1p(math.exp(v)) for v in x.tolist()) / len(x)


class TestBaselines:
    def test_upu_by_hand(self) -> None:
        expected = 0.3 * mean_softplus(-P) + mean_softplus(U) - 0.3 * mean_softplus(P)
        assert losses.upu_loss(P, U, 0.3, surrogate="logistic").item() == pytest.approx(expected, rel=1e-13)
        s = torch.sigmoid
        expected = float(0.3 * s(-P).mean() + s(U).mean() - 0.3 * s(P).mean())
        assert losses.upu_loss(P, U, 0.3).item() == pytest.approx(expected, rel=1e-13)
        assert expected == pytest.approx(float(0.6 * s(-P).mean() + s(U).mean() - 0.3))  # as the docstring says

    def test_nnpu_is_upu_while_the_negative_risk_is_not_negative(self) -> None:
        assert losses.nnpu_loss(P, U, 0.3) == losses.upu_loss(P, U, 0.3)

    @pytest.mark.parametrize("beta", [0.0, 0.5])
    @pytest.mark.parametrize("gamma", [1.0, 0.3])
    def test_nnpu_corrects(self, beta: float, gamma: float) -> None:
        p = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
        u = torch.tensor([-3.0, -4.0, -6.0], dtype=torch.float64, requires_grad=True)
        negative = mean_softplus(u) - 0.5 * mean_softplus(p)
        assert negative < -beta
        loss = losses.nnpu_loss(p, u, 0.5, beta=beta, gamma=gamma, surrogate="logistic")
        assert loss.item() == pytest.approx(0.5 * mean_softplus(-p) - beta, rel=1e-12)
        slopes = torch.autograd.grad(loss, (p, u))
        torch.testing.assert_close(slopes[0], gamma * 0.5 * torch.sigmoid(p) / 2)  # pushes positives down
        torch.testing.assert_close(slopes[1], -gamma * torch.sigmoid(u) / 3)  # and the unlabelled up

    def test_nnpu_corrects_the_sigmoid_risk(self) -> None:
        p = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
        u = torch.tensor([-3.0, -4.0, -6.0], dtype=torch.float64, requires_grad=True)
        s = torch.sigmoid
        assert (s(u).mean() - 0.5 * s(p).mean()).item() < 0
        loss = losses.nnpu_loss(p, u, 0.5)
        assert loss.item() == pytest.approx(0.5 * s(-p).mean().item(), rel=1e-12)
        slopes = torch.autograd.grad(loss, (p, u))
        torch.testing.assert_close(slopes[0], 0.5 * (s(p) * s(-p)).detach() / 2)
        torch.testing.assert_close(slopes[1], -(s(u) * s(-u)).detach() / 3)

    def test_cvir_by_hand(self) -> None:
        expected = mean_softplus(-P) + mean_softplus(torch.tensor([-1.3, -0.6, 0.1]).double())  # 2.2 and 0.4 left out
        assert losses.cvir_loss(P, U, 0.4).item() == pytest.approx(expected, rel=1e-7)
        u = U.clone().requires_grad_()
        (slope,) = torch.autograd.grad(losses.cvir_loss(P, u, 0.4), u)
        assert (slope == 0).tolist() == [True, False, True, False, False]
        assert losses.cvir_loss(P, U, 1.0).item() == pytest.approx(mean_softplus(-P))
        assert losses.cvir_loss(P, U, 0.0).item() == pytest.approx(mean_softplus(-P) + mean_softplus(U))

    def test_cvir_keeps_a_whole_number(self) -> None:
        u = torch.zeros(10, requires_grad=True)
        (slope,) = torch.autograd.grad(losses.cvir_loss(P.float(), u, 0.9), u)  # (1 - 0.9) 10 is 0.9999999999999998
        assert int((slope != 0).sum()) == 1


class TestMixtureProportion:
    def test_proposition(self) -> None:
        for prior, labeled in ((0.5, 0.2), (0.3, 0.05), (0.9, 0.0), (0.4, 0.4), (1.0, 0.5)):
            c = labeled / prior
            expected = (1 - c) * prior / (1 - prior * c)
            assert kofn.mixture_proportion(prior, labeled) == pytest.approx(expected)

    @pytest.mark.parametrize(("prior", "labeled"), [(1.2, 0.1), (0.3, 0.4), (0.3, -0.1), (1.0, 1.0)])
    def test_errors(self, prior: float, labeled: float) -> None:
        with pytest.raises(ValueError, match=r"`(prior|labeled_fraction)` must lie between 0 and"):
            kofn.mixture_proportion(prior, labeled)
