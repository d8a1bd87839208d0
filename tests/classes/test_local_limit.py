"""Joint counts by the local limit: errors against the exact ones, laws, gradients, and what confident logits do to it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from scipy.stats import multinomial
from torch import Tensor
from torch.nn.functional import one_hot

import kofn
from kofn.classes import ClassCountDistribution
from kofn.counts import _native

SIZES = [12, 1, 0, 30, 9, 2]


@pytest.fixture(autouse=True)
def once(backend: str) -> None:
    if backend == "torch" and _native.available:
        pytest.skip("the limit is one implementation, in torch")


def bag(n: int, classes: int, scale: float, seed: int, *, least: int = 0) -> tuple[Tensor, Tensor]:
    """Logits that know something of the labels, and their counts, at least so many of each class."""
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(n, classes, generator=g, dtype=torch.float64) * scale
        shifted = x + 0.5 * torch.randn(classes, generator=g, dtype=torch.float64)
        counts = torch.bincount(torch.multinomial(shifted.softmax(1), 1, generator=g).flatten(), minlength=classes)
        if int(counts.min()) >= least:
            return x, counts


def bags(classes: int = 4, seed: int = 0) -> tuple[list[Tensor], Tensor]:
    each = [
        bag(n, classes, 1.5, seed + j) if n else (torch.zeros(0, classes).double(), None) for j, n in enumerate(SIZES)
    ]
    counts = [torch.zeros(classes, dtype=torch.long) if k is None else k for _, k in each]
    return [x for x, _ in each], torch.stack(counts)


def ragged(each: list[Tensor]) -> tuple[Tensor, Tensor]:
    sizes = torch.tensor([len(x) for x in each])
    return torch.cat(each), torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def answers(logits: Tensor, counts: Tensor, **where: Any) -> tuple[Tensor, Tensor, Tensor]:
    """log P, its gradient and the posteriors, by the limit unless `method` says otherwise."""
    where = {"method": "limit"} | where
    x = logits.clone().requires_grad_()
    value = kofn.log_class_count_prob(x, counts, **where)
    (slope,) = torch.autograd.grad(value, x, torch.ones_like(value))
    return value.detach(), slope, kofn.class_count_posteriors(logits, counts, **where)


@pytest.mark.parametrize("classes", [3, 4, 5])
@pytest.mark.parametrize(("n", "bound"), [(50, 5e-3), (200, 1e-4), (500, 1e-5)])
@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.skipif(not _native.available, reason="no table is so large")
def test_the_error_falls_with_the_size_of_the_bag(classes: int, n: int, bound: float, scale: float) -> None:
    for seed in range(4 if classes < 5 else 1):
        x, counts = bag(n, classes, scale, seed, least=5)
        exact, limit = answers(x, counts, method="exact"), answers(x, counts)
        for found, truth in zip(limit, exact, strict=True):
            torch.testing.assert_close(found, truth, rtol=0, atol=bound)


@pytest.mark.parametrize("classes", [3, 5, 8])
@pytest.mark.parametrize("scale", [1.0, 6.0, 12.0, 50.0, 1000.0])
@pytest.mark.parametrize("flips", [0, 2])
def test_confident_predictions_and_small_counts(classes: int, scale: float, flips: int) -> None:
    """Where the variance vanishes the plain limit has probabilities beyond 1 and errors of any size."""
    for seed in range(6):
        g = torch.Generator().manual_seed(seed)
        labels = torch.multinomial(torch.rand(classes, generator=g) + 0.02, 16, replacement=True, generator=g)
        x = torch.randn(16, classes, generator=g, dtype=torch.float64) + scale * one_hot(labels, classes)
        labels[:flips] = torch.randint(0, classes, (flips,), generator=g)
        counts = torch.bincount(labels, minlength=classes)
        exact, limit = answers(x, counts, method="exact"), answers(x, counts)
        assert limit[0] <= 0
        assert (limit[0] - exact[0]).abs() < 0.4
        assert (limit[1] - exact[1]).abs().max() < 0.25
        assert (limit[2] - exact[2]).abs().max() < 0.25


@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0, 30.0, 700.0, 1e3])
def test_finite_logits_have_finite_answers(scale: float) -> None:
    for seed in range(8):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(40, 6, generator=g, dtype=torch.float64) * scale
        counts = torch.bincount(torch.randint(0, 6, (40,), generator=g) ** 2 // 6, minlength=6)
        value, slope, posteriors = answers(x, counts)
        assert -torch.inf < value <= 0
        assert slope.isfinite().all()
        torch.testing.assert_close(posteriors.sum(1), torch.ones(40, dtype=torch.float64))
        torch.testing.assert_close(posteriors.sum(0), counts.double(), rtol=0, atol=0.2)
        torch.testing.assert_close(slope.sum(1), torch.zeros(40, dtype=torch.float64), rtol=0, atol=1e-6)


def test_two_classes_are_exact() -> None:
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 12, 2, generator=g, dtype=torch.float64) * 4
    counts = torch.randint(0, 13, (6,), generator=g)
    value, _, posteriors = answers(logits, torch.stack([12 - counts, counts], -1))
    log_odds = logits[..., 1] - logits[..., 0]
    torch.testing.assert_close(value, kofn.log_count_prob(log_odds, counts), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(posteriors[..., 1], kofn.count_posteriors(log_odds, counts), rtol=0, atol=1e-9)


@pytest.mark.parametrize("counts", [[60, 100, 140], [0, 100, 200], [3, 2, 295], [10, 20, 30, 0, 240], [300, 0]])
def test_all_instances_alike_are_multinomial(counts: list[int]) -> None:
    p = torch.arange(1.0, len(counts) + 1, dtype=torch.float64)
    logits = p.log().expand(300, -1)
    value, slope, posteriors = answers(logits, torch.tensor(counts))
    p = p / p.sum()
    truth = multinomial.logpmf(counts, 300, p.numpy())
    assert abs(value.item() - truth) < 1e-4
    shares = (torch.tensor(counts).double() / 300).expand(300, -1)
    torch.testing.assert_close(posteriors, shares, rtol=0, atol=1e-9)
    torch.testing.assert_close(slope, shares - p, rtol=0, atol=1e-9)


def test_ragged_is_padded_is_looped() -> None:
    each, counts = bags()
    flat, offsets = ragged(each)
    mask = torch.arange(32) < offsets.diff().unsqueeze(-1)
    dense = torch.full((len(each), 32, 4), torch.nan, dtype=torch.float64).masked_scatter(mask.unsqueeze(-1), flat)
    looped = [answers(x, k) for x, k in zip(each, counts, strict=True)]
    one, two = answers(flat, counts, offsets=offsets), answers(dense, counts, mask=mask)
    torch.testing.assert_close(one[0], torch.stack([value for value, _, _ in looped]), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(two[0], one[0], rtol=1e-11, atol=1e-11)
    for k in (1, 2):
        torch.testing.assert_close(one[k], torch.cat([answer[k] for answer in looped]), rtol=0, atol=1e-10)
        torch.testing.assert_close(two[k][mask], one[k], rtol=0, atol=1e-10)
        assert (two[k][~mask] == 0).all()


def test_order_does_not_matter() -> None:
    x, counts = bag(60, 5, 2.0, 3, least=3)
    g = torch.Generator().manual_seed(0)
    value, slope, _ = answers(x, counts)
    for _ in range(3):
        rows, columns = torch.randperm(60, generator=g), torch.randperm(5, generator=g)
        other, turned, _ = answers(x[rows][:, columns], counts[columns])
        torch.testing.assert_close(other, value, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(turned, slope[rows][:, columns], rtol=0, atol=1e-10)


def test_a_tilt_changes_nothing_but_a_factor() -> None:
    x, counts = bag(60, 4, 2.0, 3, least=3)
    tilt = torch.tensor([3.0, -2.0, 8.0, 0.0], dtype=torch.float64)
    value, _, posteriors = answers(x, counts)
    other, _, given = answers(x + tilt + torch.linspace(-50, 50, 60).unsqueeze(-1), counts)
    constant = (x.logsumexp(-1) - (x + tilt).logsumexp(-1)).sum() + tilt @ counts.double()
    torch.testing.assert_close(other, value + constant, rtol=1e-10, atol=1e-9)
    torch.testing.assert_close(given, posteriors, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "limit"])
@pytest.mark.parametrize("flat", [False, True])
def test_copies_are_repeated_rows(method: Any, flat: bool) -> None:
    each, _ = bags(3, seed=5)
    logits, offsets = ragged(each)
    g = torch.Generator().manual_seed(0)
    copies = torch.randint(0, 4, (len(logits),), generator=g)
    owner = torch.arange(len(each)).repeat_interleave(offsets.diff()).repeat_interleave(copies)
    entries = torch.arange(len(logits)).repeat_interleave(copies)
    labels = torch.randint(0, 3, (len(entries),), generator=g)
    counts = torch.zeros(len(each), 3, dtype=torch.long).index_add(0, owner, one_hot(labels, 3))
    ends = torch.bincount(owner, minlength=len(each)).cumsum(0)
    repeated = answers(logits[entries], counts, offsets=torch.cat([ends.new_zeros(1), ends]), method=method)
    x = logits.clone().requires_grad_()
    if flat:
        dist = ClassCountDistribution(x, offsets=offsets, copies=copies)
    else:
        mask = torch.arange(32) < offsets.diff().unsqueeze(-1)
        rows = torch.zeros(len(each), 32, 3, dtype=torch.float64).masked_scatter(mask.unsqueeze(-1), x)
        dist = ClassCountDistribution(
            rows, mask=mask, copies=torch.zeros(mask.shape).long().masked_scatter(mask, copies)
        )
    value = dist.log_prob(counts, method=method)
    torch.testing.assert_close(value.detach(), repeated[0], rtol=1e-10, atol=1e-10)
    given = dist.posteriors(counts, method=method)
    given = (given if flat else given[mask])[copies > 0]
    first = (copies.cumsum(0) - copies)[copies > 0]
    torch.testing.assert_close(given, repeated[2][first], rtol=0, atol=1e-9)
    (slope,) = torch.autograd.grad(value.sum(), x, retain_graph=True)
    torch.testing.assert_close(slope, torch.zeros_like(slope).index_add(0, entries, repeated[1]), rtol=0, atol=1e-9)
    torch.testing.assert_close(dist.mean.sum(-1), dist.sizes.double())
    repeated_dist = ClassCountDistribution(logits[entries], offsets=torch.cat([ends.new_zeros(1), ends]))
    torch.testing.assert_close(dist.log_marginals(counts), repeated_dist.log_marginals(counts), rtol=1e-10, atol=1e-10)


def test_a_population_of_few_rows() -> None:
    """200 rows for 300,000 people: the cost is by rows, the error far below a digit that matters."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=g, dtype=torch.float64)
    copies = torch.randint(500, 2500, (200,), generator=g)
    counts = ((x + torch.tensor([0.3, 0.0, -0.2])).softmax(1) * copies.unsqueeze(1)).sum(0).long()
    counts[0] += copies.sum() - counts.sum()
    dist = ClassCountDistribution(x, copies=copies)
    torch.testing.assert_close(dist.log_prob(counts), dist.log_prob(counts, method="exact"), rtol=0, atol=1e-6)
    torch.testing.assert_close(
        (dist.posteriors(counts) * copies.unsqueeze(1)).sum(0), counts.double(), rtol=1e-9, atol=0
    )
    x.requires_grad_()
    (slope,) = torch.autograd.grad(ClassCountDistribution(x, copies=copies).log_prob(counts), x)
    by_transform = torch.func.grad(lambda x: ClassCountDistribution(x, copies=copies).log_prob(counts))(x.detach())
    torch.testing.assert_close(by_transform, slope, rtol=1e-9, atol=1e-6)
    few = torch.tensor([int(copies.sum()) - 12, 9, 3])
    torch.testing.assert_close(dist.log_prob(few), dist.log_prob(few, method="exact"), rtol=0, atol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_gradients_are_the_derivatives_of_the_value(scale: float) -> None:
    x, counts = bag(9, 3, scale, 2, least=1)
    x.requires_grad_()

    def f(x: Tensor) -> Tensor:
        return kofn.log_class_count_prob(x, counts, method="limit")

    assert torch.autograd.gradcheck(f, x)
    assert torch.autograd.gradgradcheck(f, x)
    slope = torch.autograd.grad(f(x), x)[0]
    several = torch.stack([x, x.flip(0)]).detach()
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(f))(several), torch.stack([slope, slope.flip(0)]))


def test_certain_impossible_and_broken() -> None:
    x, counts = bag(30, 4, 1.0, 0, least=2)
    truth = answers(x, counts)
    more = torch.full((2, 4), -torch.inf, dtype=torch.float64)
    more[0, 1], more[1, 3] = 0.0, torch.inf  # two labels that are known
    value, slope, posteriors = answers(torch.cat([x, more]), counts + one_hot(torch.tensor([1, 3]), 4).sum(0))
    torch.testing.assert_close(value, truth[0], rtol=0, atol=2e-3)  # the weights of the correction are of k / n
    torch.testing.assert_close(posteriors[30:], one_hot(torch.tensor([1, 3]), 4).double())
    assert (slope[30:] == 0).all()
    only = torch.where(torch.arange(30).unsqueeze(-1) < 20, x, x.masked_fill(torch.arange(4) == 2, -torch.inf))
    for wrong in (counts + 1, torch.tensor([-1, 1, 30, 0]), torch.tensor([9, 0, 21, 0])):
        value, slope, posteriors = answers(only, wrong)
        assert value == -torch.inf
        assert (slope == 0).all()
        torch.testing.assert_close(posteriors, only.softmax(-1))
    just = torch.tensor([6, 2, 20, 2])  # all twenty that may be of class 2 are
    exact, limit = answers(only, just, method="exact"), answers(only, just)
    torch.testing.assert_close(limit[0], exact[0], rtol=0, atol=0.02)
    torch.testing.assert_close(limit[2], exact[2], rtol=0, atol=0.02)
    several = torch.stack([x, x])
    several[0, 3, 1] = torch.nan
    for answer in answers(several, counts):
        assert answer[0].isnan().all()
        assert answer[1].isfinite().all()


