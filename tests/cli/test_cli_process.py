"""The command as a process: exit codes, and Ctrl-C in the middle of a fit."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import table_data
import torch
from typer.testing import CliRunner

from kofn.cli import app
from kofn.tables import TableModel

KOFN = [sys.executable, "-m", "kofn"]


def test_bad_input_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    bad = subprocess.run([*KOFN, "info", str(tmp_path / "nowhere")], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.count("\n") == 1
    assert bad.stderr.startswith("kofn: ")


def test_interrupted_fit_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    data = table_data.write(table_data.make_table(400), tmp_path / "t.csv")
    model, checkpoint = tmp_path / "m", tmp_path / "m.checkpoint"
    said = ["fit", "llp", str(data), "--bag", "bag", "--label", "count", "--features", "x,colour", "--hidden", "8"]
    endless = [*said, "--epochs", "100000", "-o", str(model)]
    process = subprocess.Popen([*KOFN, *endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (checkpoint / "last.ckpt").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert not model.exists()
    assert errors.count("\n") == 1
    assert f"The last epoch is kept in {checkpoint}. Go on with: kofn fit llp" in errors
    assert errors.endswith(" --resume\n")

    again = CliRunner().invoke(app, endless)  # a new start is not made by accident
    assert again.exit_code == 2
    assert "Add --resume" in again.stderr
    done = torch.load(checkpoint / "last.ckpt", weights_only=True)["epoch"] + 1
    ending = ["--epochs", str(done + 3)]
    assert CliRunner().invoke(app, [*said, *ending, "--resume", "-o", str(model)]).exit_code == 0
    assert not checkpoint.exists()
    assert CliRunner().invoke(app, [*said, *ending, "-o", str(tmp_path / "whole")]).exit_code == 0
    one, two = (TableModel.load(path).estimator for path in (model, tmp_path / "whole"))
    assert len(one.history_) == done + 3
    assert one.history_ == two.history_
    for a, b in zip(one.network_.parameters(), two.network_.parameters(), strict=True):
        assert torch.equal(a, b)
