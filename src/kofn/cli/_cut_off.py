"""What is left of a fit that is cut off: the checkpoint of a network, and how to go on with it."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kofn.cli._app import Terminated


def require_startable(checkpoint: Path | None, target: Path, resume: bool) -> None:
    """Require a checkpoint to resume, or none to start anew; None where the learner keeps none."""
    if checkpoint is None:
        if resume:
            raise ValueError(
                "--resume goes with --learner network: trees and linear models keep no checkpoint, since they are "
                "learned in seconds. Leave --resume out."
            )
        return
    if checkpoint.exists() and not resume:
        raise ValueError(
            f"{checkpoint} holds a fit of {target} that was cut off. Add --resume to go on with it, or delete that "
            f"file to start anew."
        )
    if resume and not checkpoint.exists():
        raise ValueError(f"there is nothing to resume: there is no {checkpoint}. Leave --resume out.")


@contextmanager
def told_how_to_go_on(checkpoint: Path | None) -> Iterator[None]:
    """Ctrl-C and SIGTERM say what was kept, and how to go on."""
    try:
        with _terminating():
            yield
    except KeyboardInterrupt as error:
        raise type(error)(_what_was_kept(checkpoint)) from None


def _what_was_kept(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "Nothing was kept: only a network keeps a checkpoint to go on from."
    if not checkpoint.exists():
        return "No epoch had ended, so nothing was kept."
    command = ["kofn", *sys.argv[1:]] if "--resume" in sys.argv else ["kofn", *sys.argv[1:], "--resume"]
    return f"The last epoch is kept in {checkpoint}. Go on with: {shlex.join(command)}"


@contextmanager
def _terminating() -> Iterator[None]:
    """SIGTERM is raised as an exception, as Python does with Ctrl-C, so that files are closed on the way out."""
    if threading.current_thread() is not threading.main_thread():  # which alone may have handlers
        yield
        return

    def stop(*_: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
