"""Finding, downloading and checking files: every way in and every way it can fail."""

from __future__ import annotations

import http.server
import io
import tarfile
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import dataset_files
import pytest

from kofn.datasets._downloads import Source, find, read

CONTENTS = {"a.bin": b"alpha", "b.bin": b"beta" * 1000}
CHECKSUMS = {name: dataset_files.sha256(content) for name, content in CONTENTS.items()}
SOURCE = Source(
    name="Letters",
    folder="outer/inner",
    files=tuple(CONTENTS),
    page="https://example.org/letters",
    sha256=CHECKSUMS,
    urls=("https://example.org/letters.zip",),
)
EACH = replace(SOURCE, urls=("https://example.org/a.bin", "https://example.org/b.bin"))
TAR = replace(SOURCE, urls=("https://example.org/letters.tar.gz",), archive_prefix="letters-1.0/")


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} if folder.exists() else set()


@pytest.mark.parametrize("below", ["outer/inner", "inner", ""])
def test_root_may_be_any_folder_on_the_way(tmp_path: Path, below: str) -> None:
    folder = dataset_files.put(tmp_path / below, CONTENTS)
    assert find(SOURCE, tmp_path) == folder
    assert find(SOURCE, str(tmp_path), download=False) == folder
    assert read(SOURCE, folder) == CONTENTS


def test_environment_comes_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = dataset_files.put(tmp_path / "cache/kofn/outer/inner", CONTENTS)
    assert find(SOURCE) == cached
    monkeypatch.setenv("KOFN_DATA", str(tmp_path / "elsewhere"))
    assert find(SOURCE) == cached  # not there: on to the cache
    named = dataset_files.put(tmp_path / "elsewhere/outer/inner", CONTENTS)
    assert find(SOURCE) == named


def test_a_root_comes_first_and_takes_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = dataset_files.put(tmp_path / "named/outer/inner", CONTENTS)
    monkeypatch.setenv("KOFN_DATA", str(tmp_path / "named"))
    assert find(SOURCE, tmp_path / "empty", download=False) == named  # not in the root: on to $KOFN_DATA
    assert find(SOURCE, dataset_files.put(tmp_path / "root", CONTENTS)) == tmp_path / "root"
    monkeypatch.delenv("KOFN_DATA")
    with pytest.raises(FileNotFoundError, match="`download` is False"):
        find(SOURCE, tmp_path / "empty", download=False)
    dataset_files.serve(monkeypatch, tmp_path / "shelf", {"letters.zip": dataset_files.zipped(CONTENTS)})
    assert find(SOURCE, tmp_path / "empty") == tmp_path / "empty/outer/inner"
    assert files_below(tmp_path / "empty/outer/inner") == set(CONTENTS)


@pytest.mark.parametrize("download", [False, True])
def test_not_found_says_what_where_and_the_cure(tmp_path: Path, download: bool) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        find(SOURCE, tmp_path, download=download)
    message = str(caught.value)
    for part in ("Letters", "a.bin, b.bin", str(tmp_path / "outer/inner"), SOURCE.page, SOURCE.urls[0], "KOFN_DATA"):
        assert part in message
    assert ("network is unreachable" in message) == download
    assert files_below(tmp_path) <= {"outer", "outer/inner"}


def test_without_a_link_nothing_is_downloaded(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no link to the files is known to last"):
        find(replace(SOURCE, urls=()), tmp_path)


def test_long_lists_are_cut(tmp_path: Path) -> None:
    many = replace(SOURCE, files=tuple(f"{k}.bin" for k in range(500)))
    with pytest.raises(FileNotFoundError, match=r"5\.bin and 494 more;"):
        find(many, tmp_path, download=False)


@pytest.mark.parametrize(
    ("source", "parcels"),
    [
        (SOURCE, {"letters.zip": dataset_files.zipped({**CONTENTS, "more.txt": b"not wanted"})}),
        (EACH, CONTENTS),
        (TAR, {"letters.tar.gz": dataset_files.tarred({f"letters-1.0/{k}": v for k, v in CONTENTS.items()})}),
    ],
    ids=["zip", "each", "tar"],
)
def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Source, parcels: dict[str, bytes]) -> None:
    asked = dataset_files.serve(monkeypatch, tmp_path / "shelf", parcels)
    folder = find(source)
    assert folder == tmp_path / "cache/kofn/outer/inner"
    assert read(source, folder) == CONTENTS
    assert files_below(folder) == set(CONTENTS)  # nothing else, no temporary file
    assert asked == list(source.urls)
    assert find(source) == folder
    assert asked == list(source.urls)  # a second time it is there


def test_only_what_is_missing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = dataset_files.serve(monkeypatch, tmp_path / "shelf", CONTENTS)
    dataset_files.put(tmp_path / "outer/inner", {"a.bin": b"kept, though wrong"})
    folder = find(EACH, tmp_path)
    assert asked == ["https://example.org/b.bin"]
    with pytest.raises(ValueError, match=r"a\.bin is damaged"):
        read(EACH, folder)


def test_what_is_there_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_files.serve(monkeypatch, tmp_path / "shelf", {"letters.zip": dataset_files.zipped(CONTENTS)})
    folder = dataset_files.put(tmp_path / "outer/inner", {"a.bin": b"mine"})
    assert find(SOURCE, tmp_path) == folder
    assert (folder / "a.bin").read_bytes() == b"mine"
    assert (folder / "b.bin").read_bytes() == CONTENTS["b.bin"]


