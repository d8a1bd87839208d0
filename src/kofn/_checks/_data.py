"""Positions of instances, names of bags, labels repeated on rows."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]


def as_tensor(name: str, value: Any) -> Tensor:
    """Numbers as a tensor, not copied if they come in an array, not even in one that must not be written to."""
    if isinstance(value, Tensor):
        return value
    try:
        array = np.asarray(value)
        if min(array.strides, default=0) < 0:  # turned around; torch knows no such tensor
            array = array.copy()
        with warnings.catch_warnings():
            # A memory map or a column of pandas. Nothing here writes to its input.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
            return torch.as_tensor(array)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{name}` must be numbers, as a tensor, an array or a list; got {type(value).__name__}: {error}"
        ) from None


def whole_numbers(name: str, value: Any) -> Tensor:
    """Flat whole numbers, int64 on the CPU, from a tensor, an array or a list."""
    tensor = as_tensor(name, value).detach().cpu()
    if not tensor.numel():
        tensor = tensor.long()  # numpy has no integer for an empty list
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"`{name}` must be whole numbers; got {tensor.dtype}. Convert with .long().")
    if tensor.dim() != 1:
        raise ValueError(f"`{name}` must have one dimension; got shape {tuple(tensor.shape)}.")
    return tensor.long()


def positions(name: str, value: Any) -> Tensor:
    """Flat whole numbers from 0 on."""
    tensor = whole_numbers(name, value)
    if bool((tensor < 0).any()):
        raise ValueError(f"`{name}` must be 0 or more; got {int(tensor.min())}.")
    return tensor


def some_sizes(value: Any) -> Tensor:
    """Sizes of bags, at least one, none empty."""
    sizes = positions("sizes", value)
    if not len(sizes) or not bool(sizes.all()):
        what = "a bag of size 0" if len(sizes) else "no bag"
        raise ValueError(f"`sizes` must be those of one bag or more, at least 1 each; got {what}.")
    return sizes


def position(bag: Any, bags: int) -> int:
    """One bag's position, counted from 0."""
    try:
        number = operator.index(bag)
    except TypeError:
        raise TypeError(
            f"a bag's position must be a whole number; got {type(bag).__name__}. For several bags: bags.select(...)."
        ) from None
    if not -bags <= number < bags:
        raise IndexError(f"there is no bag {number}; there are {bags}.")
    return number % bags


def bag_ids(ids: Any, name: str = "ids") -> Array:
    """The name of each instance's bag, none of them missing."""
    array = _as_array(ids, name)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must name one bag for each instance, shape (n,); got shape {array.shape}.")
    missing = array != array if array.dtype.kind in "fcmM" else None  # NaN and NaT differ from themselves
    if array.dtype == object:
        missing = np.fromiter((bag is None or _is_nan(bag) for bag in array), bool, len(array))
        row = next((row for row, bag in enumerate(array) if not _has_hash(bag)), None)
        if row is not None:
            raise TypeError(
                f"`{name}` must be hashable by value; that of instance {row} is {array[row]!r}. Convert lists with "
                f"tuple(...), tensors with .tolist()."
            )
    if missing is not None and missing.any():
        first = int(missing.argmax())
        raise ValueError(
            f"`{name}` must name a bag for each instance; instance {first} has {array[first]!r}"
            f" ({int(missing.sum())} in all have none). Drop these rows, or give each a name of its own."
        )
    return array


def _as_array(ids: Any, name: str) -> Array:
    if isinstance(ids, Tensor):
        ids = ids.detach().cpu()
        return np.asarray(ids.double() if ids.is_floating_point() else ids)  # numpy has no bfloat16
    if isinstance(ids, np.ma.MaskedArray):
        return np.array(ids.tolist(), dtype=object)  # None where it is masked
    if hasattr(ids, "__array__"):  # numpy, pandas, polars, pyarrow
        return np.asarray(ids)
    if isinstance(ids, (str, bytes, Mapping, Set)) or not isinstance(ids, Iterable):
        raise TypeError(
            f"`{name}` must be a sequence with the name of each instance's bag; got {type(ids).__name__}. "
            f"Of a table, pass the column itself."
        )
    listed = list(ids)
    if {type(name) for name in listed} in ({int}, {bool}):
        array = np.asarray(listed)
        if array.dtype.kind in "bi":  # else whole numbers beyond 64 bits
            return array
    # numpy would make ["a", 1] strings, drop the zero of "a\0", and make tuples a matrix.
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _is_nan(name: Any) -> bool:
    try:
        return bool(name != name)
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA has no truth, a decimal sNaN no comparison
        return True


def _has_hash(name: Any) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return not isinstance(name, Tensor)  # whose hash is its address


