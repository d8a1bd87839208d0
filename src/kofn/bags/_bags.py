"""Bags of instance positions: which instances belong to which bag, and sums over them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from kofn import _require
from kofn._io.mapped import beside
from kofn.bags._names import numbered
from kofn.counts._layout import require_offsets


class Bags:
    """Bags of instance positions: bag j holds the instances ``index[offsets[j]:offsets[j + 1]]``.

    An instance may lie in several bags, in none, or twice in one. Bags know nothing of the instances but their
    positions, so they go with any tensor or array whose first dimension is instances. With copies a position stands
    for that many alike instances, at the cost of one: 1,200 positions are the bags of 1.3 million people.

    Args:
        index: (m,) int64 positions of instances, one bag after the other, at least 0.
        offsets: (b + 1,) int64 from 0 to m, never decreasing; bags may be empty.
        names: b names of the bags, any objects; by default 0 to b - 1.
        copies: (m,) int64, at least 0: how often the bag has the instance; by default once.

    Attributes:
        index: as given, on the CPU.
        offsets: as given, on the CPU.
        copies: as given, on the CPU; None for one each.
        sizes: (b,) number of instances in each bag, copies included.
        names: list of the bags' names.

    Raises:
        TypeError: positions or offsets that are not integers.
        ValueError: offsets that do not run from 0 to m; negative positions or copies; another number of names or
            copies.

    Examples:
        >>> import torch, kofn
        >>> bags = kofn.Bags.from_ids(["north", "south", "north", "south", "north"])
        >>> bags.names, bags.sizes.tolist(), bags[0].tolist()
        (['north', 'south'], [3, 2], [0, 2, 4])
        >>> bags.sum(torch.tensor([1, 0, 1, 1, 0])).tolist()
        [2, 1]
    """

    def __init__(
        self, index: Any, offsets: Any, *, names: Iterable[Any] | None = None, copies: Any | None = None
    ) -> None:
        self.index = _require.whole_numbers("index", index, low=0)
        self.offsets = require_offsets(_require.whole_numbers("offsets", offsets), len(self.index))
        self.copies = None if copies is None else _require.whole_numbers("copies", copies, low=0)
        if self.copies is not None and len(self.copies) != len(self.index):
            raise ValueError(
                f"`copies` must have one number for each of the {len(self.index)} positions; got {len(self.copies)}."
            )
        entries = self.offsets.diff()
        self.sizes = entries if self.copies is None else self._added(self.copies)
        self.names = list(range(len(self)) if names is None else names)
        if len(self.names) != len(self):
            raise ValueError(f"`names` must have one for each of the {len(self)} bags; got {len(self.names)}.")

    @classmethod
    def from_ids(cls, ids: Any, *, name: str = "ids") -> Bags:
        """Bags from the name of each instance's bag; bags are in the order in which their names first appear.

        Args:
            ids: (n,) any hashable: a list, a numpy array, a pandas Series or Categorical, a tensor.
            name: what to call them in an error.

        Raises:
            ValueError: an instance without a bag (None, NaN, NaT); more than one dimension.
            TypeError: names that cannot be hashed.

        Examples:
            >>> import kofn
            >>> kofn.Bags.from_ids([("a", 1), "b", ("a", 1)]).index.tolist()
            [0, 2, 1]
        """
        bag_of, names = numbered(ids, name)
        sizes = np.bincount(bag_of, minlength=len(names))
        in_order = bool((bag_of[1:] >= bag_of[:-1]).all())
        order = np.arange(len(bag_of)) if in_order else np.argsort(bag_of, kind="stable")
        if isinstance(ids, np.ndarray):
            order = beside(ids, order)
        return cls(torch.from_numpy(order), _offsets(torch.from_numpy(sizes)), names=names)

    @classmethod
    def from_lists(cls, lists: Iterable[Any] | Mapping[Any, Any]) -> Bags:
        """Bags from the positions of each bag's instances: sequences, arrays or tensors, or a mapping from names.

        Examples:
            >>> import kofn
            >>> bags = kofn.Bags.from_lists({"first": [0, 1, 2], "second": [2, 3]})  # they share instance 2
            >>> bags.index.tolist(), bags.offsets.tolist()
            ([0, 1, 2, 2, 3], [0, 3, 5])
        """
        names = list(lists) if isinstance(lists, Mapping) else None
        members = list(lists.values()) if isinstance(lists, Mapping) else list(lists)
        keys = range(len(members)) if names is None else names
        parts = [_require.whole_numbers(f"lists[{key!r}]", bag, low=0) for key, bag in zip(keys, members, strict=True)]
        index = torch.cat([torch.zeros(0, dtype=torch.int64), *parts])
        return cls(index, _offsets(torch.tensor([len(part) for part in parts], dtype=torch.int64)), names=names)

    @classmethod
    def from_sizes(cls, sizes: Any) -> Bags:
        """Bags of instances that lie one bag after the other.

        Examples:
            >>> import kofn
            >>> kofn.Bags.from_sizes([2, 0, 1])[2].tolist()
            [2]
        """
        whole = _require.whole_numbers("sizes", sizes, low=0)
        return cls(torch.arange(int(whole.sum())), _offsets(whole))

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, bag: SupportsIndex) -> Tensor:
        place = _require_position(bag, len(self))
        return self.index[int(self.offsets[place]) : int(self.offsets[place + 1])]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.index.split(self.sizes.tolist()))

    def __repr__(self) -> str:
        return f"Bags({len(self)} bags of {int(self.sizes.sum())} instances)"

    def with_copies(self, copies: Any) -> Bags:
        """The same bags, with each instance as often as it has copies; one with none is in no bag.

        Args:
            copies: (instances,) integers, at least 0.

        Examples:
            >>> import kofn
            >>> bags = kofn.Bags.from_sizes([2, 1]).with_copies([3, 0, 2])
            >>> bags.index.tolist(), bags.sizes.tolist()
            ([0, 2], [3, 2])
        """
        times = self._gathered("copies", _require.whole_numbers("copies", copies, low=0))
        kept = times > 0
        entries = self._added(kept.long())
        return Bags(self.index[kept], _offsets(entries), names=self.names, copies=times[kept])

    def repeated(self) -> Bags:
        """The same bags without copies: each position stands in the bag as often as it had any.

        Examples:
            >>> import kofn
            >>> kofn.Bags.from_sizes([2, 1]).with_copies([3, 1, 2]).repeated().index.tolist()
            [0, 0, 0, 1, 2, 2]
        """
        if self.copies is None:
            return self
        return Bags(self.index.repeat_interleave(self.copies), _offsets(self.sizes), names=self.names)

    def select(self, which: Tensor | Sequence[int] | slice | ArrayLike) -> Bags:
        """Some of the bags, in the order asked for, in one go.

        Args:
            which: positions of bags (a bag may be asked for twice), a bool mask of (b,), or a slice.

        Raises:
            IndexError: a bag that is not there; a mask of another length.

        Examples:
            >>> import kofn
            >>> kofn.Bags.from_sizes([2, 3, 1]).select([2, 0]).index.tolist()
            [5, 0, 1]
        """
        if isinstance(which, slice):
            chosen = torch.from_numpy(np.arange(len(self))[which].copy())  # torch's slices do not run backwards
        else:
            chosen = torch.arange(len(self))[_require_bags(which, len(self))]
        index, offsets, copies = self.gather(chosen)
        return Bags(index, offsets, names=[self.names[bag] for bag in chosen.tolist()], copies=copies)

    def gather(self, which: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Positions of the instances of some bags, one bag after the other, and their offsets: a batch's, unchecked.

        Args:
            which: (k,) int64 positions of bags, from 0 or, negative, from the end.

        Returns:
            index (m,), offsets (k + 1,), and copies (m,) or None.
        """
        entries = self.offsets.diff()[which]
        offsets = _offsets(entries)
        # Entry i of the result lies i - offsets[bag] behind the start of its bag.
        shift = (self.offsets[:-1][which] - offsets[:-1]).repeat_interleave(entries)
        taken = shift + torch.arange(len(shift))
        return self.index[taken], offsets, None if self.copies is None else self.copies[taken]

    def bag_of(self) -> Tensor:
        """The bag of each entry of `index`, (m,)."""
        return torch.arange(len(self)).repeat_interleave(self.offsets.diff())

    def _added(self, entries: Tensor) -> Tensor:
        """Sums over the entries of each bag, (m, ...) to (b, ...)."""
        total = entries.new_zeros((len(self.offsets) - 1, *entries.shape[1:]))
        bag_of = torch.arange(len(total)).repeat_interleave(self.offsets.diff())
        return total.index_add(0, bag_of.to(entries.device), entries)

    def sum(self, values: Any) -> Tensor:
        """Sums over each bag: (instances, ...) to (b, ...). Integers and bools give int64; gradients flow.

        Real numbers are added up in float64 and come back in their own dtype.

        Raises:
            TypeError: values that are not numbers.
            ValueError: fewer values than the bags' positions ask for.

        Examples:
            >>> import torch, kofn
            >>> kofn.Bags.from_lists([[0, 1], [1, 2], []]).sum(torch.tensor([1.0, 10.0, 100.0]))
            tensor([ 11., 110.,   0.])
        """
        total, dtype = self._total(values)
        return total.to(dtype)

    def mean(self, values: Any) -> Tensor:
        """Means over each bag: (instances, ...) to (b, ...), NaN for an empty bag. Integers give float64.

        Examples:
            >>> import torch, kofn
            >>> kofn.Bags.from_sizes([3, 1]).mean(torch.tensor([1, 0, 1, 1])).tolist()
            [0.6666666666666666, 1.0]
        """
        total, dtype = self._total(values)
        sizes = self.sizes.to(total.device, torch.float64)
        mean = total / sizes.reshape(-1, *(1 for _ in total.shape[1:]))
        return mean.to(torch.float64 if dtype == torch.int64 else dtype)

    def _total(self, values: Any) -> tuple[Tensor, torch.dtype]:
        """Sums in int64, float64 or complex128, and the dtype of the answer.

        Added up in bfloat16, a bag of 1,000 ones would be 256.
        """
        gathered = self._gathered("values", values)
        whole = not gathered.is_floating_point() and not gathered.is_complex()
        wide = gathered.to(torch.int64 if whole else torch.promote_types(gathered.dtype, torch.float64))
        if self.copies is not None:
            wide = wide * self.copies.to(wide.device).reshape(-1, *(1 for _ in wide.shape[1:]))
        return self._added(wide), torch.int64 if whole else gathered.dtype

    def common(self, values: Any, *, name: str = "values") -> Tensor:
        """The value that all instances of a bag share, as a column of a table repeats its bag's label on its rows.

        Args:
            values: (instances, ...), the same within each bag.
            name: what to call them in an error.

        Returns:
            (b, ...).

        Raises:
            ValueError: a bag with two different values, which it names; an empty bag, which has none.

        Examples:
            >>> import kofn
            >>> kofn.Bags.from_ids(["a", "b", "a"]).common([0.5, 0.0, 0.5]).tolist()
            [0.5, 0.0]
        """
        gathered = self._gathered(name, values)
        entries = self.offsets.diff()
        if bool((entries == 0).any()):
            empty = self.names[int((entries == 0).nonzero()[0])]
            raise ValueError(
                f"bag {empty!r} is empty: it has no row that could carry its label. Pass one label for each bag."
            )
        first = gathered[self.offsets[:-1]]
        self._require_common(name, gathered, first)
        return first

    def _gathered(self, name: str, values: Any) -> Tensor:
        """Values of the instances, one bag after the other: (instances, ...) to (m, ...), in one indexing call."""
        tensor = _require.numbers(name, values)
        needed = int(self.index.max()) + 1 if len(self.index) else 0
        if tensor.dim() == 0 or len(tensor) < needed:
            raise ValueError(
                f"`{name}` must have one row for each instance, at least {needed} for these bags; "
                f"got shape {tuple(tensor.shape)}."
            )
        return tensor[self.index.to(tensor.device)]

    def _require_common(self, name: str, gathered: Tensor, first: Tensor) -> None:
        """Require that all values of a bag equal its first."""
        bag_of = self.bag_of()
        differ = (gathered != first[bag_of.to(gathered.device)]).nonzero()
        if not len(differ):
            return
        row = int(differ[0, 0])
        bag = int(bag_of[row])
        if bool((gathered[row] != gathered[row]).any()):
            raise ValueError(
                f"`{name}` must not be NaN; bag {self.names[bag]!r} has one. Leave out bags without a label."
            )
        raise ValueError(
            f"`{name}` must be the same on all instances of a bag; bag {self.names[bag]!r} has {first[bag].tolist()} "
            f"and {gathered[row].tolist()}. It is the bag's label, repeated; labels of instances average with "
            f"bags.mean."
        )


def _offsets(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _require_position(bag: Any, n_bags: int) -> int:
    """Require the position of one bag, from 0 or, negative, from the end; returned counted from 0."""
    try:
        position = operator.index(bag)
    except TypeError:
        raise TypeError(
            f"a bag's position must be an integer; got {type(bag).__name__}. For several bags: bags.select(...)."
        ) from None
    if not -n_bags <= position < n_bags:
        raise IndexError(f"there is no bag {position}; there are {n_bags}.")
    return position % n_bags


def _require_bags(which: Any, n_bags: int) -> Tensor:
    """Require positions of bags, or a mask of them."""
    chosen = _require.numbers("which", which).detach().cpu()
    if chosen.dtype == torch.bool and chosen.dim() == 1:
        if len(chosen) != n_bags:
            raise IndexError(f"`which` as a mask must have one entry for each of the {n_bags} bags; got {len(chosen)}.")
        return chosen
    chosen = _require.whole_numbers("which", chosen)
    outside = chosen[(chosen < -n_bags) | (chosen >= n_bags)]
    if len(outside):
        raise IndexError(
            f"`which` asks for bag {int(outside[0])}; there are {n_bags}, from 0 (or -{n_bags} from the end)."
        )
    return chosen
