"""Labels of classes: proportions become counts that fill the bag, what follows is filled in, errors name the bag."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from kofn.targets import class_counts_of_proportions, require_class_counts

NAN = torch.nan


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=4, max_size=4).filter(any), min_size=1, max_size=5), st.booleans()
)
def test_proportions_of_counts_are_these_counts(rows: list[list[int]], single: bool) -> None:
    counts = torch.tensor(rows)
    shares = (counts / counts.sum(1, keepdim=True).double()).to(torch.float32 if single else torch.float64)
    assert torch.equal(class_counts_of_proportions(shares, counts.sum(1)), counts)
    assert torch.equal(class_counts_of_proportions(shares, counts.sum(1), rounding="nearest"), counts)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=6).filter(lambda shares: sum(shares) > 0.1),
    st.integers(1, 2000),
    st.integers(2, 3),
)
def test_rounded_proportions_fill_the_bag(shares: list[float], size: int, digits: int) -> None:
    exact = torch.tensor([shares], dtype=torch.float64)
    exact = exact / exact.sum()
    published = (exact * 10**digits).round() / 10**digits
    between = exact[(exact > 0) & (exact < 1)] * size
    assume(bool(((between >= 1) & (between <= size - 1)).all()))  # else it may be refused
    counts = class_counts_of_proportions(exact, torch.tensor([size]), rounding="nearest")
    assert counts.sum() == size
    assert ((counts - exact * size).abs() < 1).all()
    if (published.sum() - 1).abs() < 0.01 and bool(((published == 0) | (published * size >= 1)).all()):
        assert class_counts_of_proportions(published, torch.tensor([size]), rounding="nearest").sum() == size


def test_what_follows_is_filled_in() -> None:
    counts = torch.tensor([[2, -1, 1], [5, -1, -1], [1, -1, -1], [1, 2, 2]])
    expected = [[2, 2, 1], [5, 0, 0], [1, -1, -1], [1, 2, 2]]
    assert require_class_counts(counts, torch.full((4,), 5)).tolist() == expected
    shares = counts.double().masked_fill(counts < 0, NAN) / 5
    assert class_counts_of_proportions(shares, torch.full((4,), 5)).tolist() == expected
    rounded = class_counts_of_proportions(torch.tensor([[0.34, NAN, NAN]]), torch.tensor([5]), rounding="nearest")
    assert rounded.tolist() == [[2, -1, -1]]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([0.5, 0.2, 0.2], "proportions of classes must sum to 1: bag 'b' has [0.5, 0.2, 0.2]. Counts go with"),
        ([0.5, 0.6, NAN], "proportions of classes must sum to 1: bag 'b'"),
        ([1.5, 0.0, 0.0], "`proportions` must lie between 0 and 1; bag 'b' has 1.5"),
        (
            [0.3, 0.3, 0.4],
            "bag 'b' has 4 instances and the proportions [0.3, 0.3, 0.4], which would be [1.2, 1.2, 1.6]",
        ),
        ([NAN, NAN, NAN], "a bag must have some known count: bag 'b' has none"),
    ],
)
def test_proportions_that_no_bag_has(shares: list[float], message: str) -> None:
    both = torch.tensor([[0.5, 0.25, 0.25], shares], dtype=torch.float64)
    with pytest.raises(ValueError, match=re.escape(message)):
        class_counts_of_proportions(both, torch.tensor([4, 4]), names=["a", "b"])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([2.0, 1.0, 2.0], "bag 1 has 4 instances and the counts [2.0, 1.0, 2.0]. Check that"),
        ([2.0, 1.0, 0.0], "counts of classes must sum to the size of their bag: bag 1"),
        ([5.0, NAN, NAN], "bag 1 has 4 instances and the counts [5.0, nan, nan]"),
        (
            [0.5, 1.5, 2.0],
            "must be integers, 0 or more, and NaN where one is not known: bag 1 has [0.5, 1.5, 2.0]",
        ),
        ([-2.0, 3.0, 3.0], "must be integers, 0 or more"),
        ([NAN, NAN, NAN], "a bag must have some known count: bag 1 has none"),
    ],
)
def test_counts_that_no_bag_has(counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        require_class_counts(torch.tensor([[4.0, 0.0, 0.0], counts]), torch.tensor([4, 4]))


@pytest.mark.parametrize(
    ("shares", "size", "become"),
    [([0.81, 0.1, 0.09], 1, [1, 0, 0]), ([0.5, 0.49, 0.01], 20, [10, 10, 0]), ([0.98, 0.02, 0.0], 10, [10, 0, 0])],
)
def test_rounding_makes_no_certainty(shares: list[float], size: int, become: list[int]) -> None:
    given = torch.tensor([[0.5, 0.5, 0.0], shares], dtype=torch.float64)
    with pytest.raises(ValueError, match="`rounding='nearest'` must not make a certainty of a proportion") as found:
        class_counts_of_proportions(given, torch.tensor([2, size]), rounding="nearest", names=["a", "b"])
    assert f"bag 'b' has {size} instances and the proportions {shares}, which would become {become}" in str(found.value)
    assert "say how many: `copies`" in str(found.value)
