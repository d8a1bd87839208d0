"""The AUC within bags against all pairs, one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kofn.estimators._verdicts import FEWEST, auc_within
from kofn.metrics import auc, auc_within_bags, average_precision
from kofn.metrics._within_bags import pairs_within_bags

ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([-np.inf, -1.0, 0.0, 0.5, np.inf]), st.integers(0, 3)), min_size=1
)


def enumerated(truth: Any, scores: Any, bags: Any, bag: int) -> tuple[float, int]:
    """U and P of a bag, pair by pair."""
    rows = [(y, x) for y, x, of in zip(truth, scores, bags, strict=True) if of == bag]
    pairs = [(a, b) for (y, a), (z, b) in product(rows, rows) if y == 1 and z == 0]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs), len(pairs)


@given(ROWS)
def test_it_counts_every_pair_of_a_bag_once(rows: list[tuple[int, float, int]]) -> None:
    truth, scores, bags = (np.array(column) for column in zip(*rows, strict=True))
    expected = [enumerated(truth, scores, bags, bag) for bag in np.unique(bags)]
    in_order, pairs = pairs_within_bags(truth, scores, bags)
    assert list(zip(in_order, pairs, strict=True)) == expected
    if sum(number for _, number in expected):
        total = sum(u for u, _ in expected) / sum(p for _, p in expected)
        assert auc_within_bags(truth, scores, [f"bag {bag}" for bag in bags]) == pytest.approx(total, abs=1e-12)


def test_one_bag_is_the_usual_auc_and_a_shift_of_bags_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    truth, scores, bags = rng.integers(0, 2, 200), rng.normal(size=200).round(1), rng.integers(0, 9, 200)
    assert auc_within_bags(truth, scores, np.zeros(200)) == pytest.approx(auc(truth, scores), abs=1e-12)
    shifted = auc_within_bags(*(torch.from_numpy(column) for column in (truth, scores + 64.0 * bags, bags)))
    assert shifted == pytest.approx(auc_within_bags(truth, scores, bags), abs=0.005)


def test_what_knows_the_bag_alone_has_one_half() -> None:
    bags = np.repeat([0, 1], 10)
    truth = np.array([1] * 9 + [0] + [1] + [0] * 9)
    assert auc(truth, -bags) == pytest.approx(0.9)
    assert auc_within_bags(truth, -bags, bags) == 0.5


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"`groups` must name the bag of each instance, shape \(2,\); got shape \(3,"):
        auc_within_bags([0, 1], [0.0, 1.0], [0, 0, 1])
    with pytest.raises(ValueError, match="`groups` must have a bag with both labels"):
        auc_within_bags([0, 1], [0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="`scores` must not be NaN"):
        auc_within_bags([0, 1], [0.0, np.nan], [0, 0])


def simulated(rng: np.random.Generator, bags: int) -> tuple[Any, Any, Any]:
    """Rows of bags of different sizes and rates, whose scores have a different quality in each bag."""
    of = np.repeat(np.arange(bags), rng.integers(2, 30, bags))
    rate, quality = rng.uniform(0.1, 0.9, bags)[of], rng.normal(0.5, 0.7, bags)[of]
    truth = rng.random(len(of)) < rate
    return rng.normal(size=len(of)) + quality * truth, truth, of


@pytest.mark.parametrize("bags", [10, 40])
def test_its_interval_holds_the_truth_as_often_as_it_says(bags: int) -> None:
    rng = np.random.default_rng(1)
    true = auc_within(*simulated(rng, 20_000))
    assert true is not None
    found = [auc_within(*simulated(rng, bags)) for _ in range(600)]
    held = [one.low <= true.mean <= one.high for one in found if one is not None]
    assert len(held) == 600
    assert np.mean(held) == pytest.approx(0.9, abs=0.05)


def test_of_few_bags_with_both_classes_there_is_none() -> None:
    bags = np.repeat(np.arange(FEWEST), 4)
    positive = np.tile([True, True, False, False], FEWEST)
    assert auc_within(np.arange(4.0 * FEWEST), positive, bags) is not None
    positive[:2] = False
    assert auc_within(np.arange(4.0 * FEWEST), positive, bags) is None


def test_average_precision_by_its_sum() -> None:
    truth, scores = np.array([1, 0, 1, 0, 0]), np.array([3.0, 2.0, 1.0, 0.0, -np.inf])
    assert average_precision(truth, scores) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert average_precision(truth, np.zeros(5)) == pytest.approx(0.4)  # by chance the share of positives
    with pytest.raises(ValueError, match="must hold a 1 for `average_precision`"):
        average_precision([0, 0], [0.0, 1.0])
