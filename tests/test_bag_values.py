"""Choosing bags, and sums, means and common values of their instances, against plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kofn import Bags

LISTS = st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=6)  # overlapping, repeated, empty
MEMBERS = [[0, 3], [], [3, 3, 1], [2]]
BAGS = Bags.from_lists({"a": MEMBERS[0], "b": MEMBERS[1], "c": MEMBERS[2], "d": MEMBERS[3]})


def members(bags: Bags) -> list[list[int]]:
    return [bag.tolist() for bag in bags]


@given(lists=LISTS, data=st.data())
def test_select_positions(lists: list[list[int]], data: st.DataObject) -> None:
    bags, b = Bags.from_lists(lists), len(lists)
    which = data.draw(st.lists(st.integers(-b, b - 1), max_size=8)) if b else []
    chosen = bags.select(which)
    assert members(chosen) == [lists[j] for j in which]
    assert chosen.names == [bags.names[j] for j in which]
    index, offsets, _ = bags.gather(torch.tensor(which, dtype=torch.int64))
    assert torch.equal(index, chosen.index)
    assert torch.equal(offsets, chosen.offsets)


@given(lists=LISTS, data=st.data())
def test_select_mask_and_slice(lists: list[list[int]], data: st.DataObject) -> None:
    bags, b = Bags.from_lists(lists), len(lists)
    mask = data.draw(st.lists(st.booleans(), min_size=b, max_size=b))
    for container in (list, np.array, torch.tensor):
        kept = bags.select(container(mask) if b else torch.zeros(0, dtype=torch.bool))
        assert members(kept) == [bag for bag, keep in zip(lists, mask, strict=True) if keep]
    stretch = data.draw(st.slices(b))
    assert members(bags.select(stretch)) == lists[stretch]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8"])
def test_select_by_any_integer(dtype: str) -> None:
    # A tensor of uint8 is a mask to torch, and -4 is 252 to it.
    which = np.array([2, 0, 2], dtype=dtype)
    containers: list[Any] = [which, torch.from_numpy(which), which.tolist(), tuple(which), [torch.tensor(2), 0, 2]]
    for asked in containers:
        assert BAGS.select(asked).names == ["c", "a", "c"]


def test_select_nothing_and_everything() -> None:
    for nothing in ([], (), torch.zeros(0), slice(9, 12), [False] * 4):
        assert len(BAGS.select(nothing)) == 0
    assert members(BAGS.select(slice(None))) == MEMBERS
    assert BAGS.select(slice(None, None, -2)).names == ["d", "b"]
    assert BAGS.select(BAGS.sizes > 0).names == ["a", "c", "d"]
    assert BAGS.select(range(1, 3)).names == ["b", "c"]


SELECT_ERRORS: list[tuple[Any, type[Exception], str]] = [
    ([0, 4], IndexError, r"`which` asks for bag 4; there are 4, from 0 \(or -4 from the end\)."),
    ([-5], IndexError, "`which` asks for bag -5; there are 4"),
    ([True, False], IndexError, "`which` as a mask must have one entry for each of the 4 bags; got 2."),
    ([1.0], TypeError, "`which` must be integers; got torch.float64."),
    ([1j], TypeError, "`which` must be integers; got torch.complex128."),
    (1, ValueError, r"`which` must have one dimension; got shape \(\)."),
    ([[True] * 4], TypeError, "`which` must be integers; got torch.bool."),
    (["a"], TypeError, "`which` must be numbers, .* got list: "),
    (None, TypeError, "`which` must be numbers, .* got NoneType: "),
]


@pytest.mark.parametrize("case", range(len(SELECT_ERRORS)))
def test_select_what_is_not_there(case: int) -> None:
    which, error, message = SELECT_ERRORS[case]
    with pytest.raises(error, match=message):
        BAGS.select(which)


@given(lists=LISTS, shape=st.lists(st.integers(0, 3), max_size=2), seed=st.integers(0, 99))
def test_sum_and_mean_against_loops(lists: list[list[int]], shape: list[int], seed: int) -> None:
    bags = Bags.from_lists(lists)
    values = torch.randn(7, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    sums = [values[bag].sum(0) for bag in lists]
    means = [values[bag].mean(0) for bag in lists]  # NaN for an empty bag, as here
    total, mean = bags.sum(values), bags.mean(values)
    assert total.shape == mean.shape == (len(lists), *shape)
    for j in range(len(lists)):
        torch.testing.assert_close(total[j], sums[j])
        torch.testing.assert_close(mean[j], means[j], equal_nan=True)
    torch.testing.assert_close(bags.sum(values.numpy()), total, rtol=0, atol=0)


WHOLE = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16]


@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers_do_not_overflow(dtype: torch.dtype) -> None:
    values = torch.tensor([1, 0, 100, 100]).to(dtype)
    loop = [sum(values.tolist()[i] for i in bag) for bag in MEMBERS]
    assert BAGS.sum(values).tolist() == loop
    assert BAGS.sum(values).dtype == torch.int64
    mean = BAGS.mean(values)
    assert mean.dtype == torch.float64
    assert mean[[0, 2, 3]].tolist() == [loop[0] / 2, loop[2] / 3, loop[3]]
    assert mean[1].isnan()
    assert Bags.from_sizes([300]).sum(torch.ones(300, dtype=dtype)).item() == 300


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64])
def test_long_sums_keep_their_dtype_and_lose_nothing(dtype: torch.dtype) -> None:
    # Added up one by one in bfloat16, ones stop at 256; in float16, 2 * 40,000 is infinite before it is halved.
    bags = Bags.from_sizes([4096, 2])
    values = torch.cat([torch.ones(4096), torch.full((2,), 40000.0)]).to(dtype)
    assert bags.sum(values)[0] == 4096
    assert bags.mean(values)[0] == 1
    assert torch.equal(bags.mean(values)[1], values[-1])
    assert bags.sum(values).dtype == bags.mean(values).dtype == dtype


def test_complex_numbers_keep_both_parts() -> None:
    assert Bags.from_sizes([2]).mean(torch.tensor([1 + 2j, 3 - 4j])).tolist() == [2 - 1j]


def test_gradients() -> None:
    values = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    full = BAGS.select(BAGS.sizes > 0)  # the mean of an empty bag is NaN
    for function in (BAGS.sum, full.mean):
        assert torch.autograd.gradcheck(function, values)
        assert torch.autograd.gradgradcheck(function, values)
    (gradient,) = torch.autograd.grad(BAGS.sum(values).sum(), values)
    assert gradient[:, 0].tolist() == [1, 1, 1, 3]  # instance 3 lies once in a, twice in c


def test_values_of_no_bags() -> None:
    none = Bags.from_ids([])
    assert none.sum([]).shape == none.mean(torch.zeros(0)).shape == none.common([]).shape == (0,)
    assert none.sum(torch.zeros(0, 3)).shape == none.common(torch.zeros(0, 3)).shape == (0, 3)
    assert none.sum(torch.ones(5, dtype=torch.int32)).dtype == torch.int64
    empty = Bags.from_sizes([0, 0])
    assert empty.sum([]).tolist() == [0, 0]
    assert all(math.isnan(value) for value in empty.mean([]).tolist())


@given(
    lists=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5), max_size=6),
    shape=st.sampled_from([(), (2,), (2, 3)]),
)
def test_common_is_what_was_repeated(lists: list[list[int]], shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(len(lists))
    labels = torch.randint(0, 3, (len(lists), *shape), generator=generator)
    bags = Bags.from_sizes([len(bag) for bag in lists])
    repeated = labels[bags.bag_of()]
    for values in (repeated, repeated.double(), repeated.bool(), repeated.numpy()):
        shared = bags.common(values)
        assert torch.equal(shared, torch.as_tensor(labels).to(shared.dtype))
    assert torch.equal(bags.mean(repeated.double()), labels.double())


COMMON_ERRORS: list[tuple[Callable[[], Tensor], str]] = [
    (
        lambda: Bags.from_ids(["x", "y", "y", "x"]).common([1, 0, 2, 1]),
        "`values` must be the same on all instances of a bag; bag 'y' has 0 and 2. .* average with bags.mean",
    ),
    (
        lambda: Bags.from_ids(["x", "x"]).common([[0.5, 1.0], [0.5, 0.0]], name="y"),
        r"`y` must be the same .* bag 'x' has \[0.5, 1.0\] and \[0.5, 0.0\]",
    ),
    (lambda: Bags.from_ids(["x", "z"]).common([0.5, math.nan], name="y"), "`y` must not be NaN; bag 'z' has one."),
    (lambda: BAGS.common([0, 0, 0, 0]), "bag 'b' is empty: it has no row that could carry its label."),
    (lambda: BAGS.common([0, 0, 0], name="y"), r"`y` must have one row for each instance, at least 4 .* shape \(3,\)"),
]


@pytest.mark.parametrize("case", range(len(COMMON_ERRORS)))
def test_values_that_are_not_common(case: int) -> None:
    make, message = COMMON_ERRORS[case]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("method", [BAGS.sum, BAGS.mean, BAGS.common])
def test_values_that_do_not_fit(method: Callable[[Any], Tensor]) -> None:
    for values in (torch.zeros(3), [1, 2], 5.0, torch.zeros(0, 4)):
        with pytest.raises(ValueError, match="`values` must have one row for each instance, at least 4 for these bags"):
            method(values)
    for strange in (["a"] * 4, [[1], [1, 2]], {1}):
        with pytest.raises(TypeError, match="`values` must be numbers"):
            method(strange)
