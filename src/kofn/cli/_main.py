"""The process `kofn`, from its first line to its last."""

from __future__ import annotations

import gc
import signal
import sys

from kofn.cli._signals import ended_by, stop


def main() -> None:
    """Run the command line."""
    try:
        signal.signal(signal.SIGTERM, stop)  # before the imports, which take longer than many a command
        from kofn.cli._commands import app

        # PyTorch, scikit-learn and pandas make a million objects that live until the end. With Python's own thresholds
        # the garbage collector goes through all of them again and again while they are imported, a tenth of the time.
        gc.set_threshold(200_000, 30, 30)
        app(prog_name="kofn")
    except KeyboardInterrupt as error:  # outside of the frame of commands, which handles its own
        status, said = ended_by(error)
        print(f"kofn: {said}", file=sys.stderr)
        sys.exit(status)
    finally:
        # The status is known. Python's own end, which may take a while, would make a traceback of a signal.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
