"""Sums, maxima and log-sums over bags, whether these are rows of a tensor or stretches of a flat one."""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import _checks


class Segments:
    """Which numbers belong to which bag: the last dimension of a dense tensor, or what lies between two offsets.

    Args:
        logits: (..., n), or (m,) with offsets; only its shape and device are kept.
        mask: (..., n) bool, True where an instance exists, or None.
        offsets: (b + 1,) from 0 to m, or None.
    """

    def __init__(self, logits: Tensor, mask: Tensor | None, offsets: Tensor | None) -> None:
        _checks.logits(logits)
        _checks.not_both(mask, offsets)
        self._absent = None if mask is None else ~_checks.mask(mask, logits)
        self._offsets = None if offsets is None else _checks.offsets(offsets, logits)
        self._length, self._device = logits.shape[-1], logits.device
        self.shape: tuple[int, ...]  #: of a tensor with one number for each bag
        if self._offsets is None:
            self.shape = tuple(logits.shape[:-1])
        else:
            sizes = self._offsets.diff()
            self.shape = (len(sizes),)
            self._owner = torch.arange(len(sizes)).repeat_interleave(sizes).to(self._device)

    @property
    def ragged(self) -> bool:
        """Whether bags are stretches of a flat tensor."""
        return self._offsets is not None

    @property
    def sizes(self) -> Tensor:
        """Number of instances in each bag; a scalar when all have the same."""
        if self._offsets is not None:
            return self._offsets.diff().to(self._device)
        if self._absent is not None:
            return self._length - self._absent.sum(-1)
        return torch.tensor(self._length, device=self._device)

    @property
    def longest(self) -> int:
        """Length of the longest bag, known to the host."""
        if self._offsets is None:
            return self._length
        return int(self._offsets.diff().max()) if self.shape[0] else 0

    def present(self, values: Tensor, fill: float = 0.0) -> Tensor:
        """The values with `fill` in place of instances that are not there, so that nothing of these comes through."""
        return values if self._absent is None else values.masked_fill(self._absent, fill)

    def place(self) -> Tensor:
        """0, 1, 2, ... within each bag: (n,) or (m,)."""
        every = torch.arange(self._length, device=self._device)
        return every if self._offsets is None else every - self._offsets[:-1].to(self._device)[self._owner]

    def spread(self, per_bag: Tensor) -> Tensor:
        """Each bag's number beside each of its instances, broadcasting."""
        return per_bag.unsqueeze(-1) if self._offsets is None else per_bag.index_select(-1, self._owner)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over each bag; 0 for an empty one."""
        values = self.present(values)
        if self._offsets is None:
            return values.sum(-1)
        return values.new_zeros(self.shape).index_add(0, self._owner, values)

    def max(self, values: Tensor) -> Tensor:
        """Largest value of each bag; -inf for an empty one. Equal maxima share the gradient."""
        values = self.present(values, -torch.inf)
        if self._offsets is not None:
            start = values.new_full(self.shape, -torch.inf)
            return start.scatter_reduce(0, self._owner, values, "amax", include_self=False)
        return values.amax(-1) if values.shape[-1] else values.sum(-1) - torch.inf

    def logsumexp(self, values: Tensor) -> Tensor:
        """log sum exp over each bag; -inf where all values are -inf or there is none. No gradient if infinite."""
        values = self.present(values, -torch.inf)
        top = self.max(values.detach())
        infinite = top == torch.inf
        values = values.masked_fill(self.spread(infinite), -torch.inf)
        top = top.masked_fill(top.isinf(), 0.0)
        total = self.sum((values - self.spread(top)).exp())
        nothing = total == 0
        # Filled before and after the log: no branch that is not taken has an infinite derivative.
        value = (total.masked_fill(nothing, 1.0).log() + top).masked_fill(nothing, -torch.inf)
        return value.masked_fill(infinite, torch.inf)

    def of_counts(self) -> Segments:
        """The same bags with one entry for each count 0, ..., n: how `log_count_distribution` lays out its result."""
        if self._offsets is None:
            return Segments(torch.empty(*self.shape, self._length + 1, device=self._device), None, None)
        bags = torch.arange(len(self._offsets))
        flat = torch.empty(self._length + self.shape[0], device=self._device)
        return Segments(flat, None, self._offsets + bags)

    def from_rectangle(self, values: Tensor) -> Tensor:
        """From (longest, *bags) to the layout of the instances."""
        return values.movedim(0, -1) if self._offsets is None else values[self.place(), self._owner]

    def mark(self, places: Tensor) -> Tensor:
        """True at the given places (*bags, k) of each bag, in the layout of the instances; others are passed over."""
        if self._offsets is None:
            starts = torch.arange(torch.Size(self.shape).numel(), device=self._device) * self._length
            total, starts = len(starts) * self._length, starts.reshape(self.shape)
        else:
            total, starts = self._length, self._offsets[:-1].to(self._device)
        there = (places >= 0) & (places < self.sizes.unsqueeze(-1))
        line = (starts.unsqueeze(-1) + places).masked_fill(~there, total)  # one more place, for the others
        marks = torch.zeros(total + 1, dtype=torch.bool, device=self._device).index_fill(0, line.flatten(), True)
        return marks[:-1] if self._offsets is not None else marks[:-1].reshape(*self.shape, self._length)
