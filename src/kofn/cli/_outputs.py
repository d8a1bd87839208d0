"""Where a command writes to: known to be possible before anything is done, and never in place of a file unasked."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

Force = Annotated[bool, typer.Option("--force", help="Replace the output if it already exists.")]


def require_writable(output: Path, *, force: bool, inputs: tuple[Path | None, ...] = (), option: str = "-o") -> None:
    """Require a file name that can be written to, that is not read here, and that is free unless `force` is given.

    Args:
        output: the name.
        force: whether it may be replaced.
        inputs: files that are read.
        option: that names it.

    Raises:
        ValueError: a folder; an input; a file that is there already; a folder above that is none.
        OSError: the system refuses the name.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        os.stat(output)  # a name that is too long, a loop of links
    if output.is_dir():
        raise ValueError(f"{option} must name a file; {output} is a folder. Name a file in it.")
    if any(read is not None and _same(output, read) for read in inputs):
        raise ValueError(f"{option} must name another file than those that are read; {output} is one of them.")
    if output.exists() and not force:
        raise ValueError(f"{output} exists. Add --force to replace it, or name another file with {option}.")
    require_folder(output.parent, option=option)


def require_folder(folder: Path, *, option: str = "-o") -> None:
    """Require that a folder exists and can be written to, or can be made.

    Raises:
        ValueError: it cannot.
    """
    there = next(above for above in (folder, *folder.parents) if os.path.lexists(above))
    if not there.is_dir():
        raise ValueError(f"{option} must lie in a folder; {there} is none. Name another place.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{option} must lie in a folder that can be written to; {there} cannot. Name another place.")


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


@contextmanager
def only_fit_of(target: Path) -> Iterator[None]:
    """While it lasts, no other process of this user on this machine fits the same model: they share a checkpoint.

    The lock is one of the system, on an empty file among the temporary ones, and ends with its process however that
    ends. Windows has no such locks.

    Raises:
        ValueError: another process holds it.
    """
    if os.name != "posix":
        yield
        return
    import fcntl

    digest = hashlib.sha256(os.fsencode(os.path.realpath(target))).hexdigest()[:24]
    path = Path(tempfile.gettempdir()) / f"kofn-{os.getuid()}-{digest}.lock"
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise ValueError(
                f"{target} is being fitted by another process at this moment. Wait for its end, or name another file "
                f"with -o."
            ) from None
        if path.exists() and os.path.samestat(os.fstat(lock), path.stat()):
            break
        os.close(lock)  # the holder before removed the file after it was opened here
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)
