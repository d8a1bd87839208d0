"""Batches of so many instances: filled one after the other, as many in every epoch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kofn.learners import BagSampler
from kofn.learners._bag_sampler import batch_ends, max_batches

SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=30)


def greedy(sizes: list[int], most: int) -> list[int]:
    """The oracle of `cut`: ends of batches, each filled until the next bag does not fit."""
    ends, filled = [], 0
    for position, size in enumerate(sizes):
        if position and filled + size > most:
            ends.append(position)
            filled = 0
        filled += size
    return [*ends, len(sizes)]


@given(sizes=SIZES, most=st.integers(1, 40), more=st.integers(0, 30))
def test_cut(sizes: list[int], most: int, more: int) -> None:
    array, plain = np.array(sizes), greedy(sizes, most)
    assert batch_ends(array, most, 1).tolist() == plain
    wanted = min(len(plain) + more, len(sizes))
    ends = batch_ends(array, most, wanted).tolist()
    assert len(ends) == wanted
    assert ends == sorted(set(ends))
    assert set(plain) <= set(ends)  # batches are halved, never joined
    assert ends[0] > 0
    assert ends[-1] == len(sizes)


@settings(max_examples=300)
@given(
    sizes=st.lists(st.one_of(st.integers(1, 9), st.integers(1, 60)), min_size=1, max_size=40),
    most=st.integers(1, 70),
    unit=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)
def test_most_batches_is_an_upper_bound(sizes: list[int], most: int, unit: int, seed: int) -> None:
    array, rng = np.array(sizes) * unit, np.random.default_rng(seed)
    bound = max_batches(array, most)
    assert 1 <= bound <= len(sizes)
    small_and_large = [x for pair in itertools.zip_longest(*np.array_split(np.sort(array), 2)) for x in pair if x]
    orders = [
        np.sort(array),
        np.sort(array)[::-1],
        np.array(small_and_large),
        *(rng.permutation(array) for _ in range(5)),
    ]
    assert max(len(greedy(order.tolist(), most)) for order in orders) <= bound


def test_most_batches_in_every_order() -> None:
    for bags in range(1, 6):
        for sizes in itertools.combinations_with_replacement([1, 2, 3, 5, 8], bags):
            for most in (1, 2, 3, 4, 6, 9):
                worst = max(len(greedy(list(order), most)) for order in itertools.permutations(sizes))
                assert worst <= max_batches(np.array(sizes), most)


def test_most_batches_is_not_far_off() -> None:
    assert max_batches(np.full(1000, 10), 205) == 50  # 20 to a batch
    assert max_batches(np.full(1000, 10), 9) == 1000
    assert max_batches(np.array([*[1] * 5000, 10**5]), 1000) == 7  # 5 full ones, cut in two by the giant, and that
    assert max_batches(np.array([4, 4]), 8) == 1


RNG = np.random.default_rng(0)
LAWS = {
    "heavy tail": (1 + RNG.pareto(0.8, 300) * 3).astype(np.int64),
    "wide": np.maximum(1, RNG.lognormal(3, 1.5, 300)).astype(np.int64),
    "all equal": np.full(100, 7),
    "size 1": np.ones(100, dtype=np.int64),
    "one giant": np.array([*[1] * 200, 5000]),
    "just over half": np.full(60, 33),
    "one bag": np.array([5]),
}


@pytest.mark.parametrize("law", LAWS)
def test_as_many_batches_in_every_epoch(law: str) -> None:
    sampler = BagSampler(torch.from_numpy(LAWS[law]), instances=64)
    for epoch in range(50):
        sampler.set_epoch(epoch)
        draws = list(sampler)
        assert len(draws) == len(sampler)
        assert all(LAWS[law][draw.items].sum() <= 64 or len(draw.items) == 1 for draw in draws)
