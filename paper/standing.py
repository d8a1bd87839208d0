"""All tables in one count: how many cells are as published, which fall short, and how far."""

from __future__ import annotations

import os

from paper.cells import TABLES
from paper.findings import OURS, as_published
from paper.records import RESULTS
from paper.summary import Row, summary
from paper.table_layout import DIGITS


def standing_markdown(*, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> str:
    """A line for each table: cells within one published spread or above, of CL and of the baselines.

    A cell is one method and one metric that the paper prints. What is not run, or is stale, is counted by itself.

    Examples:
        >>> from paper.standing import standing_markdown
        >>> print(standing_markdown(results="no-such-folder").splitlines()[2])
        | `llp` | 0 of 0 | 0 of 0 | 72 |
    """
    rows = _rows(results, preset)
    tables = dict.fromkeys(row.entry.table for row in rows)
    lines = [_line(f"`{table}`", [row for row in rows if row.entry.table == table]) for table in tables]
    head = ["| table | CL | baselines | not run or stale |", "|---|---|---|---|"]
    return "\n".join([*head, *lines, _line("all", rows)])


def short_markdown(*, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> str:
    """A list of the cells that fall short, of the paper's methods, the farthest first.

    Examples:
        >>> from paper.standing import short_markdown
        >>> short_markdown(results="no-such-folder")
        'None.'
    """
    short = [row for row in _rows(results, preset) if _counts(row) and not as_published(row)]
    return "\n".join(f"- {_words(row)}" for row in sorted(short, key=_distance, reverse=True)) or "None."


def _rows(results: str | os.PathLike[str], preset: str) -> list[Row]:
    """What the paper prints, of all tables."""
    tables = (table for table in TABLES if table != "figures")
    return [row for table in tables for row in summary(table, results=results, preset=preset) if row.published]


def _line(name: str, rows: list[Row]) -> str:
    run = [row for row in rows if _counts(row)]
    texts = [_share([row for row in run if row.entry.method == "CL"])]
    texts += [_share([row for row in run if row.entry.method not in OURS])]
    return f"| {name} | {' | '.join(texts)} | {len(rows) - len(run)} |"


def _share(rows: list[Row]) -> str:
    good = sum(map(as_published, rows))
    return f"{good} of {len(rows)}" + (f" ({100 * good / len(rows):.0f} %)" if rows else "")


def _counts(row: Row) -> bool:
    return bool(row.values) and not row.stale


def _distance(row: Row) -> float:
    """How many published spreads ours is below."""
    assert row.published is not None
    mean, spread = row.published
    return (mean - row.mean) / max(spread, 10.0 ** -DIGITS[row.entry.table])  # one that is printed as 0 is below that


def _words(row: Row) -> str:
    assert row.published is not None
    digits, where = DIGITS[row.entry.table], " ".join(map(str, row.entry.cell.values()))
    mean, spread = row.published
    return (
        f"{where}, {row.entry.method}, {row.metric}: {row.mean:.{digits}f}, published {mean:.{digits}f} ± "
        f"{spread:.{digits}f}, {_distance(row):.1f} spreads below, {len(row.values)} seed{'s' * (len(row.values) > 1)}"
    )
