"""How bags lie in a tensor, as rows of a dense one or as slices of a flat one, and how many instances an entry is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real

import torch
from torch import Tensor

from kofn import _require
from kofn.counts import _host
from kofn.counts._rectangles import BySize, OneRectangle, Rectangles

LARGEST = torch.iinfo(torch.int64).max


def lay_out(
    shape: torch.Size, device: torch.device, *, mask: object = None, offsets: object = None, copies: object = None
) -> Layout:
    """The layout of instances in a tensor of this shape: the arguments of every function about bags, checked.

    Raises:
        TypeError: a mask that is not bool, offsets or copies that are not integers.
        ValueError: both a mask and offsets; shapes or devices that do not fit; offsets that do not run from 0 to m;
            negative copies.
    """
    times = None if copies is None else _require_copies(copies, shape, device)
    if offsets is None:
        return Dense(shape, device, None if mask is None else _require_mask(mask, shape, device), times)
    if mask is not None:
        raise ValueError(
            "`mask` and `offsets` must not both be given: a mask goes with dense logits (..., n), offsets with flat "
            "logits (m,). Drop one of them."
        )
    if len(shape) != 1:
        raise ValueError(
            f"`logits` must be flat, (m,), when `offsets` are given; got shape {tuple(shape)}. "
            f"Dense logits (..., n) take no offsets; ragged ones come concatenated: torch.cat(bags)."
        )
    return Ragged(shape[0], device, require_offsets(offsets, shape[0]), times)


def _require_mask(value: object, shape: torch.Size, device: torch.device) -> Tensor:
    """Require a bool tensor of the logits' shape, or one that broadcasts to it."""
    mask = _require.tensor("mask", value)
    if mask.dtype != torch.bool:
        raise TypeError(
            f"`mask` must be a bool tensor, True where an instance exists; got {mask.dtype}. Convert with mask.bool()."
        )
    _require_device("mask", mask, device)
    try:
        return mask.expand(shape)
    except RuntimeError:
        raise ValueError(f"`mask` must have the shape of `logits`, {tuple(shape)}; got {tuple(mask.shape)}.") from None


def _require_copies(value: object, shape: torch.Size, device: torch.device) -> Tensor:
    """Require whole numbers of at least 0, of the logits' shape or one that broadcasts to it: int64."""
    copies = _require.numbers("copies", value)
    if copies.is_floating_point() or copies.is_complex() or copies.dtype == torch.bool:
        raise TypeError(
            f"`copies` must be integers, how many alike instances each logit stands for; got {copies.dtype}. "
            f"Convert with copies.long()."
        )
    copies = copies.detach().long() if isinstance(value, Tensor) else copies.long().to(device)
    _require_device("copies", copies, device)
    try:
        copies = copies.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"`copies` must have the shape of `logits`, {tuple(shape)}; got {tuple(copies.shape)}."
        ) from None
    if not _require.holds(copies >= 0):
        raise ValueError(
            f"`copies` must be at least 0, how many instances a logit stands for; got {int(copies.min())}."
        )
    return copies


def _require_device(name: str, tensor: Tensor, device: torch.device) -> None:
    if tensor.device != device:
        raise ValueError(
            f"`{name}` must be on the device of `logits`, {device}; it is on {tensor.device}. "
            f"Move it with {name}.to(logits.device)."
        )


def require_offsets(value: object, length: int) -> Tensor:
    """Require offsets of ragged bags from 0 up to the number of instances: int64 on the CPU.

    Inside a compiled graph their values cannot be read: the operator that gets them there checks them when it runs.
    """
    offsets = _require.tensor("offsets", value)
    if offsets.is_floating_point() or offsets.is_complex() or offsets.dtype == torch.bool:
        raise TypeError(f"`offsets` must be int64; got {offsets.dtype}. Convert with offsets.long().")
    if offsets.dim() != 1 or not offsets.shape[0]:
        raise ValueError(
            f"`offsets` must have shape (bags + 1,) with at least one entry; got shape {tuple(offsets.shape)}. "
            f"From sizes: torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])."
        )
    if torch.compiler.is_compiling():
        return offsets.detach().long()
    host = offsets.detach().to("cpu", torch.int64)  # the sizes of bags are shapes: the host must know them
    first, last = int(host[0]), int(host[-1])
    if first != 0 or last != length:
        raise ValueError(
            f"`offsets` must start at 0 and end at the number of instances, {length}; they run from {first} to "
            f"{last}. Unlike torch.nn.EmbeddingBag's default, the last offset is always included."
        )
    sizes = host.diff()
    if bool((sizes < 0).any()):
        bag = int((sizes < 0).nonzero()[0])
        raise ValueError(
            f"`offsets` must not decrease; bag {bag} would run from {int(host[bag])} to {int(host[bag + 1])}. "
            f"Sort them, or build them from sizes with cumsum."
        )
    return host


