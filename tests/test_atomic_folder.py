"""Every step of a writer fails in its turn: the old folder stands or the new one, whole, and nothing beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kofn import _atomic_folder

OLD = {"a": b"old", "b": b"old too"}
NEW = {"a": b"new", "c": b"new too"}

# Folders above, the hidden folder; its two files; its names; old aside, new in place; names of the folder above.
STEPS = ["mkdir", "mkdir", "open", "fsync", "open", "fsync", "fsync", "rename", "rename", "fsync"]


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


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

    for owner, name in ((Path, "mkdir"), (Path, "open"), (os, "fsync"), (os, "rename")):
        patch.setattr(owner, name, failing(getattr(owner, name)))
    return calls


REPLACED = [(True, at) for at in range(len(STEPS))]
FRESH = [(False, at) for at in range(len(STEPS) - 1)]  # one rename is enough


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize(("exists", "at"), REPLACED + FRESH)
def test_a_failure_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, failure: type[BaseException], exists: bool
) -> None:
    target = tmp_path / "folder"
    steps = STEPS if exists else STEPS[:7] + STEPS[8:]
    if exists:
        _atomic_folder.write(target, OLD)
    last = at == len(steps) - 1
    unsynced = failure is OSError and (last or at == 6)  # a system that syncs no folders is no obstacle
    with monkeypatch.context() as patch:
        calls = fail_at(patch, at, failure("injected"))
        if unsynced:
            _atomic_folder.write(target, NEW)
        else:
            with pytest.raises(failure, match="injected"):
                _atomic_folder.write(target, NEW)
    assert calls[: at + 1] == steps[: at + 1]
    if unsynced or last:
        assert files(target) == NEW
    elif exists:
        assert files(target) == OLD
    assert os.listdir(tmp_path) == (["folder"] if exists or unsynced or last else [])


def test_the_steps_are_all_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _atomic_folder.write(tmp_path / "folder", OLD)
    with monkeypatch.context() as patch:
        calls = fail_at(patch, 1000, OSError())
        _atomic_folder.write(tmp_path / "folder", NEW)
    assert calls == STEPS
    assert files(tmp_path / "folder") == NEW
    assert os.listdir(tmp_path) == ["folder"]


def test_old_files_that_cannot_be_deleted_are_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _atomic_folder.write(tmp_path / "folder", OLD)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", lambda *args, **kwargs: os.stat("/nowhere/at/all"))
        _atomic_folder.write(tmp_path / "folder", NEW)
    assert files(tmp_path / "folder") == NEW
    (left,) = _atomic_folder.old_versions(tmp_path / "folder")
    assert files(left) == OLD


def test_the_old_folder_is_found_when_even_putting_it_back_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _atomic_folder.write(tmp_path / "folder", OLD)
    rename = os.rename

    def once(source: Path, target: Path) -> None:
        if source.name != "folder":
            raise OSError("injected")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", once)
        with pytest.raises(OSError, match="injected"):
            _atomic_folder.write(tmp_path / "folder", NEW)
    (left,) = _atomic_folder.old_versions(tmp_path / "folder")
    assert files(left) == OLD
    assert os.listdir(tmp_path) == [left.name]


def test_a_faster_writer_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between our two renames another process puts its folder there."""
    target = tmp_path / "folder"
    _atomic_folder.write(target, OLD)
    rename = os.rename

    def late(source: Path, goal: Path) -> None:
        if source.name.endswith(".new"):
            monkeypatch.setattr(os, "rename", rename)
            _atomic_folder.write(target, {"a": b"theirs"})
        rename(source, goal)

    monkeypatch.setattr(os, "rename", late)
    with pytest.raises(OSError, match=r"folder"):
        _atomic_folder.write(target, NEW)
    assert files(target) == {"a": b"theirs"}
    assert os.listdir(tmp_path) == ["folder"]


def test_a_reader_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unchanged folder is read once; beside one that was left aside, a few times."""
    monkeypatch.setattr(_atomic_folder, "_PAUSE", 0.0)
    calls = []

    def reader() -> None:
        calls.append(1)
        raise ValueError("damaged")

    _atomic_folder.write(tmp_path / "folder", OLD)
    with pytest.raises(ValueError, match="damaged"):
        _atomic_folder.read(tmp_path / "folder", reader)
    assert len(calls) == 1
    (tmp_path / ".folder.01234567.old").mkdir()
    with pytest.raises(ValueError, match="damaged"):
        _atomic_folder.read(tmp_path / "folder", reader)
    assert len(calls) == 1 + _atomic_folder._TRIES
    assert _atomic_folder.old_versions(tmp_path / "no" / "such" / "folder") == []
