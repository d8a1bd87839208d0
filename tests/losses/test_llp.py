"""Label proportions: cross-entropy for bags of one, counts reached by training, hand-computed baselines."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

import kofn
from kofn import losses


def logit(*p: float) -> Tensor:
    return torch.logit(torch.tensor(p, dtype=torch.float64))


def test_bags_of_one_are_cross_entropy() -> None:
    x = torch.linspace(-80, 80, 321, dtype=torch.float64).requires_grad_()
    y = torch.arange(321) % 2
    ours = losses.llp_loss(x[:, None], y, reduction="none")
    theirs = binary_cross_entropy_with_logits(x, y.double(), reduction="none")
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    (slope,) = torch.autograd.grad(ours.sum(), x)
    (expected,) = torch.autograd.grad(theirs.sum(), x)
    torch.testing.assert_close(slope, expected, rtol=1e-12, atol=1e-15)
    weight = torch.rand(321, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weighted = kofn.count_loss(x[:, None], kofn.Exactly(y), weight=weight)
    torch.testing.assert_close(weighted, binary_cross_entropy_with_logits(x, y.double(), weight=weight))


def test_training_free_logits_reaches_the_counts() -> None:
    wanted = torch.tensor([2, 4, 6, 7])
    x = (torch.randn(4, 8, generator=torch.Generator().manual_seed(0)) * 0.1).requires_grad_()
    optimiser = torch.optim.Adam([x], lr=0.1)
    for _ in range(400):
        optimiser.zero_grad()
        losses.llp_loss(x, wanted).backward()
        optimiser.step()
    assert (torch.sigmoid(x).sum(-1) - wanted).abs().max() < 0.05


def test_weights() -> None:
    x = torch.zeros(3, 4, dtype=torch.float64)
    x[2] = torch.inf  # at odds with its label: infinitely surprising, but of no weight
    weight = torch.tensor([2.0, 0.5, 0.0])
    target = kofn.Exactly(torch.tensor([2, 1, 0]))
    each = kofn.count_loss(x, target, weight=weight, reduction="none")
    expected = torch.tensor([-2 * math.log(6 / 16), -0.5 * math.log(4 / 16), 0.0], dtype=torch.float64)
    torch.testing.assert_close(each, expected)
    torch.testing.assert_close(kofn.count_loss(x, target, weight=weight), expected.mean())
    torch.testing.assert_close(kofn.count_loss(x, target, weight=weight, reduction="sum"), expected.sum())


class TestProportionLoss:
    @pytest.mark.parametrize("y", [0.0, 0.25, 1.0])
    def test_by_hand(self, y: float) -> None:
        mean = (0.1 + 0.5 + 0.9 + 0.2) / 4
        expected = -y * math.log(mean) - (1 - y) * math.log(1 - mean)
        assert losses.proportion_loss(logit(0.1, 0.5, 0.9, 0.2), y).item() == pytest.approx(expected, rel=1e-14)

    def test_certain_and_right_costs_nothing(self) -> None:
        x = torch.full((2, 3), torch.inf, dtype=torch.float64)
        x[1] = -torch.inf
        x.requires_grad_()
        loss = losses.proportion_loss(x, torch.tensor([1.0, 0.0]))
        assert loss.item() == 0
        assert torch.autograd.grad(loss, x)[0].eq(0).all()


class TestMutualContamination:
    def test_pairs(self) -> None:
        y = torch.tensor([0.5, 0.1, 0.8, 0.5, 0.3, 0.5])
        pairs = losses.pair_bags(y)
        assert pairs.tolist() == [[2, 1], [5, 4]]  # the pair of two halves is dropped
        assert (y[pairs[:, 0]] > y[pairs[:, 1]]).all()

    def test_pairing_is_the_best(self) -> None:
        y = torch.rand(6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

        def value(pairs: list[tuple[int, int]]) -> float:
            return sum(float(y[i] - y[j]) ** 2 for i, j in pairs)

        def matchings(left: list[int]) -> list[list[tuple[int, int]]]:
            if not left:
                return [[]]
            first, *rest = left
            return [[(first, j), *more] for j in rest for more in matchings([k for k in rest if k != j])]

        best = max(map(value, matchings(list(range(6)))))
        assert value([(i, j) for i, j in losses.pair_bags(y).tolist()]) == pytest.approx(best)

    def test_by_hand(self) -> None:
        # Bags of 2: proportions 0.2, 0.9, 0.6, 0.5; pairs (1, 0) and (2, 3), weights 0.49 and 0.01 of 0.5.
        x = torch.tensor([[0.5, -1.0], [2.0, 0.3], [-0.7, 1.1], [0.0, 0.4]], dtype=torch.float64)
        y = torch.tensor([0.2, 0.9, 0.6, 0.5], dtype=torch.float64)
        total = 0.0
        for rich, poor, weight in ((1, 0, 0.49 / 0.5), (2, 3, 0.01 / 0.5)):
            gp, gm = float(y[rich]), float(y[poor])
            for i in range(2):
                a, b = float(x[rich, i]), float(x[poor, i])
                at_rich = (1 - gm) / (gp - gm) * math.log1p(math.exp(-a)) - gm / (gp - gm) * math.log1p(math.exp(a))
                at_poor = (gp - 1) / (gp - gm) * math.log1p(math.exp(-b)) + gp / (gp - gm) * math.log1p(math.exp(b))
                total += weight * (at_rich + at_poor) / 4  # the pair's size
        assert losses.mutual_contamination_loss(x, y).item() == pytest.approx(total, rel=1e-12)
        each = losses.mutual_contamination_loss(x, y, reduction="none")
        assert each.shape == (2,)
        assert each.mean().item() == pytest.approx(total, rel=1e-12)
        assert losses.mutual_contamination_loss(x, y, reduction="sum").item() == pytest.approx(2 * total, rel=1e-12)

    def test_unbiased(self) -> None:
        # Scores 1 on positives and -0.5 on negatives; bags of any sizes, with exactly their proportions.
        def bag(positives: int, negatives: int) -> Tensor:
            return torch.cat([torch.full((positives,), 1.0), torch.full((negatives,), -0.5)]).double()

        each = [bag(3, 1), bag(1, 9), bag(5, 5), bag(2, 3)]
        x, offsets = torch.cat(each), torch.tensor([0, 4, 14, 24, 29])
        y = torch.tensor([0.75, 0.1, 0.5, 0.4], dtype=torch.float64)
        risk = (softplus(torch.tensor(-1.0)) + softplus(torch.tensor(-0.5))) / 2
        assert losses.mutual_contamination_loss(x, y, offsets=offsets).item() == pytest.approx(risk.item(), rel=1e-6)

    def test_ragged_masked_dense_and_derivatives(self) -> None:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(4, 6, dtype=torch.float64, generator=generator)
        y = torch.rand(4, dtype=torch.float64, generator=generator)
        mask = torch.arange(6) < torch.tensor([3, 6, 1, 4])[:, None]
        offsets = torch.tensor([0, 3, 9, 10, 14])
        ragged = losses.mutual_contamination_loss(x[mask], y, offsets=offsets)
        for hidden in (0.0, math.inf, math.nan):
            z = x.masked_fill(~mask, hidden).requires_grad_()
            dense = losses.mutual_contamination_loss(z, y, mask=mask)
            torch.testing.assert_close(dense, ragged)
            assert torch.autograd.grad(dense, z)[0].isfinite().all()
        folded = losses.mutual_contamination_loss(x.view(2, 2, 6), y.view(2, 2), mask=mask.view(2, 2, 6))
        torch.testing.assert_close(folded, ragged)
        flat = x[mask].requires_grad_()
        assert gradcheck(lambda z: losses.mutual_contamination_loss(z, y, offsets=offsets, reduction="none"), (flat,))

    def test_errors(self) -> None:
        with pytest.raises(ValueError, match="at least one pair of bags with different proportions; got none from 3"):
            losses.mutual_contamination_loss(torch.zeros(3, 2), torch.full((3,), 0.5))
        with pytest.raises(ValueError, match=r"`pairs` must be int64 of shape \(pairs, 2\)"):
            losses.mutual_contamination_loss(torch.zeros(3, 2), torch.rand(3), pairs=torch.zeros(2))
        with pytest.raises(ValueError, match="`pairs` must index bags 0 to 2; got 0 to 3"):
            losses.mutual_contamination_loss(torch.zeros(3, 2), torch.rand(3), pairs=torch.tensor([[0, 3]]))
