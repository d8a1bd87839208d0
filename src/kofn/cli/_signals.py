"""Ctrl-C and SIGTERM: both end a command as an exception, so that nothing half written is left."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED, TERMINATED = 130, 143  # statuses: 128 and the number of the signal


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does, with a status of its own."""


def stop(*_: Any) -> None:
    """Handle SIGTERM."""
    raise Terminated


def ended_by(error: KeyboardInterrupt) -> tuple[int, str]:
    """The status and the line of a command that a signal has ended.

    Examples:
        >>> ended_by(Terminated("Nothing was kept."))
        (143, 'terminated. Nothing was kept.')
    """
    terminated = isinstance(error, Terminated)
    said = f"{'terminated' if terminated else 'interrupted'}. {error}".rstrip()
    return (TERMINATED if terminated else INTERRUPTED), said


@contextmanager
def terminating() -> Iterator[None]:
    """While it lasts, SIGTERM is raised as an exception, as Python does with Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():  # which alone may have handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
