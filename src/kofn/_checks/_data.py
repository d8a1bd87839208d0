"""Positions of instances, names of bags, labels repeated on rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]


def whole_numbers(name: str, value: Any) -> Tensor:
    """Flat whole numbers, int64 on the CPU, from a tensor, an array or a list."""
    tensor = torch.as_tensor(np.asarray(value) if not isinstance(value, Tensor) else value).detach().cpu()
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


def bag_ids(ids: Any) -> Array:
    """The name of each instance's bag, none of them missing."""
    array = _as_array(ids)
    if array.ndim != 1:
        raise ValueError(f"`ids` must name one bag for each instance, shape (n,); got shape {array.shape}.")
    missing = array != array if array.dtype.kind in "fcmM" else None  # NaN and NaT differ from themselves
    if array.dtype == object:
        missing = np.fromiter((name is None or _is_nan(name) for name in array), bool, len(array))
        row = next((row for row, name in enumerate(array) if not isinstance(name, Hashable)), None)
        if row is not None:
            kind = type(array[row]).__name__
            raise TypeError(f"`ids` must be hashable; that of instance {row} is a {kind}. Convert with tuple(...).")
    if missing is not None and missing.any():
        raise ValueError(
            f"`ids` must name a bag for each instance; instance {int(missing.argmax())} has {array[missing.argmax()]!r}"
            f" ({int(missing.sum())} in all have none). Drop these rows, or give each a name of its own."
        )
    return array


def _as_array(ids: Any) -> Array:
    if isinstance(ids, Tensor):
        return np.asarray(ids.detach().cpu())
    if isinstance(ids, np.ndarray):
        return ids
    if hasattr(ids, "to_numpy"):  # pandas, polars
        return np.asarray(ids.to_numpy())
    if hasattr(ids, "__array__"):  # pandas' categoricals
        return np.asarray(ids)
    listed = list(ids)
    kinds = {type(name) for name in listed}
    if len(kinds) == 1 and issubclass(next(iter(kinds)), (bool, int, str)):
        array = np.asarray(listed)
        if array.dtype.kind in "biU":  # else whole numbers beyond 64 bits
            return array
    array = np.empty(len(listed), dtype=object)  # numpy would make ["a", 1] strings, and tuples a matrix
    array[:] = listed
    return array


def _is_nan(name: Any) -> bool:
    try:
        return bool(name != name)
    except (TypeError, ValueError):  # pandas.NA has no truth
        return True


def which_bags(which: Any, bags: int) -> Tensor:
    """Bags by position, or a mask."""
    chosen = torch.as_tensor(which if isinstance(which, Tensor) else np.asarray(which)).cpu()
    if not chosen.numel() and chosen.dtype != torch.bool:
        chosen = chosen.long()
    if chosen.is_floating_point() or chosen.dim() != 1:
        raise TypeError(
            f"`which` must be flat positions or a mask of bags; got {chosen.dtype} of {tuple(chosen.shape)}."
        )
    if chosen.dtype == torch.bool and len(chosen) != bags:
        raise IndexError(f"`which` as a mask must have one entry for each of the {bags} bags; got {len(chosen)}.")
    outside = torch.zeros(()) if chosen.dtype == torch.bool else chosen[(chosen < -bags) | (chosen >= bags)]
    if outside.dim() and len(outside):
        raise IndexError(f"`which` must lie between 0 and {bags - 1}, the bags there are; got {int(outside[0])}.")
    return chosen


def one_for_each_instance(name: str, values: Any, index: Tensor) -> Tensor:
    """Values of the instances at these positions, in one gather."""
    tensor = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
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
    differ = (values != first[bag_of]).reshape(len(values), -1).any(1)
    if bool(differ.any()):
        row = int(differ.nonzero()[0])
        bag = int(bag_of[row])
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


def one_of_two(first: str, a: int | None, second: str, b: int | None) -> None:
    """One of two sizes, at least 1."""
    if (a is None) == (b is None):
        raise ValueError(f"either `{first}` or `{second}` must be given, not both; got {a} and {b}.")
    name, value = (first, a) if a is not None else (second, b)
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"`{name}` must be a whole number, at least 1; got {value!r}.")
