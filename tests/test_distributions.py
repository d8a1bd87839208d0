"""PoissonBinomial and ConditionalBernoulli: the checks of torch's own distributions, and enumeration."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from bag_strategies import bags
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Distribution, OneHotCategorical, kl_divergence
from torch.distributions.constraints import is_dependent

import kofn
from kofn import ConditionalBernoulli, PoissonBinomial

INF = math.inf
CERTAIN = torch.tensor([0.0, INF, -0.5, -INF, 2.0], dtype=torch.float64)
WRONG: Any = [0.5]


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


def all_labels(n: int) -> Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=n)), dtype=torch.float64).reshape(2**n, n)


def enumerated(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """All labels with k ones (c, n) and their log-probabilities given the count, by the definition."""
    labels = all_labels(len(logits))
    labels = labels[labels.sum(-1) == k]
    joint = torch.where(labels == 1, logits, -logits).sigmoid().log().sum(-1)
    return labels, joint - joint.logsumexp(0)


def fits(found: Tensor, expected: Tensor) -> bool:
    """Pearson's test that frequencies are as expected, at a level that a right sampler fails once in 10,000 seeds."""
    return bool(stats.chisquare(found.double(), expected / expected.sum() * found.sum()).pvalue > 1e-4)


def close(actual: Tensor, expected: Tensor | float, tolerance: float = 1e-11) -> None:
    expected = torch.as_tensor(expected, dtype=actual.dtype).expand(actual.shape)
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


# --- what torch asks of every distribution ---------------------------------------------------------------------------


def examples() -> list[tuple[Distribution, tuple[int, ...], tuple[int, ...]]]:
    """Laws with their batch and event shapes."""
    mask = torch.tensor([True, True, False, True])
    k = torch.tensor([[1], [2]])
    return [
        (PoissonBinomial(logits=normal(4)), (), ()),
        (PoissonBinomial(normal(3, 4).sigmoid()), (3,), ()),
        (PoissonBinomial(logits=normal(2, 3, 4).float()), (2, 3), ()),
        (PoissonBinomial(logits=normal(3, 4), mask=mask), (3,), ()),
        (PoissonBinomial(logits=CERTAIN), (), ()),
        (PoissonBinomial(logits=normal(0)), (), ()),
        (PoissonBinomial(logits=normal(0, 3)), (0,), ()),
        (ConditionalBernoulli(2, logits=normal(4)), (), (4,)),
        (ConditionalBernoulli(1, normal(3, 5).sigmoid()), (3,), (5,)),
        (ConditionalBernoulli(2, logits=normal(2, 3, 4).float()), (2, 3), (4,)),
        (ConditionalBernoulli(k, logits=normal(3, 4)), (2, 3), (4,)),
        (ConditionalBernoulli(torch.tensor([0, 1, 2, 3], dtype=torch.int32), logits=normal(3)), (4,), (3,)),
        (ConditionalBernoulli(2, logits=CERTAIN), (), (5,)),
        (ConditionalBernoulli(0, logits=normal(0)), (), (0,)),
        (ConditionalBernoulli(1, logits=normal(0, 3)), (0,), (3,)),
    ]


