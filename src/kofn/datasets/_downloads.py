"""Find the files of a data set or download them, and let none through whose checksum is wrong."""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kofn import _require
from kofn._io.atomic_write import atomic_write


@dataclass(frozen=True)
class Source:
    """A data set as its publisher lays it out.

    Attributes:
        name: what to call it in a message.
        folder: where its files lie below the root, "/" between the parts.
        files: the files that are read, below `folder`.
        page: where a person gets them.
        sha256: checksum of each file that has one of its own.
        urls: what to download: one archive with all the files, or each file by itself. Empty where no link is known
            to last.
        archive_prefix: what stands before the files' names in an archive.
    """

    name: str
    folder: str
    files: tuple[str, ...]
    page: str
    sha256: Mapping[str, str]
    urls: tuple[str, ...] = ()
    archive_prefix: str = ""


def find(source: Source, root: str | os.PathLike[str] | None = None, *, download: bool = True) -> Path:
    """The folder that holds all files of a data set.

    Looked in are `root` if it is given, $KOFN_DATA, and the user's cache. A place may hold the publisher's folders or
    be one of them: of "MNIST/raw" it may be the folder above MNIST, MNIST itself, or raw. Files that are nowhere are
    downloaded into the root, or else into the cache.

    Raises:
        FileNotFoundError: the files are not there and were not, or could not be, downloaded.
        ValueError: the download is not what was expected.
    """
    searched: list[Path] = []
    parts = source.folder.split("/")
    for place in _search_folders(root):
        for start in range(len(parts) + 1):
            searched.append(place.joinpath(*parts[start:]))
            if not _missing(source, searched[-1]):
                return searched[-1]
    target = (place if root is None else Path(root).expanduser()) / source.folder
    if not download:
        raise FileNotFoundError(_not_found(source, searched, target, "`download` is False"))
    if not source.urls:
        raise FileNotFoundError(_not_found(source, searched, target, "no link to the files is known to last"))
    try:
        _download(source, target)
    except OSError as error:  # requests' errors are OSErrors too
        raise FileNotFoundError(_not_found(source, searched, target, f"it failed: {error}")) from None
    return target


def read(source: Source, folder: Path) -> dict[str, bytes]:
    """What is in the files of a data set, by name.

    Raises:
        ValueError: a file whose checksum is not the expected one.
    """
    contents = {}
    for name in source.files:
        contents[name] = (folder / name).read_bytes()
        if name in source.sha256:
            _verify(
                contents[name], source.sha256[name], f"{folder / name}", f"Delete it and get it again: {source.page}"
            )
    return contents


def _search_folders(root: str | os.PathLike[str] | None) -> Iterator[Path]:
    if root is not None:
        yield Path(root).expanduser()
    if os.environ.get("KOFN_DATA"):
        yield Path(os.environ["KOFN_DATA"]).expanduser()
    yield Path(_require.package("pooch", extra="datasets").os_cache("kofn"))


def _missing(source: Source, folder: Path) -> list[str]:
    return [name for name in source.files if not (folder / name).is_file()]


def _download(source: Source, target: Path) -> None:
    """Put the missing files into `target`, each complete and checked before it gets its name there."""
    pooch = _require.package("pooch", extra="datasets")
    missing = set(_missing(source, target))
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=target) as scratch:  # where there is room
        for url in source.urls:
            filename = url.rsplit("/", 1)[1]
            if filename in source.files and filename not in missing:
                continue
            path = Path(pooch.retrieve(url, known_hash=None, fname=filename, path=scratch))
            for name, content in _unpack(source, path, url):
                if name in missing:
                    _verify(content, source.sha256[name], f"{name} from {url}", "Try again later, or without the proxy")
                    with atomic_write(target / name) as part:
                        part.write_bytes(content)
                    missing.discard(name)
    if missing:
        raise ValueError(
            f"{source.name}: the download from {', '.join(source.urls)} lacks {_join_names(sorted(missing))}. "
            f"Get them from {source.page} and put them in {target}."
        )


def _unpack(source: Source, path: Path, url: str) -> Iterator[tuple[str, bytes]]:
    """The wanted files of a download and nothing else; a member's own path is compared, never written to."""
    if path.name in source.files:
        yield path.name, path.read_bytes()
        return
    wanted = {source.archive_prefix + name: name for name in source.files}
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for member in filter(wanted.__contains__, archive.namelist()):
                    yield wanted[member], archive.read(member)
        else:
            with tarfile.open(path) as archive:  # in the archive's order: going back would decompress it again
                for entry in archive:
                    content = archive.extractfile(entry) if entry.isreg() and entry.name in wanted else None
                    if content is not None:
                        yield wanted[entry.name], content.read()
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{source.name}: what came from {url}, {path.stat().st_size} bytes, is no whole zip or tar archive "
            f"({error}). Try again, or get the files from {source.page}: a proxy may have answered in its place."
        ) from error


def _verify(content: bytes, expected: str, what: str, cure: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ValueError(
            f"{what} is damaged or another version: its sha256 must be {expected}; it has {len(content)} bytes and "
            f"sha256 {found}. {cure}."
        )


def _not_found(source: Source, searched: list[Path], target: Path, reason: str) -> str:
    link = f" of {', '.join(source.urls)}" if source.urls else ""
    return (
        f"{source.name}: no folder has all of its files, {_join_names(source.files)}; looked in "
        f"{', '.join(map(str, searched))}. No download{link}: {reason}. Get them from {source.page} and put them "
        f"in {target}, or name the folder above {source.folder} as `root` or in the environment variable KOFN_DATA."
    )


def _join_names(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"
