"""Trees on two Dask workers: the same model as in one process, and an end, with a reason, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import child_processes
import numpy as np
import psutil
import pytest
import torch
from distributed import Client, LocalCluster
from learner_cases import mil_bags, some_bags, some_pu

import kofn
from kofn.learners import CountObjective, Problem
from kofn.learners._rank_task import PROGRAM

pytestmark = [
    pytest.mark.slow,  # all of it waits for processes
    pytest.mark.filterwarnings("default"),  # Dask's own, of sockets that it closes late
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def address(client: Client) -> str:
    """Of a scheduler with both workers, of which a test before may have killed one."""
    client.wait_for_workers(2, timeout=60)
    return str(client.scheduler_info()["address"])


def classes() -> Problem:
    problem = some_bags(300)
    kinds = np.digitize(problem.instances[:, 0], [-0.5, 0.5])
    counts = problem.bags.sum(torch.from_numpy(np.eye(3, dtype=np.int64)[kinds]))
    shares = counts / problem.bags.sizes[:, None]
    rate = counts.sum(0) / counts.sum()
    return replace(problem, labels=counts, objective=CountObjective(kofn.ClassCounts), rate=rate, proportions=shares)


def weighted() -> Problem:
    return replace(mil_bags(300), weight=torch.arange(300) % 3)


@pytest.mark.parametrize("make", [weighted, classes])
def test_two_workers_are_one_process(make: Callable[[], Problem], address: str) -> None:
    """The rounds chosen in folds too. Of leaves far from the fewest rows, which LightGBM only estimates in parallel."""
    problem = make()
    options: dict[str, Any] = {"row_fraction": 1.0, "leaves": 4, "min_rows": 1, "max_rounds": 12, "folds": 2}
    one, two = (kofn.Trees(**options, cluster=cluster).fit(problem, seed=1) for cluster in (None, address))
    assert len(one.history) > 1
    np.testing.assert_allclose(two.logits(problem.instances), one.logits(problem.instances), rtol=1e-9)
    assert one.held_out_logits is not None
    assert two.held_out_logits is not None
    np.testing.assert_allclose(two.held_out_logits, one.held_out_logits, rtol=1e-9)
    assert two.validation_loss == pytest.approx(one.validation_loss, rel=1e-12)
    assert two.best == one.best
    for entry, wanted in zip(two.history, one.history, strict=True):
        assert entry == pytest.approx(wanted, rel=1e-9)


def test_positives_and_unlabelled_on_two_workers(address: str) -> None:
    problem = some_pu(600)
    one, two = (
        kofn.Trees(leaves=4, max_rounds=12, folds=2, cluster=each).fit(problem, seed=1) for each in (None, address)
    )
    alike: Any = np.corrcoef(one.logits(problem.instances), two.logits(problem.instances))
    assert alike[0, 1] > 0.9  # bags are dealt on each worker
    assert two.held_out_logits is not None
    assert np.isfinite(two.held_out_logits).all()


def test_workers_read_a_mapped_table_themselves(address: str, tmp_path: Path) -> None:
    problem = some_bags(300)
    table = np.memmap(tmp_path / "table", np.float32, "w+", shape=problem.instances.shape)
    table[:] = problem.instances
    table.flush()
    told: list[tuple[Any, ...]] = []
    learner = kofn.Trees(rounds=11, cluster=address)
    mapped = learner.fit(replace(problem, instances=table), seed=0, progress=lambda *each: told.append(each))
    assert mapped.text == learner.fit(problem, seed=0).text
    assert [each[:3] for each in told[-2:]] == [("all bags", 1, 11), ("all bags", 11, 11)]
    assert told[-1][3] == {"train_loss": mapped.history[-1]["train_loss"]}
    (tmp_path / "table").unlink()
    with pytest.raises(FileNotFoundError, match=r"every worker must see the file .*table"):
        learner.fit(replace(problem, instances=table), seed=0)


def test_a_small_cluster_is_enough_for_few_bags_only(address: str) -> None:
    with pytest.raises(ValueError, match="`cluster` must have so few workers"):
        kofn.Trees(rounds=1, cluster=address).fit(some_bags(1), seed=0)


def test_an_error_of_lightgbm_is_the_error_of_the_fit(address: str) -> None:
    import lightgbm

    with pytest.raises(lightgbm.basic.LightGBMError, match="monotone"):
        kofn.Trees(rounds=1, cluster=address, options={"monotone_constraints": [1]}).fit(some_bags(40), seed=0)


def children(client: Client) -> list[psutil.Process]:
    """Processes that workers have started for a fit."""
    found = [each for pid in client.run(os.getpid).values() for each in psutil.Process(pid).children(recursive=True)]
    return [each for each in found if runs(each) and PROGRAM in " ".join(each.cmdline())]


def runs(process: psutil.Process) -> bool:
    """Whether a process is alive, and not only waiting to be forgotten."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def endless(address: str, act: Callable[[], None]) -> None:
    """A fit that would go on for hours, in whose eleventh round something happens."""
    learner = kofn.Trees(rounds=1_000_000, cluster=address)
    learner.fit(some_bags(40), seed=0, progress=lambda what, step, *_: act() if step == 11 else None)


