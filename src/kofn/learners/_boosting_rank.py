"""What one process of a cluster does: it grows the trees that all of them grow, with its own share of the bags.

The process is a child of a Dask worker (`_rank_task.py`), so that it can be ended while it waits for others inside
LightGBM. It reads its job from stdin and lives until stdin is closed, that is no longer than the worker. Messages go to
stdout: how far it is, and last what became of it.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from threading import Thread
from typing import Any, BinaryIO

import numpy as np
import torch

from kofn import _require
from kofn.learners._binning import binned
from kofn.learners._boosting import Boosting
from kofn.learners._learner import Logits, Progress
from kofn.learners._peers import StorePeers
from kofn.learners._shares import MappedFile, Share, rows_of


class LostPeerError(ConnectionError):
    """Another process of the fit does not answer any more."""


@dataclass(frozen=True, eq=False)
class Job:
    """What a process is to do.

    Attributes:
        rank: of the process, from 0.
        number: of processes.
        host: IP address at which the others reach this process.
        threads: number of threads.
        learner: `Trees`.
        params: of LightGBM.
        share: of the bags.
        rates: at which the fits to the parts of the splits start, in all processes.
        sample: (k,) rows of the whole table from which the bins are found, or these rows themselves.
        of: number of rows of the whole table.
    """

    rank: int
    number: int
    host: str
    threads: int
    learner: Any
    params: dict[str, Any]
    share: Share
    rates: list[Any]
    sample: Any
    of: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a process found.

    Attributes:
        fitted: `FittedTrees` without what is held out; the same in every process, so that only the first sends it.
        rows: (k,) the share's held-out rows, in the whole table.
        logits: (k,) or (k, C) of these.
    """

    fitted: Any
    rows: Any
    logits: Logits | None


def main() -> None:
    """Read a job, do it, and tell."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what LightGBM prints must not come between messages
    inbox = sys.stdin.buffer
    job: Job = pickle.load(inbox)
    torch.set_num_threads(job.threads)
    try:
        peers = _meet(job, inbox, out)
        Thread(target=_end_with, args=(inbox,), daemon=True).start()
        outcome = _fit(job, peers, out)
        peers.leave()
        _tell(out, "done", outcome)
    except Exception as error:
        _tell(out, "failed", _as_lost_peer(error))
    out.flush()
    os._exit(0)  # a store or LightGBM's network may wait for others at a regular end


def _meet(job: Job, inbox: BinaryIO, out: BinaryIO) -> StorePeers:
    """Meet the other processes at a store, which the first one holds; its address goes from worker to worker."""
    if job.rank:
        host, port = pickle.load(inbox)
        return StorePeers.at(host, port, job.rank, job.number)
    peers = StorePeers.first(job.host, job.number)
    _tell(out, "store", (job.host, peers.port))
    return peers


def _fit(job: Job, peers: StorePeers, out: BinaryIO) -> Outcome:
    problem, table = job.share.opened(), job.share.table
    sample = rows_of(table.open(), job.sample) if isinstance(table, MappedFile) else job.sample
    reference = _reference(sample, job, problem.categories)
    params = job.params | {"tree_learner": "data", "num_machines": job.number, "pre_partition": True}
    boosting = Boosting(problem, params, _progress(job, out), peers=peers, reference=reference)
    network = _connected(reference, job, peers)
    fitted = job.learner.boosted(boosting, job.share.splits, job.rates)
    del network  # which kept the connection
    logits, fitted.held_out_logits, fitted.splits = fitted.held_out_logits, None, ()
    rows = np.zeros(0, dtype=np.int64)
    if logits is not None:
        known = ~np.isnan(logits.reshape(len(logits), -1)[:, 0])
        rows, logits = job.share.rows.numpy()[known], logits[known]
    return Outcome(fitted if job.rank == 0 else None, rows, logits)


def _reference(sample: Any, job: Job, categories: Collection[int]) -> Any:
    """A data set that has the bins which one process would find: all processes bin the same sample of the whole table.

    A column is left out in which no split would leave `min_data_in_leaf` rows on either side, of the whole table. Of
    the sample LightGBM must ask for its part of these.
    """
    fewest = job.params["min_data_in_leaf"] * len(sample) // job.of
    return binned(sample, categories=categories, params=job.params | {"min_data_in_leaf": fewest})


def _connected(reference: Any, job: Job, peers: StorePeers) -> Any:
    """A booster whose only use is that it connects the process to the others, once for all boosters that follow."""
    booster = _require.package("lightgbm", extra="train").Booster(job.params, reference)
    if job.number > 1:
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        machines = peers.gather(f"{job.host}:{port}")  # which have all read their rows by now
        booster.set_network(machines, local_listen_port=port, num_machines=job.number)
    return booster


def _progress(job: Job, out: BinaryIO) -> Progress | None:
    if job.rank:
        return None

    def progress(what: str, step: int, of: int, losses: Mapping[str, float]) -> None:
        _tell(out, "progress", (what, step, of, dict(losses)))

    return progress


def _as_lost_peer(error: Exception) -> Exception:
    """An error of LightGBM's sockets or of the store, as what it means; any other as it is."""
    words = str(error).lower()
    if isinstance(error, torch.distributed.DistError) or (
        type(error).__name__ == "LightGBMError" and any(word in words for word in ("socket", "connect", "network"))
    ):
        return LostPeerError(str(error))
    return error


def _tell(out: BinaryIO, kind: str, content: Any) -> None:
    try:
        message = pickle.dumps((kind, content))
    except Exception:  # an error of another library that cannot be sent
        message = pickle.dumps((kind, RuntimeError(f"{type(content).__name__}: {content}")))
    out.write(message)
    out.flush()


def _end_with(inbox: BinaryIO) -> None:
    """End the process when its stdin ends, because the worker has."""
    inbox.read()
    os._exit(1)
