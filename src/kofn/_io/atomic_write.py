"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import platform
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside `path` to write to, by any means and in any number of steps, which then takes its place.

    At the end it is synced and renamed: whoever opens `path` gets the old file or the new one, never a part. After an
    error the old file is as it was and nothing lies beside it. A killed process leaves a hidden file, which is removed
    when something is next written to that folder. Folders above `path` are made. A symbolic link stays, and what it
    points to is replaced. The new file has the permissions of the one that it replaces, else those of any new file.

    Args:
        path: the file that appears in the end.

    Yields:
        An empty file in the same folder. Its name ends as `path` does, so that what goes by the extension works.

    Raises:
        OSError: there is a folder or a device at `path`, or the system refused, by the name of the file.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     target = Path(folder) / "notes.txt"
        ...     with atomic_write(target) as part:
        ...         _ = part.write_text("all of it")
        ...         print(target.exists())
        ...     target.read_text()
        False
        'all of it'
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    part = part_beside(target, Path(path).name)
    try:
        part.touch(exist_ok=False)
        if mode is not None:  # from the start: what was private must not be open to others while it is written
            part.chmod(mode | stat.S_IRUSR | stat.S_IWUSR)
        yield part
        _sync(part, os.O_RDWR)
        if mode is not None:
            part.chmod(mode)
        os.replace(part, target)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(part)):
            error.filename = os.fspath(path)
        raise
    finally:
        with suppress(OSError):  # an error of the writer is what a caller must see
            part.unlink()
    with suppress(OSError):  # Windows opens no folder, some disks sync none, and the new file stands
        _sync(target.parent, os.O_RDONLY)


def part_beside(target: Path, name: str) -> Path:
    """The hidden name, ending in `name`, of a file that this process may make beside `target`; the folder is made.

    What processes that have ended did not finish in the folder is removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target.parent)
    return target.with_name(f".kofn-{_machine()}-{os.getpid()}-{uuid4().hex[:8]}.{name[-40:]}")


_LEFTOVER = re.compile(r"\.kofn-([0-9a-f]{8})-([0-9]+)-[0-9a-f]{8}\..*", re.DOTALL)


def _machine() -> str:
    """Eight digits for this machine: a number of a process means something on its own machine only."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _remove_leftovers(folder: Path) -> None:
    """Remove what processes of this machine that have ended did not finish in a folder."""
    if os.name != "posix":  # elsewhere the question whether a process lives may end it
        return
    with suppress(OSError):  # a folder that may be written to, not read
        for name in os.listdir(folder):
            found = _LEFTOVER.fullmatch(name)
            if found and found[1] == _machine() and not _lives(int(found[2])):
                with suppress(OSError):
                    (folder / name).unlink()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another's
        return True
    return True


def _mode(target: Path) -> int | None:
    """The permissions of the file at `target`, None if there is none; require that nothing else is there."""
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise OSError(f"{target} must be free or a file; it is a folder or a device. Name a file.")
    return stat.S_IMODE(found)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
