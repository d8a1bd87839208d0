"""The tables as the paper prints them: a method a row, a bag size or a number of bags a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from paper.cells import SEEDS
from paper.summary import Row, best

COLUMN = {
    "llp": "bag_size",
    "mil": "bags",
    "mil-instance": "bags",
    "mil-small": "bags",
    "pu": "data",
    "classes": "bag_size",
}
DIGITS = {"llp": 4, "mil": 3, "mil-instance": 4, "mil-small": 3, "colon": 3, "pu": 2, "classes": 2}


class Entry(NamedTuple):
    """One place of a table.

    Attributes:
        ours: mean and spread, or "not run".
        published: the same of the paper; empty where it prints none.
        mark: how ours stands to the published, see `Row.mark`.
        note: what must be known of ours: fewer seeds than the paper, or folds of a cross-validation.
        best: whether no other method of this cell has a higher mean.
    """

    ours: str
    published: str
    mark: str
    note: str
    best: bool


class Layout(NamedTuple):
    """One table of one metric, or of several side by side.

    Attributes:
        metric: what is measured; empty where each column is a metric.
        header: names of the columns.
        names: of each row the words on the left: setting and method.
        entries: of each row its places, ``None`` where the paper has no such cell.
    """

    metric: str
    header: list[str]
    names: list[list[str]]
    entries: list[list[Entry | None]]


def layouts(rows: Sequence[Row]) -> list[Layout]:
    """The rows of one table as the paper lays them out, one table a metric.

    Args:
        rows: from `summary`, all of them.

    Examples:
        >>> from paper.summary import summary
        >>> from paper.table_layout import layouts
        >>> (found,) = layouts(summary("llp", results="nowhere"))
        >>> found.header
        ['data', 'setting', 'method', 'bag size 8', 'bag size 32', 'bag size 128', 'bag size 512']
        >>> found.names[0], found.entries[0][0].ours, found.entries[0][0].published
        (['adult', '[0,1/2]', 'PL'], 'not run', '0.8889 ± 0.0024')
    """
    table = rows[0].entry.table
    if table not in COLUMN:
        return [_layout(rows, "")]
    metrics = dict.fromkeys(row.metric for row in rows)
    return [_layout([row for row in rows if row.metric == metric], metric) for metric in metrics]


def _layout(rows: Sequence[Row], metric: str) -> Layout:
    key = COLUMN.get(rows[0].entry.table, "")
    # A word that is the same in all rows says nothing.
    varying = [name for name in rows[0].entry.cell if name != key and len({row.entry.cell[name] for row in rows}) > 1]
    columns: dict[Any, None] = dict.fromkeys(row.entry.cell[key] if key else row.metric for row in rows)
    first = best(rows)
    places: dict[tuple[str, ...], dict[Any, Entry]] = {}
    for place, row in enumerate(rows):
        names = (*(str(row.entry.cell[name]) for name in varying), row.entry.method)
        column = row.entry.cell[key] if key else row.metric
        places.setdefault(names, {})[column] = _entry(row, best=place in first)
    titles = [f"{key.replace('_', ' ')} {column}" if isinstance(column, int) else str(column) for column in columns]
    entries = [[found.get(column) for column in columns] for found in places.values()]
    return Layout(metric, [*varying, "method", *titles], [list(names) for names in places], entries)


def _entry(row: Row, *, best: bool) -> Entry:
    digits, table = DIGITS[row.entry.table], row.entry.table
    published = f"{row.published[0]:.{digits}f} ± {row.published[1]:.{digits}f}" if row.published else ""
    if not row.values:
        return Entry("not run", published, "", "", best=False)
    spread = "" if math.isnan(row.spread) else f" ± {row.spread:.{digits}f}"
    few = f"{len(row.values)} of {SEEDS[table]} seeds" if len(row.values) < SEEDS[table] else ""
    note = ", ".join(filter(None, [few, f"{row.folds} folds" if row.entry.folds else ""]))
    return Entry(f"{row.mean:.{digits}f}{spread}", published, row.mark, note, best)


def markdown_layout(layout: Layout) -> str:
    """A table in Markdown: ours, in bold if best; below it, small, the paper's number, and what to know of ours."""
    lines = [layout.header, ["---"] * len(layout.header)]
    for names, entries in zip(layout.names, layout.entries, strict=True):
        lines.append([*names, *map(_entry_text, entries)])
    return "\n".join("| " + " | ".join(words) + " |" for words in lines)


def _entry_text(entry: Entry | None) -> str:
    if entry is None:
        return ""
    ours = f"**{entry.ours}**" if entry.best else entry.ours
    mark = entry.mark.replace("*", "\\*")
    below = [f"<br><small>{words}</small>" for words in (entry.published, entry.note) if words]
    return "".join([f"{ours} {mark}".rstrip(), *below])