@pytest.mark.parametrize(("law", "batch", "event"), examples())
def test_shapes_and_dtypes(law: Any, batch: tuple[int, ...], event: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    assert law.batch_shape == batch
    assert law.event_shape == event
    assert law.param_shape == law.logits.shape == law.probs.shape
    for statistic in (law.mean, law.variance, law.stddev, law.mode):
        assert statistic.shape == batch + event
        assert statistic.dtype == law.logits.dtype
    assert law.entropy().shape == batch
    for shape in ((), (6,), (2, 3), (50,), (0,)):
        value = law.sample(shape)
        assert value.shape == shape + batch + event
        assert value.dtype == law.logits.dtype
        assert not value.requires_grad
        assert bool(law.support.check(value).all())
        assert law.log_prob(value).shape == shape + batch
        assert law.log_prob(value).dtype == law.logits.dtype
        assert bool((law.log_prob(value) > -INF).all())
        if isinstance(law, PoissonBinomial):
            assert law.cdf(value).shape == shape + batch
    assert bool((law.log_prob(law.mode) > -INF).all())
    assert law.has_enumerate_support
    assert not law.has_rsample
    assert type(law).__name__ in repr(law)


@pytest.mark.parametrize(("law", "batch", "event"), examples())
def test_expand_keeps_values(law: Any, batch: tuple[int, ...], event: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    for more in ((2, *batch), (3, 2, *batch), batch):
        wide = law.expand(more)
        assert type(wide) is type(law)
        assert wide.batch_shape == more
        assert wide.event_shape == event
        assert wide._validate_args == law._validate_args
        close(wide.mean, law.mean.expand(more + event))
        close(wide.variance, law.variance.expand(more + event))
        close(wide.entropy(), law.entropy().expand(more))
        value = wide.sample((2,))
        assert value.shape == (2, *more, *event)
        close(wide.log_prob(value), law.log_prob(value), 1e-6)
        close(wide.expand((2, *more)).log_prob(value[:, None]), law.log_prob(value[:, None]), 1e-6)


@pytest.mark.parametrize(("law", "batch", "event"), examples())
def test_the_support_sums_to_one(law: Any, batch: tuple[int, ...], event: tuple[int, ...]) -> None:
    if len(law.total_count.unique()) > 1:
        with pytest.raises(NotImplementedError, match="one total count for all bags; they range from"):
            law.enumerate_support()
        return
    values = law.enumerate_support()
    assert values.shape[1:] == batch + event
    assert law.enumerate_support(expand=False).shape[1:] == (1,) * len(batch) + event
    assert torch.equal(law.enumerate_support(expand=False).expand(values.shape), values)
    log_probs = law.log_prob(values)
    close(log_probs.exp().sum(0), 1.0, 1e-6)
    probs = log_probs.exp().reshape(log_probs.shape + (1,) * len(event))
    close((probs * values).sum(0), law.mean, 1e-6)
    close((probs * (values - law.mean) ** 2).sum(0), law.variance, 1e-6)
    close(torch.special.entr(log_probs.exp()).sum(0), law.entropy(), 1e-6)
    # A mode is as probable as anything.
    if values.numel():
        close(law.log_prob(law.mode), log_probs.amax(0), 1e-6)


@pytest.mark.parametrize(("law", "batch", "event"), examples())
def test_batched_equals_looped(law: Any, batch: tuple[int, ...], event: tuple[int, ...]) -> None:
    value = law.mode
    for bag in itertools.product(*(range(size) for size in batch)):
        if isinstance(law, PoissonBinomial):
            one: Any = PoissonBinomial(logits=law.logits[bag], validate_args=False)
        else:
            one = ConditionalBernoulli(law.total_count[bag], logits=law.logits[bag])
        close(one.mean, law.mean[bag], 1e-6)
        close(one.mode, law.mode[bag])
        close(one.entropy(), law.entropy()[bag], 1e-6)
        close(one.log_prob(value[bag]), law.log_prob(value)[bag], 1e-6)


@pytest.mark.parametrize("kind", [PoissonBinomial, lambda **kw: ConditionalBernoulli(2, **kw)])
def test_lazy_parameters(kind: Callable[..., Any]) -> None:
    logits = normal(3, 5)
    by_logits, by_probs = kind(logits=logits), kind(probs=logits.sigmoid())
    assert "probs" not in by_logits.__dict__
    assert "logits" not in by_probs.__dict__
    close(by_probs.logits, logits)
    close(by_logits.probs, logits.sigmoid())
    close(by_probs.mean, by_logits.mean)
    close(by_probs.expand((2, 3)).entropy(), by_logits.expand((2, 3)).entropy())
    assert torch.equal(copy.deepcopy(by_probs).mean, by_probs.mean)
    edge = kind(probs=torch.tensor([0.0, 1.0, 0.5]))
    assert edge.logits.tolist() == [-INF, INF, 0.0]
    assert is_dependent(type(by_logits).support)
    assert type(by_logits).support.is_discrete


def test_a_subclass_with_another_constructor_must_expand_itself() -> None:
    class Fair(PoissonBinomial):
        def __init__(self, n: int) -> None:
            super().__init__(logits=torch.zeros(n))

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Fair(3).expand((2,))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: PoissonBinomial(), ValueError, "`probs` or `logits` must be given, and not both; got neither"),
        (lambda: PoissonBinomial(torch.ones(2), torch.ones(2)), ValueError, "not both; got both"),
        (lambda: PoissonBinomial(WRONG), TypeError, "`probs` must be a torch.Tensor; got list"),
        (lambda: PoissonBinomial(torch.tensor([0, 1])), TypeError, r"`probs` must be floating.*probs\.float\(\)"),
        (lambda: PoissonBinomial(torch.tensor(0.5)), ValueError, "`probs` must have at least one dimension"),
        (lambda: PoissonBinomial(logits=torch.tensor(0.5)), ValueError, "`logits` must have at least one dimension"),
        (lambda: PoissonBinomial(torch.ones(2), mask=torch.ones(2)), TypeError, "`mask` must be a bool tensor"),
        (lambda: PoissonBinomial(torch.tensor([1.5])), ValueError, "probs.*UnitInterval|probs.*Interval"),
        (lambda: PoissonBinomial(torch.tensor([-0.1])), ValueError, "parameter probs"),
        (lambda: PoissonBinomial(torch.tensor([math.nan])), ValueError, "parameter probs"),
        (lambda: PoissonBinomial(logits=torch.tensor([math.nan])), ValueError, "parameter logits"),
        (lambda: PoissonBinomial(torch.ones(2)).log_prob(torch.tensor(3)), ValueError, "within the support"),
        (lambda: PoissonBinomial(torch.ones(2)).log_prob(torch.tensor(0.5)), ValueError, "within the support"),
        (lambda: PoissonBinomial(torch.ones(2)).cdf(torch.tensor(-1.0)), ValueError, "within the support"),
        (lambda: PoissonBinomial(torch.ones(2, 3)).log_prob(torch.ones(3)), ValueError, "not broadcastable"),
        (lambda: ConditionalBernoulli(4, logits=torch.zeros(3)), ValueError,
         "`total_count` must be a possible number of ones.*the bag has 0 and 3, and total_count 4. Correct the count"),
        (lambda: ConditionalBernoulli(-1, logits=torch.zeros(2, 3)), ValueError, "bag 0 has 0 and 3, and total_count -1"),
        (lambda: ConditionalBernoulli(0, torch.tensor([[[0.5, 0.5]], [[0.5, 1.0]]])), ValueError, r"bag \(1, 0\) has 1 and 2"),
        (lambda: ConditionalBernoulli(2, torch.tensor([0.5, 0.0])), ValueError, "has 0 and 1, and total_count 2"),
        (lambda: ConditionalBernoulli(torch.tensor(1.0), torch.ones(2)), TypeError, "`total_count` must be whole numbers"),
        (lambda: ConditionalBernoulli(torch.ones(3).long(), torch.ones(2, 4)), ValueError, "`total_count` must broadcast"),
        (lambda: ConditionalBernoulli(1, torch.tensor([1.5, 0.5])), ValueError, "parameter probs"),
        (lambda: ConditionalBernoulli(1, torch.rand(3)).log_prob(torch.tensor([1.0, 1.0, 0.0])), ValueError,
         r"within the support \(BinaryWithSum"),
        (lambda: ConditionalBernoulli(1, torch.rand(3)).log_prob(torch.tensor([0.5, 0.5, 0.0])), ValueError, "within the"),
        (lambda: ConditionalBernoulli(1, torch.rand(3)).log_prob(torch.tensor([0.0, 1.0])), ValueError, "event_shape"),
    ],
)  # fmt: skip
def test_messages(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_without_validation_the_impossible_has_probability_zero() -> None:
    logits = normal(3).requires_grad_()
    law = PoissonBinomial(logits=logits, validate_args=False)
    outside = torch.tensor([-1.0, 4.0, 0.5, -INF, INF, math.nan])
    for value in (*outside, outside):
        assert bool((law.log_prob(value) == -INF).all())
    close(law.cdf(torch.tensor([-0.5, 3.5, INF, -INF])), torch.tensor([0.0, 1.0, 1.0, 0.0]))
    close(law.cdf(torch.tensor(1.7)), law.cdf(torch.tensor(1)))
    given_two = ConditionalBernoulli(2, logits=logits, validate_args=False)
    for labels in ([1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.5, 0.5, 1.0], [math.nan, 1.0, 1.0]):
        assert given_two.log_prob(torch.tensor(labels)) == -INF
    nothing = ConditionalBernoulli(4, logits=logits, validate_args=False).log_prob(torch.ones(3))
    assert nothing == -INF
    (gradient,) = torch.autograd.grad(nothing + law.log_prob(outside).sum(), logits)
    assert gradient.tolist() == [0.0, 0.0, 0.0]


# --- the law of the count --------------------------------------------------------------------------------------------


@given(bags(max_size=30))
def test_log_prob_and_cdf_are_the_engines(logits: Tensor) -> None:
    law = PoissonBinomial(logits=logits)
    counts = law.enumerate_support()
    expected = kofn.log_count_distribution(logits)
    close(law.log_prob(counts), expected)
    for value, log_prob in zip(counts, expected, strict=True):  # one by one it goes another way
        close(law.log_prob(value), log_prob)
    close(law.cdf(counts), expected.exp().cumsum(0))
    close(torch.stack([law.cdf(value) for value in counts]), expected.exp().cumsum(0))
    close(law.log_prob(law.mode), expected.max())


@pytest.mark.parametrize("n", [1, 7, 5000])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_equal_probabilities_are_the_binomial(n: int, p: float) -> None:
    law = PoissonBinomial(torch.full((n,), p, dtype=torch.float64))
    oracle = stats.binom(n, p)
    counts = law.enumerate_support()
    close(law.log_prob(counts).exp(), torch.from_numpy(oracle.pmf(counts.numpy())), 1e-10)
    close(law.cdf(counts), torch.from_numpy(oracle.cdf(counts.numpy())), 1e-10)
    assert law.mean.item() == pytest.approx(oracle.mean())
    assert law.variance.item() == pytest.approx(oracle.var())
    assert law.entropy().item() == pytest.approx(float(oracle.entropy()), abs=1e-9)
    assert abs(law.mode.item() - n * p) < 1


@pytest.mark.parametrize(("mean", "mode"), [(2.7, 2), (2.1, 2), (4997.3, 4998), (4997.9, 4998), (2500.0, 2500)])
def test_mode_is_on_either_side_of_the_mean(mean: float, mode: int) -> None:
    n = 5000
    assert int((n + 1) * mean / n) == mode  # the binomial's
    assert PoissonBinomial(torch.full((2, n), mean / n, dtype=torch.float64)).mode.tolist() == [mode, mode]


def test_a_masked_instance_is_an_absent_one() -> None:
    logits = normal(2, 5)
    logits[:, 3] = math.nan
    mask = torch.tensor([[True, True, True, False, False], [True, False, True, False, True]])
    law = PoissonBinomial(logits=logits, mask=mask)
    assert law.total_count.tolist() == [3, 3]
    assert law.enumerate_support().shape == (4, 2)
    for bag in range(2):
        alone = PoissonBinomial(logits=logits[bag][mask[bag]])
        close(law.mean[bag], alone.mean)
        close(law.entropy()[bag], alone.entropy())
        close(law.log_prob(law.enumerate_support())[:, bag], alone.log_prob(torch.arange(4)))
    by_probs = PoissonBinomial(logits.sigmoid(), mask=mask)
    close(by_probs.variance, law.variance)
    with pytest.raises(ValueError, match="within the support"):
        law.log_prob(torch.tensor([4, 1]))


def test_samples_follow_the_law() -> None:
    torch.manual_seed(1)
    law = PoissonBinomial(torch.tensor([[0, 0.2, 0.5, 0.9, 1, 0.7], [0.01, 0.5, 0.5, 0.5, 0.5, 0.99]]).double())
    draws = 20_000
    value = law.sample((draws,))
    expected = law.log_prob(law.enumerate_support()).exp() * draws
    for bag in range(2):
        found = torch.bincount(value[:, bag].long(), minlength=7)
        enough = expected[:, bag] > 5
        assert found[expected[:, bag] == 0].sum() == 0
        assert fits(found[enough], expected[enough, bag])
    close(value.mean(0), law.mean, 0.05)
    close(value.var(0), law.variance, 0.05)


def test_gradients_of_the_count() -> None:
    logits = normal(2, 5, seed=3).requires_grad_()
    few, many = torch.tensor([1.0, 4.0]), torch.arange(6.0)[:, None]
    for value in (few, many):
        assert torch.autograd.gradcheck(lambda x, v=value: PoissonBinomial(logits=x).log_prob(v), logits)
        assert torch.autograd.gradgradcheck(lambda x, v=value: PoissonBinomial(logits=x).log_prob(v), logits)
        assert torch.autograd.gradcheck(lambda x, v=value: PoissonBinomial(logits=x).cdf(v), logits)
    assert torch.autograd.gradcheck(lambda x: PoissonBinomial(x.sigmoid()).log_prob(few), logits)
    assert torch.autograd.gradcheck(lambda x: PoissonBinomial(logits=x).entropy(), logits)
    (gradient,) = torch.autograd.grad(PoissonBinomial(logits=logits).log_prob(few).sum(), logits)
    close(gradient, kofn.count_posteriors(logits, few.long()) - logits.sigmoid())


def test_certain_instances_have_finite_gradients() -> None:
    probs = torch.tensor([0.0, 0.3, 1.0, 0.6], dtype=torch.float64, requires_grad=True)
    law = PoissonBinomial(probs)
    results = [law.log_prob(torch.arange(5)).clamp(min=-100).sum(), law.entropy(), law.cdf(torch.tensor(2.0))]
    given_two = ConditionalBernoulli(2, probs)
    results += [given_two.entropy(), given_two.log_prob(torch.tensor([0.0, 0.0, 1.0, 1.0])), given_two.mean[1]]
    for result in results:
        (gradient,) = torch.autograd.grad(result, probs, retain_graph=True)
        assert bool(gradient.isfinite().all())
        assert gradient[[0, 2]].tolist() == [0.0, 0.0]
    assert torch.autograd.grad(law.mean, probs)[0].tolist() == [1.0] * 4


@pytest.mark.parametrize("n", [40, 5000])
def test_confidently_wrong_counts_keep_their_gradient(n: int) -> None:
    logits = torch.full((n,), 200.0, dtype=torch.float64, requires_grad=True)
    log_prob = PoissonBinomial(logits=logits).log_prob(torch.tensor(0))
    close(log_prob, -200.0 * n)
    (gradient,) = torch.autograd.grad(log_prob, logits)
    close(gradient, -1.0)


# --- divergences -----------------------------------------------------------------------------------------------------


def divergence(p: Any, q: Any) -> Tensor:
    """sum_s p(s) log(p(s) / q(s)) by the definition, for laws that do not underflow."""
    values = torch.arange(int(p.total_count.max()) + 1, dtype=torch.float64)
    values = values.reshape(-1, *(1 for _ in p.batch_shape))
    log_p, log_q = p.log_prob(values), q.log_prob(values)
    total: Tensor = (log_p.exp() * (log_p - log_q)).sum(0)
    return total


def test_divergences_are_sums_over_counts() -> None:
    p, q = PoissonBinomial(logits=normal(3, 6, seed=1)), PoissonBinomial(normal(3, 6, seed=2).sigmoid())
    for binomial in (Binomial(6, logits=normal(3)), Binomial(6, normal(3).sigmoid())):
        close(kl_divergence(p, binomial), divergence(p, binomial))
        close(kl_divergence(binomial, p), divergence(binomial, p))
    close(kl_divergence(p, q), divergence(p, q))
    close(kl_divergence(p, p), 0.0, 1e-14)
    shared = Binomial(6, torch.tensor(0.3, dtype=torch.float64))
    assert kl_divergence(p, shared).shape == (3,)
    assert kl_divergence(PoissonBinomial(logits=torch.zeros(6)), shared).dtype == torch.float64
    assert kl_divergence(PoissonBinomial(logits=torch.zeros(6)), Binomial(6, torch.tensor(0.5))).dtype == torch.float32


@pytest.mark.parametrize("n", [1, 12, 5000])
@pytest.mark.parametrize("name", ["probs", "logits"])
def test_equal_probabilities_have_the_divergences_of_binomials(n: int, name: str) -> None:
    # n KL(Bernoulli || Bernoulli), however far the pmf underflows
    a, b = torch.tensor([0.5, 0.9], dtype=torch.float64), torch.tensor([0.01, 0.6], dtype=torch.float64)
    p, q = PoissonBinomial(a[:, None].expand(2, n)), PoissonBinomial(b[:, None].expand(2, n))
    binomial_p, binomial_q = (Binomial(n, x) if name == "probs" else Binomial(n, logits=x.logit()) for x in (a, b))
    expected = n * kl_divergence(Bernoulli(a), Bernoulli(b))
    close(expected, kl_divergence(binomial_p, binomial_q), 1e-9)
    for left, right in ((p, q), (p, binomial_q), (binomial_p, q)):
        close(kl_divergence(left, right), expected, 1e-9)


def test_divergence_at_certain_instances() -> None:
    half = torch.full((3,), 0.5, dtype=torch.float64)
    sure = PoissonBinomial(torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True))
    free = PoissonBinomial(half.requires_grad_())
    close(kl_divergence(sure, free), -math.log(3 / 8))
    assert kl_divergence(free, sure) == INF
    close(kl_divergence(sure, sure), 0.0)
    none = Binomial(3, torch.tensor(0.0, dtype=torch.float64))
    assert kl_divergence(free, none) == INF
    close(kl_divergence(none, free), 3 * math.log(2))
    for p, q in ((sure, free), (free, sure), (free, none), (none, free)):
        gradients = torch.autograd.grad(
            kl_divergence(p, q), [free.probs, sure.probs], allow_unused=True, retain_graph=True
        )
        assert all(gradient is None or bool(gradient.isfinite().all()) for gradient in gradients)


