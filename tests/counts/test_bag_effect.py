"""Bags with a common shift of their logits, against adaptive quadrature of exact distributions, and by laws."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import torch
from bag_strategies import bags
from child_processes import finish, start
from distribution_cases import log_prob_and_gradient
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.distributions import Laplace

import kofn
from kofn import CountDistribution
from kofn.counts import _quantiles
from kofn.counts._layout import Ragged

Question = Callable[[CountDistribution], Tensor]


def distribution(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(S = 0..n) of independent labels, by adding one instance after the other."""
    law = np.ones(1)
    for p in 1 / (1 + np.exp(-x)):
        law = np.convolve(law, [1 - p, p])
    return law


def by_quadrature(x: Tensor, sigma: float) -> NDArray[np.float64]:
    """P(S = 0..n) with a shift, by scipy's adaptive quadrature, count by count."""
    logits = x.numpy()

    def integrand(z: float, count: int) -> float:
        return float(distribution(logits + sigma * z)[count] * math.exp(-z * z / 2) / math.sqrt(2 * math.pi))

    points = sorted({float(np.clip(-v / sigma, -11, 11)) for v in logits})[:20]
    return np.array(
        [quad(integrand, -12, 12, (k,), points=points, limit=400, epsabs=1e-13)[0] for k in range(len(logits) + 1)]
    )


