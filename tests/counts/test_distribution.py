"""What only a `CountDistribution` answers: moments, cdf, quantiles, intervals, modes, samples, and sums over bags."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from bag_strategies import bags
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import kofn
from kofn import CountDistribution


def probabilities(logits: Tensor) -> Any:
    """P(S = 0..n) by adding one instance after the other."""
    law = np.ones(1)
    for p, q in zip(torch.sigmoid(logits).tolist(), torch.sigmoid(-logits).tolist(), strict=True):
        law = np.convolve(law, [q, p])
    return law


def ragged(each: list[Tensor]) -> CountDistribution:
    return CountDistribution(torch.cat(each), offsets=torch.tensor([0, *np.cumsum([len(x) for x in each])]))


def masked(each: list[Tensor]) -> CountDistribution:
    width = max(map(len, each)) + 1
    logits = torch.full((len(each), width), math.nan, dtype=torch.float64)
    mask = torch.zeros(len(each), width, dtype=torch.bool)
    for row, x in enumerate(each):
        logits[row, 1 : len(x) + 1] = x
        mask[row, 1 : len(x) + 1] = True
    return CountDistribution(logits, mask=mask)


LAYOUTS: list[Callable[[list[Tensor]], CountDistribution]] = [ragged, masked]


@pytest.mark.parametrize("layout", LAYOUTS)
@given(st.lists(bags(max_size=9, max_scale=8.0), min_size=1, max_size=5), st.sampled_from([0.1, 0.5, 0.9, 0.99]))
@settings(max_examples=60)
def test_against_a_convolution(layout: Callable[..., CountDistribution], each: list[Tensor], level: float) -> None:
    dist = layout(each)
    assert dist.shape == (len(each),)
    assert dist.sizes.tolist() == [len(x) for x in each]
    low, high = dist.interval(level)
    quantiles, mode, mean, variance = dist.quantile(level), dist.mode, dist.mean, dist.variance
    tail = (1 - level) / 2
    for j, x in enumerate(each):
        law, counts = probabilities(x), np.arange(len(x) + 1)
        below = np.cumsum(law)
        assert mean[j].item() == pytest.approx((law * counts).sum(), abs=1e-12)
        assert variance[j].item() == pytest.approx((law * counts**2).sum() - (law * counts).sum() ** 2, abs=1e-11)
        assert law[mode[j]] == pytest.approx(law.max(), rel=1e-11)
        if np.abs(below - level).min() > 1e-9:  # else rounding decides
            assert quantiles[j] == np.flatnonzero(below >= level)[0]
        if min(np.abs(below - tail).min(), np.abs(below - 1 + tail).min()) > 1e-9:
            assert low[j] == np.flatnonzero(below > tail)[0]
            assert high[j] == np.flatnonzero(below >= 1 - tail)[0]
            assert law[low[j] : high[j] + 1].sum() >= level - 1e-12


def test_a_tail_of_exactly_the_given_probability_is_left_outside_at_both_ends() -> None:
    four = CountDistribution(torch.zeros(4, dtype=torch.float64))  # 1, 4, 6, 4, 1 sixteenths
    assert [end.item() for end in four.interval(14 / 16)] == [1, 3]
    assert [end.item() for end in four.interval(14 / 16 + 1e-6)] == [0, 4]
    assert [end.item() for end in four.interval(6 / 16)] == [2, 2]
    assert [four.quantile(q / 16).item() for q in (1, 5, 11, 15, 16)] == [0, 1, 2, 3, 4]
    assert [four.quantile(q / 16 + 1e-6).item() for q in (0, 1, 5, 11, 15)] == [0, 1, 2, 3, 4]
    two = CountDistribution(torch.zeros(1, dtype=torch.float64))  # no level, however small, crosses its ends
    assert [end.item() for end in two.interval(1e-12)] == [0, 1]


@given(bags(max_size=30, max_scale=20.0), st.floats(0.01, 0.99))
@settings(max_examples=60)
def test_mirrored_labels_have_the_mirrored_interval(x: Tensor, level: float) -> None:
    low, high = CountDistribution(x).interval(level)
    mirrored_low, mirrored_high = CountDistribution(-x).interval(level)
    assert (low, high) == (len(x) - mirrored_high, len(x) - mirrored_low)
    assert 0 <= low <= high <= len(x)


@pytest.mark.parametrize("n", [500, 20_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_quantiles_of_large_bags_are_those_of_the_binomial(n: int) -> None:
    from scipy.stats import binom

    p = 0.3
    dist = CountDistribution(torch.full((2, n), math.log(p / (1 - p)), dtype=torch.float64))
    for q in (1e-12, 0.001, 0.05, 0.5, 0.77, 0.999):
        assert dist.quantile(q).tolist() == [binom.ppf(q, n, p)] * 2
    each = dist.quantile(torch.tensor([0.05, 0.95], dtype=torch.float64))
    assert each.tolist() == [binom.ppf(0.05, n, p), binom.ppf(0.95, n, p)]
    low, high = dist.interval(0.9)
    assert (low[0], high[1]) == (each[0], each[1])


def test_certain_and_empty_bags() -> None:
    dist = ragged([torch.tensor([math.inf, math.inf, -math.inf, 0.0]).double(), torch.zeros(0).double()])
    assert [dist.quantile(q).tolist() for q in (0.0, 0.4, 0.6, 1.0)] == [[2, 0], [2, 0], [3, 0], [3, 0]]
    assert [end.tolist() for end in dist.interval(0.99)] == [[2, 0], [3, 0]]
    assert dist.mode.tolist() == [3, 0]  # of two alike the larger
    assert dist.cdf(2).tolist() == [0.5, 1.0]
    nothing = CountDistribution(torch.zeros(0), offsets=torch.tensor([0]))
    assert nothing.quantile(0.5).shape == nothing.mode.shape == nothing.interval(0.5)[0].shape == (0,)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_posteriors_of_an_interval_are_weighted_posteriors_of_its_counts(
    layout: Callable[[list[Tensor]], CountDistribution],
) -> None:
    generator = torch.Generator().manual_seed(0)
    each = [torch.randn(n, generator=generator, dtype=torch.float64) * 2 for n in (5, 1, 90, 200)]
    low, high = torch.tensor([1, 0, 30, 199]), torch.tensor([3, 0, 60, 300])
    dist = layout(each)
    found = dist.posteriors_between(low, high)
    flat = found if dist.instance_layout.offsets is not None else found[dist.logits.isnan().logical_not()]
    for part, x, a, b in zip(flat.split([len(x) for x in each]), each, low.tolist(), high.tolist(), strict=True):
        alone = CountDistribution(x)
        counts = range(a, min(b, len(x)) + 1)
        weights = (torch.stack([alone.log_prob(s) for s in counts]) - alone.log_prob_between(a, b)).exp()
        expected = sum(w * alone.posteriors(s) for w, s in zip(weights, counts, strict=True))
        torch.testing.assert_close(part, expected, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(dist.posteriors_between(None, None), dist.double()._x.sigmoid())


def test_no_bound_is_every_count() -> None:
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    dist = CountDistribution(x)
    torch.testing.assert_close(dist.log_prob_between(None, 2), kofn.log_count_between(x, 0, 2))
    torch.testing.assert_close(dist.log_prob_between(3, None), kofn.log_count_between(x, 3, 7))
    torch.testing.assert_close(dist.log_prob_between(1, None), kofn.log_count_between(x, 1, 7), rtol=1e-12, atol=0)
    none, some = dist.log_prob(0), dist.log_prob_between(1, None)
    torch.testing.assert_close(none.exp() + some.exp(), torch.ones(3).double())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_weight_gives_a_sum_over_bags_with_its_derivatives(
    layout: Callable[[list[Tensor]], CountDistribution],
) -> None:
    sizes, counts = (4, 0, 7, 100), torch.tensor([1, 0, 7, 40])
    generator = torch.Generator().manual_seed(2)
    each = [torch.randn(n, generator=generator, dtype=torch.float64).requires_grad_() for n in sizes]

    def gradients(value: Tensor) -> list[Tensor]:
        first = torch.autograd.grad(value, each, create_graph=True, allow_unused=True)
        along = torch.stack([(g * g).sum() for g in first if g is not None]).sum()
        second = torch.autograd.grad(along, each, allow_unused=True)
        return [g for g in (*first, *second) if g is not None]

    expected = -0.25 * layout(each).log_prob(counts).sum()
    total = layout(each).log_prob(counts, weight=-0.25)
    torch.testing.assert_close(total, expected, rtol=1e-14, atol=0)
    for found, wanted in zip(gradients(total), gradients(expected), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
    x = each[-1].detach()
    along = torch.ones_like(x)
    tangent = torch.func.jvp(lambda z: CountDistribution(z).log_prob(40, weight=3.0), (x,), (along,))[1]
    torch.testing.assert_close(tangent, 3 * torch.func.grad(lambda z: kofn.log_count_prob(z, 40))(x).sum())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_samples_have_the_distribution(layout: Callable[[list[Tensor]], CountDistribution]) -> None:
    dist = layout([torch.tensor([0.0, 0.0]).double(), torch.tensor([math.inf, -1.0, 2.0]).double()])
    drawn = dist.sample((5000, 4), generator=torch.Generator().manual_seed(0))
    assert drawn.shape == (5000, 4, 2)
    assert drawn.dtype == torch.int64
    torch.testing.assert_close(drawn.double().mean((0, 1)), dist.mean, rtol=0, atol=0.03)
    torch.testing.assert_close(drawn.double().var((0, 1)), dist.variance, rtol=0, atol=0.03)
    again = dist.sample((5000, 4), generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)
    assert dist.sample().shape == (2,)


def test_results_have_the_dtype_of_the_logits() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        dist = CountDistribution(torch.zeros(2, 6, dtype=dtype))
        for value in (
            dist.mean,
            dist.variance,
            dist.cdf(2),
            dist.log_prob(2, weight=1.0),
            dist.log_prob_between(1, None),
        ):
            assert value.dtype == dtype
        assert dist.double().log_probs().dtype == torch.float64
        assert dist.mode.dtype == dist.quantile(0.3).dtype == torch.int64


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_sum_over_bags(layout: Callable[[list[Tensor]], CountDistribution]) -> None:
    each = [torch.tensor([1.0, 2.0]).double(), torch.zeros(0).double(), torch.tensor([3.0, -4.0, 5.0]).double()]
    dist = layout(each)
    instances: kofn.counts.Layout = dist.instance_layout
    assert instances.sum(dist.logits).tolist() == [3.0, 0.0, 4.0]
    assert instances.max(dist.logits).tolist() == [2.0, -math.inf, 5.0]
    assert dist.count_layout.sum(dist.log_probs().exp()).tolist() == pytest.approx([1, 1, 1])
    assert instances.longest in (3, 4)  # the masked tensor is wider than its bags


def test_repr() -> None:
    assert repr(CountDistribution(torch.zeros(2, 3))) == "CountDistribution(dense, shape=(2,), dtype=torch.float32)"
    offsets = torch.tensor([0, 1, 3])
    assert "ragged, shape=(2,)" in repr(CountDistribution(torch.zeros(3), offsets=offsets))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: d.quantile(1.5), "`q` must lie between 0 and 1; got 1.5"),
        (lambda d: d.quantile(torch.zeros(3)), r"`q` must hold one number for each bag, shape \(2,\)"),
        (lambda d: d.interval(1.0), "`level` must be a probability above 0 and below 1; got 1.0"),
        (lambda d: CountDistribution(d.logits * math.nan).interval(0.5), "`logits` must not be NaN"),
        (lambda d: d.cdf(torch.tensor([1, 2, 3])), "`high` must hold one number for each bag"),
    ],
)
def test_messages_of_a_distribution(call: Callable[[CountDistribution], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(CountDistribution(torch.ones(2, 4)))


class TestWrongAnswersThatWereFound:
    def test_the_lazy_negative_bit_is_resolved(self) -> None:
        # Natively the memory was read without its sign: -0.1269 in place of -2.1269.
        x = torch.tensor([[1 + 2j]]).conj().imag
        assert x.is_neg()
        assert kofn.log_count_prob(x, 1).item() == pytest.approx(-2.126928, rel=1e-6)
        assert kofn.log_count_distribution(x)[0, 1].item() == pytest.approx(-2.126928, rel=1e-6)
        assert kofn.count_posteriors(x.repeat(1, 2), 1).tolist() == [[0.5, 0.5]]
        logits = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
        upstream = torch.complex(torch.ones(2), torch.ones(2)).to(torch.complex128).conj().imag  # -1
        for value in (kofn.log_count_prob(logits, 1), kofn.log_count_distribution(logits)[:, 1]):
            (gradient,) = torch.autograd.grad(value, logits, upstream)
            torch.testing.assert_close(gradient, torch.full((2, 3), 1 / 6, dtype=torch.float64))
        flat = torch.zeros(4, dtype=torch.float64, requires_grad=True)
        value = kofn.log_count_prob(flat, 1, offsets=torch.tensor([0, 2, 4]))
        assert torch.autograd.grad(value, flat, upstream)[0].abs().max() < 1e-15

    def test_whole_numbers_beyond_64_bits_stay_large(self) -> None:
        x = torch.zeros(4)
        most = torch.tensor(2**64 - 1, dtype=torch.uint64)  # was -1
        assert kofn.log_count_between(x, 1, most) == kofn.log_count_between(x, 1, 4)
        assert kofn.log_count_between(x, 1, 2**70) == kofn.log_count_between(x, 1, 4)
        assert kofn.log_count_between(x, -(2**70), 1) == kofn.log_count_between(x, 0, 1)
        assert kofn.log_count_prob(x, most) == -math.inf
        assert kofn.log_count_prob(x, torch.tensor(3, dtype=torch.uint64)) == kofn.log_count_prob(x, 3)
