"""What the host may know of a tensor: its values, at no cost, and whether a transform or a graph stands behind it.

On the CPU values can be read for nothing; on an accelerator each look is a synchronisation. The engine is written for
shapes and numbers of steps that hold for all values. Where the host sees the values it does no more than these need.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd import forward_ad


def sees(tensor: Tensor) -> bool:
    """Whether values can be read for nothing: on the CPU, unless a graph is made or there are none (a fake tensor)."""
    return tensor.device.type == "cpu" and type(tensor) is Tensor and not torch.compiler.is_compiling()


def all_true(flags: Tensor) -> bool:
    """Whether all flags are known to be true."""
    return sees(flags) and bool(flags.all())


def largest(values: Tensor, *, bound: int) -> int:
    """The largest value, at least 0, where the host sees it, and elsewhere the bound that none exceeds."""
    if not sees(values):
        return bound
    return max(0, int(values.max())) if values.numel() else 0


def transformed() -> bool:
    """Whether a transform of `torch.func` or forward-mode differentiation is active."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def mapped(tensor: Tensor) -> bool:
    """Whether `torch.func.vmap` hides the tensor's values."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return False


def outside(tensor: Tensor) -> Tensor:
    """The tensor that a transform of `torch.func` has wrapped; one that `vmap` hides is an error."""
    if mapped(tensor):
        raise NotImplementedError(
            "`offsets` and `copies` must not be mapped by torch.func.vmap: they are the shapes of bags. Map logits and "
            "counts, or give all bags at once."
        )
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor
