"""Outputs: named, free or replaced on demand, never an input, one fit at a time, and whole."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import table_data
from cli_calls import fine
from typer.testing import CliRunner, Result

from kofn.cli import app
from kofn.cli._outputs import only_fit_of
from kofn.estimators import LLPClassifier
from kofn.learners import Linear

resource = pytest.importorskip("resource", reason="limits of POSIX")

COLUMNS = ["--bag", "bag", "--label", "count", "--features", "x", "--set", "rounds=2"]


def kofn(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table_data.write(table_data.make_table(), tmp_path / "t.csv")
    assert kofn("fit", "llp", "t.csv", *COLUMNS, "-o", "m").exit_code == 0
    return tmp_path


WRITES = {
    "fit": ["fit", "llp", "t.csv", *COLUMNS, "-o", "m"],
    "predict": ["predict", "m", "t.csv", "-o", "there.csv"],
    "report": ["report", "m", "-o", "there.html"],
    "data": ["data", "get", "digits", "-o", "there.csv"],
}


@pytest.mark.parametrize("command", WRITES)
def test_a_file_is_replaced_with_force_alone(here: Path, command: str) -> None:
    words = WRITES[command]
    target = here / words[-1]
    if command != "fit":
        target.write_text("mine")
    before = target.read_bytes()
    found = kofn(*words)
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr == f"kofn: {target.name} exists. Add --force to replace it, or name another file with -o.\n"
    assert target.read_bytes() == before
    assert kofn(*words, "--force").exit_code == 0
    assert target.read_bytes() != before or command == "fit"


@pytest.mark.parametrize("command", WRITES)
def test_an_empty_name_a_folder_and_a_file_as_a_folder(here: Path, command: str) -> None:
    words = WRITES[command][:-1]
    (here / "folder.csv").mkdir()
    (here / "page.html").write_text("a file")
    before = sorted(os.listdir(here))
    for name in ("", " ", "folder.csv", "page.html/m.csv"):
        found = kofn(*words, name, "--force")
        assert (found.exit_code, found.stdout) == (2, ""), (name, found.output)
        assert len(found.stderr.splitlines()) == 1
    assert sorted(os.listdir(here)) == before


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "m", "t.csv", "-o", "t.csv"],
        ["predict", "m", "t.csv", "-o", "link.csv"],
        ["report", "m", "t.csv", "-o", "./t.csv"],
        ["report", "m", "-o", "m"],
        ["fit", "llp", "t.csv", *COLUMNS, "-o", "t.csv"],
    ],
    ids=" ".join,
)
def test_an_input_is_never_written_over(here: Path, words: list[str]) -> None:
    (here / "link.csv").symlink_to(here / "t.csv")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    assert kofn(*words, "--force").exit_code == 2
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize("option", ["--label", "--bag", "--features", "--drop"])
def test_an_empty_name_of_a_column(here: Path, option: str) -> None:
    found = kofn("fit", "llp", "t.csv", *COLUMNS, option, "", "-o", "new")
    assert found.exit_code == 2
    assert found.stderr.startswith(f"kofn: Invalid value for '{option}': it must not be empty. See: kofn fit llp")


NETWORK = ["--bag", "bag", "--label", "count", "--features", "x", "--learner", "network", "--set", "hidden=8"]
NETWORK += ["--set", "patience=none"]


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_second_fit_of_the_same_model_is_refused_and_the_first_is_not_disturbed(here: Path) -> None:
    endless = ["fit", "llp", "t.csv", *NETWORK, "--set", "epochs=100000", "-o", "new"]
    first = subprocess.Popen([sys.executable, "-m", "kofn", *endless], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not (here / "new.checkpoint").exists() and time.monotonic() < deadline and first.poll() is None:
            time.sleep(0.02)
        for again in (endless, [*endless, "--resume"], ["fit", "llp", "t.csv", *COLUMNS, "-o", "./new"]):
            found = kofn(*again)
            assert (found.exit_code, found.stdout) == (2, "")
            assert "new is being fitted by another process" in found.stderr
        assert first.poll() is None
        assert (here / "new.checkpoint").exists()
    finally:
        first.kill()  # which leaves the lock to the next
        first.communicate(timeout=60)
    ended = kofn(*endless[:-4], "--set", "epochs=1", "-o", "new", "--resume")
    assert ended.exit_code == 0, ended.output
    assert sorted(os.listdir(here)) == ["m", "new", "t.csv"]


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("learner", [COLUMNS, [*NETWORK, "--set", "epochs=3"]], ids=["saving", "checkpointing"])
def test_a_full_disk_is_one_line_and_leaves_no_part(here: Path, learner: list[str]) -> None:
    said = ["fit", "llp", "t.csv", *learner, "-o", "new"]
    found = subprocess.run(
        [sys.executable, "-m", "kofn", *said], capture_output=True, text=True, timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (2, ""), found.stderr
    assert found.stderr in ("kofn: new: File too large\n", "kofn: new.checkpoint: File too large\n")
    assert sorted(os.listdir(here)) == ["m", "t.csv"]


def test_a_disk_that_is_full_later_keeps_the_checkpoint(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "new")

    said = ["fit", "llp", "t.csv", *NETWORK, "--set", "epochs=2", "-o", "new"]
    monkeypatch.setattr(sys, "argv", ["kofn", *said])
    with monkeypatch.context() as patch:
        patch.setattr("kofn.tables.TableModel.save", full)
        found = kofn(*said)
    assert found.exit_code == 2
    assert found.stderr.startswith("kofn: new: No space left on device. The last epoch is kept in new.checkpoint. Con")
    assert kofn(*said, "--resume").exit_code == 0
    assert sorted(os.listdir(here)) == ["m", "new", "t.csv"]


def test_the_checkpoint_of_another_program(here: Path) -> None:
    (here / "new.checkpoint").write_bytes(b"PK\x03\x04 of another program")
    said = ["fit", "llp", "t.csv", *NETWORK, "--set", "epochs=2", "-o", "new"]
    for words in (said, [*said, "--resume"], [*said, "--resume", "--force"]):
        found = kofn(*words)
        assert (found.exit_code, found.stdout) == (2, "")
        assert "new.checkpoint" in found.stderr
        assert len(found.stderr.splitlines()) == 1
    assert (here / "new.checkpoint").read_bytes().endswith(b"of another program")


def test_info_opens_a_model_that_was_trained_in_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = LLPClassifier(Linear(l2=0.1), random_state=0).fit(rng.normal(size=(40, 3)), rng.random(40) < 0.5)
    model.save(tmp_path / "m")
    assert "m: llp, linear, loss count" in fine("info", tmp_path / "m")
    assert "features   3\n" in fine("info", tmp_path / "m")
    assert '"task": "llp"' in fine("info", tmp_path / "m", "--json")


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_lock_on_a_file_that_was_replaced_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the opening of a lock's file and the lock, its holder ends and removes it, and a third takes a new one."""
    import fcntl

    lock, held = fcntl.flock, list[int]()

    def replaced_before(descriptor: int, operation: int) -> None:
        if not held:
            (path,) = Path(os.environ["TMPDIR"]).glob("kofn-*.lock")
            path.unlink()
            held.append(os.open(path, os.O_RDWR | os.O_CREAT))
            lock(held[0], fcntl.LOCK_EX)
        lock(descriptor, operation)

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", replaced_before)
    with pytest.raises(ValueError, match="is being fitted by another process"), only_fit_of(tmp_path / "model"):
        pass
    os.close(held[0])
