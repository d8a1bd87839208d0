"""Progress on stderr while a model is learned: one line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

LOSSES = {"train_loss": "training loss", "val_loss": "validation loss"}
NONE: Mapping[str, float] = MappingProxyType({})


class Bar:
    """A line with what is being done, how far it is and the losses; called as learners call their `progress`.

    Args:
        console: of rich.
    """

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[losses]}"))
        self.lines = Progress(SpinnerColumn(), *columns, TimeRemainingColumn(), console=console, transient=True)
        self._what = ""
        self._task = self.lines.add_task("", total=None, losses="")

    def __call__(self, what: str, step: int = 0, of: int | None = None, losses: Mapping[str, float] = NONE) -> None:
        """Show a stage, or how many of its steps are done."""
        if what != self._what:
            self._what = what
            self.lines.remove_task(self._task)  # rich would keep the total of the stage before where this has none
            self._task = self.lines.add_task("", total=None, losses="")
        shown = ", ".join(f"{words} {losses[name]:.4f}" for name, words in LOSSES.items() if name in losses)
        counted = "" if of is None else f" {step}/{of}"
        self.lines.update(self._task, description=what + counted, total=of, completed=step, losses=shown)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[..., None] | None]:
    """A bar while something is done; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    bar = Bar(Console(stderr=True))
    with bar.lines:
        yield bar
