"""The arguments of a distribution of counts, checked here and nowhere below: logits, and how bags lie in them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C import _functorch

from kofn import _require
from kofn.counts._layout import Dense, Layout, Ragged


def require_logits(value: object) -> Tensor:
    """Require floating point log-odds with at least one dimension."""
    if type(value) is Tensor and not value.is_nested and value.is_floating_point() and value.dim():
        return value
    logits = _require.dense_tensor("logits", value)
    if not logits.is_floating_point():
        raise TypeError(
            f"`logits` must be floating point log-odds; got {logits.dtype}. Labels are no logits; "
            f"scores of another dtype convert with logits.float()."
        )
    if not logits.dim():
        raise ValueError("`logits` must have at least one dimension, the instances; got a scalar. Use logits[None].")
    return logits


def require_not_mapped(logits: Tensor) -> None:
    """Require logits outside of `torch.func.vmap`, for what takes as many steps as the values of a bag ask for."""
    value = logits
    if torch.compiler.is_compiling():
        return
    while _functorch.is_functorch_wrapped_tensor(value):
        if _functorch.is_batchedtensor(value):
            raise NotImplementedError(
                "`bag_effect` must be None inside torch.func.vmap: how many steps its integral takes depends on "
                "values, which vmap hides. Bags are a dimension of `logits` already: give all of them at once."
            )
        value = _functorch.get_unwrapped(value)


def lay_out(shape: torch.Size, device: torch.device, mask: object, offsets: object) -> Layout:
    """The layout of instances in a tensor of this shape.

    Raises:
        TypeError: a mask that is not bool, offsets that are not integers.
        ValueError: both a mask and offsets; shapes or devices that do not fit; offsets that do not run from 0 to m.
    """
    if mask is None and offsets is None:
        return Dense(shape, device, None)
    if offsets is None:
        return Dense(shape, device, _require_mask(mask, shape, device))
    if mask is not None:
        raise ValueError(
            "`mask` and `offsets` must not both be given: a mask goes with dense logits (..., n), offsets with flat "
            "logits (m,). Drop one of them."
        )
    if len(shape) != 1:
        raise ValueError(
            f"`logits` must be flat, (m,), when `offsets` are given; got shape {tuple(shape)}. "
            f"Dense logits (..., n) take no offsets; ragged ones come concatenated: torch.cat(bags)."
        )
    return Ragged(shape[0], device, require_offsets(offsets, shape[0]))


def _require_mask(value: object, shape: torch.Size, device: torch.device) -> Tensor:
    """Require a bool tensor of the logits' shape, or one that broadcasts to it."""
    mask = _require.tensor("mask", value)
    if mask.dtype != torch.bool:
        raise TypeError(
            f"`mask` must be a bool tensor, True where an instance exists; got {mask.dtype}. Convert with mask.bool()."
        )
    if mask.device != device:
        raise ValueError(
            f"`mask` must be on the device of `logits`, {device}; it is on {mask.device}. "
            f"Move it with mask.to(logits.device)."
        )
    try:
        return mask.expand(shape)
    except RuntimeError:
        raise ValueError(f"`mask` must have the shape of `logits`, {tuple(shape)}; got {tuple(mask.shape)}.") from None


def require_offsets(value: object, length: int) -> Tensor:
    """Require offsets of ragged bags from 0 up to the number of instances: int64 on the CPU.

    Inside a compiled graph their values cannot be read: the operator that gets them there checks them when it runs.
    """
    offsets = _require.tensor("offsets", value)
    if offsets.is_floating_point() or offsets.is_complex() or offsets.dtype == torch.bool:
        raise TypeError(f"`offsets` must be int64; got {offsets.dtype}. Convert with offsets.long().")
    if offsets.dim() != 1 or not offsets.shape[0]:
        raise ValueError(
            f"`offsets` must have shape (bags + 1,) with at least one entry; got shape {tuple(offsets.shape)}. "
            f"From sizes: torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])."
        )
    if torch.compiler.is_compiling():
        return offsets.detach().long()
    host = offsets.detach().to("cpu", torch.int64)  # the sizes of bags are shapes: the host must know them
    first, last = int(host[0]), int(host[-1])
    if first != 0 or last != length:
        raise ValueError(
            f"`offsets` must start at 0 and end at the number of instances, {length}; they run from {first} to "
            f"{last}. Unlike torch.nn.EmbeddingBag's default, the last offset is always included."
        )
    sizes = host.diff()
    if bool((sizes < 0).any()):
        bag = int((sizes < 0).nonzero()[0])
        raise ValueError(
            f"`offsets` must not decrease; bag {bag} would run from {int(host[bag])} to {int(host[bag + 1])}. "
            f"Sort them, or build them from sizes with cumsum."
        )
    return host


def require_bag_effect(value: object, layout: Layout) -> Tensor | None:
    """Require standard deviations of the shift of bags, from 0 to 1e6: float64 for each bag, None for a 0."""
    if not isinstance(value, Tensor) and value == 0:
        return None
    sigma = layout.numbers("bag_effect", value)
    right = (sigma >= 0) & (sigma <= _require.LARGEST_BAG_EFFECT)
    if not _require.holds(right):
        raise ValueError(
            f"`bag_effect` must be a standard deviation from 0 to {_require.LARGEST_BAG_EFFECT:g}; got "
            f"{float(sigma[~right].flatten()[0]):g}. To learn one, learn its logarithm: bag_effect=log_sigma.exp()."
        )
    return sigma
