"""How bags lie in a tensor, dense or ragged, and the rectangles that the engine works on.

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


class Layout(Protocol):
    """Bags in a tensor: cut into rectangles, and results put back in the caller's order."""

    shape: tuple[int, ...]  #: of a tensor with one number for each bag

    def rectangles(self) -> list[Tensor]:
        """Logits (b, n) of groups of bags, n >= 1, -inf where there is no instance; differentiable."""

    def cut(self, per_bag: Tensor) -> list[Tensor]:
        """One number for each bag, (b,) for each rectangle."""

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        """Back from `cut`."""

    def join_instances(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        """From (b, n + extra) for each rectangle to the caller's shape: n + extra numbers for a bag of n."""


def lay_out(logits: Tensor, mask: Tensor | None, offsets: Tensor | None) -> Layout:
    """The layout of checked arguments; offsets are on the CPU."""
    return Dense(logits, mask) if offsets is None else Ragged(logits, offsets)


class Dense:
    """Logits (..., n), with a mask (..., n) or none."""

    def __init__(self, logits: Tensor, mask: Tensor | None) -> None:
        self.shape = tuple(logits.shape[:-1])
        self._n = logits.shape[-1]
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        flat = logits.reshape(torch.Size(self.shape).numel(), self._n)
        self._logits = flat if self._n else pad(flat, (0, 1), value=-torch.inf)

    def rectangles(self) -> list[Tensor]:
        return [self._logits]

    def cut(self, per_bag: Tensor) -> list[Tensor]:
        return [per_bag.reshape(-1)]

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        return per_bag[0].reshape(self.shape)

    def join_instances(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        return values[0][:, : self._n + extra].reshape(*self.shape, self._n + extra)


class Ragged:
    """Logits (m,) with offsets (b + 1,), int64 on the CPU."""

    def __init__(self, logits: Tensor, offsets: Tensor) -> None:
        self._logits = logits
        self._sizes = sizes = offsets.diff()
        self.shape: tuple[int, ...] = (len(sizes),)
        # Rectangles of up to 16, 32, 64, 80, 96, 112, 128, 160, ... instances: for small bags a rectangle costs more
        # than its padding, for large ones the padding would.
        octaves = int(sizes.max()).bit_length() if len(sizes) else 0
        limits = [16, 32, 64, *(k << j for j in range(4, octaves) for k in (5, 6, 7, 8))]
        kind = torch.bucketize(sizes, torch.tensor(limits))
        self._order = kind.argsort(stable=True)  # bags in the order of their rectangles
        self._place = self._order.argsort()  # and where each bag went
        self._groups = torch.bincount(kind).tolist() if len(sizes) else []
        self._take = _ranges(offsets[:-1][self._order], sizes[self._order])

    def rectangles(self) -> list[Tensor]:
        sizes = self._sizes[self._order].split(self._groups)
        ordered = self._logits.index_select(0, self._to(self._take))
        pieces = ordered.split([int(size.sum()) for size in sizes])
        return [self._rectangle(piece, size) for piece, size in zip(pieces, sizes, strict=True) if len(size)]

    def cut(self, per_bag: Tensor) -> list[Tensor]:
        pieces = per_bag.index_select(0, self._to(self._order)).split(self._groups)
        return [piece for piece in pieces if len(piece)]

    def join(self, per_bag: Sequence[Tensor]) -> Tensor:
        together = torch.cat(list(per_bag)) if per_bag else self._logits.double()
        return together.index_select(0, self._to(self._place))

    def join_instances(self, values: Sequence[Tensor], *, extra: int = 0) -> Tensor:
        lengths = self._sizes[self._order] + extra
        pieces = [length for length in lengths.split(self._groups) if len(length)]
        flat = [
            value.reshape(-1).index_select(0, self._to(_ranges(torch.arange(len(length)) * value.shape[1], length)))
            for value, length in zip(values, pieces, strict=True)
        ]
        together = torch.cat(flat) if flat else self._logits.double()
        starts = lengths.cumsum(0) - lengths
        return together.index_select(0, self._to(_ranges(starts[self._place], lengths[self._place])))

    def _rectangle(self, piece: Tensor, sizes: Tensor) -> Tensor:
        columns = torch.arange(max(1, int(sizes.max())))
        absent = columns >= sizes.unsqueeze(-1)
        index = (sizes.cumsum(0) - sizes).unsqueeze(-1) + columns
        index = index.clamp(max=len(piece)).flatten()
        padded = pad(piece, (0, 1)).index_select(0, self._to(index)).view(absent.shape)
        return padded.masked_fill(self._to(absent), -torch.inf)

    def _to(self, index: Tensor) -> Tensor:
        return index.to(self._logits.device)


def _ranges(starts: Tensor, lengths: Tensor) -> Tensor:
    """starts_0, starts_0 + 1, ... (lengths_0 of them), starts_1, ...: runs of indices, one after the other."""
    before = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum())) + (starts - before).repeat_interleave(lengths)
