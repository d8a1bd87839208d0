"""A problem in shares: bags stay whole, each goes to one share, and splits mean the same bags as before."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learner_cases import some_bags, some_pu
from torch.distributed import HashStore  # type: ignore[attr-defined]

import kofn
from kofn.learners import Problem, PUProblem
from kofn.learners._peers import StorePeers
from kofn.learners._shares import MappedFile, Share, file_of, shares_of
from kofn.learners._splits import splits_of


def bags_as_rows(problem: Problem, rows: torch.Tensor) -> list[tuple[list[int], int]]:
    """The rows of each bag, in the whole table, and its label."""
    return [(rows[bag].tolist(), int(label)) for bag, label in zip(problem.bags, problem.labels, strict=True)]


@given(st.integers(20, 60), st.integers(1, 4), st.integers(0, 5))
def test_every_bag_is_in_one_share(bags: int, number: int, seed: int) -> None:
    problem = some_bags(bags, seed=seed)
    everything = torch.arange(len(problem.instances))
    shares = shares_of(problem, splits_of(problem, 3, seed), number)
    found = [bag for share in shares for bag in bags_as_rows(share.problem, share.rows)]
    assert found == bags_as_rows(problem, everything)
    largest = int(problem.bags.sizes.max())
    assert max(len(share.rows) for share in shares) <= len(everything) / number + largest


def test_splits_of_shares_are_those_of_the_whole() -> None:
    problem = some_bags(40)
    splits = splits_of(problem, 5, seed=0)
    shares = shares_of(problem, splits, 3)
    for number, parts in enumerate(splits):
        for which, units in enumerate(parts):
            whole = problem.take(units)
            wanted = bags_as_rows(whole, torch.arange(len(problem.instances)))
            found = [bag for share in shares for bag in taken(share, share.splits[number][which])]
            assert found == wanted


def taken(share: Share, units: torch.Tensor) -> list[tuple[list[int], int]]:
    return bags_as_rows(share.problem.take(units), share.rows)


def test_bags_that_share_instances_stay_whole() -> None:
    problem = some_bags(4)
    shared = kofn.Bags.from_lists([[0, 1], [1, 2], [2, 3], [3, 0]])
    problem = replace(problem, bags=shared, labels=torch.tensor([1, 0, 1, 0]))
    shares = shares_of(problem, [], 2)
    assert [share.rows.tolist() for share in shares] == [[0, 1, 2], [0, 2, 3]]
    for share in shares:
        assert np.array_equal(share.opened().instances, problem.instances[share.rows.numpy()])


def test_every_share_has_positives_and_unlabelled() -> None:
    problem = some_pu(200)
    splits = splits_of(problem, 5, seed=0)
    shares = shares_of(problem, splits, 3)
    rows = torch.cat([share.rows for share in shares])
    assert sorted(rows.tolist()) == list(range(200))
    for share in shares:
        part = share.problem
        assert isinstance(part, PUProblem)
        assert torch.equal(part.labeled, problem.labeled[share.rows])
        assert abs(int(part.labeled.sum()) - 50 / 3) < 1
        for train, held in share.splits:
            assert len(part.take(train).strata.unique()) == len(part.take(held).strata.unique()) == 2


def test_a_share_without_positives_does_not_judge() -> None:
    problem = some_pu(24)  # six positives, of which a fold holds two out
    splits = splits_of(problem, 3, seed=0)
    shares = shares_of(problem, splits, 3)
    held = [len(share.splits[0][1]) for share in shares]
    assert 0 in held
    assert len(shares[held.index(0)].problem.take(shares[held.index(0)].splits[0][1]).bags) == 0


def test_too_few_bags_for_the_workers() -> None:
    with pytest.raises(ValueError, match=r"`cluster` must have so few workers .* 5, too many for 4 bags"):
        shares_of(some_bags(4), [], 5)


def test_a_mapped_table_is_opened_not_sent(tmp_path: Path) -> None:
    problem = some_bags(20)
    table = np.memmap(tmp_path / "table", np.float32, "w+", shape=problem.instances.shape)
    table[:] = problem.instances
    _, second = shares_of(replace(problem, instances=table), [], 2)
    assert isinstance(second.table, MappedFile)
    opened = second.opened().instances
    assert np.array_equal(opened, problem.instances[second.rows.numpy()])
    assert np.may_share_memory(opened, opened.base)  # a view of the file
    part = np.asarray(np.memmap(tmp_path / "table", np.float32, "r", offset=24, shape=(9, 3)))[2:]
    found = file_of(part)
    assert found is not None
    assert np.array_equal(found.open(), problem.instances[4:11])
    assert file_of(problem.instances) is None


def test_peers_agree_to_the_last_bit() -> None:
    store = HashStore()
    values = [0.1, 0.2, 0.3]
    found: dict[int, tuple[float, float]] = {}

    def ask(rank: int) -> None:
        peers = StorePeers(store, rank, 3)
        found[rank] = (
            peers.total(values[rank]),
            peers.mean(float("nan") if rank == 1 else values[rank], [1, 0, 2][rank]),
        )

    threads = [Thread(target=ask, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found.values())) == 1
    assert found[0][0] == sum(values)
    assert found[0][1] == pytest.approx(0.7 / 3)


HOLDER = """
import os
from kofn.learners._peers import StorePeers
peers = StorePeers.first("127.0.0.1", 2)
print(peers.port, flush=True)
peers.total(1.0)
peers.leave()
os._exit(0)
"""


class LateStore:
    """A store whose answers are asked for late."""

    def __init__(self, store: Any) -> None:
        self.store, self.set = store, store.set

    def get(self, key: str) -> Any:
        time.sleep(0.5)  # by now the holder has this process's value
        return self.store.get(key)


@pytest.mark.slow
def test_the_store_is_there_until_the_slowest_process_has_its_answer() -> None:
    """The process that holds it had ended when it had its own: "Connection reset by peer", on a busy machine."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        with holder.stdout as said:
            peers = StorePeers.at("127.0.0.1", int(said.readline()), 1, 2)
        peers.store = cast(Any, LateStore(peers.store))
        assert peers.total(2.0) == 3.0
        assert holder.poll() is None
        peers.leave()
        assert holder.wait(timeout=60) == 0
    finally:
        holder.kill()
        holder.wait()
