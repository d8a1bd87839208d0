"""Verdicts on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from kofn.cli._screen_text import line

WORDS = {"good": "good", "doubtful": "doubtful", "bad": "bad", "unknown": "not known"}
WIDTH = 100


def show_verdicts(verdicts: Sequence[Any]) -> None:
    """A paragraph for each: the mark, the question and the answer."""
    if not verdicts:
        return
    line("Can I trust this?")
    for one in verdicts:
        text = f"{one.question} {one.sentence}".replace("\u00a0", " ").replace("\u2212", "-")
        for number, part in enumerate(wrap(text, WIDTH - 12)):
            line(f"  {WORDS[one.mark] if number == 0 else '':<10}{part}")
