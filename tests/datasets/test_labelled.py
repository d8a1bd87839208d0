"""Labelled instances: parts of them, and standardised columns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kofn.datasets import Labelled, standardise


def data(instances: Tensor) -> Labelled:
    return Labelled(instances, torch.arange(len(instances)) % 2, (), ("no", "yes"))


def test_select_by_position_and_by_mask() -> None:
    full = Labelled(torch.arange(8.0).reshape(4, 2), torch.tensor([0, 1, 1, 0]), ("a", "b"), ("no", "yes"))
    part = full.select(torch.tensor([3, 1]))
    assert part.instances.tolist() == [[6, 7], [2, 3]]
    assert part.labels.tolist() == [0, 1]
    assert (part.features, part.classes, len(part)) == (full.features, full.classes, 2)
    assert full.select(full.labels == 1).instances.tolist() == [[2, 3], [4, 5]]


@given(st.integers(0, 40), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_split_is_a_partition(n: int, fraction: float, seed: int) -> None:
    parts = data(torch.arange(n)).split(fraction, generator=torch.Generator().manual_seed(seed))
    one, two = (part.instances.tolist() for part in parts)
    assert len(one) == round(fraction * n)
    assert sorted(one + two) == list(range(n))
    assert (one, two) == (sorted(one), sorted(two))


def test_split_follows_its_generator() -> None:
    full = data(torch.arange(100))
    one, same, other = (full.split(0.5, generator=torch.Generator().manual_seed(k))[0] for k in (0, 0, 1))
    assert torch.equal(one.instances, same.instances)
    assert not torch.equal(one.instances, other.instances)


def test_standardised_columns_have_mean_zero_and_sd_one() -> None:
    generator = torch.Generator().manual_seed(0)
    train = data(
        torch.randn(500, 3, generator=generator) * torch.tensor([1.0, 1e4, 1e-4]) + torch.tensor([0.0, 1e5, 1])
    )
    other = data(torch.randn(50, 3, generator=generator))
    z, w = standardise(train, other)
    assert z.instances.dtype == torch.float32
    assert torch.allclose(z.instances.double().mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-6)
    assert torch.allclose(z.instances.double().std(0, correction=0), torch.ones(3, dtype=torch.float64), atol=1e-6)
    x = train.instances.double()
    expected = (other.instances.double() - x.mean(0)) / x.std(0, correction=0)  # by the first set's statistics
    assert torch.allclose(w.instances, expected.float())
    assert torch.equal(w.labels, other.labels)


def test_constant_columns_become_zero() -> None:
    constant = torch.full((7, 2), 0.1, dtype=torch.float64)  # the sum of seven 0.1 is rounded
    constant[3, 1] = 0.2
    z, w = standardise(data(constant), data(torch.tensor([[0.1, 0.1], [5.0, 0.2]], dtype=torch.float64)))
    assert z.instances[:, 0].tolist() == [0.0] * 7
    assert w.instances[:, 0].tolist() == [0.0, 0.0]
    assert bool(torch.isfinite(torch.cat([z.instances, w.instances])).all())
    assert standardise(data(torch.tensor([[3.0, 4.0]])))[0].instances.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0], torch.tensor([0]), (), ("a",)), TypeError, "`instances` must be a torch.Tensor"),
        ((torch.ones(1), torch.tensor([0.0]), (), ("a",)), TypeError, "`labels` must be int64; got torch.float32"),
        ((torch.ones(2), torch.tensor([0]), (), ("a",)), ValueError, r"got \(1,\) for instances of \(2,\)"),
        ((torch.ones(1, 2), torch.tensor([0]), ("x",), ("a",)), ValueError, "`features` must name each"),
        ((torch.ones(1), torch.tensor([1]), (), ("a",)), ValueError, "positions in `classes`, 0 to 0; got 1 to 1"),
        ((torch.ones(1), torch.tensor([-1]), (), ("a",)), ValueError, "got -1 to -1"),
    ],
)
def test_what_is_not_labelled(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Labelled(*arguments)


def test_standardise_refuses() -> None:
    with pytest.raises(TypeError, match=r"floating point; got torch\.uint8\. Images convert"):
        standardise(data(torch.zeros(2, 2, dtype=torch.uint8)))
    with pytest.raises(ValueError, match="`train` must have at least one row"):
        standardise(data(torch.zeros(0, 2)))
    with pytest.raises(ValueError, match=r"the columns of `train`, \(2,\); got \(3,\)"):
        standardise(data(torch.zeros(2, 2)), data(torch.zeros(2, 3)))


def test_split_refuses() -> None:
    with pytest.raises(ValueError, match="`fraction` must lie between 0 and 1; got 80"):
        data(torch.zeros(4)).split(80, generator=torch.Generator())
