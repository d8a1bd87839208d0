"""What the host may know of a tensor's values: on the CPU everything; on an accelerator each look is a synchronisation.

The engine is written for shapes and numbers of steps that hold for all values. Where the host sees the values it does
no more than these need.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
