"""The Triton kernel in Triton's interpreter, which must be on before Triton is imported: run by `test_triton`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import kofn
from bench.fuzz.checks import check_chunk

pytest.importorskip("triton")
from kofn.contrib import triton as kernel  # which imports Triton
from kofn.contrib.triton import log_count_between, log_count_prob

INF, NAN = math.inf, math.nan


@pytest.fixture(scope="module", autouse=True)
def backend() -> Iterator[None]:
    """Here there is one engine."""
    assert kernel.INTERPRETED
    with np.errstate(all="ignore"):  # a GPU divides by zero without a word
        yield


def both(logits: Tensor, low: Tensor, high: Tensor | None = None, **where: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Value and gradient by the kernel, and by torch."""
    found = []
    for prob, between in ((log_count_prob, log_count_between), (kofn.log_count_prob, kofn.log_count_between)):
        x = logits.clone().requires_grad_()
        with kofn.counts.use("torch"):
            value = prob(x, low, **where) if high is None else between(x, low, high, **where)
        found.append((value.detach(), torch.autograd.grad(value.sum(), x)[0]))
    return found


@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="the oracle needs floats of 80 bits")
def test_awkward_bags_against_the_oracle() -> None:
    """A sample; of 2,000 bags: TRITON_INTERPRET=1 python -m bench.fuzz --bags 2000 --engines triton."""
    tally = check_chunk(0, bags=20, seed=1, engines=["triton"])
    assert tally.facts["bags"] == 20
    assert not tally.failures, tally.failures[0]
    assert tally.numbers["float64, triton"] > 1000


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_certain_instances_and_impossible_counts(dtype: torch.dtype) -> None:
    bags = [[INF, 0.5, -INF], [INF, INF], [-INF, 1.0], [], [2.0, -1.0], [0.3], [NAN, 1.0], [2.0, -1.0]]
    logits = torch.tensor([x for bag in bags for x in bag], dtype=dtype)
    offsets = torch.tensor([0, *np.cumsum([len(bag) for bag in bags])])
    counts = torch.tensor([2, 1, 2, 0, -5, 1, 1, 2**62])
    (value, gradient), (expected, by) = both(logits, counts, offsets=offsets)
    torch.testing.assert_close(value, expected, equal_nan=True)
    torch.testing.assert_close(gradient, by, equal_nan=True)
    parts = gradient.split([len(bag) for bag in bags])
    assert value.isneginf().tolist() == [False, True, True, False, True, False, False, True]
    assert all(not parts[bag].any() for bag in (1, 2, 4, 7))  # exactly zero
    assert value[6].isnan()
    assert parts[6].isnan().all()
    assert value[3] == 0
    # Of one instance it is the cross-entropy, to the last digit.
    cross_entropy = binary_cross_entropy_with_logits(logits[9:10].double(), torch.ones(1).double())
    assert value[5] == -cross_entropy.to(dtype)


def test_edge_counts_are_sums_of_log_sigmoids() -> None:
    x = torch.linspace(-40, 40, 37, dtype=torch.float64)
    none, every = log_count_prob(x.expand(2, -1), torch.tensor([0, 37]))
    torch.testing.assert_close(every, torch.nn.functional.logsigmoid(x).sum(), rtol=1e-15, atol=0)
    torch.testing.assert_close(none, torch.nn.functional.logsigmoid(-x).sum(), rtol=1e-15, atol=0)


@pytest.mark.parametrize("between", [False, True])
def test_dense_masked_and_ragged_bags(between: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 2, 21, generator=generator, dtype=torch.float64) * 3
    mask = torch.rand(2, 2, 21, generator=generator) < 0.7
    low = torch.tensor([[0, 4], [9, 30]])
    high = low + 3 if between else None
    for where in ({}, {"mask": mask}):
        (value, gradient), (expected, by) = both(x, low, high, **where)
        torch.testing.assert_close(value, expected, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(gradient, by, rtol=0, atol=1e-14)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), mask.flatten(0, 1).sum(1).cumsum(0)])
    flat, masked = both(x[mask], low.flatten(), None if high is None else high.flatten(), offsets=offsets)[0], gradient
    torch.testing.assert_close(flat[0], value.flatten(), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(flat[1], masked[mask], rtol=0, atol=1e-15)


def test_logits_of_every_size() -> None:
    """Where Newton's method sees no gradient, bisection goes from 1e300 down to a few units."""
    x = torch.tensor([[-1e300, 3.0, 1e300, 0.0], [-1e300, -1e299, 1e300, 1e300], [-2e4, 2e4, 2e4, 1.0]]).double()
    (value, gradient), (expected, by) = both(x, torch.tensor([2, 3, 1]))
    torch.testing.assert_close(value, expected, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(gradient, by, rtol=0, atol=1e-13)


def test_a_large_bag() -> None:
    x = torch.randn(1, 700, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for high in (None, torch.tensor([330])):
        (value, gradient), (expected, by) = both(x, torch.tensor([310]), high)
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)
        torch.testing.assert_close(gradient, by, rtol=0, atol=1e-13)


def test_second_derivatives_and_short_dtypes() -> None:
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([1, 2, 3])
    assert torch.autograd.gradgradcheck(lambda x: log_count_prob(x, counts[:1]), x[:1, :3])
    half = x.detach().bfloat16().requires_grad_()
    value = log_count_prob(half, counts)
    (gradient,) = torch.autograd.grad(value.sum(), half)
    assert value.dtype == gradient.dtype == torch.bfloat16


def test_no_bags() -> None:
    assert log_count_prob(torch.zeros(0, 3), torch.tensor(1)).shape == (0,)
    assert log_count_prob(torch.zeros(2, 0), torch.tensor([0, 1])).tolist() == [0.0, -INF]


@pytest.mark.parametrize("one", [True, False])
def test_there_are_enough_frequencies(one: bool) -> None:
    """The cut of `_characteristic`, beyond which a frequency carries less than e^-40, for every variance."""
    variance = np.geomspace(1e-3, 1e8, 200_001)
    reach = (40 + np.sqrt(1600 + 720 * variance)) / 3
    points = np.ceil(reach + ((1 + np.sqrt(1 + 18 * variance)) / 3 if one else reach))
    points += 1 - points % 2
    cut = np.arcsin(np.sqrt(np.minimum(20 / variance, 1))) / np.pi
    last = np.minimum(np.ceil(cut * points), points // 2).max()
    frequencies = kernel.plan(one=one, size=1.0)["FREQUENCIES"]
    assert frequencies // 2 < last < frequencies


def test_a_gpu_or_the_interpreter_must_be_there() -> None:
    with pytest.raises(ValueError, match=r"`logits` must be on the CPU, in Triton's interpreter, .* they are on meta"):
        log_count_prob(torch.zeros(3, device="meta"), torch.tensor(1, device="meta"))
