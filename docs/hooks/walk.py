"""Which files a call of `kofn.count_loss` goes through, and in what order: measured, not remembered."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch

import kofn

SOURCE = Path(kofn.__file__).parent


class Step(NamedTuple):
    """A file on the way, what of it was called from other files, and from which ones."""

    file: str
    entered: list[str]
    callers: list[str]


def loss() -> None:
    """The most usual way of all: the loss of dense bags with known counts, forward and backward."""
    logits = torch.zeros(128, 8, requires_grad=True)
    kofn.count_loss(logits, kofn.Exactly(3)).backward()


def walk(run: Callable[[], None] = loss) -> list[Step]:
    """The files of kofn that a second run goes through, in the order in which it first enters them."""
    run()
    files: dict[str, Step] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        here, before = _file(frame), _file(frame.f_back)
        if event != "call" or here is None or here == before:
            return
        step = files.setdefault(here, Step(here, [], []))
        _append(step.entered, frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name)
        if before is not None:
            _append(step.callers, before)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(files.values())


def table() -> str:
    """The walk as a table, with the first line of each file."""
    rows = ["| | file | what it is | entered at |", "|---|---|---|---|"]
    for number, step in enumerate(walk(), 1):
        about = (ast.get_docstring(ast.parse((SOURCE / step.file).read_text())) or "").split("\n")[0]
        names = ", ".join(f"`{name}`" for name in step.entered)
        rows.append(f"| {number} | `{step.file}` | {about} | {names} |")
    return "\n".join(rows)


def _file(frame: FrameType | None) -> str | None:
    """The frame's file of kofn; of a frame of torch's the nearest one outside of it."""
    while frame is not None and not frame.f_code.co_filename.startswith(str(SOURCE)):
        if "torch" not in frame.f_code.co_filename:
            return None
        frame = frame.f_back
    return None if frame is None else str(Path(frame.f_code.co_filename).relative_to(SOURCE))


def _append(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)
