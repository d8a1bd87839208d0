"""Arrays larger than memory: they lie in a temporary file that is mapped into memory, and are gone through in blocks.

A mapped array is an ndarray like any other. What is read of it counts as memory of the process until `release`, and
stays in the page cache of the system as long as there is room.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn._io.atomic_write import part_beside

IN_MEMORY = 1 << 30  # bytes of an array that is not mapped; a fixed number, so that no result depends on the machine
BLOCK = 1 << 23  # bytes of an array that are looked at together
SPARE = 1 << 26  # bytes that are left free on a disk

_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
_files: weakref.WeakKeyDictionary[mmap.mmap, Path] = weakref.WeakKeyDictionary()


def new_array(shape: tuple[int, ...], dtype: Any = np.float32, folder: Path | None = None) -> NDArray[Any]:
    """An array to be filled: in memory if it is small, else in a file that is deleted with the last view of it.

    Args:
        shape: of the array.
        dtype: of the array.
        folder: where the file is made; by default where temporary files are (``TMPDIR``).

    Raises:
        OSError: the disk has too little room.
    """
    if _size(shape, dtype) <= IN_MEMORY:
        return np.empty(shape, dtype)
    return _new_file(shape, dtype, folder)


def beside(matrix: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array in a file of its own if the matrix lies in one that `new_array` made; else the array itself.

    What belongs to the rows of a matrix that is too large for memory need not be there either.
    """
    folder = folder_of(matrix)
    if folder is None:
        return array
    found = _new_file(array.shape, array.dtype, folder)
    found[:] = array
    return found


def _size(shape: tuple[int, ...], dtype: Any) -> int:
    return math.prod(shape) * int(np.dtype(dtype).itemsize)


def _new_file(shape: tuple[int, ...], dtype: Any, folder: Path | None) -> NDArray[Any]:
    size = _size(shape, dtype)
    where = Path(tempfile.gettempdir()) if folder is None else folder
    path = part_beside(where / "table", "table")
    free = shutil.disk_usage(where).free
    if free < size + SPARE:
        raise OSError(
            f"the table needs {size / 1e9:.1f} GB on the disk of {where} while it is worked on, and "
            f"{free / 1e9:.1f} GB are free. Make room, or set TMPDIR to a folder on another disk."
        )
    array: np.memmap[Any, Any] = np.memmap(path, dtype, mode="w+", shape=shape)
    mapping = mapping_of(array)
    assert mapping is not None
    _files[mapping] = path
    # Also at the end of the process, after an error or Ctrl-C; what a killed process leaves, `atomic_write` removes.
    weakref.finalize(mapping, _delete, path)
    return array


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The mapping that an array, or what it is a view of, lies in; None of an array in memory.

    Examples:
        >>> import numpy as np
        >>> mapping_of(np.zeros(3)[1:]) is None
        True
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def folder_of(array: NDArray[Any]) -> Path | None:
    """Where the file of an array lies that `new_array` made; None of any other."""
    mapping = mapping_of(array)
    path = None if mapping is None else _files.get(mapping)
    return None if path is None else path.parent


def release(array: NDArray[Any] | None = None) -> None:
    """Give back the memory of what was read of an array that `new_array` made, by default of all of them.

    Nothing is lost: what was written stays in the page cache until it is on the disk. Mappings of others are left
    alone: of a private one, changes would be lost.
    """
    mine = list(_files) if array is None else [mapping_of(array)]
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapping in mine:
            if mapping is not None and mapping in _files:
                mapping.madvise(mmap.MADV_DONTNEED)


def trim() -> None:
    """Give back memory that was freed and that the C library keeps, where that is glibc.

    Before version 2.38 it finds no use for most of what torch freed, and a loop over arrays of some megabytes would
    take more and more.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


def blocks(array: NDArray[Any]) -> Iterator[slice]:
    """The rows of an array in slices that are worked on one after the other; of a small array one.

    Examples:
        >>> import numpy as np
        >>> list(blocks(np.zeros((5, 2)))), list(blocks(np.zeros((0, 2))))
        ([slice(0, 5, None)], [])
    """
    step = max(BLOCK // max(array[:1].nbytes, 1), 1)
    for start in range(0, len(array), step):
        yield slice(start, min(start + step, len(array)))
        release(array)


def take(array: NDArray[Any], rows: Any) -> NDArray[Any]:
    """Rows of an array by slice, mask or positions: a view by slice, else a copy, in a file if it is large.

    Examples:
        >>> import numpy as np
        >>> take(np.arange(6.0).reshape(3, 2), np.array([2, 0])).tolist()
        [[4.0, 5.0], [0.0, 1.0]]
    """
    if isinstance(rows, slice) or mapping_of(array) is None:
        kept: NDArray[Any] = array[rows]
        return kept
    positions = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
    found = new_array((len(positions), *array.shape[1:]), array.dtype, folder_of(array))
    for part in blocks(found):
        found[part] = array[positions[part]]
        release(array)
    return found


def in_order(array: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    """All rows of a mapped array in another order, in a new file: row i is row ``order[i]`` of the array.

    Rows are not fetched one by one, which a disk is slow at. The new rows are cut into buckets that fit into memory;
    the array is read once from its first row to its last, each row is put behind the others of its bucket, and then
    each bucket is sorted by itself.

    Args:
        array: (n, ...).
        order: (n,) each row once.
    """
    found = new_array(array.shape, array.dtype, folder_of(array))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    size = next(blocks(found), slice(0, 1)).stop
    filled = np.arange(-(-len(order) // size)) * size  # where the next row of each bucket goes
    for part in blocks(array):
        bucket = place[part] // size
        by_bucket = np.argsort(bucket, kind="stable")
        rows = np.bincount(bucket, minlength=len(filled))
        behind = np.arange(len(bucket)) - np.repeat(rows.cumsum() - rows, rows)
        found[filled[bucket[by_bucket]] + behind] = array[part][by_bucket]
        filled += rows
        release(found)
    for part in blocks(found):  # in each bucket rows are in their old order
        rank = np.argsort(np.argsort(order[part]))
        found[part] = found[part][rank]
    return found


def _delete(path: Path) -> None:
    with suppress(OSError):
        os.unlink(path)
