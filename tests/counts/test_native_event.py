"""The one primitive of the C++ core, `kofn_event`: copies of rows, random effects, totals, bad arguments."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

from kofn.counts import _native

pytestmark = pytest.mark.skipif(not _native.available, reason="the C++ core is not built")
INFINITY = math.inf


@pytest.fixture(scope="module", autouse=True)
def backend() -> None:
    """The core itself: no choice between implementations."""


@pytest.fixture(params=[0, *_native.levels()], ids=lambda level: f"level {level}", autouse=True)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "level", request.param)


def event(
    logits: list[float] | Tensor,
    low: list[int] | Tensor,
    high: list[int] | Tensor | None = None,
    *,
    copies: list[int] | Tensor | None = None,
    offsets: list[int] | Tensor | None = None,
    sigma: list[float] | Tensor | None = None,
    dtype: torch.dtype = torch.float64,
    weight: float | None = None,
) -> Any:
    """Everything that is known of ragged bags, one by default."""
    x = torch.as_tensor(logits, dtype=dtype)
    first, last, times = (None if v is None else torch.as_tensor(v, dtype=torch.int64) for v in (low, high, copies))
    cut = torch.as_tensor([0, len(x)] if offsets is None else offsets)
    effect = None if sigma is None else torch.as_tensor(sigma, dtype=torch.float64)
    assert first is not None
    *answers, large = _native.event(
        x, times, cut, first, last, effect, weight, gradient=True, by_sigma=sigma is not None, posterior=True
    )
    finite = x[x.isfinite() & (torch.ones_like(x) if times is None else times).bool()]
    assert large == bool((finite.abs() > 1e5).any())
    return answers


def repeated(x: Tensor, copies: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Every person in a row of its own."""
    ends = torch.cat([copies.new_zeros(1), copies.cumsum(0)])
    return x.repeat_interleave(copies), ends[offsets]


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_copies_are_people_side_by_side() -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(60):
        bags = 9
        sizes = torch.randint(0, 7, (bags,), generator=generator)
        offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        rows = int(offsets[-1])
        scale = [0.1, 1.0, 5.0, 60.0][int(torch.randint(4, (1,), generator=generator))]
        x = torch.randn(rows, generator=generator, dtype=torch.float64) * scale
        x[torch.rand(rows, generator=generator) < 0.05] = INFINITY
        x[torch.rand(rows, generator=generator) < 0.05] = -INFINITY
        x[torch.rand(rows, generator=generator) < 0.02] = math.nan
        copies = torch.randint(
            0, [3, 9, 60][int(torch.randint(3, (1,), generator=generator))], (rows,), generator=generator
        )
        people = torch.stack([copies[a:b].sum() for a, b in pairwise(offsets.tolist())])
        low = (torch.rand(bags, generator=generator) * (people + 1)).long()
        wide = low + torch.randint(-1, 9, (bags,), generator=generator)
        alone, ends = repeated(x, copies, offsets)
        row = torch.arange(rows).repeat_interleave(copies)
        for high in (None, wide):
            value, gradient, _, posterior = event(x, low, high, copies=copies, offsets=offsets)
            expected, slope, _, given = event(alone, low, high, offsets=ends)
            close(value, expected)
            close(gradient[copies > 0], torch.zeros_like(x).index_add(0, row, slope)[copies > 0], 1e-11)
            close(posterior.repeat_interleave(copies), given)
            nobody = (copies == 0) & ~value.isnan().repeat_interleave(sizes)
            close(posterior[nobody], torch.sigmoid(x[nobody]))
            assert not gradient[nobody].any()


@pytest.mark.parametrize("copies", [[1, 2, 3], [5, 0, 1], [40, 40, 40]])
@pytest.mark.parametrize("logits", [[0.3, -1.0, 2.0], [-300.0, 3.0, 40.0], [1e4, -1e4, 0.0]])
def test_all_counts_of_small_bags(copies: list[int], logits: list[float]) -> None:
    people = sum(copies)
    counts = torch.arange(-1, people + 2)
    bags = len(counts)
    x, c = torch.tensor(logits, dtype=torch.float64).repeat(bags), torch.tensor(copies).repeat(bags)
    value, _, _, posterior = event(x, counts, copies=c, offsets=torch.arange(bags + 1) * 3)
    assert value[0] == value[-1] == -INFINITY
    inner = value[1:-1]
    assert abs(float(inner.logsumexp(0))) < 1e-11
    alone, ends = repeated(x, c, torch.arange(bags + 1) * 3)
    close(value, event(alone, counts, offsets=ends)[0])
    possible = (c * posterior).reshape(bags, 3).sum(1)[1:-1]
    close(possible, counts[1:-1].double(), 1e-11)


