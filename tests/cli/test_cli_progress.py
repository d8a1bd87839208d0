"""The bar on a terminal, and silence elsewhere."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from rich.console import Console

import kofn
from kofn.cli._progress import Bar, progress


@pytest.mark.parametrize("terminal", [True, False])
def test_bar(terminal: bool) -> None:
    stream = io.StringIO()
    bar = Bar(Console(file=stream, force_terminal=terminal, width=120))
    x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    with bar.lines:
        bar("reading")
        network = kofn.Network(hidden=(4,), epochs=3)
        model = kofn.LLPClassifier(network, progress=bar, random_state=0).fit(x, (x[:, 0] > 0).astype(int))
        bar.lines.refresh()
        last = bar.lines.tasks[0]
    assert (last.description, last.completed, last.total) == ("training 3/3", 3, 3)
    if not terminal:
        assert stream.getvalue().strip() == ""  # a bar that is not shown leaves no text
        return
    last_epoch = model.history_[-1]
    losses = f"training loss {last_epoch['train_loss']:.4f}, validation loss {last_epoch['val_loss']:.4f}"
    assert "training 3/3" in stream.getvalue()
    assert losses in stream.getvalue()


def test_a_new_stage_starts_anew() -> None:
    bar = Bar(Console(file=io.StringIO()))
    bar("choosing", 5, 5, {"val_loss": 0.25})
    assert bar.lines.tasks[0].fields["losses"] == "validation loss 0.2500"
    bar("measuring")
    task = bar.lines.tasks[0]
    assert (task.description, task.completed, task.total, task.fields["losses"]) == ("measuring", 0, None, "")


@pytest.mark.parametrize(("quiet", "terminal"), [(True, True), (False, False), (False, True)])
def test_only_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch, quiet: bool, terminal: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with progress(quiet=quiet) as bar:
        assert (bar is None) == (quiet or not terminal)