def test_members_are_never_written_by_their_own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = {"../evil.txt": b"evil", "/tmp/kofn-evil.txt": b"evil", "../../a.bin": b"evil"}
    dataset_files.serve(
        monkeypatch,
        tmp_path / "shelf",
        {
            "letters.zip": dataset_files.zipped({**evil, **CONTENTS}),
            "letters.tar.gz": dataset_files.tarred({**evil, **{f"letters-1.0/{k}": v for k, v in CONTENTS.items()}}),
        },
    )
    for source in (SOURCE, TAR):
        root = tmp_path / source.urls[0].rsplit(".", 1)[1]
        find(source, root)
        assert files_below(root) == {"outer", "outer/inner", "outer/inner/a.bin", "outer/inner/b.bin"}
    assert not Path("/tmp/kofn-evil.txt").exists()


def test_links_in_an_archive_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in CONTENTS:
            entry = tarfile.TarInfo(f"letters-1.0/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
    dataset_files.serve(monkeypatch, tmp_path / "shelf", {"letters.tar.gz": buffer.getvalue()})
    with pytest.raises(ValueError, match=r"lacks a\.bin, b\.bin"):
        find(TAR, tmp_path)
    assert files_below(tmp_path / "outer/inner") == set()


WHOLE_TAR = dataset_files.tarred({"letters-1.0/a.bin": b"alpha", "letters-1.0/b.bin": bytes(range(256)) * 2000})
DAMAGED_ZIP = bytearray(dataset_files.zipped(CONTENTS))
DAMAGED_ZIP[40] ^= 0xFF  # within the packed bytes of the first file


@pytest.mark.parametrize(
    ("source", "parcel", "message"),
    [
        (SOURCE, b"<html>Log in to the hotel's network</html>", "no whole zip or tar archive"),
        (SOURCE, dataset_files.zipped(CONTENTS)[:-30], "no whole zip or tar archive"),
        (SOURCE, bytes(DAMAGED_ZIP), "no whole zip or tar archive"),
        (SOURCE, dataset_files.zipped({"a.bin": b"alpha"}), "lacks b.bin"),
        (
            SOURCE,
            dataset_files.zipped({**CONTENTS, "b.bin": b"gamma"}),
            "b.bin from https://example.org/letters.zip is",
        ),
        (TAR, WHOLE_TAR[: len(WHOLE_TAR) // 2], "no whole zip or tar archive"),
    ],
    ids=["page", "cut-zip", "damaged-zip", "lacking", "other-version", "cut-tar"],
)
def test_bad_downloads_leave_no_bad_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Source, parcel: bytes, message: str
) -> None:
    name = source.urls[0].rsplit("/", 1)[1]
    dataset_files.serve(monkeypatch, tmp_path / "shelf", {name: parcel})
    with pytest.raises(ValueError, match=message):
        find(source, tmp_path)
    kept = {path.name: path.read_bytes() for path in (tmp_path / "outer/inner").iterdir()}
    assert kept in ({}, {"a.bin": b"alpha"})  # the first file may have been whole


def test_bad_direct_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_files.serve(monkeypatch, tmp_path / "shelf", {**CONTENTS, "a.bin": b"alph"})
    with pytest.raises(ValueError, match=f"{CHECKSUMS['a.bin']}; it has 4 bytes and sha256"):
        find(EACH, tmp_path)
    assert files_below(tmp_path / "outer/inner") == set()


@pytest.mark.parametrize("content", [b"", b"alph", b"alphA", b"alpha\n"], ids=["empty", "cut", "flipped", "longer"])
def test_wrong_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    folder = dataset_files.put(tmp_path / "outer/inner", {**CONTENTS, "a.bin": content})
    with pytest.raises(ValueError, match="is damaged or another version") as caught:
        read(SOURCE, find(SOURCE, tmp_path))
    message = str(caught.value)
    for part in (str(folder / "a.bin"), CHECKSUMS["a.bin"], dataset_files.sha256(content), "Delete it", SOURCE.page):
        assert part in message


def test_missing_pooch_is_named_only_when_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    monkeypatch.setenv("KOFN_DATA", str(dataset_files.put(tmp_path, CONTENTS)))
    assert find(SOURCE) == tmp_path
    monkeypatch.delenv("KOFN_DATA")
    with pytest.raises(ImportError, match=r"pip install kofn\[datasets\]"):
        find(SOURCE)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_pooch_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real download, from this machine; the fixture's stand-in for pooch is taken away."""
    monkeypatch.undo()
    monkeypatch.setenv("NO_PROXY", "*")
    shelf = dataset_files.put(tmp_path / "shelf", {"letters.zip": dataset_files.zipped(CONTENTS)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(shelf)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        source = replace(SOURCE, urls=(f"{base}/letters.zip",))
        assert read(source, find(source, tmp_path / "root")) == CONTENTS
        gone = replace(SOURCE, urls=(f"{base}/gone.zip",))
        with pytest.raises(FileNotFoundError, match="404"):
            find(gone, tmp_path / "other")
    finally:
        server.shutdown()
        server.server_close()