def wait_until_none(left: Callable[[], list[psutil.Process]]) -> None:
    until = time.monotonic() + 20
    while left():
        assert time.monotonic() < until, left()
        time.sleep(0.1)


def test_a_killed_worker_ends_the_fit(client: Client, address: str) -> None:
    started: list[psutil.Process] = []

    def kill() -> None:
        started.extend(children(client))
        os.kill(max(client.run(os.getpid).values()), signal.SIGKILL)

    with pytest.raises(ConnectionError, match=r"the worker at tcp://\S+ was lost during the fit"):
        endless(address, kill)
    assert len(started) == 2
    wait_until_none(lambda: [each for each in started if runs(each)])


def test_a_killed_process_ends_the_fit(client: Client, address: str) -> None:
    with pytest.raises(ConnectionError, match=r"the worker at tcp://\S+ gave up: its process was killed"):
        endless(address, lambda: children(client)[1].kill())
    wait_until_none(lambda: children(client))


def test_ctrl_c_ends_the_fit(client: Client, address: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        endless(address, lambda: os.kill(os.getpid(), signal.SIGINT))
    wait_until_none(lambda: children(client))


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for as long as is said; Dask's own client takes three times as long."""
    monkeypatch.setattr("kofn.learners._cluster.WAIT", 4)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(ConnectionError, match=r"a Dask scheduler that is running; none answers at .* within 4 s"):
            kofn.Trees(rounds=1, cluster=address).fit(some_bags(40), seed=0)
    assert 3 < time.monotonic() - start < 6


LOST = """
import sys
import kofn
from learner_cases import some_bags
learner = kofn.Trees(rounds=1_000_000, cluster=sys.argv[1])
try:
    learner.fit(some_bags(40), seed=0, progress=lambda what, step, *_: print(step, flush=True))
except ConnectionError as error:
    print("error:", error)
"""


def test_a_killed_scheduler_ends_the_fit_in_one_line() -> None:
    """And Dask says nothing of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-W", "ignore", "-m", "dask"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    host, port = place.split(":")
    scheduler = subprocess.Popen([*dask, "scheduler", "--host", host, "--port", port, "--no-dashboard"], **quiet)
    worker = subprocess.Popen([*dask, "worker", f"tcp://{place}", "--no-dashboard", "--nworkers", "1"], **quiet)
    try:
        Client(f"tcp://{place}", timeout=60).close()
        fit = child_processes.start(
            LOST.replace("import kofn\n", "import kofn\nwarnings.simplefilter('ignore')\n"), f"tcp://{place}"
        )
        assert fit.stdout is not None
        first = [fit.stdout.readline() for _ in range(12)]
        assert first[-1].strip().isdigit(), first
        scheduler.kill()
        said = [line for line in child_processes.finish(fit).splitlines() if not line.isdigit()]
        assert said == [said[0]]
        assert said[0].startswith(f"error: the scheduler at tcp://{place} was lost during the fit")
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def test_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kofn.learners._cluster.WAIT", 0.5)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
        learner = kofn.Trees(rounds=1, cluster=empty.scheduler_address)
        with pytest.raises(ConnectionError, match=r"has none\. Start one on each machine with: dask worker"):
            learner.fit(some_bags(40), seed=0)
