"""All counts of large bags: the C++ core's tree of convolutions against other ways to the same numbers."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from distribution_cases import log_prob_and_gradient
from oracles import long_tables

import kofn
from kofn.counts import _native

LEVELS = [pytest.param(level, id=f"level {level}") for level in _native.levels()]
rng = np.random.default_rng(0)
BAGS = {
    "scattered": rng.normal(0, 1.5, 1000),
    "sorted": np.sort(rng.normal(0, 1.5, 1000)),
    "equal": np.full(1000, 0.3),
    "rare": rng.normal(-8, 1, 1000),
    "confident": rng.normal(0, 30, 700),
    "two ties": np.where(rng.random(700) < 0.5, -20.0, 20.0),
    "staircase": np.linspace(-3000, 3000, 400),
    "half undecided": np.concatenate([np.zeros(400), rng.normal(0, 300, 300)]),
    "no digit in common": rng.normal(0, 1, 300) * rng.choice([1e-8, 1.0, 1e12], 300),
    "fewer than a leaf": rng.normal(0, 40, 40),
    "one more than the recursion takes": rng.normal(0, 1, 129),
}


@pytest.fixture(scope="module", autouse=True)
def backend() -> str:
    """These tests are of the core."""
    if not _native.available:
        pytest.skip("the C++ core is not built: install with a C++ compiler")
    return "native"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", BAGS)
def test_every_count_against_80_bits(name: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "level", level)
    expected = long_tables(BAGS[name])[0][-1]
    found = kofn.log_count_distribution(torch.from_numpy(BAGS[name])).numpy()
    assert np.all(np.abs(found - expected) <= 1e-12 * np.maximum(1, np.abs(expected)))


@pytest.mark.parametrize("level", LEVELS)
def test_tails_of_a_hundred_thousand_against_50_digits(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "level", level)
    n, logit = 100_000, -0.7
    found = kofn.log_count_distribution(torch.full((n,), logit, dtype=torch.float64))
    with mpmath.workdps(50):
        log_p, log_q = -mpmath.log(1 + mpmath.exp(-logit)), -mpmath.log(1 + mpmath.exp(logit))
        for s in (0, 1, 2, 17, 1_000, 20_000, 33_181, 33_182, 35_000, 60_000, 99_000, n - 1, n):
            ways = mpmath.loggamma(n + 1) - mpmath.loggamma(s + 1) - mpmath.loggamma(n - s + 1)
            expected = float(ways + s * log_p + (n - s) * log_q)
            assert found[s].item() == pytest.approx(expected, rel=1e-12, abs=1e-11)


def test_all_counts_are_those_of_one_count_at_a_time() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(30_000, generator=g, dtype=torch.float64) * 3 - 1
    law = kofn.log_count_distribution(x)
    counts = torch.randint(0, len(x) + 1, (60,), generator=g)
    one_by_one = kofn.log_count_prob(x.expand(60, -1), counts)
    torch.testing.assert_close(law[counts], one_by_one, rtol=1e-12, atol=1e-11)
    assert law.logsumexp(0).item() == pytest.approx(0, abs=1e-11)


def test_the_gradient_of_far_tails_is_that_of_their_counts() -> None:
    g = torch.Generator().manual_seed(1)
    x = (torch.randn(5_000, generator=g, dtype=torch.float64) * 2).requires_grad_()
    counts = torch.tensor([3, 700, 2_500, 4_990])
    (found,) = torch.autograd.grad(kofn.log_count_distribution(x)[counts].sum(), x)
    expected = log_prob_and_gradient(kofn.CountDistribution(x.detach().expand(4, -1)), counts)[1].sum(0)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
