"""The command as a process: exit codes, and Ctrl-C and SIGTERM in the middle of a fit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import table_data
import torch
from typer.testing import CliRunner

from kofn._io.model_file import read_model
from kofn.cli import app
from kofn.tables import TableModel

KOFN = [sys.executable, "-m", "kofn"]


@pytest.mark.slow
def test_bad_input_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    bad = subprocess.run([*KOFN, "info", str(tmp_path / "nowhere")], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.count("\n") == 1
    assert bad.stderr.startswith("kofn: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_a_fit_that_was_cut_off_goes_on_as_if_it_had_not_been(
    tmp_path: Path, sent: signal.Signals, code: int, word: str
) -> None:
    data = table_data.write(table_data.make_table(400), tmp_path / "t.csv")
    model, checkpoint = tmp_path / "m", tmp_path / "m.checkpoint"
    said = ["fit", "llp", str(data), "--bag", "bag", "--label", "count", "--features", "x,colour"]
    said += ["--learner", "network", "--set", "hidden=8", "--set", "patience=none"]
    endless = [*said, "--set", "epochs=100000", "-o", str(model)]
    process = subprocess.Popen([*KOFN, *endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not checkpoint.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(sent)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, errors
    assert (printed, errors.count("\n")) == ("", 1)
    assert not model.exists()
    assert f"kofn: {word}. The last epoch is kept in {checkpoint}. Continue with: kofn fit llp" in errors
    assert errors.endswith(" --resume\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.checkpoint", "t.csv"]

    again = CliRunner().invoke(app, endless)  # a new start is not made by accident
    assert again.exit_code == 2
    assert "Add --resume" in again.stderr
    other = CliRunner().invoke(app, [*endless, "--set", "lr=0.5", "--resume"])  # nor is another fit gone on with
    assert other.exit_code == 2
    assert "lr was 0.001 and is 0.5" in other.stderr
    assert checkpoint.is_file()
    done = len(read_model(checkpoint, kind="checkpoint").facts["history"])
    ending = ["--set", f"epochs={done + 3}"]
    resumed = CliRunner().invoke(app, [*said, *ending, "--resume", "-o", str(model)])
    assert resumed.exit_code == 0, resumed.output
    assert not checkpoint.exists()
    assert CliRunner().invoke(app, [*said, *ending, "-o", str(tmp_path / "whole")]).exit_code == 0
    one, two = (TableModel.load(path).estimator for path in (model, tmp_path / "whole"))
    assert len(one.history_) == done + 3
    assert one.history_ == two.history_
    for a, b in zip(one.network_.parameters(), two.network_.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "kept"),
    [("trees", "Nothing was kept, because only a network"), ("network", "Nothing was kept, because no epoch")],
)
def test_a_fit_that_was_cut_off_with_nothing_to_keep_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: str, kept: str
) -> None:
    def cut_off(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("kofn.tables.fit_table", cut_off)
    before = signal.getsignal(signal.SIGTERM)
    data = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    said = [
        "fit",
        "llp",
        str(data),
        "--bag",
        "bag",
        "--label",
        "count",
        "--learner",
        learner,
        "-o",
        str(tmp_path / "m"),
    ]
    result = CliRunner().invoke(app, said)
    assert (result.exit_code, result.stdout) == (143, "")
    assert result.stderr.startswith(f"kofn: terminated. {kept}")
    assert len(result.stderr.splitlines()) == 1
    assert signal.getsignal(signal.SIGTERM) is before
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_fit_that_fails_leaves_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("no measure")

    monkeypatch.setattr("kofn.tables._fit_table.measure", fail)  # after training
    data = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    said = ["fit", "llp", str(data), "--bag", "bag", "--label", "count", "--features", "x", "--learner", "network"]
    result = CliRunner().invoke(app, [*said, "--set", "epochs=1", "-o", str(tmp_path / "m")])
    assert (result.exit_code, result.stderr) == (2, "kofn: no measure\n")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_fit_of_trees_that_is_ended_by_a_signal_says_so_and_leaves_nothing(
    tmp_path: Path, sent: signal.Signals
) -> None:
    data = table_data.write(table_data.make_table(4000), tmp_path / "t.csv")
    (tmp_path / "temporary").mkdir()  # where its lock lies while it fits
    said = ["fit", "llp", str(data), "--bag", "bag", "--label", "count", "--features", "x,colour"]
    said += ["--set", "rounds=1000000", "--set", "leaves=200", "-o", str(tmp_path / "m")]
    process = subprocess.Popen(
        [*KOFN, *said], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "temporary").glob("kofn-*.lock")) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(1)  # in the middle of it
        assert process.poll() is None
        process.send_signal(sent)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + sent, errors
    assert (printed, errors.count("\n")) == ("", 1)
    assert errors.startswith(f"kofn: {'interrupted' if sent == signal.SIGINT else 'terminated'}. Nothing was kept")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []


# The command, to which a signal comes at a given moment: when a name is imported, or when Python ends.
AT_A_MOMENT = """
import atexit, os, signal, sys
number, when = int(sys.argv[1]), sys.argv[2]

class At:
    def find_spec(self, name, *_):
        if name == when:
            signal.raise_signal(number)

def end():
    signal.raise_signal(number)

sys.meta_path.insert(0, At())
if when == "end":
    atexit.register(end)
sys.argv = ["kofn", "--version"]
from kofn.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_while_commands_are_imported(sent: signal.Signals) -> None:
    words = [sys.executable, "-c", AT_A_MOMENT, str(sent.value), "kofn.cli._commands"]
    done = subprocess.run(words, capture_output=True, text=True)
    word = "interrupted" if sent == signal.SIGINT else "terminated"
    assert (done.returncode, done.stdout, done.stderr) == (128 + sent, "", f"kofn: {word}.\n")


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_after_the_last_line_changes_nothing(sent: signal.Signals) -> None:
    words = [sys.executable, "-c", AT_A_MOMENT, str(sent.value), "end"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kofn ")