@cache
def exact(logits: tuple[float, ...], copies: tuple[int, ...], count: int) -> tuple[mpmath.mpf, list[mpmath.mpf]]:
    """log P(S = count) and the gradient by the logits, from binomial distributions, to fifty digits."""
    with mpmath.workdps(50):

        def binomial(x: float, people: int) -> list[mpmath.mpf]:
            odds, q = mpmath.exp(mpmath.mpf(x)), 1 / (1 + mpmath.exp(mpmath.mpf(x)))
            law = [q**people]
            for k in range(1, count + 1):
                law.append(law[-1] * odds * (people - k + 1) / k if k <= people else mpmath.mpf(0))
            return law

        def sums(laws: list[list[mpmath.mpf]]) -> list[mpmath.mpf]:
            total = [mpmath.mpf(1)] + [mpmath.mpf(0)] * count
            for law in laws:
                total = [mpmath.fsum(total[i] * law[k - i] for i in range(k + 1)) for k in range(count + 1)]
            return total

        laws = [binomial(x, c) for x, c in zip(logits, copies, strict=True)]
        all_p = sums(laws)[count]
        slopes = []
        for i, (x, c) in enumerate(zip(logits, copies, strict=True)):
            rest = sums(laws[:i] + laws[i + 1 :])
            mean = mpmath.fsum(k * laws[i][k] * rest[count - k] for k in range(count + 1)) / all_p
            slopes.append(mean - c / (1 + mpmath.exp(-mpmath.mpf(x))))
        return mpmath.log(all_p), slopes


@pytest.mark.parametrize(
    ("logits", "copies", "count"),
    [
        ([-3.0, -2.0], [2000, 900], 250),
        ([-3.0, -2.0], [2000, 900], 40),
        ([-6.0, 1.5, 0.2], [3000, 20, 7], 30),
        ([-9.0, 4.0], [5000, 300], 290),
        ([-40.0, 3.0], [10**7, 100], 97),
        ([0.0, 700.0, -700.0], [200, 30, 1], 130),
    ],
)
def test_thousands_of_copies_to_fifty_digits(logits: list[float], copies: list[int], count: int) -> None:
    expected, slopes = exact(tuple(logits), tuple(copies), count)
    value, gradient, *_ = event(logits, [count], copies=copies)
    assert abs(float(value) - float(expected)) <= 1e-12 * max(1, abs(float(expected)))
    for found, slope, c in zip(gradient.tolist(), slopes, copies, strict=True):
        assert abs(found - float(slope)) <= 1e-12 * max(100, c)


@cache
def log_binomial(people: int, count: int, logit: float) -> float:
    with mpmath.workdps(50):
        n, k, x = mpmath.mpf(people), mpmath.mpf(count), mpmath.mpf(logit)
        choose = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        return float(choose + k * x - n * mpmath.log1p(mpmath.exp(x)))


@pytest.mark.parametrize("parts", [[1], [3, 1], [1, 1, 1, 5]])
@pytest.mark.parametrize("logit", [0.0, 0.37, -1.7, -13.0, 9.0])
@pytest.mark.parametrize("people", [10**6, 10**9])
@pytest.mark.parametrize("away", [0.0, -0.4, 3.0, 9.0, 200.0])
def test_equal_logits_are_one_binomial(people: int, logit: float, away: float, parts: list[int]) -> None:
    p = 1 / (1 + math.exp(-logit))
    count = min(max(round(people * p + away * math.sqrt(people * p * (1 - p))), 0), people)
    copies = [people * part // sum(parts) for part in parts]
    copies[0] += people - sum(copies)
    expected = log_binomial(people, count, logit)
    value, gradient, _, posterior = event([logit] * len(parts), [count], copies=copies)
    scale = 1.0 if people == 10**6 else 30.0  # the square root of the people
    assert abs(float(value) - expected) <= 1e-12 * scale * max(1, abs(expected) / 100)
    close(posterior, torch.full_like(posterior, count / people), 1e-12)
    expected_gradient = torch.tensor(copies, dtype=torch.float64) * (count / people - p)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-12, atol=2e-15 * people)


def test_copies_in_an_interval_sum_its_counts() -> None:
    logits, copies = [-2.0, 0.5, -0.1], [300, 40, 200]
    counts = torch.arange(90, 171)
    x, c = torch.tensor(logits, dtype=torch.float64).repeat(81), torch.tensor(copies).repeat(81)
    each = event(x, counts, copies=c, offsets=torch.arange(82) * 3)
    value, gradient, _, posterior = event(logits, [90], [170], copies=copies)
    close(value, each[0].logsumexp(0, keepdim=True))
    share = each[0].softmax(0)
    close(gradient, share @ each[1].reshape(81, 3), 1e-10)
    close(posterior, share @ each[3].reshape(81, 3))


