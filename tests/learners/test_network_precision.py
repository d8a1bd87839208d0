"""The outputs and the precisions that a network may have."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import (
    FEATURES,
    SGD,
    halves,
    loss_of,
    mil_bags,
    network,
    some_bags,
    some_pu,
    stepped,
    train,
)
from torch import Tensor, nn

from kofn.learners import CountObjective, Network


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (nn.Linear(FEATURES, 2), r"\(\d+, 2\)"),
        (nn.Sequential(nn.Linear(FEATURES, 1), nn.Unflatten(1, (1, 1))), r"\(\d+, 1, 1\)"),
        (nn.Sequential(nn.Linear(FEATURES, 2), nn.Flatten(0)), r"\(\d+,\)"),
    ],
    ids=["two", "deep", "flat"],
)
def test_a_network_must_give_one_logit(net: nn.Module, shape: str) -> None:
    with pytest.raises(ValueError, match=rf"one logit for each instance.*its output has shape {shape}\."):
        train(some_bags(), net=net)
    with pytest.raises(ValueError, match=rf"`module` must take instances of shape \(3,\) .*output has shape {shape}\."):
        Network(net).fit(some_bags(), seed=0)


def test_float64_instances_into_a_float32_network() -> None:
    data = some_bags()
    same, double = train(data, epochs=2), train(replace(data, instances=data.instances.astype(np.float64)), epochs=2)
    assert torch.equal(double.weights, same.weights)


@pytest.mark.parametrize("net", [network(), nn.Sequential(nn.Linear(FEATURES, 1), nn.Flatten(0))], ids=["m 1", "m"])
def test_a_float64_network_keeps_its_precision(net: nn.Sequential) -> None:
    net = net.double()
    data = some_bags(dtype=np.float64)
    loss = loss_of(net, data)
    wanted = stepped(net, loss)
    found = train(data, net=net, optimizer=SGD, batch_size=10)
    torch.testing.assert_close(found.weights, wanted, rtol=1e-13, atol=1e-14)
    assert found.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-14)


@pytest.mark.parametrize("task", ["count", "mil", "pu"])
def test_bfloat16_is_close(task: str) -> None:
    made: Any = {"count": some_bags(14), "mil": mil_bags(14, pool="max"), "pu": some_pu(56, size=10)}[task]
    data, valid = halves(made, 40 if task == "pu" else 10)
    options: Any = {"optimizer": partial(torch.optim.SGD, lr=0.03), "epochs": 2}
    single, mixed = train(data, valid, **options), train(data, valid, precision="bfloat16", **options)
    assert mixed.weights.dtype == torch.float32
    assert not torch.equal(mixed.weights, single.weights)
    torch.testing.assert_close(mixed.weights, single.weights, rtol=0.05, atol=0.02)
    for a, b in zip(mixed.history, single.history, strict=True):
        assert a["val_loss"] == pytest.approx(b["val_loss"], rel=0.02)


def test_half_precision_reaches_the_objective_as_float32() -> None:
    seen: set[torch.dtype] = set()

    def watch(logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        seen.add(logits.dtype)
        return CountObjective()(logits, labels, offsets)

    train(*halves(some_bags(14, objective=watch), 10), precision="bfloat16")
    assert seen == {torch.float32}
