"""The bar on a terminal, and silence elsewhere."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from kofn.cli._progress import RichProgress
from kofn.estimators import LLPClassifier


@pytest.mark.parametrize("terminal", [True, False])
def test_bar(terminal: bool) -> None:
    stream = io.StringIO()
    progress = RichProgress(Console(file=stream, force_terminal=terminal, width=120))
    x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    model = LLPClassifier(hidden=(4,), epochs=3, validation_fraction=0.1, random_state=0)
    model.set_params(trainer={"callbacks": [progress]}).fit(x, (x[:, 0] > 0).astype(int))
    shown = stream.getvalue()
    if not terminal:
        assert shown == ""
        return
    second = model.history_[1]
    assert "3/3" in shown
    assert f"training loss {second['train_loss']:.4f}, validation loss {second['val_loss']:.4f}" in shown
    assert not progress.interrupted
