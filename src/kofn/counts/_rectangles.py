"""The rectangles that the torch engine works on.

Ragged bags are not padded to the longest one. Bags of similar size share a rectangle (b, n), padded with logits of
-inf, which are absent instances; all but the smallest waste less than a fifth of it, so the work is that of the
instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad


class Rectangles(Protocol):
    """Bags cut into rectangles, and results put back in the caller's order."""

    def cut_entries(self, values: Tensor, *, extra: int = 0, fill: float = -torch.inf) -> list[Tensor]:
        """Rectangles (b, n + extra), n >= 1, of n + extra numbers for a bag of n, filled up; differentiable.

        Of the logits themselves these are what the engine works on: a fill of -inf is an absent instance.
        """

    def cut(self, *per_bag: Tensor | None) -> list[list[Tensor | None]]:
        """Numbers of bags, (b,) for each rectangle; None stays None."""

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        """Back from `cut`."""

    def join_entries(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        """From (b, n + extra) for each rectangle to the caller's shape: n + extra numbers for a bag of n."""


def rectangles_of(logits: Tensor, offsets: Tensor | None) -> Rectangles:
    """The rectangles of bags (..., n), or of (m,) with offsets on the CPU."""
    return _OneRectangle(logits) if offsets is None else _BySize(logits, offsets)


class _OneRectangle:
    """Bags (..., n) of one size are one rectangle."""

    def __init__(self, logits: Tensor) -> None:
        self._shape, self._n, self._device = logits.shape[:-1], logits.shape[-1], logits.device

    def cut_entries(self, values: Tensor, *, extra: int = 0, fill: float = -torch.inf) -> list[Tensor]:
        flat = values.reshape(self._shape.numel(), self._n + extra)
        return [flat if self._n else pad(flat, (0, 1), value=fill)]

    def cut(self, *per_bag: Tensor | None) -> list[list[Tensor | None]]:
        return [[None if part is None else part.to(self._device).reshape(-1)] for part in per_bag]

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        return per_bag[0].reshape(self._shape)

    def join_entries(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        return values[0][:, : self._n + extra].reshape(*self._shape, self._n + extra)


class _BySize:
    """Bags of a flat (m,) share a rectangle with others of about their size."""

    def __init__(self, logits: Tensor, offsets: Tensor) -> None:
        self._device, self._nothing = logits.device, logits[:0].double()
        self._sizes = sizes = offsets.diff()
        # Rectangles of up to 16, 32, 64, 80, 96, 112, 128, 160, ... instances: for small bags a rectangle costs more
        # than its padding, for large ones the padding would.
        octaves = int(sizes.max()).bit_length() if len(sizes) else 0
        limits = [16, 32, 64, *(k << j for j in range(4, octaves) for k in (5, 6, 7, 8))]
        kind = torch.bucketize(sizes, torch.tensor(limits))
        self._order = kind.argsort(stable=True)  # bags in the order of their rectangles
        self._place = self._order.argsort()  # and where each bag went
        self._groups = [size for size in torch.bincount(kind).tolist() if size] if len(sizes) else []

    def cut_entries(self, values: Tensor, *, extra: int = 0, fill: float = -torch.inf) -> list[Tensor]:
        lengths = self._sizes + extra
        starts = lengths.cumsum(0) - lengths
        take = _ranges(starts[self._order], lengths[self._order])
        groups = lengths[self._order].split(self._groups)
        pieces = values.index_select(0, self._to(take)).split([int(group.sum()) for group in groups])
        return [self._rectangle(piece, group, extra, fill) for piece, group in zip(pieces, groups, strict=True)]

    def cut(self, *per_bag: Tensor | None) -> list[list[Tensor | None]]:
        return [
            [None] * len(self._groups)
            if part is None
            else list(self._to(part).index_select(0, self._to(self._order)).split(self._groups))
            for part in per_bag
        ]

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        together = torch.cat(list(per_bag)) if per_bag else self._nothing
        return together.index_select(0, self._to(self._place))

    def join_entries(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        lengths = self._sizes[self._order] + extra
        flat = [
            value.reshape(-1).index_select(0, self._to(_ranges(torch.arange(len(length)) * value.shape[1], length)))
            for value, length in zip(values, lengths.split(self._groups), strict=True)
        ]
        together = torch.cat(flat) if flat else self._nothing
        starts = lengths.cumsum(0) - lengths
        return together.index_select(0, self._to(_ranges(starts[self._place], lengths[self._place])))

    def _rectangle(self, piece: Tensor, lengths: Tensor, extra: int, fill: float) -> Tensor:
        columns = torch.arange(max(1 + extra, int(lengths.max())))
        absent = columns >= lengths.unsqueeze(-1)
        index = (lengths.cumsum(0) - lengths).unsqueeze(-1) + columns
        index = index.clamp(max=len(piece)).flatten()
        padded = pad(piece, (0, 1)).index_select(0, self._to(index)).view(absent.shape)
        return padded.masked_fill(self._to(absent), fill)

    def _to(self, index: Tensor) -> Tensor:
        return index.to(self._device)


def _ranges(starts: Tensor, lengths: Tensor) -> Tensor:
    """starts_0, starts_0 + 1, ... (lengths_0 of them), starts_1, ...: runs of indices, one after the other."""
    before = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum())) + (starts - before).repeat_interleave(lengths)
