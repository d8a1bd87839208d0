"""Bags of different sizes as rectangles (bags, entries), filled up at the end, and results put back in order.

Bags of similar size share a rectangle; all but the smallest waste less than a fifth of it, so the work is that of the
entries. Bags that are rows of a tensor are one rectangle as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad


class Rectangles(Protocol):
    """Bags cut into rectangles, and results put back in the caller's order; both are differentiable."""

    def cut_entries(self, values: Tensor, fill: float, *, extra: int = 0) -> list[Tensor]:
        """Rectangles (b, n + extra) of n + extra numbers for a bag of n, filled up; n is at least 1."""

    def cut(self, per_bag: Tensor) -> list[Tensor]:
        """Numbers of bags: (b,) for each rectangle."""

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        """Back from `cut`."""

    def join_entries(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        """From (b, n + extra) for each rectangle to the caller's shape: n + extra numbers for a bag of n."""


class OneRectangle:
    """Bags (..., n) of one size."""

    def __init__(self, shape: torch.Size, n: int) -> None:
        self._shape, self._n = shape, n

    def cut_entries(self, values: Tensor, fill: float, *, extra: int = 0) -> list[Tensor]:
        flat = values.reshape(self._shape.numel(), self._n + extra)
        return [flat if self._n else pad(flat, (0, 1), value=fill)]

    def cut(self, per_bag: Tensor) -> list[Tensor]:
        return [per_bag.reshape(-1)]

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        return per_bag[0].reshape(self._shape)

    def join_entries(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        return values[0][:, : self._n + extra].reshape(*self._shape, self._n + extra)


class BySize:
    """Bags of a flat (m,) that share a rectangle with others of about their size, or all of them share one.

    Args:
        sizes: (b,) int64 on the CPU.
        together: whether all bags share one rectangle, as long as the longest, in their own order.
    """

    def __init__(self, sizes: Tensor, *, together: bool = False) -> None:
        self._sizes = sizes
        # Rectangles of up to 16, 32, 64, 80, 96, 112, 128, 160, ... entries: for small bags a rectangle costs more than
        # its padding, for large ones the padding would.
        octaves = int(sizes.max()).bit_length() if len(sizes) and not together else 0
        limits = [16, 32, 64, *(k << j for j in range(4, octaves) for k in (5, 6, 7, 8))]
        kind = torch.zeros_like(sizes) if together else torch.bucketize(sizes, torch.tensor(limits))
        self._order = kind.argsort(stable=True)  # bags in the order of their rectangles
        self._place = self._order.argsort()  # and where each bag went
        self._groups = [size for size in torch.bincount(kind).tolist() if size] if len(sizes) else [0] * together

    def cut_entries(self, values: Tensor, fill: float, *, extra: int = 0) -> list[Tensor]:
        index, shapes = self._sources(extra)
        flat = pad(values, (0, 1), value=fill).index_select(-1, index.to(values.device))
        pieces = flat.split([rows * columns for rows, columns in shapes], -1)
        return [piece.unflatten(-1, shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def cut(self, per_bag: Tensor) -> list[Tensor]:
        return list(per_bag.index_select(0, self._order.to(per_bag.device)).split(self._groups))

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        together = torch.cat(list(per_bag)) if per_bag else torch.zeros(0, dtype=torch.float64)
        return together.index_select(0, self._place.to(together.device))

    def join_entries(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        index, _ = self._sources(extra)
        back = torch.empty(int(self._sizes.sum()) + extra * len(self._sizes) + 1, dtype=torch.int64)
        back[index] = torch.arange(len(index))
        together = torch.cat([value.flatten() for value in values]) if values else torch.zeros(0, dtype=torch.float64)
        return together.index_select(0, back[:-1].to(together.device))

    def _sources(self, extra: int) -> tuple[Tensor, list[tuple[int, int]]]:
        """Which entry is where in the rectangles, one after the other, the one past the last for none; their shapes."""
        lengths = self._sizes + extra
        starts, none = lengths.cumsum(0) - lengths, int(lengths.sum())
        indices, shapes = [], []
        for bags in self._order.split(self._groups):
            columns = max(1 + extra, int(lengths[bags].max()) if len(bags) else 0)
            column = torch.arange(columns)
            there = column < lengths[bags].unsqueeze(-1)
            indices.append(torch.where(there, starts[bags].unsqueeze(-1) + column, none).flatten())
            shapes.append((len(bags), columns))
        return torch.cat(indices) if indices else torch.zeros(0, dtype=torch.int64), shapes
