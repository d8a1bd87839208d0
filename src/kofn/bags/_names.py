"""Names of bags, one for each instance, turned into numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def numbered(ids: Any, name: str) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[Any]]:
    """The number of each instance's bag, (n,), and the names of the bags, in the order of their first instances.

    Args:
        ids: the name of each instance's bag.
        name: what to call them in an error.
    """
    array = _as_array(ids, name)
    _require_names(array, name)
    if array.dtype.kind in "biu" and bool((array[1:] >= array[:-1]).all()):  # nothing need be sorted
        starts = np.append(True, array[1:] != array[:-1])[: len(array)]
        return starts.cumsum() - 1, array[starts].tolist()
    if array.dtype != object:
        names, first, inverse = np.unique(array, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        listed = list(names[order]) if array.dtype.kind in "mM" else names[order].tolist()  # dates stay dates
        return rank[inverse.ravel()], listed
    seen: dict[Any, int] = {}
    return np.fromiter((seen.setdefault(bag, len(seen)) for bag in array), np.int64, len(array)), list(seen)


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
    if {type(bag) for bag in listed} in ({int}, {bool}):
        array = np.asarray(listed)
        if array.dtype.kind in "bi":  # else integers beyond 64 bits
            return array
    # numpy would make ["a", 1] strings, drop the zero of "a\0", and make tuples a matrix.
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _require_names(array: Array, name: str) -> None:
    """Require one name for each instance, none missing, that can be hashed."""
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


def _is_nan(bag: Any) -> bool:
    try:
        return bool(bag != bag)
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA has no truth, a decimal sNaN no comparison
        return True


def _has_hash(bag: Any) -> bool:
    try:
        hash(bag)
    except TypeError:
        return False
    return not isinstance(bag, Tensor)  # whose hash is its address