def test_divergence_of_masked_bags() -> None:
    mask = torch.tensor([[True, False, True, True], [True, False, False, True]])
    p = PoissonBinomial(logits=normal(2, 4), mask=mask)
    sizes = torch.tensor([3, 2])
    binomial = Binomial(sizes, logits=normal(2, seed=5))
    short = PoissonBinomial(logits=normal(2, 3), mask=torch.tensor([[True, True, True], [True, True, False]]))
    for bag in range(2):
        alone = PoissonBinomial(logits=p.logits[bag][mask[bag]])
        n = int(sizes[bag])
        close(kl_divergence(p, binomial)[bag], kl_divergence(alone, Binomial(n, logits=binomial.logits[bag])))
        close(kl_divergence(binomial, p)[bag], kl_divergence(Binomial(n, logits=binomial.logits[bag]), alone))
        close(kl_divergence(p, short)[bag], kl_divergence(alone, PoissonBinomial(logits=short.logits[bag, :n])))
    with pytest.raises(ValueError, match=r"same total count in a Kullback-Leibler divergence; got 2 and 3"):
        kl_divergence(p, Binomial(3, torch.tensor([0.5, 0.5])))
    with pytest.raises(ValueError, match="got 4 and 3"):
        kl_divergence(Binomial(4, torch.tensor(0.5)), p)