def test_copies_of_one_change_nothing() -> None:
    x = torch.randn(700, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    offsets, low = [0, 3, 3, 100, 700], [1, 0, 30, 500]
    for found, expected in zip(
        event(x, low, offsets=offsets, copies=[1] * 700), event(x, low, offsets=offsets), strict=True
    ):
        assert found is expected is None or torch.equal(found, expected)


@cache
def with_effect(logits: tuple[float, ...], copies: tuple[int, ...], count: int, sigma: float) -> Any:
    """log P(S = count) with a random effect, by Gauss' rule on many small panels, to thirty digits: by mpmath."""
    with mpmath.workdps(30):

        def integrand(z: mpmath.mpf) -> mpmath.mpf:
            total = [mpmath.mpf(1)] + [mpmath.mpf(0)] * count
            for x, c in zip(logits, copies, strict=True):
                p = 1 / (1 + mpmath.exp(-(mpmath.mpf(x) + sigma * z)))
                for _ in range(c):
                    total = [(1 - p) * a + p * b for a, b in zip(total, [0, *total], strict=False)]
            return total[count] * mpmath.npdf(z)

        return mpmath.log(mpmath.quad(integrand, [k / 2 for k in range(-24, 25)], maxdegree=3))


@pytest.mark.parametrize("sigma", [1e-3, 0.5, 1.5])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("logits", [[0.3, -1.0, 2.0], [-5.0, -6.0, 4.0]])
def test_random_effect_against_quadrature(logits: list[float], count: int, sigma: float) -> None:
    copies = [2, 1, 3]
    expected = float(with_effect(tuple(logits), tuple(copies), count, sigma))
    value, gradient, by_sigma, posterior = event(logits, [count], copies=copies, sigma=[sigma])
    assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-11)
    alone = torch.tensor(logits, dtype=torch.float64).repeat_interleave(torch.tensor(copies))
    plain = event(alone, [count], sigma=[sigma])
    close(plain[0], value, 1e-11)
    close(plain[2], by_sigma, 1e-10)
    row = torch.arange(3).repeat_interleave(torch.tensor(copies))
    close(torch.zeros_like(gradient).index_add(0, row, plain[1]), gradient, 1e-10)
    close(posterior, event(logits, [count], copies=copies)[3], 1e-11)
    for i in range(3):
        step = 1e-4 * np.eye(3)[i]
        up, down = (
            event(
                torch.tensor(logits, dtype=torch.float64) + s * torch.tensor(step),
                [count],
                copies=copies,
                sigma=[sigma],
            )[0]
            for s in (1, -1)
        )
        assert float(gradient[i]) == pytest.approx(float(up - down) / 2e-4, abs=1e-6)
    step = 1e-4 * sigma
    up, down = (event(logits, [count], copies=copies, sigma=[sigma + s * step])[0] for s in (1, -1))
    assert float(by_sigma) == pytest.approx(float(up - down) / (2 * step), abs=2e-6 + 1e-12 / step)


