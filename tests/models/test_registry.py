"""Networks by name are the networks of `kofn.models`, and come back from JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn

from kofn import models
from kofn.models import _registry
from kofn.models._registry import NETWORKS, build

OTHERS = {
    "AttentionMIL",
    "AttentionPooling",
    "GatedAttentionPooling",
    "Logit",
    "build",
    "start_at_rate",
}  # no instance networks


def test_names_are_the_public_functions_that_make_instance_networks() -> None:
    assert {name: getattr(models, name) for name in models.__all__ if name not in OTHERS} == NETWORKS


@pytest.mark.parametrize("name", ["mlp", "adult_mlp", "magic_mlp", "mnist_convnet", "colon_convnet", "cifar_resnet18"])
def test_the_same_network_as_by_hand(name: str) -> None:
    arguments: dict[str, Any] = {"inputs": 5, "hidden": [4, 3], "dropout": 0.25} if name == "mlp" else {}
    torch.manual_seed(0)
    expected = getattr(models, name)(**arguments)
    torch.manual_seed(0)
    network = build(json.loads(json.dumps({"name": name, **arguments})))
    assert repr(network) == repr(expected)
    states = expected.state_dict()
    assert all(torch.equal(value, states[key]) for key, value in network.state_dict().items())


def test_each_call_makes_a_new_network() -> None:
    spec = {"name": "mlp", "inputs": 2}
    one, other = build(spec), build(spec)
    assert one is not other
    assert not torch.equal(next(one.parameters()), next(other.parameters()))
    assert spec == {"name": "mlp", "inputs": 2}


def test_any_entry_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_registry.NETWORKS, "linear", nn.Linear)
    assert isinstance(build({"name": "linear", "in_features": 2, "out_features": 1}), nn.Linear)


@pytest.mark.parametrize("spec", [{}, {"name": "mpl"}, {"name": None}, {"name": ["mlp"]}, {"name": "Logit"}], ids=str)
def test_unknown_names_list_the_known_ones(spec: dict[str, Any]) -> None:
    known = "'mlp', 'adult_mlp', 'magic_mlp', 'pu_mnist_mlp', 'mnist_convnet', 'colon_convnet', 'cifar_resnet18'"
    with pytest.raises(ValueError, match=f"`name` of a network must be one of {known}; got "):
        build(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mlp", r'`spec` must be a mapping such as \{"name": "mnist_convnet"\}; got str'),
        ({"name": "mlp"}, "network 'mlp' must fit it; missing a required argument: 'inputs'. It takes: inputs: "),
        (
            {"name": "mlp", "inputs": 2, "widths": [3]},
            "got an unexpected keyword argument 'widths'. It takes: .*hidden",
        ),
        ({"name": "adult_mlp", "inputs": 2}, "unexpected keyword argument 'inputs'. It takes: none"),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit(spec: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build(spec)
