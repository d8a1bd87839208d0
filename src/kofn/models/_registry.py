"""Instance networks by name: how an estimator or a file asks for one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from torch import nn

from kofn.models._networks import (
    adult_mlp,
    cifar_resnet18,
    colon_convnet,
    magic_mlp,
    mlp,
    mnist_convnet,
    pu_mnist_mlp,
)

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "mlp": mlp,
    "adult_mlp": adult_mlp,
    "magic_mlp": magic_mlp,
    "pu_mnist_mlp": pu_mnist_mlp,
    "mnist_convnet": mnist_convnet,
    "colon_convnet": colon_convnet,
    "cifar_resnet18": cifar_resnet18,
}


def build(spec: Mapping[str, object]) -> nn.Module:
    """A new network from its name and the arguments of the function of that name; plain JSON can hold both.

    Args:
        spec: ``{"name": name, **arguments}``, the name one of `NETWORKS`.

    Returns:
        The network, with fresh weights.

    Raises:
        TypeError: a spec that is no mapping, or arguments that the network does not take.
        ValueError: a name that is missing or unknown.

    Examples:
        >>> import torch
        >>> build({"name": "mlp", "inputs": 10, "hidden": [32, 8]})(torch.zeros(4, 10)).shape
        torch.Size([4])
    """
    if not isinstance(spec, Mapping):
        raise TypeError(
            f'`spec` must be a mapping such as {{"name": "mnist_convnet"}}; got {type(spec).__name__}. '
            f'Of a name alone make {{"name": name}}.'
        )
    name = spec.get("name")
    if not isinstance(name, str) or name not in NETWORKS:
        raise ValueError(f"`name` of a network must be one of {', '.join(map(repr, NETWORKS))}; got {name!r}.")
    arguments = {key: value for key, value in spec.items() if key != "name"}
    signature = inspect.signature(NETWORKS[name])
    try:
        signature.bind(**arguments)
    except TypeError as error:
        taken = ", ".join(map(str, signature.parameters.values())) or "none"
        raise TypeError(f"Arguments of the network {name!r} must fit it; {error}. It takes: {taken}.") from None
    return NETWORKS[name](**arguments)
