"""Folders that are written whole or not at all, and read whole beside a writer."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

T = TypeVar("T")

_TRIES, _PAUSE = 20, 0.005  # a reader waits up to 0.1 s for a writer that is between its two renames


def write(target: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder of these files, in place of the folder that may be there.

    All is written and synced in a hidden folder beside it, then renamed. An error leaves the old folder as it was and
    nothing beside it; a killed process may leave hidden folders, ``.name.*.new`` or ``.name.*.old``.

    Args:
        target: the folder, no symbolic link; those above it are made.
        files: contents by name.

    Raises:
        OSError: the system refused.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = _sibling(target, "new")
    try:
        fresh.mkdir()
        for name, data in files.items():
            _write(fresh / name, data)
        _sync(fresh)
        _replace(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    _sync(target.parent)


def read(folder: Path, reader: Callable[[], T]) -> T:
    """Call a reader of a folder, and call it again if it failed because the folder was being replaced.

    Args:
        folder: what is read.
        reader: raises FileNotFoundError or ValueError when a file is missing or does not fit the others.
    """
    for _ in range(_TRIES - 1):
        seen = _identity(folder)
        try:
            return reader()
        except (FileNotFoundError, ValueError):
            # First look for an old folder aside: when there is none (any more), the new one stands for all to see.
            if not old_versions(folder) and _identity(folder) == seen:
                raise
        time.sleep(_PAUSE)
    return reader()


def old_versions(folder: Path) -> list[Path]:
    """Old versions beside a folder: of a writer between its two renames, or of one that was killed there."""
    target = Path(os.path.realpath(folder))
    try:
        names = os.listdir(target.parent)
    except OSError:
        return []
    return [target.with_name(n) for n in sorted(names) if n.startswith(f".{target.name}.") and n.endswith(".old")]


def _replace(fresh: Path, target: Path) -> None:
    """Rename a folder to its target. No portable call replaces a full folder by another, so that takes two."""
    if not target.exists():
        os.rename(fresh, target)
        return
    old = _sibling(target, "old")
    os.rename(target, old)
    try:
        os.rename(fresh, target)
    except BaseException:
        if target.exists():  # another writer was faster, and what it wrote is whole
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)  # the new folder stands: what cannot be deleted is no failure


def _sibling(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}.{uuid4().hex[:8]}.{role}")


def _identity(folder: Path) -> tuple[int, int, int] | None:
    """Changes when a folder is replaced: the old and the new one exist at the same time, so their inodes differ."""
    with suppress(OSError):
        status = os.stat(folder)
        return status.st_dev, status.st_ino, status.st_ctime_ns
    return None


def _write(file: Path, data: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system can: Windows opens no folder, some disks sync none."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