@pytest.mark.parametrize("sigma", [0.05, 0.5, 2.0, 5.0])
def test_every_count_against_adaptive_quadrature(sigma: float) -> None:
    x = torch.tensor([-2.0, 0.3, 1.0, 4.0, -0.5], dtype=torch.float64)
    dist, expected = CountDistribution(x, bag_effect=sigma), by_quadrature(x, sigma)
    counts = torch.arange(6)
    one_by_one = CountDistribution(x.expand(6, -1), bag_effect=sigma).log_prob(counts).exp()
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(dist.log_probs().exp(), expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(dist.log_prob_between(1, 3).exp(), expected[1:4].sum(), rtol=1e-8)
    np.testing.assert_allclose(dist.log_prob_between(1, None).exp(), expected[1:].sum(), rtol=1e-8)
    np.testing.assert_allclose(dist.cdf(2), expected[:3].sum(), rtol=1e-8)
    mean = (expected * np.arange(6)).sum()
    np.testing.assert_allclose(dist.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(dist.variance, (expected * np.arange(6) ** 2).sum() - mean**2, rtol=1e-7)
    assert int(dist.mode) == int(expected.argmax())
    below = expected.cumsum()
    assert int(dist.quantile(0.4)) == int((below < 0.4).sum())
    low, high = dist.interval(0.8)
    assert int(low) == int((below <= 0.1).sum())
    assert int(high) == 5 - int((expected[::-1].cumsum() <= 0.1).sum())


def by_mpmath(logits: list[float], sigma: float) -> list[mpmath.mpf]:
    """log P(S = 0..n) with a shift, to forty digits: in pieces between and around the -x_i, where the law changes."""
    with mpmath.workdps(40):
        x, s = [mpmath.mpf(v) for v in logits], mpmath.mpf(sigma)
        n = len(x)
        ends = [sign * s * (n * s + 12) for sign in (-1, 1)]
        cuts = {*ends, *(s * s * k + s * j for k in range(-n, n + 1) for j in range(-12, 13, 2))}
        for value in {0, *x}:
            cuts |= {-value + sign * mpmath.mpf(2) ** k for sign in (-1, 1) for k in range(0, 60)}
        points = sorted(u for u in cuts if ends[0] <= u <= ends[1])

        def integrand(u: mpmath.mpf) -> list[mpmath.mpf]:
            law = [mpmath.exp(-((u / s) ** 2) / 2) / (s * mpmath.sqrt(2 * mpmath.pi))]
            for value in x:
                p, q = 1 / (1 + mpmath.exp(-value - u)), 1 / (1 + mpmath.exp(value + u))
                law = [q * a + p * b for a, b in zip([*law, 0], [0, *law], strict=True)]
            return law

        nodes = _gauss()
        total = [mpmath.mpf(0)] * (n + 1)
        for left, right in pairwise(points):
            half = (right - left) / 2
            for a, w in nodes:
                total = [t + half * w * v for t, v in zip(total, integrand(left + half * (1 + a)), strict=True)]
        return [mpmath.log(t) for t in total]


def _gauss() -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Gauss' rule of 24 nodes, by Newton's method from numpy's."""
    found = []
    for a in np.polynomial.legendre.leggauss(24)[0]:
        node = mpmath.findroot(lambda t: mpmath.legendre(24, t), mpmath.mpf(float(a)))
        slope = 24 * (node * mpmath.legendre(24, node) - mpmath.legendre(23, node)) / (node**2 - 1)
        found.append((node, 2 / ((1 - node**2) * slope**2)))
    return found


AWKWARD = [
    [-745.0, -745.0, 745.0],
    [-40.0, 40.0, -40.0, 40.0],
    [0.0, 0.1, -2.0, 30.0],
    [1e5, 1e5 + 3.0, -200.0],
    [5.0, 5.0, 5.0, 5.0],
]


@pytest.mark.parametrize("sigma", [1e-6, 0.01, 1.0, 5.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("logits", AWKWARD)
def test_tails_and_effects_of_any_size_have_nine_digits(logits: list[float], sigma: float) -> None:
    """Tables and intervals were wrong in far tails, and single counts too of effects above 100."""
    expected = torch.tensor([float(v) for v in by_mpmath(logits, sigma)], dtype=torch.float64)
    counts = torch.arange(len(expected))
    x = torch.tensor(logits, dtype=torch.float64)
    rows = CountDistribution(x.expand(len(counts), -1), bag_effect=sigma)
    for found in (rows.log_prob(counts), rows.log_prob_between(counts, counts), rows.log_probs()[0]):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    probs = expected.exp()
    torch.testing.assert_close(rows.mean[0], (probs * counts).sum(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(rows.variance[0], (probs * (counts - rows.mean[0]).square()).sum(), rtol=1e-9, atol=1e-9)


def test_a_bag_of_two_kinds_in_a_far_tail() -> None:
    x = torch.cat([torch.full((100,), -745.0), torch.full((50,), 745.0)]).double()
    dist = CountDistribution(x, bag_effect=5.0)
    for found in (dist.log_prob(132), dist.log_probs()[132], dist.log_prob_between(132, 132)):
        assert found.item() == pytest.approx(-11128.064616552954, rel=1e-13)  # by mpmath


def test_a_large_effect_makes_a_bag_all_or_nothing_at_no_cost() -> None:
    """The mean took 48 nodes for each unit of sigma: a minute at 1e4."""
    x = torch.randn(150, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    dist = CountDistribution(x, bag_effect=1e6)
    begin = time.perf_counter()
    ends = dist.log_probs()[[0, -1]].exp()
    assert ends.tolist() == pytest.approx([0.5, 0.5], abs=1e-5)
    assert dist.mean.item() == pytest.approx(75, abs=1e-3)
    assert dist.variance.item() == pytest.approx(75**2, rel=1e-4)
    assert time.perf_counter() - begin < 20  # two days for the mean, before


@given(bags(max_size=12, max_scale=6.0), st.sampled_from([0.1, 0.7, 3.0]))
@settings(max_examples=40)
def test_it_is_a_distribution_and_its_mirror_image_that_of_the_negatives(x: Tensor, sigma: float) -> None:
    dist = CountDistribution(x, bag_effect=sigma)
    probs, counts = dist.log_probs().exp(), torch.arange(len(x) + 1, dtype=torch.float64)
    torch.testing.assert_close(probs.sum(), torch.ones((), dtype=torch.float64), rtol=1e-8, atol=0)
    torch.testing.assert_close((probs * counts).sum(), dist.mean, rtol=1e-7, atol=1e-9)
    mirrored = CountDistribution(-x, bag_effect=sigma).log_probs()
    torch.testing.assert_close(mirrored.flip(0), dist.log_probs(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("zero", [0, 0.0, torch.zeros(3), torch.tensor(0.0), None])
def test_no_effect_is_independence_to_the_last_digit(zero: Tensor | float | None) -> None:
    x = torch.randn(3, 9, generator=torch.Generator().manual_seed(0)).requires_grad_()
    counts = torch.tensor([0, 4, 9])
    alone, dist = CountDistribution(x), CountDistribution(x, bag_effect=zero)
    questions: list[Question] = [lambda d: d.log_prob(counts), lambda d: d.log_probs()]
    for question in questions:
        value, expected = question(dist), question(alone)
        torch.testing.assert_close(value, expected, rtol=0, atol=0)
        slopes = (torch.autograd.grad(v.sum(), x)[0] for v in (value, expected))
        torch.testing.assert_close(*slopes, rtol=0, atol=0)


def test_bags_have_each_their_own_effect_in_every_layout() -> None:
    generator = torch.Generator().manual_seed(1)
    each = [torch.randn(n, generator=generator, dtype=torch.float64) for n in (4, 1, 0, 30)]
    sigma, counts = torch.tensor([0.3, 0.0, 1.0, 2.0], dtype=torch.float64), torch.tensor([1, 1, 0, 17])
    offsets = torch.tensor([0, 4, 5, 5, 35])
    rows = torch.nn.utils.rnn.pad_sequence(each, batch_first=True, padding_value=math.nan)
    mask = torch.arange(30) < offsets.diff()[:, None]
    ragged = CountDistribution(torch.cat(each), offsets=offsets, bag_effect=sigma)
    masked = CountDistribution(rows, mask=mask, bag_effect=sigma)
    for j, (x, s) in enumerate(zip(each, sigma, strict=True)):
        alone = CountDistribution(x, bag_effect=s)
        for dist in (ragged, masked):
            for name in ("mean", "variance", "mode"):
                torch.testing.assert_close(getattr(dist, name)[j], getattr(alone, name))
            torch.testing.assert_close(dist.log_prob(counts)[j], alone.log_prob(counts[j]))
            torch.testing.assert_close(dist.log_prob_between(1, 20)[j], alone.log_prob_between(1, 20))
            for ends, expected in zip(dist.interval(0.9), alone.interval(0.9), strict=True):
                assert int(ends[j]) == int(expected)
    values = ragged.posteriors_between(1, 20)
    torch.testing.assert_close(masked.posteriors_between(1, 20)[mask], values)
    table = masked.log_probs()
    torch.testing.assert_close(table[3], ragged.log_probs()[-31:])
    assert bool((table[0, 5:] == -math.inf).all())


def test_derivatives_by_logits_and_by_the_effect() -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    sigma = torch.tensor([0.2, 1.0, 2.5], dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([0, 2, 3])

    def one(x: Tensor, sigma: Tensor) -> Tensor:
        return CountDistribution(x, bag_effect=sigma).log_prob(counts)

    assert gradcheck(one, (x, sigma), atol=1e-6)
    assert gradgradcheck(one, (x, sigma), atol=1e-6)
    assert gradcheck(lambda x, sigma: CountDistribution(x, bag_effect=sigma).log_prob_between(1, 3), (x, sigma))
    assert gradcheck(lambda x, sigma: CountDistribution(x, bag_effect=sigma).mean, (x, sigma))
    # A graph of the gradient takes another way, of plain operations.
    by_graph = torch.autograd.grad(one(x, sigma).sum(), (x, sigma), create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(one(x, sigma).sum(), (x, sigma)), by_graph)


def test_transforms_of_torch_func() -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    counts, sigma = torch.tensor([1, 2, 3]), torch.tensor(0.8, dtype=torch.float64)

    def total(x: Tensor, sigma: Tensor) -> Tensor:
        return CountDistribution(x, bag_effect=sigma).log_prob(counts).sum()

    by_x, by_sigma = torch.func.grad(total, (0, 1))(x, sigma)
    a, b = x.clone().requires_grad_(), sigma.clone().requires_grad_()
    expected = torch.autograd.grad(total(a, b), (a, b))
    torch.testing.assert_close(by_x, expected[0], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(by_sigma, expected[1], rtol=1e-6, atol=1e-9)
    along = torch.func.jvp(total, (x, sigma), (torch.ones_like(x), torch.ones_like(sigma)))[1]
    torch.testing.assert_close(along, by_x.sum() + by_sigma, rtol=1e-6, atol=1e-9)


def test_posteriors_given_a_count_do_not_know_of_the_shift() -> None:
    x = torch.randn(6, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    dist = CountDistribution(x, bag_effect=1.5)
    torch.testing.assert_close(dist.posteriors(2), CountDistribution(x).posteriors(2))
    # Given an interval they do: each count is weighed by its probability with a shift.
    probs = by_quadrature(x, 1.5)[1:4]
    each = torch.stack([CountDistribution(x).posteriors(k) for k in (1, 2, 3)])
    expected = (each * torch.tensor(probs / probs.sum())[:, None]).sum(0)
    torch.testing.assert_close(dist.posteriors_between(1, 3), expected)
    y = x.clone().requires_grad_()
    assert gradcheck(lambda y: CountDistribution(y, bag_effect=1.5).posteriors_between(1, 3), (y,), atol=1e-6)


def test_certain_instances_impossible_counts_and_nan() -> None:
    inf, nan = math.inf, math.nan
    x = torch.tensor([[inf, 0.5, -inf], [inf, 0.5, -inf], [nan, 0.0, 0.0]], dtype=torch.float64).requires_grad_()
    dist = CountDistribution(x, bag_effect=1.0)
    value = dist.log_prob(torch.tensor([2, 3, 1]))
    single = CountDistribution(torch.tensor([0.5], dtype=torch.float64), bag_effect=1.0).log_prob(1)
    torch.testing.assert_close(value[0], single)
    assert value[1] == -inf
    assert value[2].isnan()
    (slope,) = torch.autograd.grad(value[:2].sum(), x)
    assert bool((slope[1] == 0).all())
    assert bool(slope[:2].isfinite().all())
    possible = CountDistribution(torch.zeros(2, 3, dtype=torch.float64), bag_effect=1.0)
    values, slopes = log_prob_and_gradient(possible, torch.tensor([1, 4]))
    assert values.isfinite().tolist() == [True, False]
    assert bool((slopes[0] != 0).all())
    assert bool((slopes[1] == 0).all())
    assert CountDistribution(x[1].detach(), bag_effect=1.0).log_prob_between(3, None) == -inf


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_logits_are_computed_in_float64(dtype: torch.dtype) -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(5)).to(dtype)
    narrow = CountDistribution(x, bag_effect=0.7)
    wide = CountDistribution(x.double(), bag_effect=0.7)
    questions: list[Question] = [lambda d: d.log_prob(3), lambda d: d.log_probs(), lambda d: d.mean]
    for question in questions:
        assert question(narrow).dtype == dtype
        torch.testing.assert_close(question(narrow), question(wide).to(dtype), rtol=torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize(("size", "sigma"), [(300, 1.0), (2000, 0.15)])
def test_large_bags_against_a_fine_sum_of_independent_ones(size: int, sigma: float) -> None:
    x = torch.randn(size, generator=torch.Generator().manual_seed(6), dtype=torch.float64) - 1
    z = torch.linspace(-25, 25, 1251, dtype=torch.float64)  # the likeliest shift may be far out
    for share in (0.02, 0.3, 0.8):
        count = int(share * size)
        parts = torch.cat([CountDistribution(x + sigma * part[:, None]).log_prob(count) for part in z.split(400)])
        density = -z.square() / 2 - 0.5 * math.log(2 * math.pi)
        expected = (parts + density).logsumexp(0) + math.log(float(z[1] - z[0]))
        value = CountDistribution(x, bag_effect=sigma).log_prob(count)
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize(("logit", "size", "sigma"), [(2.7, 244, 0.56), (2.81, 150, 0.51), (3.68, 43, 0.59)])
def test_the_search_for_the_likeliest_shift_does_not_go_in_circles(logit: float, size: int, sigma: float) -> None:
    """Newton's method went to and fro between two points, and log P(S = 0) was up to 3.7 wrong."""
    u = torch.linspace(-40, 40, 40_001, dtype=torch.float64)
    none = -size * torch.nn.functional.softplus(logit + u)  # log P(S = 0 | u)
    density = -(u / sigma).square() / 2 - math.log(sigma * math.sqrt(2 * math.pi))
    expected = (none + density).logsumexp(0) + math.log(float(u[1] - u[0]))
    dist = CountDistribution(torch.full((size,), logit, dtype=torch.float64), bag_effect=sigma)
    mirrored = CountDistribution(-dist.logits, bag_effect=sigma)
    for value in (dist.log_prob(0), dist.log_probs()[0], mirrored.log_prob(size)):
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-8)


def test_a_table_of_bags_of_all_sizes_has_what_single_counts_have() -> None:
    generator = torch.Generator().manual_seed(7)
    sizes = torch.tensor([3, 0, 2500, 1, 40, 700])
    x = 2 * torch.randn(int(sizes.sum()), generator=generator, dtype=torch.float64) + 1
    x[2000:2200], x[3] = 1.5, torch.inf
    sigma = torch.tensor([0.8, 0.3, 0.6, 2.0, 0.0, 1.1], dtype=torch.float64)
    dist = CountDistribution(
        x, offsets=torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)]), bag_effect=sigma
    )
    layout, table = dist.count_layout, dist.log_probs()
    torch.testing.assert_close(layout.logsumexp(table), torch.zeros(6, dtype=torch.float64), rtol=0, atol=1e-8)
    for share in (0.0, 0.01, 0.3, 0.77, 0.999, 1.0):
        counts = (share * sizes).round().long()
        at = table[layout.mark(counts.unsqueeze(1))]
        torch.testing.assert_close(at, dist.log_prob(counts), rtol=1e-9, atol=1e-8)


def test_copies_are_repeated_logits() -> None:
    times = torch.tensor([5, 1, 30, 2, 8])
    x = torch.tensor([0.5, -1.0, 2.0, 2.0, torch.inf], dtype=torch.float64)
    dist = CountDistribution(x, offsets=torch.tensor([0, 2, 2, 3, 5]), copies=times, bag_effect=0.7)
    long = CountDistribution(x.repeat_interleave(times), offsets=torch.tensor([0, 6, 6, 36, 46]), bag_effect=0.7)
    counts = torch.tensor([2, 0, 29, 9])
    torch.testing.assert_close(dist.log_prob(counts), long.log_prob(counts), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(dist.log_probs(), long.log_probs(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(dist.mean, long.mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(dist.variance, long.variance, rtol=1e-10, atol=1e-10)
    assert dist.interval(0.8)[0].tolist() == long.interval(0.8)[0].tolist()
    found, expected = log_prob_and_gradient(dist, counts)[1], log_prob_and_gradient(long, counts)[1]
    summed = torch.zeros_like(x).index_add(0, torch.arange(5).repeat_interleave(times), expected)
    torch.testing.assert_close(found, summed, rtol=1e-10, atol=1e-10)


def test_intervals_of_bags_of_very_different_sizes_take_no_rectangle(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(8)
    sizes = torch.tensor([300, 2, 5, 0, 90, 1, 7])
    x = torch.randn(int(sizes.sum()), generator=generator, dtype=torch.float64)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    dist = CountDistribution(x, offsets=offsets, bag_effect=0.5)
    whole = dist.interval(0.8)
    made: list[int] = []
    to_rows = Ragged.to_rows

    def counted(layout: Ragged, values: Tensor, fill: float) -> Tensor:
        rows = to_rows(layout, values, fill)
        made.append(rows.numel())
        return rows

    monkeypatch.setattr(_quantiles, "_CELLS", 400)
    monkeypatch.setattr(Ragged, "to_rows", counted)
    for found, expected in zip(dist.interval(0.8), whole, strict=True):
        assert torch.equal(found, expected)
    assert max(made) <= 602


@pytest.mark.slow
def test_a_table_of_large_bags_takes_little_memory() -> None:
    """Thousands of nodes times all counts took more than 10 GB."""
    script = """
import resource, kofn
x = torch.randn(16 * 4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
offsets = torch.arange(17) * 4000
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
low, high = kofn.CountDistribution(x, offsets=offsets, bag_effect=0.6).interval(0.9)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000, int((high - low).min()) > 1000)
"""
    megabytes, wide = finish(start(script)).split()
    assert wide == "True"
    assert int(megabytes) < 500


def test_the_effect_is_what_makes_counts_of_bags_spread() -> None:
    dist = CountDistribution(torch.zeros(400, 100), bag_effect=0.5)
    drawn = dist.sample((50,), generator=torch.Generator().manual_seed(0)).double()
    assert drawn.mean().item() == pytest.approx(50, abs=0.5)
    assert drawn.var().item() == pytest.approx(dist.variance[0].item(), rel=0.05)
    assert dist.variance[0] > 5 * CountDistribution(torch.zeros(100)).variance
    low, high = dist.interval(0.9)
    assert ((drawn >= low) & (drawn <= high)).double().mean().item() == pytest.approx(0.91, abs=0.02)


def test_every_target_asks_the_same_distribution() -> None:
    x = torch.randn(7, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    probs = CountDistribution(x, bag_effect=0.9).log_probs().exp()
    noise = Laplace(0.0, torch.tensor(0.7, dtype=torch.float64))
    q = torch.full((8,), 1 / 8, dtype=torch.float64)
    cases: list[tuple[kofn.targets.Target, Tensor]] = [
        (kofn.Exactly(3), -probs[3].log()),
        (kofn.AtLeast(1), -probs[1:].sum().log()),
        (kofn.AtMost(2), -probs[:3].sum().log()),
        (kofn.OneOf([0, 5]), -(probs[0] + probs[5]).log()),
        (kofn.Noisy(2.5, noise), -(probs * noise.log_prob(2.5 - torch.arange(8.0).double()).exp()).sum().log()),
        (kofn.Distributed(q.log()), (q * (q.log() - probs.log())).sum()),
    ]
    for target, expected in cases:
        torch.testing.assert_close(kofn.count_loss(x, target, bag_effect=0.9), expected, rtol=1e-8, atol=1e-9)
    assert not torch.isclose(kofn.count_loss(x, kofn.Exactly(3)), cases[0][1])


def test_several_classes_have_it_in_their_marginals() -> None:
    logits = torch.randn(9, 3, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    offsets, sigma = torch.tensor([0, 4, 9]), torch.tensor([0.4, 1.2], dtype=torch.float64)
    counts = torch.tensor([[2, 1, 1], [0, 3, 2]])
    target = kofn.MarginalClassCounts(counts)
    losses = kofn.count_loss(logits, target, offsets=offsets, bag_effect=sigma, reduction="none")
    expected = torch.zeros(2, dtype=torch.float64)
    for c, log_odds in enumerate(kofn.one_vs_rest(logits)):
        expected -= CountDistribution(log_odds, offsets=offsets, bag_effect=sigma).log_prob(counts[:, c])
    torch.testing.assert_close(losses, expected)
    dense = kofn.count_loss(logits[:4], kofn.MarginalClassCounts(counts[0]), bag_effect=0.4)
    torch.testing.assert_close(dense, expected[0])


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (-0.1, ValueError, r"from 0 to 1e\+06; got -0.1"),
        (math.nan, ValueError, r"from 0 to 1e\+06; got nan"),
        (1e10, ValueError, r"from 0 to 1e\+06; got 1e\+10"),
        (torch.tensor([0.1, math.inf]), ValueError, "got inf"),
        (torch.ones(3), ValueError, "one number for each bag"),
        ("fit", TypeError, "a number or a torch.Tensor; got str"),
    ],
)
def test_an_effect_is_a_standard_deviation(value: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        CountDistribution(torch.zeros(2, 4), bag_effect=value)  # type: ignore[arg-type]  # what is wrong is the point


@pytest.mark.slow
def test_a_compiled_step_is_the_eager_one() -> None:
    torch._dynamo.reset()
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(10)).requires_grad_()
    sigma = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([0, 1, 2, 3, 4, 5])

    def loss(x: Tensor, sigma: Tensor) -> Tensor:
        return kofn.count_loss(x, kofn.Exactly(counts), bag_effect=sigma)

    found = torch.autograd.grad(torch.compile(loss, fullgraph=True)(x, sigma), (x, sigma))
    expected = torch.autograd.grad(loss(x, sigma), (x, sigma))
    torch.testing.assert_close(found, expected)


def test_empty_bags_have_a_gradient() -> None:
    """One of no numbers; it could not be reshaped."""
    for shape in ((3, 0), (0, 4)):
        x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        sigma = torch.full(shape[:1], 0.7, dtype=torch.float64, requires_grad=True)
        dist = CountDistribution(x, bag_effect=sigma)
        for value in (dist.log_prob(0), dist.log_prob_between(0, 3), dist.mean, dist.log_probs()):
            slope, by_sigma = torch.autograd.grad(value.sum(), (x, sigma), allow_unused=True)
            assert slope is None or slope.shape == shape
            assert by_sigma is None or bool((by_sigma.abs() < 1e-12).all())
    flat = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    ragged = CountDistribution(flat, offsets=torch.tensor([0, 0, 2]), bag_effect=0.7)
    (slope,) = torch.autograd.grad(ragged.log_prob_between(0, 1).sum(), flat)
    assert bool((slope < 0).all())
