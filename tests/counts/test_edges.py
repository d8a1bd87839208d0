"""Empty bags, ends, impossible counts, infinite and saturated logits, NaN: nothing is lost, nothing hangs."""

from __future__ import annotations

import math

import pytest
import torch
from distribution_cases import log_prob_and_gradient
from torch import Tensor

import kofn

INF = math.inf


def with_gradient(logits: Tensor, count: int | Tensor, **kwargs: Tensor) -> tuple[Tensor, Tensor]:
    x = logits.clone().requires_grad_()
    value = kofn.log_count_prob(x, count, **kwargs)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient


def test_empty_bags() -> None:
    none = torch.empty(2, 0)
    assert kofn.log_count_prob(none, torch.tensor([0, 1])).tolist() == [0.0, -INF]
    assert kofn.log_count_distribution(none).tolist() == [[0.0], [0.0]]
    assert kofn.log_count_between(none, 0, 5).tolist() == [0.0, 0.0]
    assert kofn.count_posteriors(none, 0).shape == (2, 0)
    assert kofn.log_count_distribution(torch.empty(0)).tolist() == [0.0]


def test_empty_batches() -> None:
    no_bags = torch.empty(0, 5)
    assert kofn.log_count_prob(no_bags, torch.empty(0, dtype=torch.long)).shape == (0,)
    assert kofn.log_count_distribution(no_bags).shape == (0, 6)
    assert kofn.log_count_between(no_bags, 0, 2).shape == (0,)
    assert kofn.count_posteriors(no_bags, 1).shape == (0, 5)
    offsets = torch.tensor([0])
    flat = torch.empty(0)
    assert kofn.log_count_prob(flat, 0, offsets=offsets).shape == (0,)
    assert kofn.log_count_distribution(flat, offsets=offsets).shape == (0,)
    assert kofn.count_posteriors(flat, 0, offsets=offsets).shape == (0,)
    large = torch.empty(0, 300)
    assert kofn.log_count_prob(large, 1).shape == (0,)
    assert kofn.log_count_between(large, 1, 2).shape == (0,)
    assert kofn.log_count_distribution(large).shape == (0, 301)


@pytest.mark.parametrize("x", [-800.0, -40.0, -1.0, 0.0, 3.0, 40.0, 800.0])
def test_a_bag_of_one_is_cross_entropy_to_the_last_digit(x: float) -> None:
    logits = torch.tensor([[x], [x]], dtype=torch.float64)
    value, gradient = with_gradient(logits, torch.tensor([1, 0]))
    expected = torch.nn.functional.logsigmoid(torch.tensor([x, -x], dtype=torch.float64))
    torch.testing.assert_close(value, expected, rtol=5e-16, atol=0)  # relative, down to losses of 1e-348
    slope = torch.tensor([1.0, 0.0]).double() - torch.sigmoid(logits[:, 0])
    torch.testing.assert_close(gradient[:, 0], slope, rtol=5e-16, atol=2e-16)


@pytest.mark.parametrize("n", [1, 7, 200])
def test_the_ends_are_sums_of_logsigmoids(n: int) -> None:
    logits = torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64) * 10
    nobody, downwards = with_gradient(logits, 0)
    everybody, upwards = with_gradient(logits, n)
    torch.testing.assert_close(nobody, torch.nn.functional.logsigmoid(-logits).sum(), rtol=1e-15, atol=0)
    torch.testing.assert_close(everybody, torch.nn.functional.logsigmoid(logits).sum(), rtol=1e-15, atol=0)
    torch.testing.assert_close(downwards, -torch.sigmoid(logits), rtol=1e-15, atol=0)
    torch.testing.assert_close(upwards, 1 - torch.sigmoid(logits), rtol=1e-15, atol=2e-16)


@pytest.mark.parametrize("n", [1, 6, 150])
@pytest.mark.parametrize("count", [-3, -1, 1000])
def test_impossible_counts(n: int, count: int) -> None:
    logits = torch.randn(2, n, generator=torch.Generator().manual_seed(0))
    value, gradient = with_gradient(logits, count)
    assert (value == -INF).all()
    assert (gradient == 0).all()
    # An impossible count says nothing of the labels.
    assert torch.equal(kofn.count_posteriors(logits, count), torch.sigmoid(logits.double()).float())
    x = logits.clone().requires_grad_()
    empty = kofn.log_count_between(x, 2, 1)
    (gradient,) = torch.autograd.grad(empty.sum(), x)
    assert (empty == -INF).all()
    assert (gradient == 0).all()


