"""Makers of tasks by their laws: what is drawn, how often, from where; the same everywhere for a seed."""

from __future__ import annotations

import hashlib
from math import comb
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kofn.datasets import hold_out, make_llp_bags, make_mil_bags, make_pu_split
from kofn.datasets._draws import normal_sizes, permutation, random_integers

seeds = st.integers(0, 2**32 - 1)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def half_and_half(n: int) -> Tensor:
    return torch.arange(n) % 2


def after(seed: int, draws: int) -> Tensor:
    """State of a generator from which so many float64 uniforms were drawn, and nothing else."""
    generator = seeded(seed)
    torch.rand(draws, dtype=torch.float64, generator=generator)
    return generator.get_state()


def digest(*tensors: Tensor) -> str:
    return hashlib.sha256(b"".join(tensor.numpy().astype("<i8").tobytes() for tensor in tensors)).hexdigest()[:16]


# --- label proportions ---


@given(seeds, st.integers(1, 9), st.integers(1, 12), st.floats(0, 1), st.floats(0, 1))
def test_llp_bags(seed: int, bag_size: int, bags: int, one: float, two: float) -> None:
    labels = half_and_half(2 * bag_size * bags + 3)
    task = make_llp_bags(
        labels, bag_size=bag_size, bags=bags, low=min(one, two), high=max(one, two), generator=seeded(seed)
    )
    assert task.bags.sizes.tolist() == [bag_size] * bags
    assert len(task.bags.index.unique()) == bag_size * bags  # no row twice
    assert torch.equal(task.counts, task.bags.sum(labels))
    assert task.counts.dtype == torch.int64
    assert task.proportions.dtype == torch.float64
    assert torch.equal(task.proportions, task.bags.mean(labels))


@given(seeds, st.integers(1, 10), st.lists(st.integers(0, 1), min_size=10, max_size=80))
def test_llp_bags_by_default_are_as_many_as_fit(seed: int, bag_size: int, listed: list[int]) -> None:
    labels = torch.tensor(listed * bag_size + [0, 1] * bag_size)  # the first bag fits whatever its count
    task = make_llp_bags(labels, bag_size=bag_size, generator=seeded(seed))
    assert len(task.bags) >= 1
    assert len(task.bags.index.unique()) == len(task.bags.index) <= len(labels)
    assert torch.equal(task.counts, task.bags.sum(labels))


def test_llp_default_stops_only_when_rows_run_out() -> None:
    labels = half_and_half(1000)
    task = make_llp_bags(labels, bag_size=10, generator=seeded(0))
    # The draws of the counts come first: repeat them, and see that one bag more would not have fitted.
    generator = seeded(0)
    share = torch.rand(100, 1, dtype=torch.float64, generator=generator)
    counts = (torch.rand(100, 10, dtype=torch.float64, generator=generator) < share).sum(1)
    kept = len(task.counts)
    assert kept < 100
    assert torch.equal(task.counts, counts[:kept])
    more = int(counts[: kept + 1].sum())
    assert more > 500 or 10 * (kept + 1) - more > 500


def test_llp_counts_have_the_right_law() -> None:
    """Uniform p makes every count as likely; fixed p makes them binomial."""
    labels, n, bags = half_and_half(400_000), 4, 50_000
    task = make_llp_bags(labels, bag_size=n, bags=bags, generator=seeded(1))
    assert torch.allclose(task.counts.bincount() / bags, torch.full((n + 1,), 1 / (n + 1)), atol=0.01)  # 5 sd
    task = make_llp_bags(labels, bag_size=n, bags=bags, low=0.3, high=0.3, generator=seeded(2))
    law = torch.tensor([comb(n, k) * 0.3**k * 0.7 ** (n - k) for k in range(n + 1)])
    assert torch.allclose(task.counts.bincount() / bags, law, atol=0.012)
    task = make_llp_bags(labels, bag_size=n, bags=bags, low=0.5, high=1.0, generator=seeded(3))
    assert float(task.proportions.mean()) == pytest.approx(0.75, abs=0.006)
    # Var = E[p (1 - p)] / n + Var p, with E p = 3/4 and E p^2 = 7/12.
    assert float(task.proportions.var()) == pytest.approx((3 / 4 - 7 / 12) / n + 7 / 12 - 9 / 16, abs=0.003)


def test_llp_order_in_a_bag_says_nothing() -> None:
    labels = half_and_half(80_000)
    task = make_llp_bags(labels, bag_size=4, bags=10_000, generator=seeded(4))
    by_place = labels[task.bags.index].reshape(-1, 4).double().mean(0)
    assert torch.allclose(by_place, torch.full((4,), 0.5, dtype=torch.float64), atol=0.03)
    # Every row of a class is as likely to be taken: the mean position is that of the middle.
    assert float(task.bags.index.double().mean()) == pytest.approx(40_000, abs=600)


