"""Text that a spreadsheet would run as a formula: in CSV it is written with an apostrophe before it, and read without.

A text is guarded if it begins with =, +, -, @, a tab or a carriage return, as OWASP advises against CSV injection. What
is a number is not: -1 stays -1. Of apostrophes that were there before, one is added when written and one is taken away
when read, so that what is read is what was written. Parquet needs none of this.
"""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = r"^'(?='*[=+\-@\t\r])"


def guarded(text: str) -> str:
    """A text as CSV has it.

    Examples:
        >>> guarded("=1+1"), guarded("-1"), guarded("north")
        ("'=1+1", '-1', 'north')
    """
    if not _FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text


def unguarded(text: str) -> str:
    """A text that was read from CSV, as it was before it was written."""
    return re.sub(_GUARDED, "", text)


def guarded_frame(frame: Any) -> tuple[Any, int]:
    """A DataFrame with its text and its header guarded, and how many texts were."""
    changed = 0
    names = [guarded(str(name)) for name in frame.columns]
    result = frame.set_axis(names, axis=1)
    for place, name in enumerate(names):
        column = frame.iloc[:, place]
        if column.dtype.kind in "iufbmM":
            continue
        plain = column.map(lambda value: guarded(value) if isinstance(value, str) else value)
        touched = int((plain.astype(object) != column.astype(object)).sum() - column.isna().sum())
        if touched:
            changed += touched
            result[name] = plain
    return result, changed + sum(name != str(old) for name, old in zip(names, frame.columns, strict=True))


def is_guarded(column: Any) -> bool:
    """Whether a column of text has an apostrophe to take away, or another one."""
    return bool(column.str.startswith("'", na=False).any())


def unguarded_column(column: Any) -> Any:
    """A column of text that was read from CSV, as it was before it was written."""
    return column.str.replace(_GUARDED, "", regex=True)