def test_divergences_have_gradients() -> None:
    x, y = normal(2, 4, seed=1).requires_grad_(), normal(2, seed=2).requires_grad_()
    z = normal(2, 4, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a, b: kl_divergence(PoissonBinomial(logits=a), Binomial(4, logits=b)), (x, y)
    )
    assert torch.autograd.gradcheck(
        lambda a, b: kl_divergence(Binomial(4, logits=b), PoissonBinomial(logits=a)), (x, y)
    )
    assert torch.autograd.gradcheck(
        lambda a, b: kl_divergence(PoissonBinomial(logits=a), PoissonBinomial(logits=b)), (x, z)
    )


# --- labels given their count ----------------------------------------------------------------------------------------


@given(bags(max_size=8, max_scale=15.0), st.data())
def test_conditional_law_by_enumeration(logits: Tensor, data: st.DataObject) -> None:
    n = len(logits)
    k = data.draw(st.integers(0, n))
    law = ConditionalBernoulli(k, logits=logits)
    labels, expected = enumerated(logits, k)
    close(law.log_prob(labels), expected, 1e-9)
    assert {tuple(row) for row in law.enumerate_support().tolist()} == {tuple(row) for row in labels.tolist()}
    mean = (expected.exp()[:, None] * labels).sum(0)
    close(law.mean, mean, 1e-9)
    close(law.variance, mean * (1 - mean), 1e-9)
    close(law.entropy(), -(expected.exp() * expected).sum(), 1e-9)
    assert law.mode.sum() == k
    close(law.log_prob(law.mode), expected.max(), 1e-9)