def which_bags(which: Any, bags: int) -> Tensor:
    """Bags by position, or a mask."""
    chosen = as_tensor("which", which).detach().cpu()
    if chosen.dtype == torch.bool and chosen.dim() == 1:
        if len(chosen) != bags:
            raise IndexError(f"`which` as a mask must have one entry for each of the {bags} bags; got {len(chosen)}.")
        return chosen
    chosen = whole_numbers("which", chosen)
    outside = chosen[(chosen < -bags) | (chosen >= bags)]
    if len(outside):
        raise IndexError(f"`which` asks for bag {int(outside[0])}; there are {bags}, from 0 (or -{bags} from the end).")
    return chosen


def one_for_each_instance(name: str, values: Any, index: Tensor) -> Tensor:
    """Values of the instances at these positions, in one gather."""
    tensor = as_tensor(name, values)
    needed = int(index.max()) + 1 if len(index) else 0
    if tensor.dim() == 0 or len(tensor) < needed:
        raise ValueError(
            f"`{name}` must have one row for each instance, at least {needed} for these bags; "
            f"got shape {tuple(tensor.shape)}."
        )
    return tensor[index.to(tensor.device)]


def no_empty_bag(sizes: Tensor, names: Sequence[Any]) -> None:
    """Bags with at least one instance."""
    if bool((sizes == 0).any()):
        bag = int((sizes == 0).nonzero()[0])
        raise ValueError(
            f"bag {names[bag]!r} is empty: it has no row that could carry its label. Pass one label for each bag."
        )


def one_value(name: str, values: Tensor, first: Tensor, bag_of: Tensor, names: Sequence[Any]) -> None:
    """One value within each bag."""
    differ = (values != first[bag_of.to(values.device)]).nonzero()
    if len(differ):
        row = int(differ[0, 0])
        bag = int(bag_of[row])
        if bool((values[row] != values[row]).any()):
            raise ValueError(f"`{name}` must not be NaN; bag {names[bag]!r} has one. Leave out bags without a label.")
        raise ValueError(
            f"`{name}` must be the same on all instances of a bag; bag {names[bag]!r} has {first[bag].tolist()} and "
            f"{values[row].tolist()}. It is the bag's label, repeated; labels of instances average with bags.mean."
        )


def bags_fit(index: Tensor, sizes: Tensor, names: Sequence[Any], instances: Tensor, labels: Tensor) -> None:
    """Bags of instances that are there, none empty, with a label each."""
    needed = int(index.max()) + 1 if len(index) else 0
    if instances.dim() == 0 or len(instances) < needed:
        raise ValueError(
            f"`instances` must have a row for each position in `bags`, at least {needed}; "
            f"got shape {tuple(instances.shape)}."
        )
    if not len(sizes):
        raise ValueError("`bags` must hold at least one bag; got none.")
    if bool((sizes == 0).any()):
        raise ValueError(
            f"`bags` must not be empty; bag {names[int((sizes == 0).nonzero()[0])]!r} has no instance. "
            f"There is nothing to learn from it: leave it out with bags.select(bags.sizes > 0)."
        )
    if labels.dim() == 0 or len(labels) != len(sizes):
        raise ValueError(
            f"`labels` must have one row for each of the {len(sizes)} bags; got shape {tuple(labels.shape)}. "
            f"Labels that are repeated on instances: bags.common(labels)."
        )


def positives_and_others(labeled: Tensor, instances: int) -> None:
    """A mask of labelled positives, some and not all."""
    if labeled.dtype != torch.bool or labeled.shape != (instances,):
        raise ValueError(
            f"`labeled` must be bool of shape ({instances},), True for the labelled positives; got {labeled.dtype} "
            f"of shape {tuple(labeled.shape)}. From labels 1 and -1: y == 1."
        )
    if not bool(labeled.any()) or bool(labeled.all()):
        raise ValueError(
            f"`labeled` must have labelled positives and unlabelled instances; got {int(labeled.sum())} labelled of "
            f"{instances}."
        )


def at_least(least: int, **values: object) -> None:
    """Whole numbers from `least` on."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"`{name}` must be a whole number, at least {least}; got {value!r}.")


def one_of_two(first: str, a: int | None, second: str, b: int | None) -> None:
    """One of two sizes, at least 1."""
    if (a is None) == (b is None):
        raise ValueError(f"either `{first}` or `{second}` must be given, not both; got {a} and {b}.")
    at_least(1, **({first: a} if a is not None else {second: b}))


def plan(seed: int, processes: int, process: int, accumulate: int) -> None:
    """A seed, and one process of some."""
    at_least(1, processes=processes, accumulate=accumulate)
    at_least(0, seed=seed, process=process)
    if process >= processes:
        raise ValueError(f"`process` must be less than `processes`, {processes}, as it counts from 0; got {process}.")