def test_small_bags_are_exact_and_large_ones_the_limit() -> None:
    each = [bag(n, 10, 1.0, n)[0] for n in (8, 100, 12, 64)]
    flat, offsets = ragged(each)
    counts = torch.stack([bag(n, 10, 1.0, n)[1] for n in (8, 100, 12, 64)])
    found = answers(flat, counts, offsets=offsets, method="auto")
    each_method = ("exact", "limit", "exact", "limit")
    looped = [answers(x, k, method=method) for x, k, method in zip(each, counts, each_method, strict=True)]
    torch.testing.assert_close(found[0], torch.stack([value for value, _, _ in looped]), rtol=1e-11, atol=1e-11)
    for k in (1, 2):
        torch.testing.assert_close(found[k], torch.cat([answer[k] for answer in looped]), rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="`method` must be one of 'auto', 'exact', 'limit'; got 'best'"):
        kofn.log_class_count_prob(flat, counts, offsets=offsets, method="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_dtypes_are_rounded(dtype: torch.dtype) -> None:
    x, counts = bag(60, 4, 1.0, 1)
    narrow = x.to(dtype)
    for value, truth in zip(answers(narrow, counts), answers(narrow.double(), counts), strict=True):
        assert value.dtype == dtype
        torch.testing.assert_close(value, truth.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-12)


@pytest.mark.slow
def test_it_learns_from_large_bags_of_ten_classes() -> None:
    g = torch.Generator().manual_seed(0)
    centres = torch.randn(10, 8, generator=g) * 2
    truth = torch.randint(0, 10, (100, 100), generator=g)
    X = centres[truth] + torch.randn(100, 100, 8, generator=g)
    target = kofn.ClassCounts(one_hot(truth, 10).sum(1))
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 10)
    adam = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(150):
        adam.zero_grad()
        kofn.count_loss(model(X), target).backward()
        adam.step()
    assert (model(X).argmax(-1) == truth).double().mean() > 0.95  # 0.79 by MarginalClassCounts