class Layout(ABC):
    """Which entries of a tensor's last dimension belong to which bag, and sums over them.

        sum(v)_j = sum_{i in bag j} c_i v_i,  logsumexp(v)_j = log sum_{i in bag j} c_i e^{v_i},
        spread(u)_i = u_{bag of i},

    where c_i is the number of copies of an entry, 1 unless they are given. A `CountDistribution` has two layouts: that
    of the instances of each bag, and that of its counts 0, ..., n.

    Attributes:
        shape: of a tensor with one number for each bag.
        length: of the last dimension.
        device: where the tensor lies.
        offsets: (b + 1,) int64 on the CPU, or None where bags are rows.
        copies: int64 of one for each entry, 0 where it is masked; or None for one each.

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
    copies: Tensor | None = None

    @property
    @abstractmethod
    def entries(self) -> torch.Size:
        """The shape of a tensor with one number for each entry."""

    @property
    @abstractmethod
    def sizes(self) -> Tensor:
        """Number of instances in each bag, copies included: int64, of `shape`."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """Entries of the longest bag; inside a compiled graph, which cannot read it, a bound of it."""

    @abstractmethod
    def present(self, values: Tensor, fill: float) -> Tensor:
        """The values with `fill` in place of entries that are not there, so that nothing of these comes through."""

    @abstractmethod
    def place(self) -> Tensor:
        """0, 1, 2, ... within each bag: (n,) or (m,)."""

    @abstractmethod
    def spread(self, per_bag: Tensor) -> Tensor:
        """Each bag's number beside each of its entries, broadcasting."""

    @abstractmethod
    def add(self, values: Tensor) -> Tensor:
        """Sum over the entries of each bag, each once whatever its copies; 0 for an empty one."""

    @abstractmethod
    def max(self, values: Tensor) -> Tensor:
        """Largest value of each bag; -inf for an empty one. Equal maxima share the gradient."""

    @abstractmethod
    def of_counts(self) -> Layout:
        """The same bags with one entry for each count 0, ..., n: how `CountDistribution.log_probs` lays them out."""

    @abstractmethod
    def rectangles(self) -> Rectangles:
        """The bags cut into rectangles of little padding."""

    @abstractmethod
    def to_rows(self, values: Tensor, fill: float) -> Tensor:
        """From one value for each entry to (*bags, longest), filled up at the end of shorter bags."""

    @abstractmethod
    def from_rows(self, values: Tensor) -> Tensor:
        """Back from `to_rows`."""

    @abstractmethod
    def repeated(self, times: int) -> Layout:
        """The layout of so many tensors like this one, as `torch.func.vmap` stacks them: (times, *) or flat."""

    @abstractmethod
    def outside(self) -> Layout:
        """The layout as it is outside the transform of `torch.func` in which it was made."""

    @abstractmethod
    def _starts(self) -> Tensor:
        """Where each bag starts in the flattened tensor: of `shape`."""

    def sum(self, values: Tensor) -> Tensor:
        """Sum over each bag, each entry as often as it has copies; 0 for an empty one."""
        return self.add(values if self.copies is None else values * self.copies)

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

    def people(self) -> tuple[Tensor, Layout]:
        """Of a layout with copies: the entry of each instance, one after the other, and the layout of these."""
        copies = self.copies if self.copies is not None else torch.ones(0, dtype=torch.int64)
        entries = torch.arange(copies.numel(), device=self.device).repeat_interleave(copies.flatten())
        sizes = self.sizes.flatten().cpu()
        return entries, Ragged(len(entries), self.device, torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]))

    def mark(self, places: Tensor) -> Tensor:
        """True at the given places (*bags, k) of each bag, one entry for each of its own; others are passed over."""
        total = self.entries.numel()
        there = (places >= 0) & (places < self.sizes.unsqueeze(-1))
        line = (self._starts().unsqueeze(-1) + places).masked_fill(~there, total)  # one more place, for the others
        marks = torch.zeros(total + 1, dtype=torch.bool, device=self.device).index_fill(0, line.flatten(), True)[:-1]
        return marks.reshape(self.entries)

    def whole_numbers(self, name: str, value: object, *, columns: tuple[int, ...] = ()) -> Tensor:
        """Require integers for each bag: int64 of `shape + columns`, from any integer dtype that broadcasts.

        What does not fit into int64 becomes its nearest number there: above every size, or below every count.
        """
        if isinstance(value, Tensor):
            if value.dtype is torch.int64 and value.shape == self.shape and value.device == self.device and not columns:
                return value
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
        _require_device(name, tensor, self.device)
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

    def __init__(
        self, shape: torch.Size, device: torch.device, mask: Tensor | None = None, copies: Tensor | None = None
    ) -> None:
        self.shape, self.length, self.device = shape[:-1], shape[-1], device
        self._masked = None if mask is None else ~mask
        if copies is not None:
            self.copies = copies if self._masked is None else copies.masked_fill(self._masked, 0)

    @property
    def _absent(self) -> Tensor | None:
        return self._masked if self.copies is None else self.copies == 0

    @property
    def entries(self) -> torch.Size:
        return torch.Size((*self.shape, self.length))

    @property
    def sizes(self) -> Tensor:
        if self.copies is not None:
            return self.copies.sum(-1)
        if self._masked is None:
            return torch.tensor(self.length, device=self.device).expand(self.shape)
        return self.length - self._masked.sum(-1)

    @property
    def longest(self) -> int:
        return self.length

    def present(self, values: Tensor, fill: float) -> Tensor:
        absent = self._absent
        return values if absent is None else values.masked_fill(absent, fill)

    def place(self) -> Tensor:
        return torch.arange(self.length, device=self.device)

    def spread(self, per_bag: Tensor) -> Tensor:
        return per_bag.unsqueeze(-1)

    def add(self, values: Tensor) -> Tensor:
        return self.present(values, 0.0).sum(-1)

    def max(self, values: Tensor) -> Tensor:
        values = self.present(values, -torch.inf)
        return values.amax(-1) if self.length else values.sum(-1) - torch.inf

    def of_counts(self) -> Layout:
        most = self.length
        if self.copies is not None:  # host read: how many counts there are
            most = int(self.sizes.max()) if self.shape.numel() else 0
        return Dense(torch.Size((*self.shape, most + 1)), self.device)

    def rectangles(self) -> Rectangles:
        return OneRectangle(self.shape, self.length)

    def to_rows(self, values: Tensor, fill: float) -> Tensor:
        return values

    def from_rows(self, values: Tensor) -> Tensor:
        return values

    def repeated(self, times: int) -> Layout:
        copies = None if self.copies is None else self.copies.expand(times, *self.copies.shape)
        return Dense(torch.Size((times, *self.entries)), self.device, None, copies)

    def outside(self) -> Layout:
        return Dense(self.entries, self.device, None, None if self.copies is None else _host.outside(self.copies))

    def _starts(self) -> Tensor:
        bags = torch.arange(self.shape.numel(), device=self.device)
        return (bags * self.length).reshape(self.shape)