@pytest.mark.parametrize("sigma", [1e-6, 1e-2, 0.7, 4.0, 50.0, 1e3, 1e6])
def test_random_effect_agrees_with_torch(sigma: float) -> None:
    from kofn.counts import _random_effect
    from kofn.counts._layout import Ragged

    generator = torch.Generator().manual_seed(3)
    sizes = torch.tensor([1, 2, 7, 8, 30, 130, 300])
    offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    x = torch.randn(int(offsets[-1]), generator=generator, dtype=torch.float64) * 3 - 1
    layout = Ragged(len(x), x.device, offsets)
    for low in (sizes * 0, sizes // 3, sizes):
        effect = torch.full((7,), sigma, dtype=torch.float64)
        value, gradient, by_sigma, _ = event(x, low, offsets=offsets, sigma=effect)
        centre = _random_effect.mode(x, layout, low, effect)
        y = x + layout.spread(effect * centre)
        alone, slope, *_ = event(y, low, offsets=offsets)
        more, by_y, at_y = _random_effect.log_shift_gradients(y, layout, low, effect, centre)
        torch.testing.assert_close(value, alone + more, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(gradient, slope + by_y, rtol=0, atol=1e-9)
        complete = at_y + centre * layout.sum(slope + by_y)
        torch.testing.assert_close(by_sigma, complete, rtol=1e-6, atol=1e-6)


def test_without_spread_it_is_independence() -> None:
    logits, counts, offsets = [0.5, -2.0, 1.0, 3.0, -1.0], [1, 2], [0, 2, 5]
    plain, effect = event(logits, counts, offsets=offsets), event(logits, counts, offsets=offsets, sigma=[0.0, 0.0])
    for found, expected in zip((effect[0], effect[1], effect[3]), (plain[0], plain[1], plain[3]), strict=True):
        assert torch.equal(found, expected)
    assert torch.equal(effect[2], torch.zeros(2, dtype=torch.float64))


def test_impossible_and_broken_bags_with_an_effect() -> None:
    logits = [0.5, INFINITY, 1.0, math.nan, 2.0, 0.1]
    value, gradient, by_sigma, _ = event(logits, [0, 3, 1, 0, 1], offsets=[0, 2, 3, 5, 5, 6], sigma=[1.0] * 5)
    assert value[:2].tolist() == [-INFINITY] * 2
    assert value[2].isnan()
    assert value[3] == 0.0
    assert gradient[:3].tolist() == [0.0] * 3
    assert gradient[3:5].isnan().all()
    assert by_sigma[[0, 1, 3]].tolist() == [0.0] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sigma", [None, [0.5, 2.0, 0.0]])
@pytest.mark.parametrize("copies", [None, [3, 1, 0, 2, 1, 7]])
def test_a_total_is_the_weighted_sum(copies: list[int] | None, sigma: list[float] | None, dtype: torch.dtype) -> None:
    arguments: Any = {"copies": copies, "sigma": sigma, "offsets": [0, 2, 3, 6], "dtype": dtype}
    logits, low = [0.5, -1.0, 2.0, 0.0, 1.0, -3.0], [1, 0, 2]
    value, gradient, by_sigma, posterior = event(logits, low, **arguments)
    total, weighted, of_sigma, same = event(logits, low, weight=-0.37, **arguments)
    assert total.shape == ()
    assert total.dtype == gradient.dtype == weighted.dtype == dtype
    torch.testing.assert_close(total, -0.37 * value.sum())
    torch.testing.assert_close(weighted, -0.37 * gradient)
    assert torch.equal(same, posterior)
    if sigma is not None:
        close(of_sigma, -0.37 * by_sigma)


@pytest.mark.parametrize("sigma", [None, 0.5])
@pytest.mark.parametrize("with_copies", [False, True])
def test_threads_change_no_digit(with_copies: bool, sigma: float | None) -> None:
    generator, before = torch.Generator().manual_seed(4), torch.get_num_threads()
    bags, rows = 20000, 200000
    offsets = (
        torch.cat([torch.tensor([0, rows]), torch.randint(0, rows, (bags - 1,), generator=generator)]).sort().values
    )
    x = torch.randn(rows, generator=generator)
    copies = torch.randint(0, 900, (rows,), generator=generator) if with_copies else None
    people = torch.ones(rows, dtype=torch.int64) if copies is None else copies
    ends = torch.cat([people.new_zeros(1), people.cumsum(0)])[offsets]
    effect = None if sigma is None else torch.full((bags,), sigma)
    answers = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            answers.append(event(x, ends.diff() // 3, copies=copies, offsets=offsets, sigma=effect, weight=2.0))
    finally:
        torch.set_num_threads(before)
    for first, second in zip(*answers, strict=True):
        assert first is second is None or torch.equal(first, second)


def test_bad_arguments_are_refused() -> None:
    one = [0.5, 1.0]
    bad: list[dict[str, Any]] = [
        {"low": [1], "copies": [1, -1]},
        {"low": [1], "copies": [2**40, 1]},
        {"low": [0], "high": [1], "sigma": [1.0]},
        {"low": [1], "sigma": [-1.0]},
        {"low": [1], "sigma": [math.nan]},
        {"low": [1], "sigma": [INFINITY]},
    ]
    for arguments in bad:
        with pytest.raises(RuntimeError, match="code 1"):
            event(one, **arguments)
    assert event(one, [1], [1], sigma=[1.0])[0].isfinite().all()
    low, x = torch.tensor([1]), torch.zeros(1, 2)
    with pytest.raises(RuntimeError, match="code 1"):
        _native.event(x, None, None, low, None, by_sigma=True)


@pytest.mark.parametrize("sigma", [None, 0.5])
def test_a_row_costs_what_a_row_costs(sigma: float | None) -> None:
    """Rows of some 1e11 people: there is no way through them one by one."""
    effect = None if sigma is None else [sigma]
    value, gradient, _, posterior = event([-1.0, 0.5, -3.0], [5 * 10**10], copies=[10**11, 10**10, 1], sigma=effect)
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    people = 10**11 * posterior[0] + 10**10 * posterior[1] + posterior[2]
    assert float(people) == pytest.approx(5e10, rel=1e-12)
