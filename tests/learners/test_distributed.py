"""Two processes, started by torchrun, make the same steps as one process on the same bags."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from child_processes import environment
from learner_cases import DISTRIBUTED, distributed, loss_of, network, weights

pytestmark = pytest.mark.slow  # all of it waits for processes

PROCESS = """
import sys, warnings
sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]  # another's sources
import torch
warnings.simplefilter("error")
torch.set_num_threads(1)
import os
from learner_cases import DISTRIBUTED, distributed

rank, told = int(os.environ["RANK"]), []
for case in DISTRIBUTED:
    found = distributed(case, patience=2, progress=lambda *told_: told.append(told_))
    assert torch.distributed.get_world_size() == 2
    result = {"weights": found.weights, "history": found.history, "best": found.best}
    torch.save(result, f"{sys.argv[1]}/{case}-{rank}.pt")
assert bool(told) == (rank == 0)  # one of them tells
torch.distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes made of every case."""
    out = tmp_path_factory.mktemp("distributed")
    (out / "process.py").write_text(PROCESS)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(out / "process.py"), str(out)],
        env=os.environ | environment() | {"GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return out


@pytest.mark.parametrize("case", DISTRIBUTED)
def test_two_processes_are_one(folder: Path, case: str) -> None:
    first, second = (torch.load(folder / f"{case}-{rank}.pt", weights_only=True) for rank in (0, 1))
    assert torch.equal(first["weights"], second["weights"])
    assert first["history"] == second["history"]
    # Batches of so many instances are dealt one to a process: two at a time are the same steps on one process.
    found = distributed(case, patience=2, accumulate=2 if case == "instances" else 1)
    assert (first["weights"] - weights(network().double())).abs().max() > 0.01  # it has learnt
    torch.testing.assert_close(first["weights"], found.weights, rtol=1e-9, atol=1e-10)
    assert first["best"] == found.best
    for entry, wanted in zip(first["history"], found.history, strict=True):
        assert entry == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("case", ["llp", "few", "weighted"])
def test_the_validation_loss_is_the_mean_over_all_bags(folder: Path, case: str) -> None:
    """Each bag once, those that a process repeats to keep step not twice."""
    result = torch.load(folder / f"{case}-0.pt", weights_only=True)
    _, valid, _ = DISTRIBUTED[case]()
    assert valid is not None
    net = network().double()
    torch.nn.utils.vector_to_parameters(result["weights"], net.parameters())
    with torch.no_grad():
        loss = loss_of(net, valid).item()
    assert result["history"][result["best"]]["val_loss"] == pytest.approx(loss, rel=1e-12)
