"""What torch asks of every distribution."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from distribution_cases import CERTAIN, INF, WRONG, close, normal
from torch.distributions import Distribution
from torch.distributions.constraints import is_dependent

from kofn import ConditionalBernoulli, PoissonBinomial


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
        (lambda: ConditionalBernoulli(torch.tensor(1.0), torch.ones(2)), TypeError, "`total_count` must be integers"),
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
