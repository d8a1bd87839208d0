"""Laws that any law of a count obeys, over sizes, scales and masks."""

from __future__ import annotations

import math

import pytest
import torch
from bag_strategies import bags
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import kofn


def law_of(logits: Tensor) -> Tensor:
    return kofn.log_count_distribution(logits)


@given(bags())
def test_sums_to_one(logits: Tensor) -> None:
    assert law_of(logits).logsumexp(0).item() == pytest.approx(0, abs=1e-12)


@given(bags())
def test_one_count_is_an_entry_of_the_law(logits: Tensor) -> None:
    n = len(logits)
    each = kofn.log_count_prob(logits.expand(n + 1, n), torch.arange(n + 1))
    torch.testing.assert_close(each, law_of(logits), rtol=1e-11, atol=1e-11)


@given(bags(), st.integers(-2, 42), st.integers(-2, 42))
def test_an_interval_is_the_sum_of_its_counts(logits: Tensor, low: int, high: int) -> None:
    inside = law_of(logits)[max(low, 0) : max(high + 1, 0)]
    expected = inside.logsumexp(0) if len(inside) else torch.tensor(-math.inf, dtype=torch.float64)
    torch.testing.assert_close(kofn.log_count_between(logits, low, high), expected, rtol=1e-11, atol=1e-11)


@given(bags(max_size=12), st.randoms(use_true_random=False))
def test_unchanged_by_permutation(logits: Tensor, random: object) -> None:
    order = torch.randperm(len(logits), generator=torch.Generator().manual_seed(len(logits)))
    torch.testing.assert_close(law_of(logits[order]), law_of(logits), rtol=1e-11, atol=1e-11)


@given(bags())
def test_flipping_signs_mirrors_counts(logits: Tensor) -> None:
    torch.testing.assert_close(law_of(-logits), law_of(logits).flip(0), rtol=1e-11, atol=1e-11)


@given(bags(max_size=25), bags(max_size=25, max_scale=5.0))
def test_concatenation_is_convolution(a: Tensor, b: Tensor) -> None:
    # The coefficients of two laws multiply as polynomials do.
    both = torch.full((len(a) + len(b) + 1,), -math.inf, dtype=torch.float64)
    for j, value in enumerate(law_of(a)):
        window = both[j : j + len(b) + 1]
        both[j : j + len(b) + 1] = torch.logaddexp(window, value + law_of(b))
    torch.testing.assert_close(law_of(torch.cat([a, b])), both, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 9, 128, 129, 1000])
@pytest.mark.parametrize("p", [1e-9, 0.01, 0.5, 0.9, 1 - 1e-9])
def test_equal_probabilities_give_the_binomial(n: int, p: float) -> None:
    logit = math.log(p) - math.log1p(-p)
    counts = torch.arange(n + 1, dtype=torch.float64)
    choose = math.lgamma(n + 1) - torch.lgamma(counts + 1) - torch.lgamma(n - counts + 1)
    expected = choose + counts * math.log(p) + (n - counts) * math.log1p(-p)
    torch.testing.assert_close(law_of(torch.full((n,), logit, dtype=torch.float64)), expected, rtol=1e-10, atol=1e-10)


@given(bags(max_scale=20.0))
def test_mean_and_variance_in_closed_form(logits: Tensor) -> None:
    p = torch.sigmoid(logits)
    counts = torch.arange(len(logits) + 1, dtype=torch.float64)
    law = law_of(logits).exp()
    mean = (law * counts).sum()
    torch.testing.assert_close(mean, p.sum(), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close((law * (counts - mean) ** 2).sum(), (p * (1 - p)).sum(), rtol=1e-9, atol=1e-9)


@given(bags(), st.data())
def test_posteriors_lie_in_the_unit_interval_and_sum_to_the_count(logits: Tensor, data: st.DataObject) -> None:
    n = len(logits)
    count = data.draw(st.integers(0, n))
    posteriors = kofn.count_posteriors(logits, count)
    assert ((posteriors >= 0) & (posteriors <= 1)).all()
    assert posteriors.sum().item() == pytest.approx(count, abs=1e-9 * max(n, 1))


@given(bags(), st.data())
def test_the_gradient_is_posterior_less_prior(logits: Tensor, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(logits)))
    x = logits.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(kofn.log_count_prob(x, count), x)
    torch.testing.assert_close(gradient, kofn.count_posteriors(logits, count) - torch.sigmoid(logits))


@given(bags(), st.data())
def test_a_masked_instance_is_an_absent_one(logits: Tensor, data: st.DataObject) -> None:
    n = len(logits)
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=torch.bool)
    count = data.draw(st.integers(0, n))
    kept = logits[mask]
    filled = torch.where(mask, logits, torch.nan)  # what is masked is never looked at
    torch.testing.assert_close(
        kofn.log_count_prob(filled, count, mask=mask), kofn.log_count_prob(kept, count), rtol=1e-11, atol=1e-11
    )
    law = kofn.log_count_distribution(filled, mask=mask)
    torch.testing.assert_close(law[: len(kept) + 1], law_of(kept), rtol=1e-11, atol=1e-11)
    assert (law[len(kept) + 1 :] == -math.inf).all()
    posteriors = kofn.count_posteriors(filled, min(count, len(kept)), mask=mask)
    torch.testing.assert_close(posteriors[mask], kofn.count_posteriors(kept, min(count, len(kept))))
    assert (posteriors[~mask] == 0).all()


