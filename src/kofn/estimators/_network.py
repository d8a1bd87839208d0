"""From what a user calls a module to a network of instances."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy

from torch import nn

from kofn import models

Module = str | nn.Module | Callable[..., nn.Module]


def make_network(module: Module, shape: Sequence[int], *, hidden: Sequence[int], dropout: float) -> nn.Module:
    """A new network for instances of this shape.

    Args:
        module: "mlp", with the widths `hidden` and `dropout`; the name of another network of `kofn.models`; a network,
            which is copied; or a factory, called with the number of features if it takes an argument.
        shape: of an instance.
        hidden: widths of the hidden layers of "mlp".
        dropout: of "mlp".

    Raises:
        TypeError, ValueError: none of these.
    """
    if isinstance(module, nn.Module):
        return deepcopy(module)
    if module == "mlp":
        features = 1
        for length in shape:
            features *= length
        network = models.mlp(features, tuple(hidden), dropout=dropout)
        return network if len(shape) == 1 else nn.Sequential(nn.Flatten(), *network)
    if isinstance(module, str):
        return models.build({"name": module})
    if not callable(module):
        raise TypeError(
            f"`module` must be a name such as 'mlp', a torch.nn.Module or a function that makes one; "
            f"got {type(module).__name__}."
        )
    made = module(shape[0]) if _wants_features(module) else module()
    if not isinstance(made, nn.Module):
        raise TypeError(f"`module` must make a torch.nn.Module; it made a {type(made).__name__}.")
    return made


def _wants_features(factory: Callable[..., nn.Module]) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(factory).parameters.values()
    return any(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)


def with_attention(network: nn.Module, *, gated: bool) -> models.AttentionMIL:
    """The network's encoder under attention pooling; a network that pools already stays as it is."""
    if isinstance(network, models.AttentionMIL):
        return network
    if not isinstance(network, nn.Sequential) or not isinstance(network[-1], models.Logit):
        raise ValueError(
            "`module` must be a torch.nn.Sequential that ends in a kofn.models.Logit when loss='attention', so that "
            "the attention can stand on what comes before; or a kofn.models.AttentionMIL of your own."
        )
    pooling = models.GatedAttentionPooling if gated else models.AttentionPooling
    return models.AttentionMIL(network[:-1], pooling(network[-1].in_features))
