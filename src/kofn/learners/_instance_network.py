"""From what a user calls a module to a network of instances."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise
from math import prod
from typing import Any, cast

import torch
from torch import Tensor, nn

from kofn import _require
from kofn.learners._attention import AttentionMIL, AttentionPooling, GatedAttentionPooling
from kofn.learners._perceptron import Logit, ends_in_logit, mlp

COPIES = 5  # of all weights in training: they themselves, their gradients, two moments of Adam, the best epoch

Module = str | nn.Module | Callable[..., nn.Module]


def make_network(
    module: Module, shape: Sequence[int], *, hidden: Sequence[int], dropout: float, outputs: tuple[int, ...] = ()
) -> nn.Module:
    """A new network for instances of this shape.

    Args:
        module: "mlp", with the widths `hidden` and `dropout`; a network, which is copied; or a factory, called with the
            number of features (of images: of channels) if it takes an argument.
        shape: of an instance.
        hidden: widths of the hidden layers of "mlp".
        dropout: of "mlp".
        outputs: the shape of an instance's logits: (), or (C,) for classes. A network of the user's has them already.

    Raises:
        TypeError, ValueError: none of these.
    """
    if isinstance(module, nn.Module):
        return deepcopy(module)
    if module == "mlp":
        classes = outputs[0] if outputs else None
        network = mlp(prod(shape), tuple(map(int, hidden)), dropout=dropout, classes=classes)
        return network if len(shape) == 1 else nn.Sequential(nn.Flatten(), *network)
    if isinstance(module, str):
        raise ValueError(f"`module` must be 'mlp', a torch.nn.Module or a function that makes one; got {module!r}.")
    if not callable(module):
        raise TypeError(
            f"`module` must be 'mlp', a torch.nn.Module or a function that makes one; got {type(module).__name__}."
        )
    made = module(shape[0]) if _wants_features(module) else module()
    if not isinstance(made, nn.Module):
        raise TypeError(f"`module` must make a torch.nn.Module; it made a {type(made).__name__}.")
    return made


def require_widths(hidden: Sequence[Any]) -> None:
    """Require widths of hidden layers."""
    try:
        for width in hidden:
            _require.whole_number("hidden", width, low=1, high=_require.LARGEST_INT)
    except (TypeError, ValueError):
        raise ValueError(
            f"`hidden` must be widths of layers, such as (128,) or (), each from 1 to {_require.LARGEST_INT}; "
            f"got {hidden!r}."
        ) from None


def require_memory(inputs: int, hidden: Sequence[int]) -> None:
    """Require that a perceptron fits into the memory of this machine, before the system is asked for it."""
    if not hasattr(os, "sysconf"):  # Windows
        return
    widths = [inputs, *map(int, hidden), 1]
    weights = sum((before + 1) * after for before, after in pairwise(widths))
    needed, there = 4 * COPIES * weights, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise ValueError(
            f"`hidden` must be widths of a network that fits into memory; {tuple(hidden)} makes {weights:,} weights, "
            f"which take {needed / 1e9:,.0f} GB in training; this machine has {there / 1e9:,.0f} GB."
        )


def _wants_features(factory: Callable[..., nn.Module]) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(factory).parameters.values()
    return any(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)


def require_scores(network: nn.Module, instances: Tensor, outputs: tuple[int, ...]) -> None:
    """Require that a network scores instances, by a few of them, before it is trained."""
    training = {part: part.training for part in network.modules()}
    try:
        with torch.no_grad():
            network_logits(network.eval(), instances, outputs)
    except Exception as error:
        raise ValueError(
            f"`module` must take instances of shape {tuple(instances.shape[1:])} and give "
            f"{_wanted('m', outputs)}; it failed: {error}"
        ) from error
    for part, mode in training.items():  # a frozen part stays frozen
        part.training = mode


def instance_logits(output: Tensor, instances: int, outputs: tuple[int, ...]) -> Tensor:
    """Logits (m,), or (m, C), from a network's output; where one is asked for, (m, 1) will do."""
    if not outputs and output.shape == (instances, 1):
        return output.squeeze(1)
    if output.shape != (instances, *outputs):
        layer = f"kofn.learners.Logit(features{', classes' * bool(outputs)})"
        raise ValueError(
            f"`module` must give {_wanted(instances, outputs)}; its output has shape {tuple(output.shape)}. End it "
            f"with {layer}."
        )
    return output


def _wanted(instances: int | str, outputs: tuple[int, ...]) -> str:
    if outputs:
        return f"a logit of each class for each instance, shape ({instances}, {outputs[0]})"
    return f"one logit for each instance, shape ({instances},) or ({instances}, 1)"


def network_logits(
    network: nn.Module, instances: Tensor, outputs: tuple[int, ...] = (), offsets: Tensor | None = None
) -> Tensor:
    """Logits of instances, (m,) or (m, C); of a network that pools those of bags, (b,), or of instances as bags."""
    x = instances.to(next((p.dtype for p in network.parameters()), torch.float32))
    if isinstance(network, AttentionMIL):
        logits: Tensor = network(x, offsets=torch.arange(len(x) + 1) if offsets is None else offsets)
        return logits
    return instance_logits(network(x), len(x), outputs)


def with_attention(network: nn.Module, *, gated: bool) -> AttentionMIL:
    """The network's encoder under attention pooling; a network that pools already stays as it is."""
    if isinstance(network, AttentionMIL):
        return network
    if not ends_in_logit(network):
        raise ValueError(
            "`module` must be a torch.nn.Sequential that ends in a kofn.learners.Logit when loss='attention', so that "
            "the attention can stand on what comes before; or a kofn.learners.AttentionMIL of your own."
        )
    pooling = GatedAttentionPooling if gated else AttentionPooling
    return AttentionMIL(network[:-1], pooling(cast(Logit, network[-1]).in_features))
