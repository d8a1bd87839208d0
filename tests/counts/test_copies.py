"""Rows that stand for several alike instances: every answer is that of a row for each of them, at the cost of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import kofn
from kofn import CountDistribution

COPIES = torch.tensor([[3, 1, 0, 5], [2, 2, 7, 1], [0, 0, 1, 0]])
COUNTS = torch.tensor([4, 9, 1])
ROW = torch.arange(12).repeat_interleave(COPIES.flatten())
SIZES = COPIES.sum(1)
ENDS = torch.cat([torch.zeros(1, dtype=torch.int64), SIZES.cumsum(0)])
Question = Callable[[CountDistribution], Tensor]

ANSWERS: dict[str, Question] = {
    "log_prob": lambda dist: dist.log_prob(COUNTS),
    "an impossible count": lambda dist: dist.log_prob(COUNTS + 20),
    "none": lambda dist: dist.log_prob(0),
    "log_prob, weighted": lambda dist: dist.log_prob(COUNTS, weight=-0.5),
    "log_prob_between": lambda dist: dist.log_prob_between(COUNTS - 2, COUNTS + 1),
    "at least one": lambda dist: dist.log_prob_between(1, None),
    "cdf": lambda dist: dist.cdf(COUNTS),
    "mean": lambda dist: dist.mean,
    "variance": lambda dist: dist.variance,
}
TARGETS: dict[str, Any] = {
    "Exactly": kofn.Exactly(COUNTS),
    "Between": kofn.Between(COUNTS - 1, COUNTS + 1),
    "AtLeast": kofn.AtLeast(COUNTS),
    "AtMost": kofn.AtMost(COUNTS),
    "OneOf": kofn.OneOf([0, 1, 3]),
    "Noisy": kofn.Noisy(COUNTS + 0.3, torch.distributions.Normal(0.0, 1.5)),
    "Distributed": kofn.Distributed(torch.full((3, 13), -math.log(13.0), dtype=torch.float64)),
}


def logits(scale: float = 2.0) -> Tensor:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * scale
    x[0, 1], x[1, 3] = math.inf, -math.inf
    return x


def dense(x: Tensor, **options: Any) -> CountDistribution:
    return CountDistribution(x, copies=COPIES, **options)


def masked(x: Tensor, **options: Any) -> CountDistribution:
    """With what stands under the mask counted by nobody, whatever its copies are."""
    nothing = torch.full((3, 1), math.nan, dtype=x.dtype)
    wide, copies = torch.cat([x, nothing], 1), torch.cat([COPIES, torch.full((3, 1), 4)], 1)
    return CountDistribution(wide, mask=torch.arange(5).expand(3, 5) < 4, copies=copies, **options)


def ragged(x: Tensor, **options: Any) -> CountDistribution:
    return CountDistribution(x.flatten(), offsets=torch.arange(4) * 4, copies=COPIES.flatten(), **options)


def people(x: Tensor, **options: Any) -> CountDistribution:
    """A row for each instance."""
    return CountDistribution(x.flatten()[ROW], offsets=ENDS, **options)


LAYOUTS = {"dense": dense, "masked": masked, "ragged": ragged}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("effect", [None, 0.7])
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_and_gradients_are_those_of_a_row_for_each(name: str, effect: float | None, layout: str) -> None:
    def asked(make: Callable[..., CountDistribution]) -> list[Tensor]:
        x = logits().requires_grad_()
        value = ANSWERS[name](make(x, bag_effect=effect))
        return [value.detach(), torch.autograd.grad(value[value.isfinite()].sum(), x)[0]]

    for mine, theirs in zip(asked(LAYOUTS[layout]), asked(people), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_searches_and_sizes(layout: str) -> None:
    mine, theirs = LAYOUTS[layout](logits()), people(logits())
    assert torch.equal(mine.sizes, theirs.sizes)
    assert torch.equal(mine.mode, theirs.mode)
    assert torch.equal(mine.quantile(0.3), theirs.quantile(0.3))
    for end, expected in zip(mine.interval(0.8), theirs.interval(0.8), strict=True):
        assert torch.equal(end, expected)
    table = mine.log_probs()
    if layout != "ragged":  # rows of a rectangle, which end with impossible counts
        assert bool((table[torch.arange(13) > SIZES[:, None]] == -math.inf).all())
        table = table[torch.arange(13) <= SIZES[:, None]]
    torch.testing.assert_close(table, theirs.log_probs(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_posteriors_are_those_of_one_of_the_alike(layout: str) -> None:
    there = COPIES.flatten() > 0
    first = (COPIES.flatten().cumsum(0) - COPIES.flatten())[there]
    questions: list[Question] = [
        lambda dist: dist.posteriors(COUNTS),
        lambda dist: dist.posteriors_between(COUNTS - 1, COUNTS),
        lambda dist: dist.posteriors_given(lambda same: same.log_prob_between(2, 3)),
    ]
    for ask in questions:
        mine = ask(LAYOUTS[layout](logits()))
        mine = mine[:, :4].flatten() if layout == "masked" else mine.flatten()
        torch.testing.assert_close(mine[there], ask(people(logits()))[first], rtol=1e-10, atol=1e-12)
    mine = dense(logits()).posteriors(COUNTS)
    torch.testing.assert_close((mine * COPIES).sum(1), COUNTS.double())


@pytest.mark.parametrize("name", TARGETS)
def test_every_target(name: str) -> None:
    each = torch.nn.utils.rnn.pad_sequence(list(logits().flatten()[ROW].split(SIZES.tolist())), batch_first=True)
    mask = torch.arange(each.shape[1]) < SIZES[:, None]
    mine = kofn.count_loss(logits(), TARGETS[name], copies=COPIES, reduction="none")
    theirs = kofn.count_loss(each, TARGETS[name], mask=mask, reduction="none")
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_derivatives_of_second_order() -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    for ask in ("log_prob", "log_prob_between", "at least one"):
        assert gradcheck(lambda x, ask=ask: ANSWERS[ask](dense(x)), (x,))
        assert gradgradcheck(lambda x, ask=ask: ANSWERS[ask](dense(x)), (x,))
        assert gradgradcheck(lambda x, ask=ask: ANSWERS[ask](ragged(x)), (x,))
    assert gradcheck(lambda x: dense(x).posteriors(COUNTS), (x,))
    hessian = torch.func.hessian(lambda row: CountDistribution(row, copies=COPIES[1]).log_prob(9))(x[1].detach())
    expected = torch.func.hessian(lambda row: CountDistribution(row[ROW[9:21] - 4]).log_prob(9))(x[1].detach())
    torch.testing.assert_close(hessian, expected, rtol=1e-10, atol=1e-12)


def test_samples_are_of_all_instances() -> None:
    drawn = dense(logits()).sample((20_000,), generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(drawn.mean(0), people(logits()).mean, rtol=0.02, atol=0.02)
    torch.testing.assert_close(drawn.var(0), people(logits()).variance, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_every_dtype(dtype: torch.dtype) -> None:
    x = logits().to(dtype)
    value = CountDistribution(x, copies=COPIES).log_prob(COUNTS)
    assert value.dtype == dtype
    torch.testing.assert_close(value, CountDistribution(x.double(), copies=COPIES).log_prob(COUNTS).to(dtype))


@pytest.mark.parametrize(("count", "away"), [(400_000, 0), (412_345, 5), (5, 8), (999_990, 9)])
def test_a_million_people_in_three_rows_to_sixty_digits(count: int, away: int) -> None:
    """P(S = s) = sum of products of binomials; the terms that are not negligible are near the likeliest split."""
    x, copies = [-0.4, 1.0], [800_000, 200_000]
    with mpmath.workdps(60):

        def log_binomial(n: int, k: int, logit: float) -> Any:
            choose = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
            return choose + k * mpmath.mpf(logit) - n * mpmath.log1p(mpmath.exp(mpmath.mpf(logit)))

        # Given the sum, the count of the first row is near n_1 p_1 under the tilt at which the mean is the sum.
        def mean(t: float) -> float:
            return sum(c / (1 + math.exp(-z - t)) for z, c in zip(x, copies, strict=True))

        low, high = -60.0, 60.0
        for _ in range(200):
            low, high = ((low + high) / 2, high) if mean((low + high) / 2) < count else (low, (low + high) / 2)
        centre = round(copies[0] / (1 + math.exp(-x[0] - low)))
        splits = range(max(0, count - copies[1], centre - 6000), min(count, copies[0], centre + 6000) + 1)
        terms = [log_binomial(copies[0], k, x[0]) + log_binomial(copies[1], count - k, x[1]) for k in splits]
        top = max(terms)
        expected = float(top + mpmath.log(mpmath.fsum(mpmath.exp(term - top) for term in terms)))
    dist = CountDistribution(torch.tensor([*x, 7.0], dtype=torch.float64), copies=torch.tensor([*copies, 0]))
    assert float(dist.log_prob(count)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("copies", "error", "message"),
    [
        ([1.0, 2.0], TypeError, "`copies` must be integers"),
        ([True, False], TypeError, "`copies` must be integers"),
        ([1, -2], ValueError, "`copies` must be at least 0, how many instances a logit stands for; got -2"),
        ([1, 2, 3], ValueError, r"`copies` must have the shape of `logits`, \(2,\); got \(3,\)"),
    ],
)
def test_what_copies_must_be(copies: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CountDistribution(torch.zeros(2), copies=copies)
    with pytest.raises(error, match=message):
        kofn.count_loss(torch.zeros(2), kofn.Exactly(1), copies=copies)
