"""Random choices that are the same on every machine and with every version of torch.

The one thing drawn is `torch.rand` in float64 on the CPU: 53 bits of the generator's Mersenne twister each. What
`torch.randperm` or `torch.normal` make of the same bits has changed with versions, devices and sizes.
"""

from __future__ import annotations

import torch
from torch import Tensor


def uniform(*shape: int, generator: torch.Generator) -> Tensor:
    """Numbers from [0, 1), float64."""
    _require_generator(generator)
    return torch.rand(*shape, dtype=torch.float64, generator=generator)


def _require_generator(value: object) -> None:
    """Require a torch generator on the CPU."""
    if not isinstance(value, torch.Generator):
        raise TypeError(
            f"`generator` must be a torch.Generator; got {type(value).__name__}. "
            f"From a seed: torch.Generator().manual_seed(0)."
        )
    if value.device.type != "cpu":
        raise ValueError(
            f"`generator` must be on the CPU, so that its draws are the same everywhere; it is on {value.device}."
        )


def permutation(n: int, generator: torch.Generator) -> Tensor:
    """The numbers 0 to n - 1 in random order."""
    return uniform(n, generator=generator).argsort(stable=True)


def shuffled(rows: Tensor, generator: torch.Generator) -> Tensor:
    """Rows of positions in random order, (n,)."""
    return rows[permutation(len(rows), generator)]


def random_integers(bound: int, *shape: int, generator: torch.Generator) -> Tensor:
    """Integers from 0 to bound - 1, equally likely: floor(bound u). The bias, bound / 2^53, is negligible."""
    return (uniform(*shape, generator=generator) * bound).long()


def normal_sizes(mean: float, sd: float, number: int, generator: torch.Generator) -> Tensor:
    """Integers round(N(mean, sd)), at least 1, by the inverse of the normal distribution function."""
    z = torch.special.ndtri(uniform(number, generator=generator))
    return torch.clamp(torch.round(mean + sd * z), min=1).long() if sd else torch.full((number,), max(1, round(mean)))
