"""Trees on the workers of a Dask cluster: shares of whole bags go out, and one model comes back.

Every worker runs one process (`_boosting_rank.py`), all of them the same rounds: LightGBM adds up their histograms, so
that each grows the same trees. Dask starts the processes, carries what they need and what they found, and knows which
workers are alive. Whatever goes wrong in one of them ends all.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np
import torch

from kofn import _require
from kofn.learners._boosting_rank import Job, LostPeerError, Outcome
from kofn.learners._learner import Progress
from kofn.learners._problem import Problem
from kofn.learners._rank_task import EndedProcessError, run_rank
from kofn.learners._shares import file_of, rows_of, shares_of
from kofn.learners._splits import Split

WAIT = 10.0  # seconds for the scheduler to answer, and for a first worker
PAUSE = 0.2  # seconds between two looks at the workers
GRACE = 3.0  # seconds in which the cause of an error may become known after its effects


def fit_on_cluster(
    learner: Any,
    problem: Problem,
    splits: list[Split],
    rates: list[Any],
    *,
    seed: int,
    progress: Progress | None,
) -> Any:
    """Fit `Trees` on all workers of the cluster that it names.

    Args:
        learner: with an address as its `cluster`.
        problem: of the whole table.
        splits: bags of it to learn from and to judge on.
        rates: at which the fits to these parts start.
        seed: random seed.
        progress: called every now and then, in this thread.

    Raises:
        ConnectionError: the scheduler or a worker cannot be reached, or is lost.
        ValueError: fewer bags than workers.
    """
    with _client(learner.cluster) as client:
        _tell(progress, "waiting for the cluster")
        with _only_fit(client):
            workers = _workers(client, learner.cluster)
            _tell(progress, "sending the bags to the workers")
            jobs = _jobs(learner, problem, splits, rates, seed, workers)
            outcomes = _run(client, dict(zip(workers, jobs, strict=True)), progress)
    return _joined(outcomes, problem, splits)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """A client of a scheduler, which logs nothing: what goes wrong is raised, with its cause."""
    distributed = _require.package("distributed", extra="cluster")
    with _without_logs("distributed", "tornado", "asyncio"):
        try:
            _wait_for_answer(address)
            client = distributed.Client(address, timeout=WAIT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"`cluster` must be the address of a Dask scheduler that is running; none answers at {address} within "
                f"{WAIT:g} s: {error}. Start one with: dask scheduler"
            ) from None
        with client:
            try:
                yield client
            except distributed.comm.CommClosedError as error:
                raise ConnectionError(f"the scheduler at {address} was lost during the fit: {error}") from None


def _wait_for_answer(address: str) -> None:
    """Wait until something listens at an address of TCP; a client of Dask waits several times as long as it is told.

    Raises:
        OSError: nothing does.
        ValueError: no such address.
    """
    parts, until = urlsplit(address), monotonic() + WAIT
    if parts.scheme not in ("tcp", "tls") or parts.hostname is None or parts.port is None:
        return
    while True:
        try:
            socket.create_connection((parts.hostname, parts.port), timeout=WAIT).close()
            return
        except OSError:
            if monotonic() + PAUSE > until:
                raise
        sleep(PAUSE)


@contextmanager
def _without_logs(*packages: str) -> Iterator[None]:
    """Let the loggers of these packages be silent while it lasts: they write tracebacks of every lost connection."""
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.split(".")[0] in packages]
    loud = [logger for logger in loggers if not logger.disabled]
    for logger in loud:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loud:
            logger.disabled = False


@contextmanager
def _only_fit(client: Any) -> Iterator[None]:
    """One fit at a time: two, of which each has a part of the workers and waits for the rest, would wait for ever."""
    with client.as_current():
        lock = _require.package("distributed", extra="cluster").Lock("kofn trees")
        lock.acquire()
        try:
            yield
        finally:
            with suppress(Exception):  # of a scheduler that is no more
                lock.release()


def _workers(client: Any, address: str) -> dict[str, int]:
    """Addresses of all workers, and how many threads each has."""
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except (TimeoutError, asyncio.TimeoutError):  # which are two before Python 3.11
        raise ConnectionError(
            f"`cluster` must have workers; the scheduler at {address} has none. Start one on each machine with: "
            f"dask worker {address}"
        ) from None
    return dict(sorted(client.nthreads().items()))


def _jobs(
    learner: Any, problem: Problem, splits: list[Split], rates: list[Any], seed: int, workers: dict[str, int]
) -> list[Job]:
    """What each worker is to do."""
    lightgbm = _require.package("lightgbm", extra="train")
    whole = len(problem.instances)
    data = lightgbm.Dataset(None, params=learner.params(problem, seed, threads=1))
    rows = torch.from_numpy(data._create_sample_indices(total_nrow=whole)).long()  # as one process draws them
    sample = rows if file_of(problem.instances) else rows_of(problem.instances, rows)
    jobs = []
    for rank, (share, address) in enumerate(zip(shares_of(problem, splits, len(workers)), workers, strict=True)):
        threads = learner.threads or workers[address]
        jobs.append(
            Job(
                rank=rank,
                number=len(workers),
                host=socket.gethostbyname(urlsplit(address).hostname or ""),  # LightGBM compares IP addresses
                threads=threads,
                learner=learner,
                params=learner.params(problem, seed, threads=threads),
                share=share,
                rates=rates,
                sample=sample,
                of=whole,
            )
        )
    return jobs


def _run(client: Any, jobs: dict[str, Job], progress: Progress | None) -> list[Outcome]:
    """Have the jobs done, all at the same time; what became of each."""
    distributed = _require.package("distributed", extra="cluster")
    name = f"kofn-{uuid4().hex}"
    told: SimpleQueue[Any] = SimpleQueue()
    client.subscribe_topic(name, lambda event: told.put(event[1]))
    futures: dict[str, Any] = {}
    try:
        for address, job in jobs.items():
            sent = client.scatter(job, workers=[address], hash=False)
            futures[address] = client.submit(run_rank, sent, name, key=f"{name}-{job.rank}", workers=[address])
            futures[address].add_done_callback(lambda _: told.put(None))
        looked = monotonic()
        while not all(future.status == "finished" for future in futures.values()):
            if any(future.done() and future.status != "finished" for future in futures.values()):
                raise _cause(client, futures)
            if monotonic() - looked > PAUSE:
                _require_all(client, futures)
                looked = monotonic()
            with suppress(Empty):
                message = told.get(timeout=PAUSE)
                if message is not None and progress is not None:
                    progress(*message)
        return client.gather(list(futures.values()))  # type: ignore[no-any-return]  # Dask has no types
    finally:
        with suppress(Exception):  # of a scheduler that is no more
            client.unsubscribe_topic(name)
            client.cancel(list(futures.values()), force=True)  # which ends the processes
            distributed.Variable(name, client=client).delete()
            distributed.Event(name, client=client).clear()


def _require_all(client: Any, addresses: Iterable[str]) -> None:
    """Require that all workers are there."""
    try:
        there = client.nthreads()
    except OSError as error:  # which is not one class in Dask
        raise ConnectionError(f"the scheduler at {client.scheduler.address} was lost during the fit: {error}") from None
    lost = [address for address in addresses if address not in there]
    if lost:
        raise ConnectionError(f"the worker at {lost[0]} was lost during the fit, which cannot go on without its bags.")


def _cause(client: Any, futures: dict[str, Any]) -> Exception:
    """Why a fit has ended; a process that ends takes the others with it, which only know that it does not answer."""
    until = monotonic() + GRACE
    while True:
        _require_all(client, futures)
        errors = {address: future.exception() for address, future in futures.items() if future.status == "error"}
        for address, error in errors.items():
            if isinstance(error, EndedProcessError):
                return ConnectionError(f"the worker at {address} gave up: {error}.")
            if not isinstance(error, LostPeerError):
                return error  # type: ignore[no-any-return]  # as it would be in one process
        if monotonic() > until:
            said = [f"the worker at {address}: {error}" for address, error in errors.items()]
            return ConnectionError(
                f"the workers lost each other during the fit; {'; '.join(said) or 'it was cancelled'}."
            )
        sleep(PAUSE)


def _joined(outcomes: list[Outcome], problem: Problem, splits: list[Split]) -> Any:
    """The model, with the held-out logits that each process has found for its rows."""
    fitted = outcomes[0].fitted
    if fitted.best is not None:
        fitted.splits = splits
        fitted.held_out_logits = np.full((len(problem.instances), *problem.outputs), np.nan)
        for outcome in outcomes:
            fitted.held_out_logits[outcome.rows] = outcome.logits
    return fitted


def _tell(progress: Progress | None, what: str) -> None:
    if progress is not None:
        progress(what, 0, 1, {})
