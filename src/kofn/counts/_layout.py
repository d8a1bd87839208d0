"""How bags lie in a tensor: as rows of a dense one, or as slices of a flat one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real

import torch
from torch import Tensor

from kofn import _require

LARGEST = torch.iinfo(torch.int64).max


class Layout(ABC):
    """Which entries of a tensor's last dimension belong to which bag, and sums over them.

        sum(v)_j = sum_{i in bag j} v_i,  logsumexp(v)_j = log sum_{i in bag j} e^{v_i},  spread(u)_i = u_{bag of i}

    A `CountDistribution` has two: that of the instances of each bag, and that of its counts 0, ..., n.

    Attributes:
        shape: of a tensor with one number for each bag.
        length: of the last dimension.
        device: where the tensor lies.
        offsets: (b + 1,) int64 on the CPU, or None where bags are rows.

    Examples:
        >>> import torch, kofn
        >>> dist = kofn.CountDistribution(torch.zeros(3), offsets=torch.tensor([0, 1, 3]))
        >>> dist.instance_layout.sum(torch.tensor([1.0, 10.0, 100.0]))
        tensor([  1., 110.])
        >>> dist.count_layout.sum(dist.log_probs().exp() * dist.count_layout.place())  # the mean, the long way
        tensor([0.5000, 1.0000])
    """

    shape: torch.Size
    length: int
    device: torch.device
    offsets: Tensor | None = None

    @property
    @abstractmethod
    def sizes(self) -> Tensor:
        """Number of entries in each bag, int64, of `shape`."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """Length of the longest bag; inside a compiled graph, which cannot read it, a bound of it."""

    @abstractmethod
    def present(self, values: Tensor, fill: float) -> Tensor:
        """The values with `fill` in place of entries that are masked, so that nothing of these comes through."""

    @abstractmethod
    def place(self) -> Tensor:
        """0, 1, 2, ... within each bag: (n,) or (m,)."""

    @abstractmethod
    def spread(self, per_bag: Tensor) -> Tensor:
        """Each bag's number beside each of its entries, broadcasting."""

    @abstractmethod
    def sum(self, values: Tensor) -> Tensor:
        """Sum over each bag; 0 for an empty one."""

    @abstractmethod
    def max(self, values: Tensor) -> Tensor:
        """Largest value of each bag; -inf for an empty one. Equal maxima share the gradient."""

    @abstractmethod
    def of_counts(self) -> Layout:
        """The same bags with one entry for each count 0, ..., n: how `CountDistribution.log_probs` lays them out."""

    @abstractmethod
    def from_rectangle(self, values: Tensor) -> Tensor:
        """From (longest, *bags) to one value for each entry."""

    @abstractmethod
    def to_rows(self, values: Tensor, fill: float) -> Tensor:
        """From one value for each entry to (*bags, longest), filled up at the end of shorter bags."""

    @abstractmethod
    def _starts(self) -> Tensor:
        """Where each bag starts in the flattened tensor: of `shape`."""

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

    def mark(self, places: Tensor) -> Tensor:
        """True at the given places (*bags, k) of each bag, one entry for each of its own; others are passed over."""
        total = self.length if self.offsets is not None else self.shape.numel() * self.length
        there = (places >= 0) & (places < self.sizes.unsqueeze(-1))
        line = (self._starts().unsqueeze(-1) + places).masked_fill(~there, total)  # one more place, for the others
        marks = torch.zeros(total + 1, dtype=torch.bool, device=self.device).index_fill(0, line.flatten(), True)[:-1]
        return marks if self.offsets is not None else marks.reshape(*self.shape, self.length)

    def whole_numbers(self, name: str, value: object, *, columns: tuple[int, ...] = ()) -> Tensor:
        """Require integers for each bag: int64 of `shape + columns`, from any integer dtype that broadcasts.

        What does not fit into int64 becomes its nearest number there: above every size, or below every count.
        """
        if isinstance(value, Tensor):
            tensor = value
        elif not isinstance(value, bool) and isinstance(value, Integral):  # numpy's integers too
            tensor = torch.tensor(min(max(int(value), -LARGEST), LARGEST), device=self.device)
        else:
            tensor = _require.numbers(name, value).to(self.device)
            tensor = tensor if tensor.numel() else tensor.long()  # numpy has no integer for an empty list
        if tensor.dtype != torch.int64:
            if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
                whole = not tensor.is_floating_point() or _require.holds(tensor == tensor.round())
                cure = (
                    f"Convert them first: {name}.long()."
                    if whole
                    else "Proportions go with kofn.targets.from_proportions(proportions, sizes), counts to which noise "
                    "was added with kofn.Noisy."
                )
                raise TypeError(f"`{name}` must be integers, of an integer dtype; got {tensor.dtype}. {cure}")
            wide = tensor.long()
            tensor = wide.masked_fill(wide < 0, LARGEST) if tensor.dtype == torch.uint64 else wide
        return self._one_for_each(name, tensor, columns)

    def numbers(self, name: str, value: object, *, columns: tuple[int, ...] = ()) -> Tensor:
        """Require real numbers for each bag: float64 of `shape + columns`, from a number or what broadcasts."""
        if not isinstance(value, (Tensor, Real)):
            raise TypeError(f"`{name}` must be a number or a torch.Tensor; got {type(value).__name__}.")
        if not isinstance(value, Tensor):
            value = torch.tensor(float(value), dtype=torch.float64, device=self.device)
        return self._one_for_each(name, value.double(), columns)

    def require_counts(self, counts: Tensor) -> None:
        """Require counts, integer or real, that lie between 0 and the size of their bag."""
        fits = (counts >= 0) & (counts <= self.sizes)
        if not _require.holds(fits):
            bag = int((~fits).flatten().nonzero()[0])
            raise ValueError(
                f"`counts` must lie between 0 and the bag's size; bag {bag} has {int(self.sizes.flatten()[bag])} "
                f"instances and count {counts.flatten()[bag].item():g}. Check the order of the bags, or that these are "
                f"counts, not labels."
            )

    def _one_for_each(self, name: str, tensor: Tensor, columns: tuple[int, ...]) -> Tensor:
        if tensor.device != self.device:
            raise ValueError(
                f"`{name}` must be on the device of `logits`, {self.device}; it is on {tensor.device}. "
                f"Move it with {name}.to(logits.device)."
            )
        if tensor.shape == self.shape and not columns:
            return tensor
        shape = (*self.shape, *columns)
        try:
            return tensor.expand(shape)
        except RuntimeError:
            raise ValueError(
                f"`{name}` must hold one number for each bag, shape {shape}; got shape {tuple(tensor.shape)}. "
                f"Bags are all dimensions of dense logits but the last, or the gaps between offsets."
            ) from None


