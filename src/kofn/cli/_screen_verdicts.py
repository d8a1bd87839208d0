"""Verdicts on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from kofn.cli._screen_text import line

WORDS = {"good": "good", "doubtful": "doubtful", "bad": "bad", "unknown": "not known"}
WORDS_OF_TWO = {"good": "clear", "doubtful": "not clear", "unknown": "not known"}
WIDTH = 100


def show_verdicts(verdicts: Sequence[Any]) -> None:
    """A paragraph for each: the mark, the question and the answer."""
    if not verdicts:
        return
    line("Which one?" if verdicts[0].about == "comparison" else "Can I trust this?")
    for one in verdicts:
        mark = (WORDS_OF_TWO if one.about == "comparison" else WORDS)[one.mark]
        for number, part in enumerate(wrap(f"{one.question} {one.sentence}", WIDTH - 12)):
            text = part.replace("\u00a0", " ").replace("\u2212", "-")
            line(f"  {mark if number == 0 else '':<10}{text}")
