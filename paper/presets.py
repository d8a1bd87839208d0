"""Cells that were run with both presets: whether the fast recipes give what the published ones do."""

from __future__ import annotations

import os

from paper.cells import TABLES
from paper.records import RESULTS
from paper.summary import Row, summary
from paper.table_layout import DIGITS


def presets(*, results: str | os.PathLike[str] = RESULTS) -> list[tuple[Row, Row]]:
    """Of each cell, method and metric that both presets have records of today's recipes of: `fast` and `paper`.

    Examples:
        >>> from paper.presets import presets
        >>> presets(results="no-such-folder")  # nothing was run
        []
    """
    tables = (table for table in TABLES if table != "figures")
    both = (
        pair
        for table in tables
        for pair in zip(summary(table, results=results), summary(table, results=results, preset="paper"), strict=True)
    )
    return [pair for pair in both if all(row.values and not row.stale for row in pair)]


def presets_markdown(*, results: str | os.PathLike[str] = RESULTS) -> str:
    """The same as a table in Markdown, with the published numbers, or a sentence if there is no such cell."""
    found = presets(results=results)
    if not found:
        return "No cell was run with `paper`."
    lines = ["| table | cell | method | metric | `fast` | `paper` | published |", "|---|---|---|---|---|---|---|"]
    return "\n".join(lines + [_line(*pair) for pair in found])


def _line(fast: Row, paper: Row) -> str:
    entry, digits = fast.entry, DIGITS[fast.entry.table]
    published = "none" if fast.published is None else f"{fast.published[0]:.{digits}f} ± {fast.published[1]:.{digits}f}"
    words = [f"`{entry.table}`", " ".join(map(str, entry.cell.values())), entry.method, f"`{fast.metric}`"]
    return "| " + " | ".join([*words, _ours(fast), _ours(paper), published]) + " |"


def _ours(row: Row) -> str:
    digits, seeds = DIGITS[row.entry.table], len(row.values)
    spread = f" ± {row.spread:.{digits}f}" if seeds > 1 else ""
    return f"{row.mean:.{digits}f}{spread} ({seeds} seed{'s' * (seeds > 1)})"
