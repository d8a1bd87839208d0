"""Which instances belong to which bag: ragged, in any order, possibly overlapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from kofn import _checks

__all__ = ["Bags"]


class Bags:
    """Bags of instance positions: bag j holds the instances ``index[offsets[j]:offsets[j + 1]]``.

    An instance may lie in several bags, in none, or twice in one. Bags know nothing of the instances but their
    positions, so they go with any tensor or array whose first dimension is instances.

    Args:
        index: (m,) int64 positions of instances, one bag after the other, at least 0.
        offsets: (b + 1,) int64 from 0 to m, never decreasing; bags may be empty.
        names: b names of the bags, any objects; by default 0 to b - 1.

    Attributes:
        index: as given, on the CPU.
        offsets: as given, on the CPU.
        sizes: (b,) number of instances in each bag.
        names: list of the bags' names.

    Raises:
        TypeError: positions or offsets that are not whole numbers.
        ValueError: offsets that do not run from 0 to m; negative positions; another number of names.

    Examples:
        >>> import torch, kofn
        >>> bags = kofn.Bags.from_ids(["north", "south", "north", "south", "north"])
        >>> bags.names, bags.sizes.tolist(), bags[0].tolist()
        (['north', 'south'], [3, 2], [0, 2, 4])
        >>> bags.sum(torch.tensor([1, 0, 1, 1, 0])).tolist()
        [2, 1]
    """

    def __init__(self, index: Any, offsets: Any, *, names: Iterable[Any] | None = None) -> None:
        self.index = _checks.positions("index", index)
        self.offsets = _checks.offsets(_checks.whole_numbers("offsets", offsets), self.index)
        self.sizes = self.offsets.diff()
        self.names = list(range(len(self)) if names is None else names)
        if len(self.names) != len(self):
            raise ValueError(f"`names` must have one for each of the {len(self)} bags; got {len(self.names)}.")

    @classmethod
    def from_ids(cls, ids: Any) -> Bags:
        """Bags from the name of each instance's bag; bags are in the order in which their names first appear.

        Args:
            ids: (n,) any hashable: a list, a numpy array, a pandas Series or Categorical, a tensor.

        Raises:
            ValueError: an instance without a bag (None, NaN, NaT); more than one dimension.
            TypeError: names that cannot be hashed.

        Examples:
            >>> import kofn
            >>> kofn.Bags.from_ids([("a", 1), "b", ("a", 1)]).index.tolist()
            [0, 2, 1]
        """
        bag_of, names = _number(_checks.bag_ids(ids))
        order = np.argsort(bag_of, kind="stable")
        sizes = np.bincount(bag_of, minlength=len(names))
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
        parts = [_checks.positions(f"lists[{key!r}]", bag) for key, bag in zip(keys, members, strict=True)]
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
        number = _checks.positions("sizes", sizes)
        return cls(torch.arange(int(number.sum())), _offsets(number))

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, bag: SupportsIndex) -> Tensor:
        place = _checks.position(bag, len(self))
        return self.index[int(self.offsets[place]) : int(self.offsets[place + 1])]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.index.split(self.sizes.tolist()))

    def __repr__(self) -> str:
        return f"Bags({len(self)} bags of {len(self.index)} instances)"

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
            chosen = torch.arange(len(self))[_checks.which_bags(which, len(self))]
        index, offsets = self.gather(chosen)
        return Bags(index, offsets, names=[self.names[bag] for bag in chosen.tolist()])

    def gather(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Positions of the instances of some bags, one bag after the other, and their offsets: a batch's, unchecked.

        Args:
            which: (k,) int64 positions of bags, from 0 or, negative, from the end.

        Returns:
            index (m,) and offsets (k + 1,).
        """
        sizes = self.sizes[which]
        offsets = _offsets(sizes)
        # Instance i of the result lies i - offsets[bag] behind the start of its bag.
        shift = (self.offsets[:-1][which] - offsets[:-1]).repeat_interleave(sizes)
        return self.index[shift + torch.arange(len(shift))], offsets

    def bag_of(self) -> Tensor:
        """The bag of each entry of `index`, (m,)."""
        return torch.arange(len(self)).repeat_interleave(self.sizes)

    def sum(self, values: Any) -> Tensor:
        """Sums over each bag: (instances, ...) to (b, ...). Whole numbers and bools give int64; gradients flow.

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
        """Means over each bag: (instances, ...) to (b, ...), NaN for an empty bag. Whole numbers give float64.

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
        gathered = _checks.one_for_each_instance("values", values, self.index)
        whole = not gathered.is_floating_point() and not gathered.is_complex()
        wide = torch.int64 if whole else torch.promote_types(gathered.dtype, torch.float64)
        total = gathered.new_zeros((len(self), *gathered.shape[1:]), dtype=wide)
        total = total.index_add(0, self.bag_of().to(gathered.device), gathered.to(wide))
        return total, torch.int64 if whole else gathered.dtype

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
        gathered = _checks.one_for_each_instance(name, values, self.index)
        _checks.no_empty_bag(self.sizes, self.names)
        first = gathered[self.offsets[:-1]]
        _checks.one_value(name, gathered, first, self.bag_of(), self.names)
        return first


def _offsets(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _number(ids: np.ndarray[Any, np.dtype[Any]]) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[Any]]:
    """Numbers of the bags from 0 on in the order of their first instances, and their names in that order."""
    if ids.dtype != object:
        names, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        listed = list(names[order]) if ids.dtype.kind in "mM" else names[order].tolist()  # dates stay dates
        return rank[inverse.ravel()], listed
    seen: dict[Any, int] = {}
    return np.fromiter((seen.setdefault(name, len(seen)) for name in ids), np.int64, len(ids)), list(seen)
