"""Two processes, as on two machines, make the same steps as one process on the same bags."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from child_processes import finish, start
from training_cases import DISTRIBUTED, weights, whole

from kofn import losses
from kofn.batches import BagDataset
from kofn.training import fit

PROCESS = """
from kofn.training import fit
from training_cases import DISTRIBUTED, weights

for case, make in DISTRIBUTED.items():
    module, data = make()
    machines = {"strategy": "ddp", "num_nodes": 2, "devices": 1}
    machine = fit(module, data, epochs=2, patience=2 if data.valid else None, trainer=machines)
    assert machine.world_size == 2
    result = {"weights": weights(module), "history": module.history, "best": module.best_epoch}
    torch.save(result, f"{sys.argv[1]}/{case}-{machine.global_rank}.pt")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes that were started by hand, each for a machine of its own, made of every case."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = tmp_path_factory.mktemp("distributed")
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    pair = [start(PROCESS, out, NODE_RANK=rank, LOCAL_RANK=0, **meet) for rank in (0, 1)]
    try:
        assert [finish(process) for process in pair] == ["", ""]
    finally:
        for process in pair:
            process.kill()
    return out


@pytest.mark.parametrize("case", DISTRIBUTED)
def test_two_processes_are_one(folder: Path, case: str) -> None:
    first, second = (torch.load(folder / f"{case}-{rank}.pt", weights_only=True) for rank in (0, 1))
    assert torch.equal(first["weights"], second["weights"])
    assert first["history"] == second["history"]
    module, data = DISTRIBUTED[case]()
    # PU bags are dealt one to a process and accumulated batch: two at a time are the same steps on one process.
    fit(module, data, epochs=2, patience=2 if data.valid else None, accumulate=2 if case.startswith("pu") else 1)
    assert (first["weights"] - weights(DISTRIBUTED[case]()[0])).abs().max() > 0.01  # it has learnt
    torch.testing.assert_close(first["weights"], weights(module), rtol=1e-9, atol=1e-10)
    assert first["best"] == module.best_epoch
    for entry, wanted in zip(first["history"], module.history, strict=True):
        assert entry == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("case", ["llp", "few"])
def test_the_validation_loss_is_the_mean_over_all_bags(folder: Path, case: str) -> None:
    """Each bag once, those that a process repeats to keep step not twice."""
    result = torch.load(folder / f"{case}-0.pt", weights_only=True)
    module, data = DISTRIBUTED[case]()
    assert isinstance(data.valid, BagDataset)
    torch.nn.utils.vector_to_parameters(result["weights"], module.network.parameters())
    x, offsets, counts, _ = whole(data.valid)
    with torch.no_grad():
        each: Any = losses.llp_loss(module.network.eval()(x).flatten(), counts, offsets=offsets, reduction="none")
    best = result["history"][result["best"]]
    assert best["val_loss"] == pytest.approx(each.mean().item(), rel=1e-12)