class TestBagEffect:
    @staticmethod
    def by_quadrature(x: Tensor, counts: Tensor, sigma: float) -> Tensor:
        """P(K = k | u) is P(K = k) times e^{u.k} and a factor that is known: a sum over a grid, in the plane of u."""
        width = sigma * (2 / 3) ** 0.5
        line = torch.linspace(-9, 9, 541, dtype=torch.float64)
        z = torch.cartesian_prod(line, line)
        basis = torch.tensor([[1.0, -1, 0], [1, 1, -2]], dtype=torch.float64)
        u = width * z @ (basis / basis.norm(dim=1, keepdim=True))
        moved = torch.cat([(x + part.unsqueeze(1)).logsumexp(-1).sum(-1) for part in u.split(20_000)])
        log_density = -z.square().sum(-1) / 2 - torch.tensor(2 * torch.pi).log() + 2 * (line[1] - line[0]).log()
        alone = kofn.log_class_count_prob(x, counts, method="exact")
        truth: Tensor = alone + (log_density + u @ counts.double() - moved + x.logsumexp(-1).sum()).logsumexp(0)
        return truth

    @pytest.mark.parametrize(
        ("n", "sigma", "scale", "bound"), [(10, 0.3, 1, 1e-4), (40, 1, 1, 1e-3), (40, 1, 5, 5e-3), (150, 2, 1, 2e-3)]
    )
    def test_three_classes_by_quadrature(self, n: int, sigma: float, scale: float, bound: float) -> None:
        for seed in range(3):
            x, counts = bag(n, 3, scale, seed, least=2)
            truth = self.by_quadrature(x, counts, sigma)
            found = ClassCountDistribution(x, bag_effect=sigma).log_prob(counts, method="exact")
            torch.testing.assert_close(found, truth, rtol=0, atol=bound)

    def test_of_two_classes_it_is_that_of_a_count(self) -> None:
        x, counts = bag(50, 2, 1.0, 0, least=5)
        for sigma in (0.2, 1.0):
            truth = kofn.CountDistribution(x[:, 1] - x[:, 0], bag_effect=sigma).log_prob(counts[1])
            found = ClassCountDistribution(x, bag_effect=sigma).log_prob(counts)
            torch.testing.assert_close(found, truth, rtol=0, atol=1e-3)

    def test_by_drawing_bags(self) -> None:
        g = torch.Generator().manual_seed(0)
        x = torch.randn(6, 3, generator=g, dtype=torch.float64)
        u = torch.randn(40_000, 1, 3, generator=g, dtype=torch.float64) * (2 / 3) ** 0.5
        counts = torch.tensor([3, 1, 2])
        alone = kofn.log_class_count_prob(x + u, counts)
        truth = alone.logsumexp(0) - torch.tensor(40_000.0).log()
        found = ClassCountDistribution(x, bag_effect=1.0).log_prob(counts)
        assert abs(float(found - truth)) < 0.02

    def test_none_is_none_and_posteriors_do_not_know_it(self) -> None:
        x, counts = bag(40, 4, 1.0, 0)
        plain, dist = ClassCountDistribution(x), ClassCountDistribution(x, bag_effect=1e-5)
        torch.testing.assert_close(dist.log_prob(counts), plain.log_prob(counts), rtol=0, atol=1e-7)
        torch.testing.assert_close(
            ClassCountDistribution(x, bag_effect=2.0).posteriors(counts), plain.posteriors(counts)
        )
        wrong = counts + 1
        assert dist.log_prob(wrong) == -torch.inf

    @pytest.mark.parametrize("method", ["exact", "limit"])
    def test_derivatives(self, method: Any) -> None:
        x, counts = bag(8, 3, 1.0, 0, least=1)
        sigma = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

        def f(x: Tensor, sigma: Tensor) -> Tensor:
            return ClassCountDistribution(x, bag_effect=sigma).log_prob(counts, method=method)

        assert torch.autograd.gradcheck(f, (x.requires_grad_(), sigma))

    def test_layouts(self) -> None:
        each, counts = bags()
        flat, offsets = ragged(each)
        sigma = torch.linspace(0.1, 1, len(each), dtype=torch.float64)
        found = ClassCountDistribution(flat, offsets=offsets, bag_effect=sigma).log_prob(counts)
        looped = [
            ClassCountDistribution(x, bag_effect=float(s)).log_prob(k)
            for x, k, s in zip(each, counts, sigma, strict=True)
        ]
        torch.testing.assert_close(found, torch.stack(looped), rtol=1e-10, atol=1e-10)
        target = kofn.ClassCounts(counts)
        losses = kofn.count_loss(flat, target, offsets=offsets, bag_effect=sigma, reduction="none")
        torch.testing.assert_close(losses, -found)
