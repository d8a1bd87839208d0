"""Bags of positives and unlabelled: every unlabelled instance once, positives in turn, others each epoch."""

from __future__ import annotations

from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st

from kofn.learners._pu_problem import deal


@given(
    labeled=st.lists(st.booleans(), min_size=2, max_size=40).filter(lambda mask: any(mask) and not all(mask)),
    size=st.integers(1, 12),
    epoch=st.integers(0, 1000),
    seed=st.integers(0, 2**31 - 1),
)
def test_unlabelled_once_and_positives_in_turn(labeled: list[bool], size: int, epoch: int, seed: int) -> None:
    mask = torch.tensor(labeled)
    known, unknown = sum(labeled), len(labeled) - sum(labeled)
    bags, positives = deal(mask, torch.arange(len(mask)), size, epoch, seed)
    assert len(bags) == -(-unknown // size)
    wanted = max(min(size, known), -(-known // len(bags)))
    assert positives.tolist() == [wanted] * len(bags)
    members = [bag.tolist() for bag in bags]
    for bag in members:
        assert mask[bag].tolist() == [True] * wanted + [False] * (len(bag) - wanted)
    others = [bag[wanted:] for bag in members]
    assert sorted(item for bag in others for item in bag) == (~mask).nonzero().flatten().tolist()
    assert max(map(len, others)) <= size
    assert max(map(len, others)) - min(map(len, others)) <= 1
    # In turn: no positive is dealt a second time before all were dealt once.
    times = Counter(item for bag in members for item in bag[:wanted])
    assert len(times) == known
    assert max(times.values()) - min(times.values()) <= 1


def test_only_what_is_chosen_is_dealt() -> None:
    mask = torch.arange(60) < 20
    chosen = torch.arange(0, 60, 2)
    bags, _ = deal(mask, chosen, 7, 0, 0)
    assert set(bags.index.tolist()) <= set(chosen.tolist())


def test_bags_change_with_the_epoch_and_the_seed_alone() -> None:
    mask = torch.arange(60) < 20

    def dealt(epoch: int, seed: int) -> list[int]:
        index: list[int] = deal(mask, torch.arange(60), 10, epoch, seed)[0].index.tolist()
        return index

    assert dealt(3, 1) == dealt(3, 1)
    assert dealt(3, 1) != dealt(4, 1)
    assert dealt(3, 1) != dealt(3, 2)