def test_weight_on_impossible_counts_has_no_gradient() -> None:
    x = torch.tensor([[0.3, INF, -1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, True, True, False])
    law = kofn.log_count_distribution(x, mask=mask)
    assert law[0, 0] == -INF  # one positive is certain
    assert law[0, 4] == -INF  # three instances at most
    (gradient,) = torch.autograd.grad(law[0, [0, 4]].sum(), x)
    assert (gradient == 0).all()


@pytest.mark.parametrize("n", [4, 140])
def test_certain_instances_are_taken_out(n: int) -> None:
    rest = torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    logits = torch.cat([torch.tensor([INF, -INF, INF], dtype=torch.float64), rest])
    for count in (2, 3, n // 2, n + 2):
        value, gradient = with_gradient(logits, count)
        expected, inner = with_gradient(rest, count - 2)
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(gradient[3:], inner, rtol=1e-12, atol=1e-13)
        assert (gradient[:3] == 0).all()
        assert kofn.count_posteriors(logits, count)[:3].tolist() == [1.0, 0.0, 1.0]
    for count in (0, 1, n + 3):
        value, gradient = with_gradient(logits, count)
        assert value == -INF
        assert (gradient == 0).all()
    law = kofn.log_count_distribution(logits)
    torch.testing.assert_close(law[2:-1], kofn.log_count_distribution(rest), rtol=1e-12, atol=1e-12)
    assert law[:2].tolist() == [-INF, -INF]
    assert law[-1] == -INF


def test_all_certain() -> None:
    logits = torch.tensor([INF, INF, -INF])
    assert kofn.log_count_distribution(logits).tolist() == [-INF, -INF, 0.0, -INF]
    value, gradient = with_gradient(logits, 2)
    assert value == 0
    assert (gradient == 0).all()


@pytest.mark.parametrize("n", [3, 50, 200])
@pytest.mark.parametrize("x", [1e4, -1e4, 1e6, 1e300])
def test_saturated_and_equal_logits(n: int, x: float) -> None:
    logits = torch.full((n,), x, dtype=torch.float64)
    for count in (0, 1, n // 2, n):
        value, gradient = with_gradient(logits, count)
        misses = n - count if x > 0 else count
        choose = math.lgamma(n + 1) - math.lgamma(count + 1) - math.lgamma(n - count + 1)
        assert value.item() == pytest.approx(choose - misses * abs(x), rel=1e-12, abs=1e-12)
        assert gradient.isfinite().all()
        if abs(x) < 1e16:  # beyond, the distance between two floats exceeds any tilt
            expected = torch.full_like(gradient, count / n) - torch.sigmoid(logits)
            torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-11)
    assert kofn.log_count_distribution(logits).isfinite().all()


@pytest.mark.parametrize("n", [6, 130])
def test_half_of_the_bag_saturated_each_way(n: int) -> None:
    logits = torch.cat([torch.full((n // 2,), 1e4), torch.full((n // 2,), -1e4)]).double()
    value, gradient = with_gradient(logits, n // 2)
    assert -1e-14 < value <= 0
    assert gradient.abs().max() < 1e-14
    one_more, gradient = with_gradient(logits, n // 2 + 1)
    assert one_more.item() == pytest.approx(math.log(n // 2) - 1e4, rel=1e-13)
    torch.testing.assert_close(gradient[n // 2 :], torch.full((n // 2,), 2 / n, dtype=torch.float64))


@pytest.mark.parametrize("n", [1, 5, 200])
def test_nan_comes_out_as_nan_in_its_own_bag_only(n: int) -> None:
    logits = torch.zeros(2, n, dtype=torch.float64)
    logits[0, 0] = math.nan
    for count in (0, 1, n, n + 5):
        value, gradient = with_gradient(logits, count)
        assert value[0].isnan()
        assert gradient[0].isnan().all()
        assert not value[1].isnan()
        assert gradient[1].isfinite().all()
    x = logits.clone().requires_grad_()
    for result in (
        kofn.log_count_distribution(x),
        kofn.log_count_between(x, 0, n),
        kofn.log_count_between(x, 1, 1),
        kofn.count_posteriors(x, 1),
    ):
        assert result[0].isnan().all()
        assert not result[1].isnan().any()
        (gradient,) = torch.autograd.grad(result.masked_fill(result == -INF, 0).sum(), x)
        assert gradient[0].isnan().any()
        assert gradient[1].isfinite().all()


def test_a_nan_beside_bags_that_are_hard_to_tilt() -> None:
    # Rows that need the restart of the tilt's solve, in a batch with a row that has no tilt.
    logits = torch.linspace(-2e4, 2e4, 90, dtype=torch.float64).repeat(3, 1)
    logits[0, 5] = math.nan
    value = kofn.log_count_between(logits, torch.tensor([3, 60, 3]), torch.tensor([7, 70, 5]))
    assert value[0].isnan()
    assert value[1:].isfinite().all()
    one = kofn.log_count_prob(logits, torch.tensor([3, 60, 3]))
    assert one[0].isnan()
    assert one[1:].isfinite().all()


def test_an_interval_of_every_count_is_certain() -> None:
    x = torch.randn(3, 9, requires_grad=True)
    value = kofn.log_count_between(x, -2, 30)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    assert (value == 0).all()
    assert (gradient == 0).all()


@pytest.mark.parametrize("n", [3, 100])
def test_the_largest_and_smallest_whole_numbers(n: int) -> None:
    least, most = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
    x = torch.zeros(n, dtype=torch.float64)
    x[0] = INF
    assert kofn.log_count_between(x, least, most) == 0
    assert kofn.log_count_between(x, 1, most) == 0
    assert kofn.log_count_between(x, least, 0) == -INF
    assert kofn.log_count_between(x, most, least) == -INF
    for count in (least, most):
        assert kofn.log_count_prob(x, count) == -INF
        assert kofn.count_posteriors(x, count).isfinite().all()


@pytest.mark.parametrize("n", [3, 40, 300])
def test_finite_gradients_for_every_finite_logit(n: int) -> None:
    g = torch.Generator().manual_seed(n)
    sizes = torch.tensor([1e-300, 1e-8, 1.0, 50.0, 1e4, 1e12, 1e30, 1e300], dtype=torch.float64)
    for _ in range(5):
        pick = torch.randint(0, len(sizes), (8, n), generator=g)
        x = (sizes[pick] * torch.randn(8, n, generator=g, dtype=torch.float64)).requires_grad_()
        counts = torch.randint(0, n + 1, (8,), generator=g)
        for value in (kofn.log_count_prob(x, counts), kofn.log_count_distribution(x)):
            assert not value.isnan().any()
            (gradient,) = torch.autograd.grad(value.clamp(min=-1e300).sum(), x)
            assert gradient.isfinite().all()


def test_inputs_are_left_alone() -> None:
    logits = torch.tensor([[0.5, INF, -INF, 2.0]])
    mask = torch.tensor([[True, True, True, False]])
    before = logits.clone(), mask.clone()
    kofn.log_count_prob(logits, 2, mask=mask)
    kofn.log_count_distribution(logits, mask=mask)
    assert torch.equal(logits, before[0])
    assert torch.equal(mask, before[1])


LARGE_BAGS = [  # logits, count, log P(S = count), posteriors, by exact fractions
    ([1e40, 1e40, -1e40], 1, -1e40, [0.5, 0.5, 0.0]),
    ([1e300, 1e300, -1e300], 0, -2e300, [0.0, 0.0, 0.0]),
    ([1e150, -1e150, -1e150, 0.0], 3, -1e150, [1.0, 0.5, 0.5, 1.0]),
    ([2e200, 1e200, -1e200, -3e200], 3, -1e200, [1.0, 1.0, 1.0, 0.0]),
    ([-1e9, -1e9, -1e9], 1, -1e9 + math.log(3), [1 / 3, 1 / 3, 1 / 3]),
    ([1.5, 0.5, -1e15], 2, -math.log1p(math.exp(-1.5)) - math.log1p(math.exp(-0.5)), [1.0, 1.0, 0.0]),
    ([0.0, 0.0, 1e300, -1e300], 2, -math.log(2), [0.5, 0.5, 1.0, 0.0]),
]


@pytest.mark.parametrize(("logits", "count", "expected", "posteriors"), LARGE_BAGS)
def test_finite_logits_of_any_size(
    logits: list[float], count: int, expected: float, posteriors: list[float] | None
) -> None:
    """Sums of them lose what their differences say: beyond 1e17 native gave -inf, and torch lost digits at 1e9."""
    x = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    whole, other = kofn.log_count_distribution(x), torch.zeros(2, dtype=torch.float64)
    ragged = kofn.log_count_prob(
        torch.cat([other, x]), torch.tensor([1, count]), offsets=torch.tensor([0, 2, 2 + len(x)])
    )[1]
    for value in (kofn.log_count_prob(x, count), kofn.log_count_between(x, count, count), whole[count], ragged):
        assert value.item() == pytest.approx(expected, rel=1e-13)
        if posteriors is not None:
            (slope,) = torch.autograd.grad(value, x, retain_graph=True)
            truth = torch.tensor(posteriors, dtype=torch.float64)
            torch.testing.assert_close(kofn.count_posteriors(x, count).detach(), truth, rtol=0, atol=1e-12)
            torch.testing.assert_close(slope, truth - x.detach().sigmoid(), rtol=0, atol=1e-12)
    value, slope = log_prob_and_gradient(kofn.CountDistribution(x.detach()), count)
    assert value.item() == pytest.approx(expected, rel=1e-13)
    if posteriors is not None:
        torch.testing.assert_close(slope, truth - x.detach().sigmoid(), rtol=0, atol=1e-12)


def test_fillers_of_the_smallest_float_are_absent_instances() -> None:
    x = torch.randn(3, 40, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(40) < torch.tensor([[40], [17], [1]])
    filled = x.masked_fill(~mask, torch.finfo(torch.float32).min)
    counts = torch.tensor([11, 3, 1])
    torch.testing.assert_close(kofn.log_count_prob(filled, counts), kofn.log_count_prob(x, counts, mask=mask))
    table, expected = kofn.log_count_distribution(filled), kofn.log_count_distribution(x, mask=mask)
    possible = expected > -torch.inf
    torch.testing.assert_close(table[possible], expected[possible])
