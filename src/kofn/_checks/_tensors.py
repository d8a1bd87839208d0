"""Tensors, masks and offsets: what every function of bags takes."""

from __future__ import annotations

from numbers import Integral, Real

import torch
from torch import Tensor


def is_tensor(name: str, value: object) -> Tensor:
    """A tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"`{name}` must be a torch.Tensor; got {type(value).__name__}. Convert it with torch.as_tensor({name})."
        )
    return value


def logits(value: object) -> Tensor:
    """A floating point tensor with at least one dimension."""
    tensor = value if isinstance(value, Tensor) else is_tensor("logits", value)
    if not tensor.is_floating_point():
        raise TypeError(
            f"`logits` must be floating point log-odds; got {tensor.dtype}. Labels are no logits; "
            f"scores of another dtype convert with logits.float()."
        )
    if tensor.dim() == 0:
        raise ValueError("`logits` must have at least one dimension, the instances; got a scalar. Use logits[None].")
    return tensor


def some_logits(name: str, value: object) -> Tensor:
    """Floating point logits, at least one."""
    tensor = is_tensor(name, value)
    if not tensor.is_floating_point():
        raise TypeError(f"`{name}` must be floating point log-odds; got {tensor.dtype}.")
    if tensor.dim() == 0 or not tensor.numel():
        raise ValueError(
            f"`{name}` must hold at least one instance; got shape {tuple(tensor.shape)}. "
            f"Leave out batches without any, or sample them so that none is empty."
        )
    return tensor


def per_bag(name: str, value: object, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """One whole number for each bag, int64, from a tensor of any integer dtype that broadcasts or an int."""
    tensor = value if isinstance(value, Tensor) else _as_tensor(name, value, like)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(
            f"`{name}` must be whole numbers of an integer dtype; got {tensor.dtype}. "
            f"Round and convert them first: {name}.round().long()."
        )
    _beside(name, tensor, like)
    return tensor.long() if tensor.shape == shape else _one_for_each(name, tensor.long(), shape)


def real_per_bag(name: str, value: object, like: Tensor, shape: tuple[int, ...] | None) -> Tensor:
    """One real number for each bag, float64, from a number or a tensor that broadcasts to the bags."""
    if not isinstance(value, Tensor) and not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number or a torch.Tensor; got {type(value).__name__}.")
    tensor = value if isinstance(value, Tensor) else torch.tensor(float(value), dtype=torch.float64, device=like.device)
    _beside(name, tensor, like)
    return tensor.double() if shape is None else _one_for_each(name, tensor.double(), shape)


def _beside(name: str, tensor: Tensor, like: Tensor) -> None:
    if tensor.device != like.device:
        raise ValueError(
            f"`{name}` must be on the device of `logits`, {like.device}; it is on {tensor.device}. "
            f"Move it with {name}.to(logits.device)."
        )


def _one_for_each(name: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"`{name}` must hold one number for each bag, shape {tuple(shape)}; got shape {tuple(tensor.shape)}. "
            f"Bags are all dimensions of dense logits but the last, or the gaps between offsets."
        ) from None


def _as_tensor(name: str, value: object, like: Tensor) -> Tensor:
    if not isinstance(value, bool) and isinstance(value, Integral):  # numpy's whole numbers too
        return torch.tensor(int(value), device=like.device)
    return is_tensor(name, value)


def not_both(mask: object, offsets: object) -> None:
    """Dense bags have a mask, ragged ones offsets."""
    if mask is not None and offsets is not None:
        raise ValueError(
            "`mask` and `offsets` must not both be given: a mask goes with dense logits (..., n), offsets with flat "
            "logits (m,). Drop one of them."
        )


def mask(value: object, like: Tensor) -> Tensor:
    """A bool tensor of the logits' shape, or broadcast to it."""
    tensor = is_tensor("mask", value)
    if tensor.dtype != torch.bool:
        raise TypeError(
            f"`mask` must be a bool tensor, True where an instance exists; got {tensor.dtype}. "
            f"Convert with mask.bool()."
        )
    _beside("mask", tensor, like)
    try:
        return tensor.expand(like.shape)
    except RuntimeError:
        raise ValueError(
            f"`mask` must have the shape of `logits`, {tuple(like.shape)}; got {tuple(tensor.shape)}."
        ) from None


def offsets(value: object, like: Tensor) -> Tensor:
    """Offsets of ragged bags, int64 on the CPU, from 0 up to the number of instances."""
    tensor = is_tensor("offsets", value)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"`offsets` must be int64; got {tensor.dtype}. Convert with offsets.long().")
    if like.dim() != 1:
        raise ValueError(
            f"`logits` must be flat, (m,), when `offsets` are given; got shape {tuple(like.shape)}. "
            f"Dense logits (..., n) take no offsets; ragged ones come concatenated: torch.cat(bags)."
        )
    if tensor.dim() != 1 or not len(tensor):
        raise ValueError(
            f"`offsets` must have shape (bags + 1,) with at least one entry; got shape {tuple(tensor.shape)}. "
            f"From sizes: torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])."
        )
    host = tensor.detach().to("cpu", torch.int64)  # the sizes of bags are shapes: the host must know them
    if host[0] != 0 or host[-1] != len(like):
        raise ValueError(
            f"`offsets` must start at 0 and end at the number of instances, {len(like)}; they run from {int(host[0])} "
            f"to {int(host[-1])}. Unlike torch.nn.EmbeddingBag's default, the last offset is always included."
        )
    sizes = host.diff()
    if bool((sizes < 0).any()):
        bag = int((sizes < 0).nonzero()[0])
        raise ValueError(
            f"`offsets` must not decrease; bag {bag} would run from {int(host[bag])} to {int(host[bag + 1])}. "
            f"Sort them, or build them from sizes with cumsum."
        )
    return host


def holds(condition: Tensor) -> bool:
    """Whether a condition on values holds everywhere.

    Values that cannot be read without waiting for another device, or not at all (inside `torch.func.vmap` or a compiled
    graph), are taken on trust.
    """
    if condition.device.type != "cpu" or torch.compiler.is_compiling():
        return True
    try:
        return bool(condition.all())
    except RuntimeError:
        return True
