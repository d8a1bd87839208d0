"""Random patches against plain flips, turns and crops of each."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kofn.datasets import augment_patches


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def positions(square: Tensor) -> list[Tensor]:
    """The eight ways to lay a square on itself, by torch's own turns and flips."""
    turned = [torch.rot90(square, k, (-2, -1)) for k in range(4)]
    return turned + [patch.flip(-1) for patch in turned]


def code(patch: Tensor) -> tuple[int, ...]:
    return tuple(patch.flatten().tolist())


def test_all_eight_positions_come_as_often() -> None:
    patch = torch.arange(2 * 9).reshape(2, 3, 3)
    out = augment_patches(patch.expand(8000, 2, 3, 3), shift=0, generator=seeded(0))
    seen = Counter(code(each) for each in out)
    assert set(seen) == {code(each) for each in positions(patch)}
    assert all(abs(number - 1000) < 160 for number in seen.values())  # 5 sd


def test_every_result_is_a_position_of_a_crop_of_the_reflected_patch() -> None:
    size, shift = 5, 2
    patch = torch.arange(size * size).reshape(1, size, size)
    padded = torch.from_numpy(np.pad(patch.numpy(), ((0, 0), (shift, shift), (shift, shift)), mode="reflect"))
    crops = [padded[:, r : r + size, c : c + size] for r in range(2 * shift + 1) for c in range(2 * shift + 1)]
    possible = {code(each) for crop in crops for each in positions(crop)}
    out = augment_patches(patch.expand(6000, 1, size, size), shift=shift, generator=seeded(1))
    assert {code(each) for each in out} == possible
    unshifted = {code(each) for each in positions(patch)}
    assert abs(sum(code(each) in unshifted for each in out) - 6000 / 25) < 75  # 5 sd: one shift of 25 is none


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64], ids=str)
def test_dtype_and_shape_stay_and_the_patches_too(dtype: torch.dtype) -> None:
    patches = torch.randint(0, 255, (4, 3, 27, 27), generator=seeded(0)).to(dtype)
    before = patches.clone()
    out = augment_patches(patches, generator=seeded(2))
    assert out.dtype == dtype
    assert out.shape == patches.shape
    assert torch.equal(patches, before)
    assert torch.equal(out, augment_patches(patches, generator=seeded(2)))
    assert not torch.equal(out, augment_patches(patches, generator=seeded(3)))


def test_channels_move_together() -> None:
    patch = torch.arange(49).reshape(1, 1, 7, 7)
    out = augment_patches(torch.cat([patch, patch + 100], 1).expand(50, 2, 7, 7), generator=seeded(4))
    assert torch.equal(out[:, 1], out[:, 0] + 100)


def test_an_empty_batch() -> None:
    assert augment_patches(torch.zeros(0, 3, 27, 27), generator=seeded(0)).shape == (0, 3, 27, 27)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"patches": [[1.0]]}, TypeError, "`patches` must be a torch.Tensor"),
        (
            {"patches": torch.zeros(3, 5, 5)},
            ValueError,
            r"must be square, \(n, channels, size, size\); got shape \(3, 5",
        ),
        ({"patches": torch.zeros(1, 3, 5, 6)}, ValueError, "must be square"),
        ({"shift": -1}, ValueError, "`shift` must be from 0 to 4; got -1"),
        ({"shift": 5}, ValueError, "`shift` must be from 0 to 4; got 5"),
        ({"shift": 1.5}, TypeError, "`shift` must be an integer"),
        ({"generator": 3}, TypeError, "`generator` must be a torch.Generator"),
    ],
)
def test_refuses(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        augment_patches(**{"patches": torch.zeros(1, 3, 5, 5), "shift": 1, "generator": seeded(0), **change})