class Ragged(Layout):
    """Bags are slices of a flat tensor (m,): bag j runs from ``offsets[j]`` to ``offsets[j + 1]``."""

    offsets: Tensor

    def __init__(self, length: int, device: torch.device, offsets: Tensor, copies: Tensor | None = None) -> None:
        # A slice's shape: torch.Size of a number would fix the number of bags while a graph is exported.
        self.shape, self.length, self.device = offsets[1:].shape, length, device
        self.offsets, self.copies = offsets, copies
        self._owner_if_made: Tensor | None = None  # not functools.cached_property, whose lock no compiler can trace

    @property
    def entries(self) -> torch.Size:
        return torch.Size((self.length,))

    @property
    def sizes(self) -> Tensor:
        if self.copies is not None:
            return self.add(self.copies)
        return self.offsets.diff().to(self.device)

    @property
    def longest(self) -> int:
        if torch.compiler.is_compiling():
            return self.length
        return int(self.offsets.diff().max()) if self.shape[0] else 0

    @property
    def _owner(self) -> Tensor:
        """The bag of each entry, (m,): how many bags end before it. No shape here depends on values."""
        if self._owner_if_made is not None:
            return self._owner_if_made
        ends = self.offsets[1:].to(self.device)
        owner = torch.bucketize(torch.arange(self.length, device=self.device), ends, right=True)
        if not _host.transformed():  # what is made inside a transform is not to be used outside
            self._owner_if_made = owner
        return owner

    def present(self, values: Tensor, fill: float) -> Tensor:
        return values if self.copies is None else values.masked_fill(self.copies == 0, fill)

    def place(self) -> Tensor:
        return torch.arange(self.length, device=self.device) - self._starts()[self._owner]

    def spread(self, per_bag: Tensor) -> Tensor:
        return per_bag.index_select(-1, self._owner)

    def add(self, values: Tensor) -> Tensor:
        return values.new_zeros(*values.shape[:-1], *self.shape).index_add(-1, self._owner, self.present(values, 0))

    def max(self, values: Tensor) -> Tensor:
        values = self.present(values, -torch.inf)
        start = values.new_full((*values.shape[:-1], *self.shape), -torch.inf)
        return start.scatter_reduce(-1, self._owner.expand_as(values), values, "amax", include_self=False)

    def of_counts(self) -> Layout:
        if self.copies is not None:
            sizes = self.sizes.cpu() + 1
            offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
            return Ragged(int(offsets[-1]), self.device, offsets)
        bags = torch.arange(self.offsets.shape[0], device=self.offsets.device)
        return Ragged(self.length + self.shape[0], self.device, self.offsets + bags)

    def rectangles(self) -> Rectangles:
        return BySize(self.offsets.diff())

    def to_rows(self, values: Tensor, fill: float) -> Tensor:
        return BySize(self.offsets.diff(), together=True).cut_entries(values, fill)[0][..., : self.longest]

    def from_rows(self, values: Tensor) -> Tensor:
        return values[self._owner, self.place()]

    def repeated(self, times: int) -> Layout:
        sizes = self.offsets.diff().repeat(times)
        offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        return Ragged(
            times * self.length, self.device, offsets, None if self.copies is None else self.copies.repeat(times)
        )

    def outside(self) -> Layout:
        copies = None if self.copies is None else _host.outside(self.copies)
        return Ragged(self.length, self.device, _host.outside(self.offsets), copies)

    def _starts(self) -> Tensor:
        return self.offsets[:-1].to(self.device)
