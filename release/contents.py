"""What is in the files of a release: tracked files alone, and in wheels the library alone."""

from __future__ import annotations

import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

CORE = "kofn/counts/libkofn.so"


def require_contents(dist: Path, tracked: Iterable[str]) -> None:
    """Require that files of `dist` hold exactly the tracked files that belong there, and wheels for Linux the core."""
    tracked = set(tracked)
    library = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    for path in sorted(dist.iterdir()):
        if path.suffix == ".whl":
            found = {name for name in sizes(path) if ".dist-info/" not in name}
            expected = library if path.name.endswith("-any.whl") else library | {CORE}
        else:
            found, expected = set(sizes(path)), tracked | {"PKG-INFO"}
        if found != expected:
            raise RuntimeError(
                f"{path.name}: {sorted(found - expected)[:5]} must not be in it, {sorted(expected - found)[:5]} must"
            )


def sizes(path: Path) -> dict[str, int]:
    """The files in a wheel, or in a source distribution without the folder that holds them all, and their bytes."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {info.filename: info.file_size for info in wheel.infolist() if not info.is_dir()}
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2]: member.size for member in archive if member.isfile()}


def listing(path: Path) -> str:
    """A line with the size of a file, and one for each folder in it, the largest first."""
    files, folders = Counter[str](), Counter[str]()
    for name, size in sizes(path).items():
        parts = name.split("/")
        folder = "/".join(parts[: min(2, len(parts) - 1)]) or "."
        files[folder] += 1
        folders[folder] += size
    if CORE in sizes(path):
        files[CORE], folders[CORE] = 1, sizes(path)[CORE]
    lines = [f"  {size / 1e3:8.1f} kB {files[name]:4d} files  {name}" for name, size in folders.most_common(8)]
    return "\n".join([f"{path.name}  {path.stat().st_size / 1e3:.1f} kB", *lines])