class Dense(Layout):
    """Bags are the rows of a tensor (..., n); a mask says which instances exist."""

    def __init__(self, shape: torch.Size, device: torch.device, mask: Tensor | None) -> None:
        self.shape, self.length, self.device = shape[:-1], shape[-1], device
        self._absent = None if mask is None else ~mask

    @property
    def sizes(self) -> Tensor:
        if self._absent is None:
            return torch.tensor(self.length, device=self.device).expand(self.shape)
        return self.length - self._absent.sum(-1)

    @property
    def longest(self) -> int:
        return self.length

    def present(self, values: Tensor, fill: float) -> Tensor:
        return values if self._absent is None else values.masked_fill(self._absent, fill)

    def place(self) -> Tensor:
        return torch.arange(self.length, device=self.device)

    def spread(self, per_bag: Tensor) -> Tensor:
        return per_bag.unsqueeze(-1)

    def sum(self, values: Tensor) -> Tensor:
        return self.present(values, 0.0).sum(-1)

    def max(self, values: Tensor) -> Tensor:
        values = self.present(values, -torch.inf)
        return values.amax(-1) if self.length else values.sum(-1) - torch.inf

    def of_counts(self) -> Layout:
        return Dense(torch.Size((*self.shape, self.length + 1)), self.device, None)

    def from_rectangle(self, values: Tensor) -> Tensor:
        return values.movedim(0, -1)

    def to_rows(self, values: Tensor, fill: float) -> Tensor:
        return values

    def _starts(self) -> Tensor:
        bags = torch.arange(self.shape.numel(), device=self.device)
        return (bags * self.length).reshape(self.shape)


class Ragged(Layout):
    """Bags are slices of a flat tensor (m,): bag j runs from ``offsets[j]`` to ``offsets[j + 1]``."""

    offsets: Tensor

    def __init__(self, length: int, device: torch.device, offsets: Tensor) -> None:
        # A slice's shape: torch.Size of a number would fix the number of bags while a graph is exported.
        self.shape, self.length, self.device = offsets[1:].shape, length, device
        self.offsets = offsets
        self._owner_if_made: Tensor | None = None  # not functools.cached_property, whose lock no compiler can trace

    @property
    def sizes(self) -> Tensor:
        return self.offsets.diff().to(self.device)

    @property
    def longest(self) -> int:
        if torch.compiler.is_compiling():
            return self.length
        return int(self.offsets.diff().max()) if self.shape[0] else 0

    @property
    def _owner(self) -> Tensor:
        """The bag of each entry, (m,): how many bags end before it. No shape here depends on values."""
        if self._owner_if_made is None:
            ends = self.offsets[1:].to(self.device)
            self._owner_if_made = torch.bucketize(torch.arange(self.length, device=self.device), ends, right=True)
        return self._owner_if_made

    def present(self, values: Tensor, fill: float) -> Tensor:
        return values

    def place(self) -> Tensor:
        return torch.arange(self.length, device=self.device) - self._starts()[self._owner]

    def spread(self, per_bag: Tensor) -> Tensor:
        return per_bag.index_select(-1, self._owner)

    def sum(self, values: Tensor) -> Tensor:
        return values.new_zeros(*values.shape[:-1], *self.shape).index_add(-1, self._owner, values)

    def max(self, values: Tensor) -> Tensor:
        start = values.new_full((*values.shape[:-1], *self.shape), -torch.inf)
        return start.scatter_reduce(-1, self._owner.expand_as(values), values, "amax", include_self=False)

    def of_counts(self) -> Layout:
        bags = torch.arange(self.offsets.shape[0], device=self.offsets.device)
        return Ragged(self.length + self.shape[0], self.device, self.offsets + bags)

    def from_rectangle(self, values: Tensor) -> Tensor:
        return values[self.place(), self._owner]

    def to_rows(self, values: Tensor, fill: float) -> Tensor:
        rows = values.new_full((*self.shape, self.longest), fill)
        return rows.index_put((self._owner, self.place()), values)

    def _starts(self) -> Tensor:
        return self.offsets[:-1].to(self.device)
