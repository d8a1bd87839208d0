"""Bags that lie on two processes are those that lie on one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from child_processes import finish, start
from shared_bag_cases import CASES, ask

import kofn
from kofn.contrib.shared_bags import log_count_between, log_count_prob
from kofn.counts import _native

INF = math.inf
SCRIPT = """
import torch
from shared_bag_cases import CASES, ask, halves
import kofn.contrib.shared_bags

rank, folder = int(sys.argv[1]), sys.argv[2]
store = torch.distributed.FileStore(f"{folder}/store", 2)
torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
shared = kofn.contrib.shared_bags.log_count_prob, kofn.contrib.shared_bags.log_count_between
found = {name: ask(*shared, halves(case)[rank], case) for name, case in CASES.items()}
torch.save(found, f"{folder}/{rank}.pt")

# What is not the same on both is an error on both, and nobody waits for ever.
errors = []
for logits, counts in ((torch.zeros(2 + rank, 3), 1), (torch.zeros(3), 1 + rank)):
    try:
        kofn.contrib.shared_bags.log_count_prob(logits, counts)
    except ValueError as error:
        errors.append(str(error))
print(*errors, sep="|", end="")
torch.distributed.destroy_process_group()
"""


@pytest.fixture(scope="module", autouse=True)
def backend() -> str:
    """These tests are of the core."""
    if not _native.available:
        pytest.skip("the C++ core is not built: install with a C++ compiler")
    return "native"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes made of every case."""
    out = tmp_path_factory.mktemp("shared")
    running = [start(SCRIPT, rank, out, GLOO_SOCKET_IFNAME="lo") for rank in (0, 1)]
    for process in running:
        bags, counts = finish(process).split("|")
        assert bags.startswith(
            "`logits` must be of the same bags on every process; in their order these have [2, 3] bags"
        )
        assert "must be the same on every process; those of process 1 are not those of process 0" in counts
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_two_processes_are_one(folder: Path, name: str) -> None:
    case = CASES[name]
    first, second = (torch.load(folder / f"{rank}.pt", weights_only=True)[name] for rank in (0, 1))
    expected = ask(kofn.log_count_prob, kofn.log_count_between, case.whole(), case)
    tolerance = 1e-11 if case.dtype == torch.float64 else 1e-6
    for one, other, alone in zip(first["values"], second["values"], expected["values"], strict=True):
        assert one.dtype == case.dtype
        assert torch.equal(one, other) or one.isnan().equal(other.isnan())  # every process knows the same number
        torch.testing.assert_close(one, alone, rtol=tolerance, atol=tolerance, equal_nan=True)
    for one, other, alone in zip(first["gradients"], second["gradients"], expected["gradients"], strict=True):
        joined = case.join(one, other)
        torch.testing.assert_close(joined, alone, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_a_group_of_one_is_the_ordinary_bag(alone: None) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(3, 50, generator=g, dtype=torch.float64).requires_grad_()
    mask = torch.rand(3, 50, generator=g) < 0.8
    counts = torch.tensor([10, 20, 60])
    found = log_count_prob(x, counts, mask=mask)
    expected = kofn.log_count_prob(x, counts, mask=mask)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert found[2].item() == -INF
    weights = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    gradients = [torch.autograd.grad((value * weights)[:2].sum(), x)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-11)
    half = log_count_between(x.detach().bfloat16(), 0, 25)
    assert half.dtype == torch.bfloat16
    assert log_count_prob(torch.zeros(0, 4), 2).shape == (0,)
    assert log_count_prob(torch.zeros(0), 0).item() == 0


def test_there_is_no_second_derivative(alone: None) -> None:
    x = torch.zeros(4, requires_grad=True)
    with pytest.raises(
        RuntimeError,
        match=r"have first derivatives only, outside of torch.func; call backward or grad without create_graph",
    ):
        torch.autograd.grad(log_count_prob(x, 1), x, create_graph=True)


def test_a_process_that_is_gone_is_an_error(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = torch.distributed.all_gather, []

    def all_gather(*given: Any, **options: Any) -> None:
        calls.append(given)
        if len(calls) > 3:  # in the middle of the core
            raise ConnectionError("Connection closed by peer")
        real(*given, **options)

    monkeypatch.setattr(torch.distributed, "all_gather", all_gather)
    with pytest.raises(ConnectionError, match="closed by peer"):
        log_count_prob(torch.zeros(9), 3)


def test_without_processes_it_says_how_to_start_them() -> None:
    with pytest.raises(RuntimeError, match=r"needs torch.distributed. Start the processes with torchrun"):
        log_count_prob(torch.zeros(4), 2)


def test_without_the_core_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "available", False)
    with pytest.raises(RuntimeError, match="needs the C\\+\\+ core of kofn, which is not built here"):
        log_count_between(torch.zeros(4), 2, 3)
