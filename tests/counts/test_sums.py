"""Sums of values: against enumeration, 60 digits and other routes; laws; edges; derivatives."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sum_oracles import enumerated, log_law, log_table
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad
from torch.nn.functional import logsigmoid, softplus

import kofn
from kofn.counts import SumDistribution, _sum_probability


@pytest.fixture(scope="module", autouse=True)
def backend() -> None:
    """Sums have one engine, unlike counts: these tests need not run twice."""


def randn(*shape: int, scale: float = 2.0, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale


def randint(low: int, high: int, *shape: int, seed: int = 0) -> Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def every_total(logits: Tensor, values: Tensor, totals: Tensor, *, categories: bool) -> Tensor:
    """log P(T = total) of one bag for many totals."""
    dist = SumDistribution(logits.expand(len(totals), *logits.shape), values, categories=categories)
    return dist.log_prob(totals)


def check(found: Tensor, expected: Any, *, rtol: float = 1e-11) -> None:
    wanted = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found.double(), wanted, rtol=rtol, atol=rtol)


class TestAgainstOracles:
    @pytest.mark.parametrize(
        ("n", "values"),
        [
            (3, [0, 1, 2]),
            (4, [-1, 0, 1]),
            (4, [-3, 5, 5]),
            (3, [7, 7, 7]),
            (3, [0, 10, 1000, 1007]),
            (5, [2, 4]),
            (1, [3, 1, 4]),
            (2, [5]),
        ],
    )
    def test_enumeration_in_fractions(self, n: int, values: list[int]) -> None:
        rng = np.random.default_rng(n)
        weights = [[Fraction(int(w)) for w in row] for row in rng.integers(1, 50, (n, len(values)))]
        law, posteriors = enumerated(weights, [values] * n)
        logits = torch.tensor([[float(w) for w in row] for row in weights], dtype=torch.float64).log()
        totals = torch.arange(min(law) - 2, max(law) + 3)
        found = every_total(logits, torch.tensor(values), totals, categories=True)
        check(found, [math.log(law[s]) if s in law else -math.inf for s in totals.tolist()])
        dist = SumDistribution(logits.expand(len(totals), *logits.shape), values, categories=True)
        for s, given_s in zip(totals.tolist(), dist.posteriors(totals), strict=True):
            given_s_expected = posteriors.get(s)
            expected = (
                logits.softmax(-1)
                if given_s_expected is None
                else [[float(p) for p in row] for row in given_s_expected]
            )
            check(given_s, expected)

    def test_weights_of_positives(self) -> None:
        weights = [3, 5, 3, -2, 0, 7]
        odds = [Fraction(k, 7) for k in (1, 30, 9, 4, 70, 2)]
        law, posteriors = enumerated([[Fraction(1), r] for r in odds], [[0, w] for w in weights])
        logits = torch.tensor([float(r) for r in odds], dtype=torch.float64).log()
        totals = torch.arange(min(law) - 1, max(law) + 2)
        found = every_total(logits, torch.tensor(weights), totals, categories=False)
        check(found, [math.log(law[s]) if s in law else -math.inf for s in totals.tolist()])
        given_8 = SumDistribution(logits, weights, categories=False).posteriors(8)
        check(given_8, [float(row[1]) for row in posteriors[8]])

    @pytest.mark.parametrize("scale", [1.0, 30.0, 200.0])
    @pytest.mark.parametrize("values", [list(range(10)), [0, 1], [-5, 0, 2, 9], [0, 3, 10]])
    def test_sixty_digits_in_every_tail(self, scale: float, values: list[int]) -> None:
        n = 20
        logits = randn(n, len(values), scale=scale)
        expected = log_law(logits.numpy(), np.array([values] * n))
        totals = torch.tensor(sorted(expected))
        check(
            every_total(logits, torch.tensor(values), totals, categories=True), [expected[s] for s in totals.tolist()]
        )

    def test_a_tail_that_no_float_holds(self) -> None:
        logits = torch.full((100, 3), 0.0, dtype=torch.float64)
        logits[:, 2] = -70.0
        found = kofn.log_sum_prob(logits, [0, 1, 2], 200)
        check(found, 100 * (-70.0 - math.log(2 + math.exp(-70))))
        assert found < -7000
        expected = log_law(logits.numpy(), np.array([[0, 1, 2]] * 100))
        check(kofn.log_sum_prob(logits, [0, 1, 2], 197), expected[197])

    @pytest.mark.parametrize("n", [300, 2000])
    def test_large_bags(self, n: int) -> None:
        x, weights = randn(n, scale=3.0), randint(1, 6, n)
        log_p = torch.stack([-softplus(x), -softplus(-x)], -1)
        table = log_table(log_p.numpy(), torch.stack([torch.zeros_like(weights), weights], -1).numpy())
        totals = torch.linspace(0, len(table) - 1, 23).long()
        check(every_total(x, weights, totals, categories=False), table[totals.numpy()], rtol=1e-10)

    @pytest.mark.parametrize(
        ("weights", "logits"),
        [
            ([1, 1, 1, 1000], [0.5, -1.0, 2.0, -3.0]),
            ([2] * 30 + [1], [0.1] * 30 + [-40.0]),  # odd totals need the last one
            ([2] * 30 + [1], [0.1] * 30 + [-2000.0]),  # ... whose probability no float holds
            ([10] * 20 + [3, 3], [0.3] * 20 + [-25.0, -30.0]),
            ([3] * 8 + [5] * 8, [-1.0] * 8 + [1.0] * 8),
            ([1, 2, 4, 8, 16, 32, 64, 128], [-1.0, 3.0, 0.0, 7.0, -9.0, 2.0, 1.0, -30.0]),
        ],
    )
    def test_lattices_and_totals_of_unlikely_labels(self, weights: list[int], logits: list[float]) -> None:
        x = torch.tensor(logits, dtype=torch.float64)
        expected = log_law(np.stack([np.zeros(len(x)), x.numpy()], -1), np.array([[0, w] for w in weights]))
        totals = torch.arange(-1, sum(weights) + 2)
        found = every_total(x, torch.tensor(weights), totals, categories=False)
        check(found, [expected.get(s, -math.inf) for s in totals.tolist()])

    def test_posteriors_of_unlikely_labels(self) -> None:
        x = torch.tensor([0.1] * 30 + [-2000.0], dtype=torch.float64)
        found = SumDistribution(x, [2] * 30 + [1], categories=False).posteriors(21)
        check(found, [1 / 3] * 30 + [1.0])


class TestOtherRoutes:
    @pytest.mark.parametrize("n", [1, 7, 40, 700])
    def test_counts_are_weights_of_one(self, n: int) -> None:
        x = randn(3, n)
        for count in sorted({0, 1, n // 3, n - 1, n}):
            totals = torch.full((3,), count)
            check(kofn.log_sum_prob(x, 1, totals), kofn.log_count_prob(x, count), rtol=1e-12)
            dist = SumDistribution(x, 1, categories=False)
            check(dist.posteriors(count), kofn.count_posteriors(x, count), rtol=1e-11)

    def test_the_count_of_a_class(self) -> None:
        x = randn(4, 9, 3)
        odds = kofn.one_vs_rest(x)
        for c in range(3):
            values = torch.eye(3, dtype=torch.int64)[c]
            check(kofn.log_sum_prob(x, values, torch.full((4,), 4)), kofn.log_count_prob(odds[:, c], 4))

    def test_two_classes_as_categories(self) -> None:
        x, weights = randn(2, 6), randint(-4, 9, 2, 6)
        as_categories = torch.stack([torch.zeros_like(x), x], -1)
        values = torch.stack([torch.zeros_like(weights), weights], -1)
        totals = torch.tensor([5, 3])
        check(kofn.log_sum_prob(x, weights, totals), kofn.log_sum_prob(as_categories, values, totals))

    def test_probabilities_of_all_totals_sum_to_one(self) -> None:
        x = randn(12, 4)
        found = every_total(x, torch.tensor([-2, 0, 1, 7]), torch.arange(-24, 85), categories=True)
        check(found.exp().sum(), 1.0)

    def test_mean_and_variance(self) -> None:
        x, values = randn(6, 3), torch.tensor([-1, 2, 5])
        totals = torch.arange(-6, 31)
        p = every_total(x, values, totals, categories=True).exp()
        dist = SumDistribution(x, values, categories=True)
        check(dist.mean, (p * totals).sum())
        check(dist.variance, (p * (totals - dist.mean) ** 2).sum())


class TestLaws:
    def test_shift_scale_and_sign(self) -> None:
        x, values, totals = randn(5, 7, 4), torch.tensor([0, 1, 3, 8]), torch.tensor([0, 9, 20, 33, 55])
        plain = kofn.log_sum_prob(x, values, totals)
        assert torch.equal(kofn.log_sum_prob(x, values + 11, totals + 77), plain)
        assert torch.equal(kofn.log_sum_prob(x, 6 * values, 6 * totals), plain)
        check(kofn.log_sum_prob(x, -values, -totals), plain)
        far = 10**9
        assert torch.equal(kofn.log_sum_prob(x, far * values - far, far * totals - 7 * far), plain)

    def test_a_shift_of_each_instance(self) -> None:
        x, values, shift = randn(2, 6, 3), randint(-4, 5, 2, 6, 3), randint(-30, 30, 2, 6, 1)
        totals = torch.tensor([3, 2])
        moved = kofn.log_sum_prob(x, values + shift, totals + shift.sum((1, 2)))
        check(moved, kofn.log_sum_prob(x, values, totals))

    def test_permutation(self) -> None:
        x, weights, order = randn(3, 30), randint(1, 9, 30), torch.randperm(30, generator=torch.Generator())
        totals = torch.tensor([20, 60, 100])
        check(kofn.log_sum_prob(x[:, order], weights[order], totals), kofn.log_sum_prob(x, weights, totals))

    def test_concatenation_is_convolution(self) -> None:
        x, values = randn(7, 3), torch.tensor([0, 2, 3])
        first = every_total(x[:3], values, torch.arange(10), categories=True).exp()
        rest = every_total(x[3:], values, torch.arange(13), categories=True).exp()
        both = every_total(x, values, torch.arange(22), categories=True).exp()
        check(both, np.convolve(first.numpy(), rest.numpy()))

    @pytest.mark.parametrize("total", [4, 11, 30])
    def test_a_masked_instance_is_an_absent_one(self, total: int) -> None:
        x, values = randn(2, 6, 4, seed=1), torch.tensor([0, 1, 2, 7])
        mask = torch.tensor([[True, False, True, True, True, False], [True] * 6])
        totals = torch.tensor([total, total])
        y = x.masked_fill(~mask.unsqueeze(-1), torch.nan).requires_grad_()
        found = kofn.log_sum_prob(y, values, totals, mask=mask)
        apart = torch.stack([kofn.log_sum_prob(x[0][mask[0]], values, total), kofn.log_sum_prob(x[1], values, total)])
        check(found.detach(), apart)
        found[found.isfinite()].sum().backward()
        assert y.grad is not None
        assert bool((y.grad[~mask] == 0).all())
        assert bool(y.grad.isfinite().all())
        given_total = SumDistribution(x, values, categories=True, mask=mask).posteriors(totals)
        assert bool((given_total[~mask] == 0).all())

    @pytest.mark.parametrize("shared", [True, False])
    def test_ragged_is_padded_and_batched_is_looped(self, shared: bool) -> None:
        sizes = [3, 0, 40, 1, 17, 90, 2]
        offsets = torch.tensor([0, *sizes]).cumsum(0)
        x = randn(sum(sizes), 3).requires_grad_()
        values = torch.tensor([-1, 0, 2]) if shared else randint(-3, 6, sum(sizes), 3)
        totals = torch.tensor([2, 0, 11, -1 if shared else int(values[43, 0]), 6, 30, 1])
        found = kofn.log_sum_prob(x, values, totals, offsets=offsets)
        (gradient,) = torch.autograd.grad(found[found.isfinite()].sum(), x)
        for j, total in enumerate(totals):
            bag = slice(int(offsets[j]), int(offsets[j + 1]))
            y = x.detach()[bag].requires_grad_()
            alone = SumDistribution(y, values if shared else values[bag], categories=True).log_prob(int(total))
            check(found[j], alone)
            if alone.isfinite():
                (expected,) = torch.autograd.grad(alone, y)
                check(gradient[bag], expected)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    def test_other_dtypes_are_rounded_float64(self, dtype: torch.dtype) -> None:
        x, totals = randn(3, 5, 4).to(dtype).requires_grad_(), torch.tensor([4, 9, 20])
        y = x.detach().double().requires_grad_()
        found, expected = (kofn.log_sum_prob(z, [0, 1, 5, 6], totals) for z in (x, y))
        assert found.dtype == dtype
        assert torch.equal(found, expected.to(dtype))
        found.sum().backward()
        expected.sum().backward()
        assert x.grad is not None
        assert y.grad is not None
        assert torch.equal(x.grad, y.grad.to(dtype))

    @pytest.mark.parametrize("kind", ["categories", "weights"])
    def test_posteriors_have_the_total_as_their_sum(self, kind: str) -> None:
        totals = torch.tensor([10, 31, 60])
        if kind == "categories":
            x, values = randn(3, 15, 5), torch.tensor([-2, 0, 1, 5, 9])
            found = SumDistribution(x, values, categories=True).posteriors(totals)
            check(found.sum(-1), torch.ones(3, 15))
            check((found * values).sum((1, 2)), totals)
        else:
            x, values = randn(3, 15), randint(1, 9, 3, 15)
            found = SumDistribution(x, values, categories=False).posteriors(totals)
            check((found * values).sum(1), totals)

    @pytest.mark.parametrize("categories", [True, False])
    def test_copies_are_rows_side_by_side(self, categories: bool) -> None:
        copies = torch.tensor([3, 0, 1, 40, 2])
        x = randn(5, 3) if categories else randn(5)
        values = torch.tensor([0, 2, 5]) if categories else torch.tensor([1, 9, 2, 5, 3])
        each = values if categories else values.repeat_interleave(copies)
        rows = x.repeat_interleave(copies, 0)
        for total in (0, 7, 60, 101, 180, 230):
            y, z = x.clone().requires_grad_(), rows.clone().requires_grad_()
            found = SumDistribution(y, values, categories=categories, copies=copies)
            expected = SumDistribution(z, each, categories=categories)
            check(found.log_prob(total), expected.log_prob(total))
            many = expected.posteriors(total)
            first = (copies.cumsum(0) - copies).clamp(max=len(rows) - 1)
            there = copies > 0
            check(found.posteriors(total)[there], many[first[there]])
            check(found.mean, expected.mean)
            check(found.variance, expected.variance)
            if found.log_prob(total).isfinite():
                (by_row,) = torch.autograd.grad(found.log_prob(total), y)
                (by_copy,) = torch.autograd.grad(expected.log_prob(total), z)
                summed = torch.zeros_like(x).index_add(0, torch.arange(5).repeat_interleave(copies), by_copy)
                check(by_row, summed)

    def test_a_million_copies(self) -> None:
        copies = torch.tensor([700_000, 300_000])
        x = torch.tensor([-0.3, 0.4], dtype=torch.float64)
        count = 480_321
        found = SumDistribution(x, 3, categories=False, copies=copies).log_prob(3 * count)
        check(found, kofn.CountDistribution(x, copies=copies).log_prob(count), rtol=1e-9)


class TestEdges:
    def test_a_wrong_parity_is_impossible_and_says_nothing(self) -> None:
        x = randn(3, 6).requires_grad_()
        values = kofn.log_sum_prob(x, torch.tensor([2, 2, 4, 6, 2, 8]), torch.tensor([3, 4, 24]))
        assert values[0] == -torch.inf
        values.sum().backward()
        assert x.grad is not None
        assert bool((x.grad[0] == 0).all())
        assert bool((x.grad[1] != 0).all())

    @pytest.mark.parametrize("total", [-1, 4, 7, 46, 49, 51, 60, 10**18, -(10**18)])
    def test_totals_that_three_and_five_do_not_make(self, total: int) -> None:
        x = randn(12, scale=5.0).requires_grad_()
        found = kofn.log_sum_prob(x, torch.tensor([3, 5] * 6), total)  # from 0 to 48
        possible = total in {3 * a + 5 * b for a in range(7) for b in range(7)}
        assert found.isfinite() == possible
        found.backward()
        assert x.grad is not None
        assert bool((x.grad == 0).all()) != possible

    def test_empty_bags(self) -> None:
        assert kofn.log_sum_prob(torch.zeros(0), 3, 0) == 0
        assert kofn.log_sum_prob(torch.zeros(0, 4), [1, 2, 3, 4], 1) == -torch.inf
        assert kofn.log_sum_prob(torch.zeros(0, 5, 4), [1, 2, 3, 4], torch.zeros(0).long()).shape == (0,)
        offsets = torch.tensor([0, 0, 1, 1])
        found = kofn.log_sum_prob(torch.zeros(1).double(), 2, [0, 2, 2], offsets=offsets)
        check(found, [0.0, math.log(0.5), -math.inf])
        x = torch.zeros(0, dtype=torch.float64, requires_grad=True)
        assert kofn.log_sum_prob(x, 2, torch.zeros(0).long(), offsets=torch.tensor([0])).shape == (0,)
        assert gradgradcheck(lambda x: kofn.log_sum_prob(x, 2, torch.zeros(0).long(), offsets=torch.tensor([0])), (x,))

    def test_a_nan_is_of_its_bag_alone(self) -> None:
        x = randn(3, 4)
        x[1, 2] = torch.nan
        x.requires_grad_()
        found = kofn.log_sum_prob(x, torch.arange(4), torch.tensor([3, 3, 2]))
        assert found.isnan().tolist() == [False, True, False]
        found.sum().backward()
        assert x.grad is not None
        assert x.grad.isnan().all(-1).tolist() == [False, True, False]
        assert bool(x.grad[[0, 2]].isfinite().all())

    def test_certain_and_impossible_categories(self) -> None:
        inf = torch.inf
        x = torch.tensor([[inf, 0.0, 3.0], [-inf, 1.0, 1.0], [0.0, 0.0, -inf]], dtype=torch.float64)
        found = every_total(x, torch.tensor([0, 1, 2]), torch.arange(-1, 7), categories=True)
        # The first is 0, the second 1 or 2, the third 0 or 1.
        check(found.exp(), [0.0, 0.0, 0.25, 0.5, 0.25, 0.0, 0.0, 0.0])
        z = x.clone().requires_grad_()
        kofn.log_sum_prob(z, [0, 1, 2], 2).backward()
        check(z.grad if z.grad is not None else z, [[0.0] * 3, [0.0] * 3, [0.0] * 3])
        given_1 = SumDistribution(x, [0, 1, 2], categories=True).posteriors(1)
        check(given_1, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        two = torch.tensor([inf, -inf, 0.0], dtype=torch.float64)
        check(every_total(two, torch.tensor([4, 2, 1]), torch.arange(3, 7), categories=False).exp(), [0, 0.5, 0.5, 0])
        assert kofn.log_sum_prob(torch.tensor([[inf, inf], [0.0, 0.0]]), [0, 1], 1).isnan()
        assert kofn.log_sum_prob(torch.tensor([[-inf, -inf], [0.0, 0.0]]), [0, 1], 1).isnan()

    @pytest.mark.parametrize("scale", [1e3, 1e5, 1e10, 1e30, 1e300])
    @pytest.mark.parametrize("total", [0, 3, 8, 14, 17])
    def test_finite_logits_have_finite_gradients(self, scale: float, total: int) -> None:
        x = randn(5, 4, scale=scale).requires_grad_()
        value = kofn.log_sum_prob(x, [0, 1, 2, 4], total)
        value.backward()
        assert x.grad is not None
        assert bool(x.grad.isfinite().all())
        expected = log_law(x.detach().numpy(), np.array([[0, 1, 2, 4]] * 5), digits=400) if scale < 1e10 else {}
        if total in expected:
            check(value.detach(), expected[total])

    def test_the_inside_of_one_instance_is_cross_entropy(self) -> None:
        x = torch.tensor([[3.0, -800.0, 1.5]], dtype=torch.float64)
        check(
            every_total(x, torch.tensor([0, 1, 2]), torch.arange(3), categories=True), x[0].log_softmax(-1), rtol=1e-14
        )


class TestDerivatives:
    CASES = (
        ("categories", (3, 4, 3), [0, 1, 5], [3, 7, 12]),
        ("values of each", (2, 4, 2), [[0, 1], [0, 3], [2, -1], [0, 4]], [2, 6]),
        ("weights", (2, 6), [1, 2, 3, 4, 5, 6], [9, 14]),
        ("unlikely labels", (2, 4), [1, 1, 1, 1000], [1002, 1001]),
    )

    @pytest.mark.parametrize(("shape", "values", "totals"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
    def test_first_and_second(self, shape: tuple[int, ...], values: Any, totals: Any) -> None:
        x = randn(*shape, scale=1.0).requires_grad_()

        def f(x: Tensor) -> Tensor:
            return kofn.log_sum_prob(x, values, torch.tensor(totals))

        assert gradcheck(f, (x,))
        assert gradgradcheck(f, (x,))
        assert gradcheck(f, (x,), check_batched_grad=True)

    @pytest.mark.parametrize("route", ["inversion", "recursion"])
    def test_both_routes_agree(self, route: str, monkeypatch: pytest.MonkeyPatch) -> None:
        x, totals = randn(4, 8, 3), torch.tensor([5, 8, 11, 15])
        expected = kofn.log_sum_prob(x, [0, 1, 2], totals)
        y = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(kofn.log_sum_prob(y, [0, 1, 2], totals).sum(), y)
        if route == "recursion":
            monkeypatch.setattr(_sum_probability, "_TRUSTED", math.inf)
        copies = torch.ones(8, dtype=torch.int64)
        dist = SumDistribution(y, [0, 1, 2], categories=True, copies=copies)
        check(dist.log_prob(totals).detach(), expected)
        check(torch.autograd.grad(dist.log_prob(totals).sum(), y)[0], gradient)
        check(dist.posteriors(totals).detach() - x.softmax(-1), gradient)

    def test_frequencies_left_out_are_not_missed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        x, weights = randn(2, 400, scale=1.0), randint(1, 6, 400)
        totals = torch.tensor([500, 700])
        y = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(kofn.log_sum_prob(y, weights, totals).sum(), y)
        monkeypatch.setattr(_sum_probability, "_FEW", 10**9)
        monkeypatch.setattr(_sum_probability, "_TINY", 0.0)
        check(kofn.log_sum_prob(x, weights, totals), kofn.log_sum_prob(y, weights, totals), rtol=1e-13)
        (expected,) = torch.autograd.grad(kofn.log_sum_prob(y, weights, totals).sum(), y)
        check(gradient, expected, rtol=1e-13)

    @pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
    def test_transforms_agree_with_autograd(self, case: Any) -> None:
        _, shape, values, totals = case
        xs, totals = randn(3, *shape, scale=1.0), torch.tensor(totals)

        def f(x: Tensor) -> Tensor:
            return kofn.log_sum_prob(x, values, totals).cos().sum()

        hessian: Any = torch.autograd.functional.hessian
        expected = hessian(f, xs[0])
        check(torch.func.jacrev(torch.func.jacrev(f))(xs[0]), expected)
        looped = torch.stack([grad(f)(x) for x in xs])
        check(torch.func.vmap(grad(f))(xs), looped)
        vectorised: Any = torch.autograd.functional.jacobian
        each = lambda x: kofn.log_sum_prob(x, values, totals)  # noqa: E731
        check(vectorised(each, xs[0], vectorize=True), vectorised(each, xs[0]))

    def test_transforms_of_masked_and_ragged_bags(self) -> None:
        xs, mask = randn(3, 2, 5), torch.tensor([[True, False, True, True, True], [True] * 5])
        weights, totals = torch.tensor([1, 2, 3, 4, 5]), torch.tensor([5, 8])

        def masked(x: Tensor) -> Tensor:
            return kofn.log_sum_prob(x, weights, totals, mask=mask).sum()

        def ragged(x: Tensor) -> Tensor:
            offsets = torch.tensor([0, 4, 9])
            return kofn.log_sum_prob(x[mask], weights.expand(2, 5)[mask], totals, offsets=offsets).sum()

        posteriors = torch.func.vmap(lambda x: SumDistribution(x, weights, categories=False).posteriors(totals))(xs)
        check(posteriors, SumDistribution(xs, weights, categories=False).posteriors(totals))
        for f in (masked, ragged):
            looped = [torch.autograd.functional.jacobian(f, x) for x in xs]
            check(torch.stack([grad(f)(x) for x in xs]), torch.stack(looped))
        check(torch.func.vmap(grad(masked))(xs), torch.stack([grad(ragged)(x) for x in xs]))
        flat = torch.stack([x[mask] for x in xs])
        each = torch.func.vmap(
            lambda x: kofn.log_sum_prob(x, weights.expand(2, 5)[mask], totals, offsets=torch.tensor([0, 4, 9]))
        )
        check(each(flat).sum(1), torch.stack([masked(x) for x in xs]))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_between_the_cases(data: st.DataObject) -> None:
    n, categories = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    value = st.integers(-12, 12) if data.draw(st.booleans()) else st.sampled_from([0, 6, 10, 15, -9])
    rows = data.draw(st.lists(st.lists(value, min_size=categories, max_size=categories), min_size=n, max_size=n))
    logit = st.floats(-300, 300) | st.sampled_from([0.0, -math.inf])
    x = np.array(data.draw(st.lists(st.lists(logit, min_size=categories, max_size=categories), min_size=n, max_size=n)))
    x[(x == -np.inf).all(1)] = 0.0
    expected = log_law(x, np.array(rows))
    total = data.draw(st.sampled_from(sorted(expected)) | st.integers(-70, 70))
    logits = torch.tensor(x, dtype=torch.float64).requires_grad_()
    found = SumDistribution(logits, rows, categories=True).log_prob(total)
    check(found.detach(), expected.get(total, -math.inf))
    found.backward()
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


class TestLargeBags:
    @pytest.mark.parametrize("share", [0.001, 0.4, 0.99])
    def test_ten_thousand_weights(self, share: float) -> None:
        x, weights = randn(10_000, scale=1.5), randint(1, 51, 10_000)
        total = int(share * int(weights.sum()))
        y = x.clone().requires_grad_()
        start = time.process_time()
        value = kofn.log_sum_prob(y, weights, total)
        value.backward()
        assert time.process_time() - start < 5
        assert y.grad is not None
        found = (y.grad + x.sigmoid()) * weights
        check(found.sum(), float(total), rtol=1e-9)
        # Given the label of the first, the others have the rest of the total.
        rest = [kofn.log_sum_prob(x[1:], weights[1:], total - w) for w in (0, int(weights[0]))]
        sides = torch.stack(rest) + torch.stack([logsigmoid(-x[0]), logsigmoid(x[0])])
        check(value.detach(), sides.logsumexp(0), rtol=1e-10)

    def test_memory_is_linear(self) -> None:
        x = randn(200_000, scale=1.0).requires_grad_()
        value = kofn.log_sum_prob(x, 1 + torch.arange(200_000) % 7, 400_000)
        value.backward()
        assert bool(value.isfinite())

    def test_an_odd_total_of_even_weights_but_one(self) -> None:
        x = torch.zeros(2000, dtype=torch.float64)
        x[0] = -60.0
        weights = torch.full((2000,), 2)
        weights[0] = 1
        count = 1030
        rest = kofn.log_count_prob(x[1:], count)
        check(kofn.log_sum_prob(x, weights, 2 * count + 1), rest - softplus(-x[0]), rtol=1e-10)
        check(kofn.log_sum_prob(x, weights, 2 * count), rest - softplus(x[0]), rtol=1e-10)


class TestShapesAndErrors:
    def test_which_of_the_two_is_meant(self) -> None:
        x = randn(3, 4)
        assert kofn.log_sum_prob(x, [1, 2, 3, 4], torch.tensor([1, 2, 3])).shape == (3,)  # three bags of two classes
        assert kofn.log_sum_prob(x, [1, 2, 3, 4], 5).shape == ()  # one bag of four categories
        assert kofn.log_sum_prob(x, [1, 2, 3, 4], torch.tensor(5)).shape == ()
        assert kofn.log_sum_prob(x[0], [1, 2, 3, 4], 5).shape == ()
        y = randn(2, 3, 4)
        assert kofn.log_sum_prob(y, [1, 2, 3, 4], torch.tensor([5, 6])).shape == (2,)
        assert kofn.log_sum_prob(y, [1, 2, 3, 4], torch.full((2, 3), 5)).shape == (2, 3)
        check(kofn.log_sum_prob(y, torch.ones(3, 4).long(), torch.tensor([3, 3])), [0.0, 0.0])
        offsets = torch.tensor([0, 1, 3])
        assert kofn.log_sum_prob(x[:, 0][:3], 2, [0, 2], offsets=offsets).shape == (2,)
        assert kofn.log_sum_prob(x, [1, 2, 3, 4], [2, 4], offsets=torch.tensor([0, 1, 3])).shape == (2,)

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            (
                (torch.zeros(3, 4), torch.ones(3, 4).long(), 5),
                ValueError,
                "`total` must be a tensor with one number for",
            ),
            (
                (torch.zeros(2, 3, 4), [1, 2, 3], torch.tensor([5, 5])),
                ValueError,
                r"one for each category, shape \(4,\)",
            ),
            (
                (torch.zeros(3), [1, 2], 5),
                ValueError,
                r"`values` must hold integers, one for each instance, shape \(3,\)",
            ),
            ((torch.zeros(3), [1.5, 2, 2], 5), TypeError, "`values` must be integers, of an integer dtype; got"),
            ((torch.zeros(3), 2, 5.0), TypeError, "`total` must be integers"),
            ((torch.zeros(3), 1 << 50, 5), ValueError, "`values` must lie between"),
            (
                (torch.zeros(2, 3, 4), 1, torch.zeros(2, 3, 4).long()),
                ValueError,
                "`total` must have one number for each",
            ),
            ((torch.zeros(3).long(), 1, 2), TypeError, "`logits` must be floating point"),
            ((torch.zeros(40), (1 << 36) + torch.arange(40) ** 3, 10**12), ValueError, "must have a smaller range"),
        ],
    )
    def test_errors(self, arguments: Any, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            kofn.log_sum_prob(*arguments)

    def test_ragged_logits_of_three_dimensions(self) -> None:
        with pytest.raises(ValueError, match="`logits` must have shape"):
            kofn.log_sum_prob(torch.zeros(2, 3, 4), [0, 1, 2, 3], [1, 2], offsets=torch.tensor([0, 1, 2]))

    def test_far_apart_values_of_few_instances(self) -> None:
        x, weights = randn(3), torch.tensor([10**9, 2 * 10**9 + 1, 5])
        assert kofn.log_sum_prob(x, weights, 7) == -torch.inf
        p, q = x.sigmoid(), (-x).sigmoid()
        check(kofn.log_sum_prob(x, weights, 5), (q[0] * q[1] * p[2]).log())

    def test_repr(self) -> None:
        assert repr(SumDistribution(torch.zeros(2, 3), 1, categories=False)) == (
            "SumDistribution(dense, two classes, shape=(2,), dtype=torch.float32)"
        )