def test_llp_extremes_are_pure() -> None:
    labels = half_and_half(100)
    assert make_llp_bags(labels, bag_size=5, bags=10, low=1, high=1, generator=seeded(0)).counts.tolist() == [5] * 10
    assert make_llp_bags(labels, bag_size=5, bags=10, low=0, high=0, generator=seeded(0)).counts.tolist() == [0] * 10


# --- multiple instances ---


@given(seeds, st.integers(1, 30), st.floats(1, 12), st.floats(0, 5), st.integers(1, 40))
def test_mil_bags(seed: int, bags: int, mean_size: float, sd_size: float, n: int) -> None:
    labels = torch.arange(n + 3) % 3
    task = make_mil_bags(labels, target=2, bags=bags, mean_size=mean_size, sd_size=sd_size, generator=seeded(seed))
    assert len(task.bags) == bags
    assert int(task.bags.sizes.min()) >= 1
    assert int(task.bag_labels.sum()) == bags // 2
    assert torch.equal((task.bags.sum(labels == 2) > 0).long(), task.bag_labels)
    assert torch.equal(task.instance_labels, (labels == 2).long())


def test_mil_positive_bags_are_drawn_given_one_target() -> None:
    """Sizes fixed: K ~ Binomial(n, q) given K >= 1, each place as likely a target, rows of a class alike."""
    n, bags = 5, 40_000
    labels = torch.arange(50) % 5  # q = 1/5
    task = make_mil_bags(labels, target=0, bags=bags, mean_size=n, sd_size=0, generator=seeded(5))
    drawn = task.bags.index.reshape(bags, n)
    positive = drawn[task.bag_labels == 1]
    hits = labels[positive] == 0
    some = 1 - 0.8**n
    law = torch.tensor([0.0] + [comb(n, k) * 0.2**k * 0.8 ** (n - k) / some for k in range(1, n + 1)])
    assert torch.allclose(hits.sum(1).bincount(minlength=n + 1) / len(hits), law, atol=0.017)
    assert torch.allclose(hits.float().mean(0), torch.full((n,), 0.2 / some), atol=0.017)
    for rows, pool in ((positive[hits], 10), (positive[~hits], 40), (drawn[task.bag_labels == 0].flatten(), 40)):
        share = rows.bincount(minlength=50)[rows.unique()] / len(rows)
        assert len(share) == pool
        assert torch.allclose(share, torch.full((pool,), 1 / pool), atol=0.12 / pool)


def test_mil_sizes_are_rounded_normals() -> None:
    task = make_mil_bags(half_and_half(50), target=1, bags=20_000, mean_size=10, sd_size=2, generator=seeded(6))
    sizes = task.bags.sizes.double()
    assert float(sizes.mean()) == pytest.approx(10, abs=0.08)
    assert float(sizes.var()) == pytest.approx(4 + 1 / 12, abs=0.25)  # Sheppard's correction for rounding
    assert float((sizes == 10).double().mean()) == pytest.approx(0.1974, abs=0.015)  # P(|Z| < 1/4)
    first, second = task.bag_labels[:10_000], task.bag_labels[10_000:]
    assert abs(int(first.sum()) - int(second.sum())) < 500  # in random order


def test_mil_one_row_of_each_kind_is_enough() -> None:
    task = make_mil_bags(torch.tensor([4, 7]), target=7, bags=2, mean_size=1, sd_size=0, generator=seeded(0))
    assert sorted(task.bags.index.tolist()) == [0, 1]


# --- positive and unlabelled ---


@given(seeds, st.integers(1, 20), st.integers(1, 20), st.floats(0, 1))
def test_pu_split(seed: int, positives: int, unlabeled: int, mixture: float) -> None:
    labels = half_and_half(2 * (positives + unlabeled))
    task = make_pu_split(labels, positives=positives, unlabeled=unlabeled, mixture=mixture, generator=seeded(seed))
    assert len(task.positive) == positives
    assert len(task.unlabeled) == unlabeled
    assert int(labels[task.positive].sum()) == positives
    assert int(labels[task.unlabeled].sum()) == round(mixture * unlabeled)
    assert len(task.index.unique()) == positives + unlabeled
    assert task.y.tolist() == [1] * positives + [-1] * unlabeled
    assert torch.equal(task.truth, labels[task.index])


def test_pu_order_says_nothing() -> None:
    labels = half_and_half(20_000)
    task = make_pu_split(labels, positives=1000, unlabeled=10_000, mixture=0.3, generator=seeded(7))
    first, second = labels[task.unlabeled].reshape(2, -1).sum(1).tolist()
    assert abs(first - second) < 400  # 3000 positives, spread over both halves
    assert float(task.positive.double().mean()) == pytest.approx(10_000, abs=900)


