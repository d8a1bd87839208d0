"""The command as a process: exit codes, and Ctrl-C in the middle of a fit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import table_data

from kofn.tables import TableModel

KOFN = [sys.executable, "-m", "kofn"]


def test_exit_codes(tmp_path: Path) -> None:
    told = subprocess.run([*KOFN, "data", "list", "--json"], capture_output=True, text=True)
    assert told.returncode == 0
    assert "adult" in json.loads(told.stdout)
    bad = subprocess.run([*KOFN, "info", str(tmp_path / "nowhere")], capture_output=True, text=True)
    assert bad.returncode == 2
    assert bad.stderr.count("\n") == 1
    assert "Traceback" not in bad.stderr


def test_interrupted_fit_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    data = table_data.write(table_data.make_table(400), tmp_path / "t.csv")
    model, checkpoint = tmp_path / "m", tmp_path / "m.checkpoint"
    said = ["fit", "llp", str(data), "--bag", "bag", "--label", "count", "--features", "x,colour", "--hidden", "8"]
    long = [*KOFN, *said, "--epochs", "100000", "-o", str(model)]
    process = subprocess.Popen(long, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (checkpoint / "last.ckpt").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert not model.exists()
    assert (checkpoint / "last.ckpt").exists()
    assert str(checkpoint) in errors
    assert "--resume" in errors
    assert "Traceback" not in errors
    # A new start is not made by accident.
    again = subprocess.run(long, capture_output=True, text=True)
    assert again.returncode == 2
    assert "Add --resume" in again.stderr
    import torch

    done = torch.load(checkpoint / "last.ckpt", weights_only=True)["epoch"] + 1
    short = ["--epochs", str(done + 3)]
    subprocess.run([*KOFN, *said, *short, "--resume", "-o", str(model)], check=True, capture_output=True)
    assert not checkpoint.exists()
    whole = tmp_path / "whole"
    subprocess.run([*KOFN, *said, *short, "-o", str(whole)], check=True, capture_output=True)
    one, two = (TableModel.load(path).estimator for path in (model, whole))
    assert len(one.history_) == done + 3
    assert one.history_ == two.history_
    for a, b in zip(one.network_.parameters(), two.network_.parameters(), strict=True):
        assert torch.equal(a, b)
