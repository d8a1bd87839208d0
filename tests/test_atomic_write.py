"""Every step of a writer fails in its turn: the old file stands or the new one, whole, and nothing beside it."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import child_processes
import pytest

from kofn._io.atomic_write import atomic_write

# The folder above; the file aside, private at once; synced, as open as the old one, in place; its name synced.
STEPS = ["mkdir", "touch", "chmod", "fsync", "chmod", "replace", "fsync"]

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and pipes of POSIX")


def write(path: Path, text: str) -> None:
    with atomic_write(path) as part:
        part.write_text(text)


def fail_at(patch: pytest.MonkeyPatch, at: int, failure: BaseException) -> list[str]:
    """Let a call to the system fail before it does anything; returns the list of calls to come."""
    calls: list[str] = []

    def failing(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            calls.append(call.__name__)
            if len(calls) == at + 1:
                raise failure
            return call(*args, **kwargs)

        return wrapped

    for owner, name in ((Path, "mkdir"), (Path, "touch"), (Path, "chmod"), (os, "fsync"), (os, "replace")):
        patch.setattr(owner, name, failing(getattr(owner, name)))
    return calls


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("at", range(len(STEPS) + 1))
def test_a_failure_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, failure: type[BaseException]
) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    stands = at >= len(STEPS) - 1  # the new file has its name
    unsynced = at == len(STEPS) - 1 and failure is OSError  # a system that syncs no folders is no obstacle
    with monkeypatch.context() as patch:
        calls = fail_at(patch, at, failure("injected"))
        if at == len(STEPS) or unsynced:
            write(target, "new")
        else:
            with pytest.raises(failure, match="injected"):
                write(target, "new")
    assert calls == STEPS[: at + 1]
    assert target.read_text() == ("new" if stands else "old")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_a_failure_of_the_writer(tmp_path: Path, failure: type[BaseException]) -> None:
    def half(target: Path) -> None:
        with atomic_write(target) as part:
            part.write_text("half")
            raise failure

    (tmp_path / "old").write_text("old")
    for name in ("old", "new"):
        with pytest.raises(failure):
            half(tmp_path / name)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("old", "old")]


def test_a_writer_whose_file_is_gone_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "file") as part:
        part.unlink()
    assert os.listdir(tmp_path) == []


def test_the_target_is_the_old_file_until_the_end(tmp_path: Path) -> None:
    target = tmp_path / "made" / "too" / "rows.csv.gz"
    with atomic_write(target) as part:
        assert part.parent == target.parent
        assert part.name.endswith(".rows.csv.gz")  # what goes by the extension works
        assert part.read_bytes() == b""
        for line in ("one\n", "two\n"):
            with part.open("a") as stream:
                stream.write(line)
        assert not target.exists()
    assert target.read_text() == "one\ntwo\n"


@posix
def test_permissions(tmp_path: Path) -> None:
    def mode(file: Path) -> int:
        return stat.S_IMODE(file.stat().st_mode)

    target = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write(target, "new")
    finally:
        os.umask(before)
    assert mode(target) == 0o640
    for kept, meanwhile in ((0o600, 0o600), (0o444, 0o644), (0o666, 0o666)):
        target.chmod(kept)
        with atomic_write(target) as part:
            assert mode(part) == meanwhile
            part.write_text("again")
        assert mode(target) == kept


def test_links_are_followed(tmp_path: Path) -> None:
    real, link, dangling = tmp_path / "real", tmp_path / "links" / "a.csv.gz", tmp_path / "links" / "b"
    link.parent.mkdir()
    link.symlink_to(real)
    dangling.symlink_to("../later")
    real.write_text("old")
    with atomic_write(link) as part:
        assert part.parent == tmp_path
        assert part.suffix == ".gz"  # of the name that was given
        part.write_text("new")
    write(dangling, "made")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert (real.read_text(), (tmp_path / "later").read_text()) == ("new", "made")
    assert sorted(os.listdir(tmp_path)) == ["later", "links", "real"]


@posix
def test_folders_and_devices_are_left_alone(tmp_path: Path) -> None:
    """To rename something over /dev/null, as root, would break the machine."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(OSError, match=rf"{name} must be free or a file; it is a folder or a device\. Name a file"):
            write(tmp_path / name, "new")
    assert (tmp_path / "folder").is_dir()
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_writers_at_the_same_time(tmp_path: Path) -> None:
    """One of them wins, and what it wrote is whole."""
    target = tmp_path / "file"
    texts = [letter * 100_000 for letter in "abcd"]

    def write_often(text: str) -> None:
        for _ in range(20):
            write(target, text)

    threads = [threading.Thread(target=write_often, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() in texts
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.slow
@posix
def test_leftovers_of_killed_processes_are_removed_and_no_others(tmp_path: Path) -> None:
    killed = child_processes.start(
        "import os, signal\n"
        "from kofn._io.atomic_write import atomic_write\n"
        "with atomic_write(sys.argv[1]) as part:\n"
        "    part.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n",
        tmp_path / "model",
    )
    killed.communicate(timeout=120)
    assert killed.returncode == -9
    (leftover,) = os.listdir(tmp_path)
    assert leftover.startswith(".kofn-")
    mine = leftover.replace(f"-{killed.pid}-", f"-{os.getpid()}-")  # a writer that is still at work
    machine = leftover.split("-")[1]
    other = leftover.replace(machine, f"{int(machine, 16) ^ 1:08x}")
    strangers = {mine, other, ".kofn-notes", f"x{leftover}", f".kofn-{machine}-1-0000.model"}
    for name in strangers:
        (tmp_path / name).write_text("not yours")
    write(tmp_path / "another", "new")
    assert set(os.listdir(tmp_path)) == {"another", *strangers}


def test_a_name_as_long_as_the_system_takes(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 251 + ".csv")
    with atomic_write(target) as part:
        assert part.suffix == ".csv"
        part.write_text("new")
    assert os.listdir(tmp_path) == [target.name]


@posix
def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path: Path) -> None:
    def full(path: Path) -> None:
        with atomic_write(path), Path("/dev/full").open("w") as stream:
            stream.write("more")

    with pytest.raises(OSError, match=r"No space left on device: .*model'$"):
        full(tmp_path / "model")
    assert os.listdir(tmp_path) == []