# --- held out ---


@given(seeds, st.integers(0, 50), st.floats(0, 1))
def test_hold_out(seed: int, bags: int, fraction: float) -> None:
    train, validation = hold_out(bags, fraction, generator=seeded(seed))
    assert len(validation) == round(fraction * bags)
    assert sorted([*train.tolist(), *validation.tolist()]) == list(range(bags))
    assert train.tolist() == sorted(train.tolist())
    assert validation.tolist() == sorted(validation.tolist())


def test_hold_out_takes_every_bag_as_often() -> None:
    generator, taken = seeded(8), torch.zeros(10)
    for _ in range(4000):
        taken[hold_out(10, 0.3, generator=generator)[1]] += 1
    assert torch.allclose(taken / 4000, torch.full((10,), 0.3), atol=0.036)


# --- randomness ---


def test_only_float64_uniforms_are_drawn() -> None:
    labels = half_and_half(60)
    generator = seeded(9)
    make_llp_bags(labels, bag_size=3, bags=4, generator=generator)
    assert torch.equal(generator.get_state(), after(9, 4 + 4 * 3 + 4 * 3 + 30 + 30))
    generator = seeded(9)
    make_pu_split(labels, positives=3, unlabeled=8, mixture=0.5, generator=generator)
    assert torch.equal(generator.get_state(), after(9, 30 + 30 + 8))
    generator = seeded(9)
    make_mil_bags(labels, target=1, bags=4, mean_size=3, sd_size=0, generator=generator)
    assert torch.equal(generator.get_state(), after(9, 4 + 4 + 4 + 12 + 4 + 12))
    generator = seeded(9)
    hold_out(7, 0.5, generator=generator)
    assert torch.equal(generator.get_state(), after(9, 7))


def test_a_seed_means_the_same_task_for_ever() -> None:
    """Pinned: a change of these digests is a change of every published result."""
    labels = torch.arange(500) * 7 % 10
    llp = make_llp_bags((labels >= 5).long(), bag_size=8, bags=20, low=0.25, high=0.75, generator=seeded(2023))
    mil = make_mil_bags(labels, target=9, bags=30, mean_size=10, sd_size=2, generator=seeded(2023))
    pu = make_pu_split((labels >= 5).long(), positives=50, unlabeled=100, mixture=0.4, generator=seeded(2023))
    assert {
        "llp": digest(llp.bags.index, llp.counts),
        "mil": digest(mil.bags.index, mil.bags.offsets, mil.bag_labels),
        "pu": digest(pu.positive, pu.unlabeled),
        "hold_out": digest(*hold_out(40, 0.125, generator=seeded(2023))),
    } == {
        "llp": "589b1d76b8420da6",
        "mil": "fc1ed7f2398c0fa5",
        "pu": "2ed19aa487b6c896",
        "hold_out": "cbc1ee0d2119bb6b",
    }


def test_other_seeds_give_other_tasks() -> None:
    labels = half_and_half(200)
    one, two = (make_llp_bags(labels, bag_size=8, bags=10, generator=seeded(seed)) for seed in (0, 1))
    assert not torch.equal(one.bags.index, two.bags.index)


@given(seeds, st.integers(0, 40))
def test_permutation(seed: int, n: int) -> None:
    assert sorted(permutation(n, seeded(seed)).tolist()) == list(range(n))


def test_whole_numbers_below_a_bound_are_even() -> None:
    assert torch.allclose(
        random_integers(7, 70_000, generator=seeded(0)).bincount() / 70_000, torch.full((7,), 1 / 7), atol=0.007
    )


def test_sizes_are_at_least_one() -> None:
    sizes = normal_sizes(1.0, 50.0, 1000, seeded(0))
    assert int(sizes.min()) == 1
    assert sizes.dtype == torch.int64


# --- errors ---

LLP: dict[str, Any] = {"labels": half_and_half(40), "bag_size": 4, "bags": 3}
MIL: dict[str, Any] = {"labels": half_and_half(40), "target": 1, "bags": 4, "mean_size": 5, "sd_size": 1}
PU: dict[str, Any] = {"labels": half_and_half(40), "positives": 5, "unlabeled": 10, "mixture": 0.5}
HOLD: dict[str, Any] = {"n_bags": 8, "fraction": 0.5}


