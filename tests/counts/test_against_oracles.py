"""The engine against three independent oracles: exact fractions, 50 digits, scipy; then a large adversarial fuzz."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from bag_strategies import adversarial_count, adversarial_logits
from oracles import (
    algorithm_1,
    enumerated_law,
    enumerated_posteriors,
    log_fraction,
    long_gradient,
    long_tables,
    mpmath_gradient,
    mpmath_law,
    mpmath_log_prob,
)
from scipy.stats import poisson_binom

import kofn


def value_and_gradient(logits: torch.Tensor, count: int) -> tuple[float, torch.Tensor]:
    x = logits.clone().requires_grad_()
    value = kofn.log_count_prob(x, count)
    (gradient,) = torch.autograd.grad(value, x)
    return value.item(), gradient


@pytest.mark.parametrize("n", range(13))
def test_equals_enumeration_in_exact_fractions(n: int) -> None:
    rng = np.random.default_rng(n)
    odds = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 60, (n, 2))]
    logits = torch.tensor([log_fraction(r) for r in odds], dtype=torch.float64)
    exact = enumerated_law(odds)
    assert sum(exact) == 1
    expected = torch.tensor([log_fraction(p) for p in exact], dtype=torch.float64)
    torch.testing.assert_close(kofn.log_count_distribution(logits), expected, rtol=1e-13, atol=1e-13)
    for count in range(n + 1):
        torch.testing.assert_close(kofn.log_count_prob(logits, count), expected[count], rtol=1e-13, atol=1e-13)
        posteriors = torch.tensor([float(u) for u in enumerated_posteriors(odds, count)], dtype=torch.float64)
        torch.testing.assert_close(kofn.count_posteriors(logits, count), posteriors, rtol=1e-12, atol=1e-14)
    for low in range(n + 1):
        for high in range(low, n + 1):
            between = log_fraction(sum(exact[low : high + 1], start=Fraction(0)))
            assert kofn.log_count_between(logits, low, high).item() == pytest.approx(between, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n", [17, 80, 200, pytest.param(300, marks=pytest.mark.slow)])
def test_equals_fifty_digits(n: int, seed: int) -> None:
    rng = np.random.default_rng([n, seed])
    logits = adversarial_logits(rng, n)
    count = adversarial_count(rng, logits)
    value, gradient = value_and_gradient(torch.from_numpy(logits), count)
    expected = mpmath_log_prob(logits.tolist(), count)
    assert abs(value - expected) <= 1e-11 * max(1, abs(expected))
    error = np.abs(gradient.numpy() - np.array(mpmath_gradient(logits.tolist(), count))).max()
    assert error <= 1e-11


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_every_tail_equals_fifty_digits(scale: float) -> None:
    logits = np.random.default_rng(5).normal(0, scale, 150)
    with mpmath.workdps(50):
        expected = np.array([float(mpmath.log(p)) for p in mpmath_law(logits.tolist())])
    law = kofn.log_count_distribution(torch.from_numpy(logits)).numpy()
    assert (np.abs(law - expected) <= 1e-11 * np.maximum(1, np.abs(expected))).all()


@pytest.mark.parametrize("n", [1, 5, 64])
def test_equals_scipy_inside_its_range(n: int) -> None:
    logits = torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    law = poisson_binom(torch.sigmoid(logits).numpy())
    counts = np.arange(n + 1)
    # scipy convolves by FFT: good to 1e-16 of the largest probability, so only the bulk can be compared.
    ours = kofn.log_count_distribution(logits).exp().numpy()
    np.testing.assert_allclose(ours, law.pmf(counts), rtol=1e-9, atol=1e-14)
    at_most = [kofn.log_count_between(logits, 0, k).exp().item() for k in range(n + 1)]
    np.testing.assert_allclose(at_most, law.cdf(counts), rtol=1e-9, atol=1e-12)


def test_equals_algorithm_1_of_the_paper() -> None:
    x = torch.randn(3, 60, generator=torch.Generator().manual_seed(1), dtype=torch.float64).mul(2).requires_grad_()
    ours, theirs = kofn.log_count_distribution(x), algorithm_1(x)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    weights = torch.rand(3, 61, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (g,) = torch.autograd.grad((ours * weights).sum(), x)
    (h,) = torch.autograd.grad((theirs * weights).sum(), x)
    torch.testing.assert_close(g, h, rtol=1e-10, atol=1e-11)


@pytest.mark.slow
@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="needs floats of more than 64 bits as an oracle")
class TestFuzz:
    """Thousands of adversarial bags, up to 300 instances and logits up to 2e4, in one ragged batch a chunk."""

    CHUNKS, BAGS = 10, 300

    def test_the_long_oracle_agrees_with_fifty_digits(self) -> None:
        rng = np.random.default_rng(0)
        for n in (1, 8, 60):
            logits = adversarial_logits(rng, n)
            count = adversarial_count(rng, logits)
            tables = long_tables(logits)
            expected = mpmath_log_prob(logits.tolist(), count)
            assert float(tables[0][n, count]) == pytest.approx(expected, rel=1e-15, abs=1e-15)
            np.testing.assert_allclose(
                long_gradient(logits, count, tables).astype(float), mpmath_gradient(logits.tolist(), count), atol=1e-14
            )

    @pytest.mark.parametrize("chunk", range(CHUNKS))
    def test_value_gradient_posteriors_and_law(self, chunk: int) -> None:
        rng = np.random.default_rng([7, chunk])
        sizes = np.exp(rng.uniform(0, math.log(300), self.BAGS)).astype(int)
        bags = [adversarial_logits(rng, n) for n in sizes]
        counts = [adversarial_count(rng, bag) for bag in bags]
        offsets = torch.tensor([0, *np.cumsum(sizes)])
        logits = torch.from_numpy(np.concatenate(bags)).requires_grad_()
        values = kofn.log_count_prob(logits, torch.tensor(counts), offsets=offsets)
        (gradient,) = torch.autograd.grad(values.sum(), logits)
        with torch.no_grad():
            posteriors = kofn.count_posteriors(logits, torch.tensor(counts), offsets=offsets)
            law = kofn.log_count_distribution(logits, offsets=offsets)
        assert ((posteriors >= 0) & (posteriors <= 1)).all()
        single = logits.detach().float().requires_grad_()
        float_values = kofn.log_count_prob(single, torch.tensor(counts), offsets=offsets)
        (float_gradient,) = torch.autograd.grad(float_values.sum(), single)
        rounded = single.detach().double().requires_grad_()
        double_values = kofn.log_count_prob(rounded, torch.tensor(counts), offsets=offsets)
        (double_gradient,) = torch.autograd.grad(double_values.sum(), rounded)
        assert torch.equal(float_values, double_values.float())
        assert torch.equal(float_gradient, double_gradient.float())
        for j, (bag, count) in enumerate(zip(bags, counts, strict=True)):
            n = len(bag)
            tables = long_tables(bag)
            here = slice(int(offsets[j]), int(offsets[j + 1]))
            expected = tables[0][n].astype(float)
            size = np.maximum(1, np.abs(expected))
            assert abs(values[j].item() - expected[count]) <= 1e-11 * size[count], (chunk, j)
            wanted = long_gradient(bag, count, tables).astype(float)
            assert np.abs(gradient[here].numpy() - wanted).max() <= 1e-11, (chunk, j)
            assert abs(posteriors[here].sum().item() - count) <= 1e-9 * n, (chunk, j)
            whole = law[here.start + j : here.stop + j + 1].numpy()
            assert (np.abs(whole - expected) <= 1e-9 * size).all(), (chunk, j)

    @pytest.mark.parametrize("chunk", range(4))
    def test_intervals(self, chunk: int) -> None:
        rng = np.random.default_rng([8, chunk])
        sizes = np.exp(rng.uniform(0, math.log(300), self.BAGS)).astype(int)
        bags = [adversarial_logits(rng, n) for n in sizes]
        ends = np.sort(np.stack([[adversarial_count(rng, bag) for bag in bags] for _ in range(2)]), 0)
        offsets = torch.tensor([0, *np.cumsum(sizes)])
        logits = torch.from_numpy(np.concatenate(bags)).requires_grad_()
        low, high = torch.from_numpy(ends)
        values = kofn.log_count_between(logits, low, high + torch.arange(len(high)) % 3, offsets=offsets)
        (gradient,) = torch.autograd.grad(values.sum(), logits)
        for j, bag in enumerate(bags):
            n, last = len(bag), min(int(high[j]) + j % 3, len(bag))
            expected = np.logaddexp.reduce(long_tables(bag)[0][n, low[j] : last + 1])
            assert abs(values[j].item() - float(expected)) <= 1e-11 * max(1, abs(float(expected))), (chunk, j)
            # Another route to the gradient: the whole law, by its own windows.
            x = torch.from_numpy(bag).requires_grad_()
            (g,) = torch.autograd.grad(kofn.log_count_distribution(x)[low[j] : last + 1].logsumexp(0), x)
            torch.testing.assert_close(gradient[offsets[j] : offsets[j + 1]], g, rtol=0, atol=2e-11)


@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="needs floats of more than 64 bits as an oracle")
def test_a_bag_s_distribution_does_not_depend_on_its_batch_mates() -> None:
    # In torch, counts were told from windows in which they were 1e-3 as likely as the likeliest, and hundreds of nearly
    # certain instances each added the same rounding to an angle: 2e-15 alone could be 1.6e-11 in a batch.
    rng = np.random.default_rng(8)
    stairs = np.linspace(-2e4, 2e4, 397)
    bags = [rng.normal(0, scale, n) for n in (5, 40, 66, 90, 310) for scale in (1, 10, 1e3)] + [stairs, stairs[:399:4]]
    offsets = torch.tensor([0, *np.cumsum([len(bag) for bag in bags])])
    ragged = kofn.log_count_distribution(torch.from_numpy(np.concatenate(bags)), offsets=offsets)
    wide = np.full((len(bags), 397), -np.inf)
    for row, bag in enumerate(bags):
        wide[row, : len(bag)] = bag
    masked = kofn.log_count_distribution(torch.from_numpy(wide), mask=torch.from_numpy(wide > -np.inf))
    for j, bag in enumerate(bags):
        exact = long_tables(bag)[0][-1].astype(np.float64)
        alone = kofn.log_count_distribution(torch.from_numpy(bag)).numpy()
        start = int(offsets[j]) + j
        for found in (alone, ragged[start : start + len(exact)].numpy(), masked[j, : len(exact)].numpy()):
            assert (np.abs(found - exact) <= 5e-13 * np.maximum(1, np.abs(exact))).all(), j
