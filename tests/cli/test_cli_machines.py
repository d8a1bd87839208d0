"""kofn fit on several machines: networks by torchrun, trees with --cluster, and what goes with what."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from child_processes import environment
from cli_calls import kofn
from distributed import LocalCluster

from kofn.tables import TableModel


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    share = (x[:, 0] > 0).reshape(50, 8).mean(1).repeat(8)
    path = tmp_path / "votes.csv"
    pd.DataFrame({"ward": np.arange(400) // 8, "a": x[:, 0], "b": x[:, 1], "share": share}).to_csv(path, index=False)
    return path


def words(votes: Path, model: str, *more: str) -> list[str]:
    return ["fit", "llp", str(votes), "--bag", "ward", "--label", "share", "-o", str(votes.with_name(model)), *more]


def torchrun(arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "kofn"]
    return subprocess.Popen(
        [*command, *arguments],
        env=os.environ | environment() | {"GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("learner", ["network", "linear"])
def test_cluster_is_for_trees(votes: Path, learner: str) -> None:
    result = kofn(*words(votes, "model", "--learner", learner, "--cluster", "tcp://127.0.0.1:8786"))
    assert result.exit_code == 2
    assert f"--cluster goes with --learner trees; got {learner}" in result.stderr
    assert "torchrun --nproc-per-node 2 -m kofn fit ... --learner network" in result.stderr


def test_the_address_is_that_of_a_scheduler(votes: Path) -> None:
    result = kofn(*words(votes, "model", "--cluster", "10.0.0.1"))
    assert result.exit_code == 2
    assert "--cluster must be the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'" in result.stderr


def test_torchrun_is_for_networks(votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = kofn(*words(votes, "model"))
    assert result.exit_code == 2
    assert "torchrun goes with --learner network; got trees" in result.stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Dask's own, of sockets that it closes late
def test_trees_on_a_cluster(votes: Path) -> None:
    options = ["--set", "rounds=5", "--set", "row_fraction=1"]
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        result = kofn(*words(votes, "two", *options, "--cluster", cluster.scheduler_address))
    assert result.exit_code == 0, result.output
    assert kofn(*words(votes, "one", *options)).exit_code == 0
    one, two = (TableModel.load(votes.with_name(name)).estimator for name in ("one", "two"))
    x = np.random.default_rng(1).normal(size=(9, 2)).astype(np.float32)
    assert np.array_equal(one.fitted_.logits(x), two.fitted_.logits(x))
    assert two.learner.cluster is None  # an address of yesterday is not kept


@pytest.mark.slow
def test_two_processes_of_torchrun_are_one(votes: Path) -> None:
    options = ["--learner", "network", "--set", "epochs=3"]
    process = torchrun(words(votes, "two", *options))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.count("model ") == 1  # one of them tells
    assert kofn(*words(votes, "one", *options)).exit_code == 0
    x = np.random.default_rng(1).normal(size=(9, 2)).astype(np.float32)
    one, two = (TableModel.load(votes.with_name(name)).estimator.fitted_.logits(x) for name in ("one", "two"))
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_process_of_torchrun_that_dies_ends_the_fit(votes: Path) -> None:
    """With a reason, and with the checkpoint."""
    checkpoint = votes.with_name("model.checkpoint")
    process = torchrun(
        words(votes, "model", "--learner", "network", "--set", "epochs=1000000", "--set", "patience=none")
    )
    until = time.monotonic() + 100
    while not checkpoint.exists():
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    second = next(each for each in psutil.Process(process.pid).children() if each.environ().get("RANK") == "1")
    os.kill(second.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert f"The last epoch is kept in {checkpoint}. Continue with --resume, by torchrun as before." in err
    assert checkpoint.exists()