@pytest.mark.parametrize(
    ("maker", "good", "change", "error", "message"),
    [
        (make_llp_bags, LLP, {"labels": torch.tensor([0, 1, 2])}, ValueError, "`labels` must be 0 .* got 2"),
        (make_llp_bags, LLP, {"labels": torch.rand(5)}, TypeError, "`labels` must be integers"),
        (make_llp_bags, LLP, {"labels": torch.zeros(5, 2).long()}, ValueError, "`labels` must have one dimension"),
        (make_llp_bags, LLP, {"bag_size": 0}, ValueError, "`bag_size` must be at least 1; got 0"),
        (make_llp_bags, LLP, {"bag_size": 2.0}, TypeError, "`bag_size` must be an integer; got 2.0"),
        (make_llp_bags, LLP, {"bag_size": True}, TypeError, "`bag_size` must be an integer; got True"),
        (make_llp_bags, LLP, {"bags": 0}, ValueError, "`bags` must be at least 1; got 0"),
        (make_llp_bags, LLP, {"low": -0.1}, ValueError, "`low` must lie between 0 and 1; got -0.1"),
        (make_llp_bags, LLP, {"high": 50}, ValueError, "`high` must lie between 0 and 1; got 50. Percentages"),
        (make_llp_bags, LLP, {"high": "1"}, TypeError, "`high` must be a number; got '1'"),
        (make_llp_bags, LLP, {"low": 0.6, "high": 0.4}, ValueError, "`low` must not be above `high`"),
        (make_llp_bags, LLP, {"bags": 6, "low": 1.0}, ValueError, "at least 24 positive rows .* there are 20. Ask for"),
        (
            make_llp_bags,
            LLP,
            {"bags": 6, "high": 0.0},
            ValueError,
            "at least 24 negative rows .* there are 20. Ask for",
        ),
        (
            make_llp_bags,
            LLP,
            {"bags": None, "bag_size": 41},
            ValueError,
            "first of 41 does not fit into 20 positive and 20",
        ),
        (
            make_llp_bags,
            LLP,
            {"generator": 0},
            TypeError,
            "`generator` must be a torch.Generator; got int. From a seed",
        ),
        (make_mil_bags, MIL, {"target": 7}, ValueError, "at least 1 target rows .* a `target` that occurs .* not 7"),
        (make_mil_bags, MIL, {"target": "nine"}, TypeError, "`target` must be an integer; got 'nine'"),
        (make_mil_bags, MIL, {"labels": torch.ones(9).long()}, ValueError, "at least 1 other rows"),
        (make_mil_bags, MIL, {"bags": 0}, ValueError, "`bags` must be at least 1"),
        (make_mil_bags, MIL, {"mean_size": 0.5}, ValueError, "`mean_size` must be finite and at least 1; got 0.5"),
        (make_mil_bags, MIL, {"mean_size": float("nan")}, ValueError, "`mean_size` must be finite"),
        (make_mil_bags, MIL, {"sd_size": -1}, ValueError, "`sd_size` must be finite and at least 0; got -1"),
        (make_mil_bags, MIL, {"sd_size": None}, TypeError, "`sd_size` must be a number; got None"),
        (make_mil_bags, MIL, {"generator": None}, TypeError, "`generator` must be a torch.Generator"),
        (make_pu_split, PU, {"labels": torch.tensor([1, -1])}, ValueError, "`labels` must be 0 .* got -1"),
        (make_pu_split, PU, {"positives": 16}, ValueError, "at least 21 positive rows for this task; there are 20"),
        (make_pu_split, PU, {"unlabeled": 21, "mixture": 0.0}, ValueError, "at least 21 negative rows"),
        (make_pu_split, PU, {"positives": 0}, ValueError, "`positives` must be at least 1"),
        (make_pu_split, PU, {"unlabeled": 0}, ValueError, "`unlabeled` must be at least 1"),
        (make_pu_split, PU, {"mixture": 1.5}, ValueError, "`mixture` must lie between 0 and 1; got 1.5"),
        (hold_out, HOLD, {"n_bags": -1}, ValueError, "`n_bags` must be at least 0"),
        (hold_out, HOLD, {"fraction": 12.5}, ValueError, "`fraction` must lie between 0 and 1; got 12.5"),
    ],
)
def test_errors(maker: Any, good: dict[str, Any], change: dict[str, Any], error: type[Exception], message: str) -> None:
    maker(**{"generator": seeded(0), **good})
    with pytest.raises(error, match=message):
        maker(**{"generator": seeded(0), **good, **change})


def test_labels_may_be_bools_lists_and_arrays() -> None:
    labels = half_and_half(40)
    expected = make_llp_bags(labels, bag_size=4, bags=3, generator=seeded(0))
    for same in (labels.bool(), labels.int(), labels.tolist(), np.asarray(labels)):
        task = make_llp_bags(same, bag_size=4, bags=3, generator=seeded(0))  # type: ignore[arg-type]  # other kinds of labels
        assert torch.equal(task.bags.index, expected.bags.index)
