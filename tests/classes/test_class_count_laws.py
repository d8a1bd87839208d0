"""Laws of the joint distribution of class counts, in every layout."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

import kofn
from kofn.classes import ClassCountDistribution

SIZES = [5, 1, 0, 3, 9, 2]
C = 4


def bags(seed: int = 0, scale: float = 2.0) -> tuple[list[Tensor], Tensor]:
    """Logits (n, C) of bags of SIZES, and counts (b, C)."""
    g = torch.Generator().manual_seed(seed)
    logits = [torch.randn(n, C, generator=g, dtype=torch.float64) * scale for n in SIZES]
    counts = [one_hot(torch.randint(0, C, (n,), generator=g), C).sum(0) for n in SIZES]
    return logits, torch.stack(counts)


def ragged(each: list[Tensor]) -> tuple[Tensor, Tensor]:
    sizes = torch.tensor([len(x) for x in each])
    return torch.cat(each), torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def padded(each: list[Tensor], fill: float) -> tuple[Tensor, Tensor]:
    """Absent instances lie between others."""
    g = torch.Generator().manual_seed(1)
    width = max(len(x) for x in each) + 2
    logits, mask = torch.full((len(each), width, C), fill, dtype=torch.float64), torch.zeros(len(each), width).bool()
    for j, x in enumerate(each):
        places = torch.randperm(width, generator=g)[: len(x)].sort().values
        logits[j, places], mask[j, places] = x, True
    return logits, mask


def answers(logits: Tensor, counts: Tensor, **where: Any) -> tuple[Tensor, Tensor, Tensor]:
    x = logits.clone().requires_grad_()
    value = kofn.log_class_count_prob(x, counts, **where)
    (slope,) = torch.autograd.grad(value, x, torch.ones_like(value))
    return value.detach(), slope, kofn.class_count_posteriors(logits, counts, **where)


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("fill", [0.0, torch.nan, torch.inf])
def test_ragged_is_padded_is_looped(scale: float, fill: float) -> None:
    each, counts = bags(scale=scale)
    flat, offsets = ragged(each)
    dense, mask = padded(each, fill)
    looped = [answers(x, k) for x, k in zip(each, counts, strict=True)]
    one = answers(flat, counts, offsets=offsets)
    two = answers(dense, counts, mask=mask)
    torch.testing.assert_close(one[0], torch.stack([value for value, _, _ in looped]), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(two[0], one[0], rtol=1e-13, atol=1e-13)
    for k in (1, 2):
        torch.testing.assert_close(one[k], torch.cat([answer[k] for answer in looped]), rtol=0, atol=1e-12)
        torch.testing.assert_close(two[k][mask], one[k], rtol=0, atol=1e-12)
        assert (two[k][~mask] == 0).all()


def test_posteriors_sum_to_one_and_to_the_counts() -> None:
    each, counts = bags(3)
    for x, k in zip(each, counts, strict=True):
        posteriors = kofn.class_count_posteriors(x, k)
        assert ((posteriors >= 0) & (posteriors <= 1)).all()
        torch.testing.assert_close(posteriors.sum(0), k.double())
        torch.testing.assert_close(posteriors.sum(1), torch.ones(len(x), dtype=torch.float64))


def test_two_classes_are_the_count_of_one() -> None:
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 12, 2, generator=g, dtype=torch.float64) * 3
    counts = torch.randint(0, 13, (6,), generator=g)
    log_odds = logits[..., 1] - logits[..., 0]
    value, _, posteriors = answers(logits, torch.stack([12 - counts, counts], -1))
    torch.testing.assert_close(value, kofn.log_count_prob(log_odds, counts), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(posteriors[..., 1], kofn.count_posteriors(log_odds, counts), rtol=0, atol=1e-13)
    marginals = ClassCountDistribution(logits).log_marginals(torch.stack([12 - counts, counts], -1))
    torch.testing.assert_close(marginals, value.unsqueeze(-1).expand(-1, 2), rtol=1e-13, atol=1e-13)


def test_all_counts_sum_to_one() -> None:
    logits = bags(5)[0][0]
    every = torch.cartesian_prod(*[torch.arange(6)] * C)
    every = every[every.sum(1) == 5]
    value = kofn.log_class_count_prob(logits.expand(len(every), 5, C), every)
    assert value.logsumexp(0).abs() < 1e-13


def test_order_does_not_matter() -> None:
    each, counts = bags(7)
    x, k = each[4], counts[4]
    g = torch.Generator().manual_seed(0)
    value, slope, _ = answers(x, k)
    for _ in range(3):
        rows, columns = torch.randperm(len(x), generator=g), torch.randperm(C, generator=g)
        other, turned, _ = answers(x[rows][:, columns], k[columns])
        torch.testing.assert_close(other, value, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(turned, slope[rows][:, columns], rtol=0, atol=1e-13)


def test_a_constant_added_to_an_instance_changes_nothing() -> None:
    each, counts = bags(8)
    x, k = each[4], counts[4]
    shift = torch.linspace(-900, 900, len(x), dtype=torch.float64).unsqueeze(-1)
    torch.testing.assert_close(kofn.log_class_count_prob(x + shift, k), kofn.log_class_count_prob(x, k))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_dtypes_are_rounded(dtype: torch.dtype) -> None:
    each, counts = bags(2)
    flat, offsets = ragged(each)
    narrow = flat.to(dtype)
    found, wide = answers(narrow, counts, offsets=offsets), answers(narrow.double(), counts, offsets=offsets)
    for value, truth in zip(found, wide, strict=True):
        assert value.dtype == dtype
        torch.testing.assert_close(value, truth.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-12)


def test_what_cannot_be_is_minus_infinity_without_a_gradient() -> None:
    logits = torch.zeros(3, 3, dtype=torch.float64)
    logits[:, 2] = -torch.inf
    for counts in ([1, 1, 1], [2, 2, 0], [4, -1, 0], [1, 1, 0], [2**62, 2**62, 3 - 2**63]):
        value, slope, posteriors = answers(logits, torch.tensor(counts))
        assert value == -torch.inf
        assert (slope == 0).all()
        torch.testing.assert_close(posteriors, logits.softmax(-1))


def test_certain_classes() -> None:
    logits = torch.tensor([[torch.inf, 0.0, 3.0], [0.0, 0.0, -torch.inf]], dtype=torch.float64)
    value, slope, posteriors = answers(logits, torch.tensor([1, 1, 0]))
    assert value.exp().item() == pytest.approx(0.5, rel=1e-15)
    known = torch.tensor([[1.0, 0, 0], [0, 1, 0]], dtype=torch.float64)
    torch.testing.assert_close(posteriors, known, rtol=0, atol=1e-15)
    torch.testing.assert_close(slope, known - torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0]]), rtol=0, atol=1e-15)
    assert answers(logits, torch.tensor([0, 1, 1]))[0] == -torch.inf


def test_nan_stays_in_its_bag() -> None:
    logits = torch.zeros(3, 4, C, dtype=torch.float64)
    logits[1, 2, 3] = torch.nan
    logits[2, 0, :2] = torch.inf  # two certain classes
    value, slope, posteriors = answers(logits, torch.tensor([2, 1, 1, 0]))
    for answer in (value, slope, posteriors):
        assert answer[0].isfinite().all()
        assert answer[1:].isnan().all()


def test_gradient_of_the_log_is_posterior_less_prior_by_differences() -> None:
    x, k = bags(4)[0][0], bags(4)[1][0]
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: kofn.log_class_count_prob(x, k), x)
    assert torch.autograd.gradgradcheck(lambda x: kofn.log_class_count_prob(x, k), x)
    assert torch.autograd.gradcheck(lambda x: kofn.class_count_posteriors(x, k), x)


def test_forward_mode_and_transforms() -> None:
    x = bags(4)[0][0]
    k = bags(4)[1][0]

    def f(x: Tensor) -> Tensor:
        return kofn.log_class_count_prob(x, k)

    slope = answers(x, k)[1]
    torch.testing.assert_close(torch.func.grad(f)(x), slope)
    torch.testing.assert_close(torch.func.jacfwd(f)(x), slope)
    several = torch.stack([x, x + 1, x.flip(0)])
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(f))(several), answers(several, k)[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_break_their_graph_here() -> None:
    each, counts = bags(4)

    def f(x: Tensor) -> Tensor:
        return kofn.count_loss(x * 2, kofn.ClassCounts(counts[0])) * 3

    x = each[0].requires_grad_()
    compiled = torch.compile(f, backend="eager")
    torch.testing.assert_close(compiled(x), f(x))
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x), torch.autograd.grad(f(x), x))


@pytest.mark.filterwarnings("ignore")
def test_a_whole_graph_is_refused() -> None:
    each, counts = bags(4)

    def f(x: Tensor) -> Tensor:
        return kofn.count_loss(x, kofn.ClassCounts(counts[0]))

    with pytest.raises(Exception, match=r"(?i)graph|disable"):
        torch.compile(f, backend="eager", fullgraph=True)(each[0])


def test_the_mean() -> None:
    each, counts = bags()
    flat, offsets = ragged(each)
    truth = torch.stack([x.softmax(-1).sum(0) for x in each])
    dist = ClassCountDistribution(flat, offsets=offsets)
    torch.testing.assert_close(dist.mean, truth)
    assert dist.whole_numbers(counts[0]).shape == (len(SIZES), C)
    assert repr(dist) == "ClassCountDistribution(ragged, 4 classes, shape=(6,), dtype=torch.float64)"
    dense, mask = padded(each, torch.nan)
    torch.testing.assert_close(ClassCountDistribution(dense, mask=mask).mean, truth)


def test_errors_name_the_argument_and_the_cure() -> None:
    x = torch.zeros(2, 3, 4)
    k = torch.tensor([1, 1, 1, 0])
    wrong: list[tuple[Tensor, Tensor, dict[str, Any], type[Exception], str]] = [
        (x.long(), k, {}, TypeError, "`logits` must be floating point"),
        (torch.zeros(3), k, {}, ValueError, r"`logits` must have shape \(..., instances, classes\)"),
        (x, k.double(), {}, TypeError, "`counts` must be integers"),
        (x, k[:3], {}, ValueError, "`counts` must hold one number"),
        (x, k, {"offsets": torch.tensor([0, 3])}, ValueError, r"`logits` must have shape \(m, C\)"),
        (x, k, {"mask": torch.ones(2, 3)}, TypeError, "`mask` must be a bool"),
    ]
    for logits, counts, where, kind, words in wrong:
        with pytest.raises(kind, match=words):
            kofn.log_class_count_prob(logits, counts, **where)


def test_differences_of_large_logits_come_first() -> None:
    """Beside a logit of 1e15 posteriors were wrong in their second digit, in both engines, and in torch above 1."""
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    counts = torch.tensor([3, 2, 2])
    cut = torch.tensor([[1.0, 0.5, -1.0], [0.0, 2.0, 0.0]], dtype=torch.float64)
    cut = torch.cat([x, torch.cat([cut[:, :2], torch.full((2, 1), -1e300, dtype=torch.float64)], 1)])
    absent = torch.where(cut == -1e300, -torch.inf, cut)
    more = torch.tensor([4, 3, 2])
    for found, truth in zip(answers(cut, more), answers(absent, more), strict=True):
        torch.testing.assert_close(found, truth, rtol=1e-13, atol=1e-13)
    large = x + 2.0**40  # which keeps twelve bits of a difference
    kept = large - 2.0**40
    for found, truth in zip(answers(large, counts), answers(kept, counts), strict=True):
        torch.testing.assert_close(found, truth, rtol=1e-13, atol=1e-13)
    ties = torch.tensor([[1e6, 0.0, -1e6], [1e6, 1.0, -1e6], [1e6, 0.0, -1e6]], dtype=torch.float64)
    _, _, tied = answers(ties, torch.tensor([2, 1, 0]))
    expected = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64).softmax(0)
    torch.testing.assert_close(tied[:, 1], expected, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"`logits` must not differ so much.*-1e\+07"):
        kofn.log_class_count_prob(ties * 1e9, torch.tensor([1, 1, 1]))
    with pytest.raises(ValueError, match="`logits` must not differ so much"):
        kofn.class_count_posteriors(ties * 1e9, torch.tensor([1, 1, 1]))


def test_certainty_keeps_its_digits() -> None:
    """log(1 - e^-40) by what the other classes have: the logarithm of the rounded 1 is 0."""
    if kofn.counts.backend() != "native":
        pytest.skip("torch has it to 1e-16")
    logits = torch.tensor([[40.0, 0.0, 0.0]] * 3, dtype=torch.float64)
    value = kofn.log_class_count_prob(logits, torch.tensor([3, 0, 0]))
    assert value.item() == pytest.approx(-6 * math.exp(-40), rel=1e-12, abs=0)


def test_a_tilt_of_millions_loses_no_digits() -> None:
    """Counts that two instances alone decide, because the others are certain, are reached by any large tilt."""
    sure, open_ = [0.0, -3e7], [0.0, 0.0]
    x = torch.tensor([sure, open_, sure, open_, sure], dtype=torch.float64)
    value = kofn.log_class_count_prob(x, torch.tensor([3, 2]))
    assert abs(float(value) - math.log(0.25)) < 1e-15
