"""Patches turned, mirrored and shifted at random."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import _require
from kofn.datasets._draws import random_integers


def augment_patches(patches: Tensor, *, shift: int = 2, generator: torch.Generator) -> Tensor:
    """Mirror, turn by a multiple of 90 degrees and shift each patch at random.

    Tissue has no up and no left: each of the eight ways to lay a square on itself is as likely. The shift, by -shift to
    shift pixels down and right, is a random crop of the patch continued by reflection.

    Args:
        patches: (n, channels, size, size), any dtype.
        shift: pixels, at least 0 and below size.
        generator: on the CPU; the same state gives the same patches.

    Returns:
        (n, channels, size, size), in the dtype and on the device of `patches`; these stay as they are.

    Raises:
        TypeError: patches that are no tensor, a generator that is none.
        ValueError: patches that are not square; a shift out of range.

    Examples:
        >>> import torch
        >>> from kofn.datasets import augment_patches
        >>> patch = torch.arange(4).reshape(1, 1, 2, 2)
        >>> augment_patches(patch, shift=0, generator=torch.Generator().manual_seed(0)).tolist()  # half a turn
        [[[[3, 2], [1, 0]]]]
    """
    size = _require_square(patches)
    _require.whole_number("shift", shift, low=0, high=max(size - 1, 0))
    n = len(patches)
    turn = random_integers(2, 3, n, 1, 1, generator=generator).bool()
    move = random_integers(2 * shift + 1, 2, n, 1, 1, generator=generator) - shift
    line = torch.arange(size)
    # Where each pixel of the result comes from: shifted, reflected at the borders, then mirrored or transposed.
    rows, columns = _reflect(line[None, :, None] + move[0], size), _reflect(line[None, None, :] + move[1], size)
    rows, columns = torch.where(turn[0], size - 1 - rows, rows), torch.where(turn[1], size - 1 - columns, columns)
    source = torch.where(turn[2], columns * size + rows, rows * size + columns).reshape(n, 1, size * size)
    flat = patches.flatten(2)
    return flat.gather(2, source.to(patches.device).expand_as(flat)).reshape(patches.shape)


def _require_square(patches: object) -> int:
    """Require square patches; returns their size."""
    tensor = _require.tensor("patches", patches)
    if tensor.dim() != 4 or tensor.shape[2] != tensor.shape[3]:
        raise ValueError(
            f"`patches` must be square, (n, channels, size, size); got shape {tuple(tensor.shape)}. "
            f"One patch is a batch of one: patch[None]."
        )
    return tensor.shape[3]


def _reflect(position: Tensor, size: int) -> Tensor:
    """... 2 1 | 0 1 2 ... size - 1 | size - 2 ..., without repeating the border."""
    return size - 1 - (size - 1 - position.abs()).abs()
