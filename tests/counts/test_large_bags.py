"""One bag on several threads: bags that the C++ core takes in chunks, beside the torch engine and closed forms."""

from __future__ import annotations

import math
from collections.abc import Iterator

import mpmath
import pytest
import torch
from distribution_cases import log_prob_and_gradient
from torch import Tensor

import kofn
from kofn.counts import _native

N = 140_000  # more than the largest bag that is not cut into chunks
INF = math.inf


@pytest.fixture(scope="module", autouse=True)
def backend() -> Iterator[str]:
    """These tests are of the core."""
    if not _native.available:
        pytest.skip("the C++ core is not built: install with a C++ compiler")
    with kofn.counts.use("native"):
        yield "native"


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def large_bag(dtype: torch.dtype = torch.float64, *, scale: float = 1.5, infinite: bool = False) -> Tensor:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(N, generator=g, dtype=torch.float64) * scale
    if infinite:
        x[torch.randperm(N, generator=g)[:5_000]] = INF
        x[:20_000] = -INF  # a chunk without an undecided instance
    return x.to(dtype)


def answers(x: Tensor, low: int, high: int) -> list[Tensor]:
    """log P of a count and of an interval, their gradients, and posteriors."""
    x = x.clone().requires_grad_()
    one, between = kofn.log_count_prob(x, low), kofn.log_count_between(x, low, high)
    slopes = [torch.autograd.grad(value, x)[0] for value in (one, between)]
    return [one.detach(), between.detach(), *slopes, kofn.count_posteriors(x.detach(), low)]


QUESTIONS = {
    "near the mean": (70_000, 70_200),
    "in the tail": (100_000, 100_010),
    "almost none": (3, 40),
    "no tilt is needed": (69_900, N),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_number_of_threads_changes_no_digit(
    question: str, infinite: bool, dtype: torch.dtype, two_threads: None
) -> None:
    x = large_bag(dtype, infinite=infinite)
    with_two = answers(x, *QUESTIONS[question])
    torch.set_num_threads(1)
    for a, b in zip(with_two, answers(x, *QUESTIONS[question]), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("question", "infinite"), [("near the mean", True), ("in the tail", False)])
def test_chunks_give_what_torch_gives(question: str, infinite: bool, two_threads: None) -> None:
    x = large_bag(infinite=infinite)
    found = answers(x, *QUESTIONS[question])
    torch.set_num_threads(1)
    with kofn.counts.use("torch"):
        expected = answers(x, *QUESTIONS[question])
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("level", _native.levels())
def test_every_instruction_set_takes_chunks(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "level", level)
    logit, count = -0.7, 40_000
    x = torch.full((N,), logit, dtype=torch.float64)
    p = 1 / (1 + math.exp(-logit))
    ways = math.lgamma(N + 1) - math.lgamma(count + 1) - math.lgamma(N - count + 1)
    value, slope = log_prob_and_gradient(kofn.CountDistribution(x), count)
    expected = ways + count * math.log(p) + (N - count) * math.log1p(-p)
    assert value.item() == pytest.approx(expected, abs=1e-7)  # lgamma has no more digits
    torch.testing.assert_close(slope, torch.full_like(x, count / N - p), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bags_that_need_no_distribution(dtype: torch.dtype) -> None:
    x = large_bag(dtype)
    p = torch.sigmoid(x.double())
    none, slope = log_prob_and_gradient(kofn.CountDistribution(x), 0)
    torch.testing.assert_close(none, torch.nn.functional.logsigmoid(-x.double()).sum().to(dtype))
    torch.testing.assert_close(slope, -p.to(dtype))
    every, slope = log_prob_and_gradient(kofn.CountDistribution(x), N)
    torch.testing.assert_close(every, torch.nn.functional.logsigmoid(x.double()).sum().to(dtype))
    torch.testing.assert_close(slope, (1 - p).to(dtype))
    for low, high, log_p in ((-5, -1, -INF), (N + 1, N + 7, -INF), (0, N, 0.0), (-1, N + 3, 0.0)):
        y = x.clone().requires_grad_()
        found = kofn.log_count_between(y, low, high)
        assert found.item() == log_p
        assert not torch.autograd.grad(found, y)[0].any()
    decided = torch.full((N,), INF, dtype=dtype)
    decided[1_000:] = -INF
    value, slope = log_prob_and_gradient(kofn.CountDistribution(decided), 1_000)
    assert value.item() == 0
    assert not slope.any()
    assert kofn.log_count_prob(decided, 1_001).item() == -INF


def test_a_nan_makes_the_whole_bag_nan_and_no_other() -> None:
    x = torch.cat([large_bag(), torch.zeros(4, dtype=torch.float64), large_bag(infinite=True)])
    x[N + 4 + 30_000] = math.nan
    offsets = torch.tensor([0, N, N + 4, 2 * N + 4])
    y = x.clone().requires_grad_()
    value = kofn.log_count_prob(y, torch.tensor([70_000, 2, 70_000]), offsets=offsets)
    (slope,) = torch.autograd.grad(value.sum(), y)
    assert value.isnan().tolist() == [False, False, True]
    assert value[1].exp().item() == pytest.approx(0.375)
    assert slope[: N + 4].isfinite().all()
    assert slope[N + 4 :].isnan().all()
    assert kofn.count_posteriors(x, torch.tensor([70_000, 2, 70_000]), offsets=offsets)[N + 4 :].isnan().all()


def test_large_and_small_bags_of_one_batch(two_threads: None) -> None:
    g = torch.Generator().manual_seed(1)
    sizes = [3, N, 0, 300, 20_000, N + 1, 1]
    offsets = torch.tensor([0, *torch.tensor(sizes).cumsum(0)])
    x = torch.randn(int(offsets[-1]), generator=g, dtype=torch.float64)
    counts = torch.tensor(sizes) // 2
    value, slope = log_prob_and_gradient(kofn.CountDistribution(x, offsets=offsets), counts)
    for j, count in enumerate(counts.tolist()):
        here = slice(int(offsets[j]), int(offsets[j + 1]))
        one, by = log_prob_and_gradient(
            kofn.CountDistribution(x[here]), torch.tensor(count)
        )  # not the closed form of 0
        torch.testing.assert_close(value[j], one, rtol=0, atol=0)
        torch.testing.assert_close(slope[here], by, rtol=0, atol=0)


def test_logits_so_far_apart_that_the_tilt_is_between_order_statistics(two_threads: None) -> None:
    x = torch.linspace(-1e7, 1e7, N, dtype=torch.float64)
    count = N // 3
    value, slope = log_prob_and_gradient(kofn.CountDistribution(x), count)
    expected = x[N - count :].clamp(max=0).sum() - x[: N - count].clamp(min=0).sum()
    assert value.item() == pytest.approx(expected.item())
    posterior = slope + torch.sigmoid(x)
    assert posterior.sum().item() == pytest.approx(count, abs=1e-6)


def test_costs_of_the_parts_of_a_bag_are_summed_to_twice_the_digits() -> None:
    """What the sum over 122 parts rounds away is put back: else hundreds of units of the last place are lost."""
    if kofn.counts.backend() != "native":
        pytest.skip("of the C++ core only")
    size, logit = 2_000_000, -1000.1
    count = 1_200_001
    with mpmath.workdps(40):
        x = mpmath.mpf(logit)
        ways = mpmath.loggamma(size + 1) - mpmath.loggamma(count + 1) - mpmath.loggamma(size - count + 1)
        expected = float(ways + count * x - size * mpmath.log1p(mpmath.exp(x)))
    value = kofn.log_count_prob(torch.full((size,), logit, dtype=torch.float64), count)
    assert value.item() == pytest.approx(expected, rel=1e-15, abs=0)