@pytest.mark.parametrize("n", [0, 1, 5, 40, 200])
def test_batched_equals_looped(n: int) -> None:
    g = torch.Generator().manual_seed(n)
    logits = torch.randn(2, 3, n, generator=g, dtype=torch.float64) * 3
    counts = torch.randint(0, n + 1, (2, 3), generator=g)
    values = kofn.log_count_prob(logits, counts)
    law = kofn.log_count_distribution(logits)
    posteriors = kofn.count_posteriors(logits, counts)
    assert values.shape == (2, 3)
    assert law.shape == (2, 3, n + 1)
    assert posteriors.shape == (2, 3, n)
    for i in range(2):
        for j in range(3):
            one = logits[i, j]
            torch.testing.assert_close(values[i, j], kofn.log_count_prob(one, counts[i, j]), rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(law[i, j], law_of(one), rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(posteriors[i, j], kofn.count_posteriors(one, counts[i, j]))


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(0, 2**31))
def test_ragged_equals_padded(sizes: list[int], seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    widest = max(sizes, default=0)
    size = torch.tensor(sizes, dtype=torch.long)
    dense = torch.randn(len(sizes), widest, generator=g, dtype=torch.float64) * 4
    mask = torch.arange(widest) < size.unsqueeze(-1)
    low = torch.randint(-1, widest + 2, (len(sizes),), generator=g)
    high = low + torch.randint(0, 4, (len(sizes),), generator=g)
    flat = dense[mask].requires_grad_()
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), size.cumsum(0)])
    padded = dense.clone().requires_grad_()
    for ragged, expected in (
        (kofn.log_count_prob(flat, low, offsets=offsets), kofn.log_count_prob(padded, low, mask=mask)),
        (
            kofn.log_count_between(flat, low, high, offsets=offsets),
            kofn.log_count_between(padded, low, high, mask=mask),
        ),
    ):
        torch.testing.assert_close(ragged, expected, rtol=1e-11, atol=1e-11)
        (by_flat,) = torch.autograd.grad(ragged.sum(), flat)
        (by_padded,) = torch.autograd.grad(expected.sum(), padded)
        torch.testing.assert_close(by_flat, by_padded[mask], rtol=1e-11, atol=1e-11)
    posteriors = kofn.count_posteriors(flat, low, offsets=offsets)
    torch.testing.assert_close(posteriors, kofn.count_posteriors(padded, low, mask=mask)[mask])
    laws = kofn.log_count_distribution(flat, offsets=offsets)
    assert laws.shape == (len(flat) + len(sizes),)
    padded_laws = kofn.log_count_distribution(padded, mask=mask)
    for j, n in enumerate(sizes):
        here = laws[int(offsets[j]) + j : int(offsets[j + 1]) + j + 1]
        torch.testing.assert_close(here, padded_laws[j, : n + 1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("n", [4, 300])
def test_lower_precision_is_the_float64_answer_rounded(dtype: torch.dtype, n: int) -> None:
    logits = torch.randn(5, n, generator=torch.Generator().manual_seed(3)).to(dtype)
    counts = torch.tensor([0, 1, n // 2, n - 1, n])

    def answers(x: Tensor) -> list[Tensor]:
        x = x.clone().requires_grad_()
        value = kofn.log_count_prob(x, counts)
        between = kofn.log_count_between(x, 1, counts)
        law = kofn.log_count_distribution(x)
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return [value, between, law, kofn.count_posteriors(x, counts), gradient]

    for low, high in zip(answers(logits), answers(logits.double()), strict=True):
        assert low.dtype == dtype
        assert torch.equal(low, high.to(dtype))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_counts_of_any_integer_dtype(dtype: torch.dtype) -> None:
    logits = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    counts = torch.tensor([0, 3, 6])
    assert torch.equal(kofn.log_count_prob(logits, counts.to(dtype)), kofn.log_count_prob(logits, counts))


def test_large_bags_keep_their_digits() -> None:
    # Equal probabilities: the binomial, at sizes where a recursion is out of the question.
    for n in (10_000, 1_000_000):
        count = int(0.3 * n)
        x = torch.full((n,), math.log(0.25 / 0.75), dtype=torch.float64, requires_grad=True)
        value = kofn.log_count_prob(x, count)
        choose = math.lgamma(n + 1) - math.lgamma(count + 1) - math.lgamma(n - count + 1)
        expected = choose + count * math.log(0.25) + (n - count) * math.log(0.75)
        assert value.item() == pytest.approx(expected, rel=1e-11)
        (gradient,) = torch.autograd.grad(value, x)
        torch.testing.assert_close(gradient, torch.full_like(gradient, 0.05), rtol=0, atol=1e-12)


def test_an_interval_of_a_large_bag_is_one_window() -> None:
    n = 100_000
    logits = torch.randn(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean = int(torch.sigmoid(logits).sum())
    below = kofn.log_count_between(logits, 0, mean).exp()
    above = kofn.log_count_between(logits, mean + 1, n).exp()
    assert (below + above).item() == pytest.approx(1, abs=1e-11)
    tail = kofn.log_count_between(logits, mean + 5_000, n)
    first = kofn.log_count_prob(logits, mean + 5_000)
    assert first < tail < first + 5
