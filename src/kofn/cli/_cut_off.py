"""What is left of an interrupted fit: the checkpoint of a network, and how to continue from it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kofn.cli._processes import lost_another, together
from kofn.cli._screen_text import shell_command, system_error


def require_startable(checkpoint: Path | None, target: Path, resume: bool) -> None:
    """Require a checkpoint to resume, or none to start anew; None where the learner keeps none."""
    if checkpoint is None:
        if resume:
            raise ValueError(
                "--resume goes with --learner network: trees and linear models write no checkpoints, because they "
                "are fitted in seconds. Leave --resume out."
            )
        return
    if checkpoint.exists() and not resume:
        raise ValueError(
            f"{checkpoint} holds an interrupted fit of {target}. Add --resume to continue it, or delete that file to "
            f"start again."
        )
    if resume and not checkpoint.exists():
        raise ValueError(f"there is nothing to resume: {checkpoint} does not exist. Leave --resume out.")


@contextmanager
def told_how_to_go_on(checkpoint: Path | None, resume: bool) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a full disk say what was kept, and how to continue; other errors leave no new checkpoint."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise type(error)(_what_was_kept(checkpoint)) from None
    except OSError as error:
        if checkpoint is None or not checkpoint.exists():
            raise
        raise OSError(f"{system_error(error)}. {_what_was_kept(checkpoint)}") from error
    except Exception as error:
        if lost_another(error):
            raise ConnectionError(f"another process of this fit has ended. {_what_was_kept(checkpoint)}") from error
        if checkpoint is not None and not resume:
            checkpoint.unlink(missing_ok=True)
        raise


def _what_was_kept(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "Nothing was kept, because only a network writes checkpoints."
    if not checkpoint.exists():
        return "Nothing was kept, because no epoch had ended."
    if together() > 1:
        return f"The last epoch is kept in {checkpoint}. Continue with --resume, by torchrun as before."
    words = sys.argv[1:] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
    return f"The last epoch is kept in {checkpoint}. Continue with: {shell_command('kofn', *words)}"