def test_one_of_n_is_the_categorical() -> None:
    logits = normal(3, 6)
    law, oracle = ConditionalBernoulli(1, logits=logits), OneHotCategorical(logits=logits)
    close(law.mean, oracle.mean)
    close(law.entropy(), oracle.entropy())
    close(law.log_prob(torch.eye(6)[:, None]), oracle.log_prob(torch.eye(6, dtype=torch.float64)[:, None]))


def test_only_differences_of_logits_matter() -> None:
    logits, k = normal(4, 200), torch.tensor([0, 3, 100, 200])
    law = ConditionalBernoulli(k, logits=logits)
    labels = law.mode
    for shift in (-300.0, 300.0):
        moved = ConditionalBernoulli(k, logits=logits + shift)
        close(moved.log_prob(labels), law.log_prob(labels), 1e-9)
        close(moved.entropy(), law.entropy(), 1e-9)
        close(moved.mean, law.mean, 1e-9)
    single = ConditionalBernoulli(k, logits=(logits + 300).float())  # float32 in and out, float64 between
    close(single.entropy().double(), law.entropy(), 1e-4)


@pytest.mark.parametrize("n", [5, 6, 8])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_samples_follow_the_conditional_law(n: int, scale: float) -> None:
    torch.manual_seed(n)
    logits = normal(3, n, seed=n, scale=scale)
    logits[1] += 500.0  # no count below n is likely, given any all are
    logits[2, 0] = INF
    logits[2, n - 1] = -INF
    k = torch.tensor([2, n // 2, 3])
    draws = 20_000
    value = ConditionalBernoulli(k, logits=logits).sample((draws // 100, 100)).reshape(draws, 3, n)
    assert bool((value.sum(-1) == k).all())
    code = (value.long() << torch.arange(n)).sum(-1)
    for bag in range(3):
        # The labels of the oracle's definition underflow at +500: the law is the same without.
        labels, log_probs = enumerated(logits[bag] - (500.0 if bag == 1 else 0.0), int(k[bag]))
        expected = log_probs.exp() * draws
        codes = (labels.long() << torch.arange(n)).sum(-1)
        found = torch.bincount(code[:, bag], minlength=2**n)[codes]
        assert found.sum() == draws
        assert found[expected == 0].sum() == 0
        enough = expected > 5
        rest = expected[~enough].sum()
        observed = torch.cat([found[enough], found[~enough].sum()[None]]) if rest > 5 else found[enough]
        wanted = torch.cat([expected[enough], rest[None]]) if rest > 5 else expected[enough]
        if len(wanted) > 1:
            assert fits(observed, wanted)


def test_samples_of_large_bags_have_the_posteriors_as_means() -> None:
    torch.manual_seed(4)
    logits, k = normal(3, 300, scale=3.0), torch.tensor([1, 150, 299])
    law = ConditionalBernoulli(k, logits=logits)
    draws = 2000
    value = law.sample((draws,))
    assert bool((value.sum(-1) == k).all())
    deviation = (value.mean(0) - law.mean) / (law.variance / draws + 1e-6).sqrt()
    assert deviation.abs().max() < 5.5
    # Second moments too: neighbours are drawn in one node, the ends of the bag in different halves.
    for i, j in ((0, 1), (0, 299), (149, 150)):
        other = logits[1].clone()
        other[i] = INF
        joint = law.mean[1, i] * ConditionalBernoulli(150, logits=other).mean[j]  # P(y_i = 1) P(y_j = 1 | y_i = 1)
        found = (value[:, 1, i] * value[:, 1, j]).mean()
        assert abs(found - joint) < 5.5 * (joint * (1 - joint) / draws + 1e-6).sqrt()


@pytest.mark.parametrize("k", [0, 1, 17, 2500, 4999, 5000])
def test_large_bags_at_extreme_logits(k: int) -> None:
    torch.manual_seed(5)
    for logits in (normal(5000, scale=300.0), torch.full((5000,), 700.0, dtype=torch.float64), normal(5000) - 900.0):
        law = ConditionalBernoulli(k, logits=logits)
        value = law.sample((2,))
        assert value.sum(-1).tolist() == [k, k]
        assert bool(law.log_prob(value).isfinite().all())
        assert law.log_prob(law.mode) >= law.log_prob(value).max()
        entropy = law.entropy()
        assert entropy.isfinite()
        assert -1e-6 < entropy < math.lgamma(5001) - math.lgamma(k + 1) - math.lgamma(5001 - k) + 1e-5


def test_certain_instances_are_given() -> None:
    torch.manual_seed(6)
    law = ConditionalBernoulli(torch.tensor([1, 2, 4]), logits=CERTAIN)
    value = law.sample((50,))
    assert bool((value[..., 1] == 1).all())
    assert bool((value[..., 3] == 0).all())
    assert law.mean[:, [1, 3]].tolist() == [[1.0, 0.0]] * 3
    rest = ConditionalBernoulli(torch.tensor([0, 1, 3]), logits=CERTAIN[[0, 2, 4]])
    close(law.entropy(), rest.entropy())
    close(law.log_prob(value), rest.log_prob(value[..., [0, 2, 4]]))
    labels = torch.tensor([[1.0, 0, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 1, 0, 1]])
    close(law.log_prob(labels), torch.tensor([-INF, -INF, 0.0]))


def test_gradients_of_the_conditional_law() -> None:
    logits, k = normal(2, 5, seed=7).requires_grad_(), torch.tensor([2, 4])
    labels = torch.tensor([[1.0, 0, 0, 1, 0], [1, 1, 0, 1, 1]])
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, logits=x).log_prob(labels), logits)
    assert torch.autograd.gradgradcheck(lambda x: ConditionalBernoulli(k, logits=x).log_prob(labels), logits)
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, x.sigmoid()).log_prob(labels), logits)
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, logits=x).mean, logits)
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, logits=x).entropy(), logits)
    law = ConditionalBernoulli(k, logits=logits)
    (gradient,) = torch.autograd.grad(law.log_prob(labels).sum(), logits)
    close(gradient, labels - law.mean.detach())


def test_mode_takes_the_first_of_equal_logits() -> None:
    law = ConditionalBernoulli(torch.tensor([0, 1, 2, 3]), logits=torch.tensor([0.0, 1.0, 0.0]))
    assert law.mode.tolist() == [[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]]


def test_fixed_seeds_fix_samples() -> None:
    for law in (PoissonBinomial(logits=normal(3, 50)), ConditionalBernoulli(20, logits=normal(3, 50))):
        torch.manual_seed(8)
        first = law.sample((4,))
        torch.manual_seed(8)
        assert torch.equal(first, law.sample((4,)))
        assert not torch.equal(first, law.sample((4,)))
