"""Where the data of a training lie. There is no GPU here: torch's `meta` device stands for one.

A tensor on `meta` has a shape and a device but no values. A read by the host is therefore an error, as is an operation
on tensors of both devices; copies to it are counted. What that cannot see: pinned memory, streams, speed, values.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import pytest
import torch
from learner_cases import FEATURES, SGD, mil_bags, network, some_bags, some_pu, train
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kofn import Bags
from kofn.learners import CountObjective, Network, Problem, ProportionObjective, between
from kofn.learners._device_data import DeviceData, training_device
from kofn.learners._loop import Loop

META = torch.device("meta")


class Copies(TorchDispatchMode):
    """The shapes of what is copied from the host to the device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.shapes: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor) and out.device == META:
            given = [part for part in tree_leaves((args, kwargs)) if isinstance(part, Tensor)]
            # A number of the host, a tensor without dimensions, goes along with a launch.
            self.shapes += [tuple(part.shape) for part in given if part.device != META and part.dim()]
        return out


def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """No device has room for the instances."""
    monkeypatch.setattr("kofn.learners._device_data._free_memory", lambda device: 0)


def of_one_size(**changes: Any) -> Problem:
    """Eight bags of two instances."""
    return replace(some_bags(), bags=Bags.from_sizes([2] * 8), labels=torch.arange(8) % 3, **changes)


def copies_of_steps(problem: Problem, batch_size: int) -> list[list[tuple[int, ...]]]:
    """What each step of an epoch copies to a device without values: forward, backward and update."""
    features = torch.from_numpy(problem.instances)
    loop = Loop(Network(optimizer=SGD, batch_size=batch_size), features, problem, None, 0)
    loop.stream.seed(0)
    loop.device, loop.data, loop._dtype = META, DeviceData(features, META), torch.float32
    net = network(dropout=0.1).to(META)
    optimizer = SGD(net.parameters())
    found = []
    for batch in loop._batches(problem, 0, shuffle=True, accumulate=1):
        with Copies() as copies:
            loop._losses(net, problem, batch).mean().backward()
            optimizer.step()
        found.append(copies.shapes)
    return found


WEIGHTS = torch.arange(10).double() % 3
PROBLEMS = {
    "proportions": (some_bags(objective=ProportionObjective()), 3),
    "weighted": (some_bags(objective=ProportionObjective(), weight=WEIGHTS), 3),
    "multiple instances": (mil_bags(), 1),
    "largest instance": (mil_bags(pool="max"), 1),
}


@pytest.mark.parametrize(("problem", "copies"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_step_copies_nothing_but_sizes_of_bags(problem: Problem, copies: int) -> None:
    """Two steps of five bags. No value is read by the host, which `meta` would not allow."""
    assert copies_of_steps(problem, batch_size=5) == [[(5,)] * copies] * 2


def test_a_step_on_counts_of_bags_of_one_size_copies_nothing() -> None:
    assert copies_of_steps(of_one_size(), batch_size=4) == [[], []]
    bounds = torch.stack([torch.arange(8) % 2, torch.arange(8) % 2 + 1], 1)
    ranges = replace(of_one_size(), objective=CountObjective(between), labels=bounds)
    assert copies_of_steps(ranges, batch_size=4) == [[], []]


def test_a_step_on_counts_copies_shapes_and_reads_nothing() -> None:
    """Where the instances of ragged bags go in a rectangle: for each of a few bags a few numbers."""
    for shapes in copies_of_steps(some_bags(), batch_size=5):
        assert 0 < len(shapes) <= 5
        assert max(map(prod, shapes)) <= 5 * 5  # bags of up to five


def test_instances_that_do_not_fit_are_copied_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    no_memory(monkeypatch)
    data = mil_bags()
    steps = copies_of_steps(data, batch_size=5)
    rows = [shapes[0] for shapes in steps]
    assert sum(n for n, _ in rows) == len(data.bags.index)
    assert {width for _, width in rows} == {FEATURES}
    assert [shapes[1:] for shapes in steps] == [[(5,)], [(5,)]]


def test_the_rule_is_half_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    instances = torch.zeros(100, 3)
    for free, fits in [(2400, True), (2399, False)]:
        monkeypatch.setattr("kofn.learners._device_data._free_memory", lambda device, free=free: free)
        data = DeviceData(instances, META)
        assert data.is_resident == fits
        assert data._instances.device == (META if fits else instances.device)
        assert data.gather(torch.tensor([3, 1])).device == META


def test_the_device_of_a_fit_is_not_that_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accelerate keeps what it finds first."""
    assert training_device("auto", 1, 0) == torch.device("cpu")
    train(some_bags(), optimizer=SGD, device="cpu")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.current_device", lambda: 1)
    assert training_device("cpu", 1, 0) == torch.device("cpu")
    for option in ("cuda", "auto"):
        assert training_device(option, 1, 0) == torch.device("cuda:1")
        assert training_device(option, 4, 3) == torch.device("cuda:3")
    monkeypatch.setattr("kofn.learners._loop.DeviceData", _refuse)
    with pytest.raises(NotImplementedError, match="cuda:1"):
        train(some_bags(), optimizer=SGD, device="cuda")


def _refuse(instances: Tensor, device: torch.device) -> None:
    raise NotImplementedError(str(device))


@pytest.mark.parametrize("make", [some_bags, mil_bags, some_pu, of_one_size])
def test_where_the_instances_lie_changes_nothing(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = train(make(), optimizer=SGD, batch_size=3, epochs=2)
    no_memory(monkeypatch)
    other = train(make(), optimizer=SGD, batch_size=3, epochs=2)
    assert torch.equal(one.weights, other.weights)
    assert one.history == other.history
