"""The tables for a page: in each column a method (for PU, a data set), ours and the published number side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from paper.cells import METHODS, SEEDS
from paper.summary import Row, best

# What a line is called by; the rest of a cell is the heading of a block of lines. Colon's lines are metrics. PU's are
# methods: five of them side by side would be too wide.
LINE = {
    "llp": "bag_size",
    "mil": "bags",
    "mil-instance": "bags",
    "mil-small": "bags",
    "pu": "method",
    "classes": "bag_size",
    "sums": "bag_size",
}
DIGITS = {"llp": 4, "mil": 3, "mil-instance": 4, "mil-small": 3, "colon": 3, "pu": 2, "classes": 2, "sums": 2}


class Entry(NamedTuple):
    """One method in one cell.

    Attributes:
        ours: mean and spread, or "not run".
        published: the same of the paper; empty where it prints none.
        mark: how ours stands to the published, see `Row.mark`; a dagger if it is of the earlier training loop.
        note: what must be known of ours: that it is stale, fewer seeds than the paper, or folds of a cross-validation.
        best: whether it is in bold, see `paper.summary.best`.
    """

    ours: str
    published: str
    mark: str
    note: str
    best: bool


class Line(NamedTuple):
    """A line of a table.

    Attributes:
        block: the heading of the lines around it, such as "adult, [0,1]"; empty where there is but one block.
        name: of the line in its block.
        entries: one for each column, None where there is no such cell.
    """

    block: str
    name: str
    entries: list[Entry | None]


class Layout(NamedTuple):
    """A table of one metric, or of several one below the other.

    Attributes:
        metric: what is measured; empty where each line is a metric.
        key: what the lines are called by.
        columns: methods or, where each line is a method, data sets.
        lines: from top to bottom.
    """

    metric: str
    key: str
    columns: list[str]
    lines: list[Line]

    def has_published(self, place: int) -> bool:
        """Whether the paper has numbers of a column."""
        return any(entry is not None and entry.published for entry in (line.entries[place] for line in self.lines))


def layouts(rows: Sequence[Row]) -> list[Layout]:
    """The rows of one table for a page, one table a metric.

    Args:
        rows: from `summary`, all of them.

    Examples:
        >>> from paper.summary import summary
        >>> from paper.table_layout import layouts
        >>> (found,) = layouts(summary("llp", results="nowhere"))
        >>> found.key, found.columns
        ('bag size', ['CL', 'CL-trees', 'PL', 'LMMCM'])
        >>> block, name, entries = found.lines[0]
        >>> block, name, entries[2].ours, entries[2].published
        ('adult, [0,1/2]', '8', 'not run', '0.8889 ± 0.0024')
    """
    if rows[0].entry.table not in LINE:
        return [_layout(rows, "")]
    metrics = dict.fromkeys(row.metric for row in rows)
    return [_layout([row for row in rows if row.metric == metric], metric) for metric in metrics]


def _layout(rows: Sequence[Row], metric: str) -> Layout:
    table = rows[0].entry.table
    key = LINE.get(table, "metric")
    column = "data" if key == "method" else "method"
    cells = [{**row.entry.cell, "method": row.entry.method, "metric": row.metric} for row in rows]
    # A word that is the same in all rows says nothing.
    varying = [name for name in rows[0].entry.cell if len({cell[name] for cell in cells}) > 1]
    names = [name for name in varying if name not in (key, column)]
    columns = list(METHODS[table]) if column == "method" else list(dict.fromkeys(cell[column] for cell in cells))
    first = best(rows)
    lines: dict[tuple[str, str], list[Entry | None]] = {}
    for place, (row, cell) in enumerate(zip(rows, cells, strict=True)):
        block = ", ".join(str(cell[name]) for name in names)
        entries = lines.setdefault((block, str(cell[key])), [None] * len(columns))
        entries[columns.index(cell[column])] = _entry(row, best=place in first)
    return Layout(metric, key.replace("_", " "), columns, [Line(*names, entries) for names, entries in lines.items()])


def _entry(row: Row, *, best: bool) -> Entry:
    digits, table = DIGITS[row.entry.table], row.entry.table
    published = f"{row.published[0]:.{digits}f} ± {row.published[1]:.{digits}f}" if row.published else ""
    if not row.values:
        return Entry("not run", published, "", "", best=False)
    spread = "" if math.isnan(row.spread) else f" ± {row.spread:.{digits}f}"
    few = f"{len(row.values)} of {SEEDS[table]} seeds" if len(row.values) < SEEDS[table] else ""
    note = ", ".join(filter(None, ["stale" * row.stale, few, f"{row.folds} folds" if row.entry.folds else ""]))
    mark = f"{row.mark} {'†' * row.earlier}".strip()
    return Entry(f"{row.mean:.{digits}f}{spread}", published, mark, note, best)


def markdown_layout(layout: Layout) -> str:
    """A table in Markdown: of each method a column of ours, in bold if best, and a column of published numbers."""
    places = range(len(layout.columns))
    blocks = [""] if any(line.block for line in layout.lines) else []
    header = [*blocks, layout.key]
    for place, column in enumerate(layout.columns):
        header += [column] + [f"{column}, published"] * layout.has_published(place)
    lines = [header, ["---"] * len(header)]
    for line in layout.lines:
        words = [*([line.block] if blocks else []), line.name]
        for place in places:
            words += _markdown_entry(line.entries[place], published=layout.has_published(place))
        lines.append(words)
    return "\n".join("| " + " | ".join(words) + " |" for words in lines)


def _markdown_entry(entry: Entry | None, *, published: bool) -> list[str]:
    if entry is None:
        return [""] * (1 + published)
    mark = entry.mark.replace("*", "\\*")
    ours = f"**{entry.ours}** {mark}" if entry.best else f"{entry.ours} {mark}"
    note = f" ({entry.note})" if entry.note else ""
    return [ours.rstrip() + note] + [entry.published] * published


def html_layout(layout: Layout) -> str:
    """A table in HTML with a heading for each block; on a phone each line is a block of its own, by its labels."""
    published = [layout.has_published(place) for place in range(len(layout.columns))]
    rows = 1 + any(published)
    top = [f'<th rowspan="{rows}">{escape(layout.key)}</th>']
    second = []
    for column, both in zip(layout.columns, published, strict=True):
        top.append(f"<th{_span(both, rows)}>{escape(column)}</th>")
        second += ["<th>ours</th><th>published</th>"] * both
    head = f"<tr>{''.join(top)}</tr>" + (f"<tr>{''.join(second)}</tr>" if any(published) else "")
    body: list[str] = []
    block = ""
    for line in layout.lines:
        if line.block != block:
            block = line.block
            columns = 1 + len(published) + sum(published)
            body.append(f'<tr class="block"><th colspan="{columns}">{escape(block)}</th></tr>')
        cells = [
            text
            for column, entry, both in zip(layout.columns, line.entries, published, strict=True)
            for text in _html_entry(column, entry, published=both)
        ]
        name = f'<th scope="row"><span class="key">{escape(layout.key)} </span>{escape(line.name)}</th>'
        body.append(f"<tr>{name}{''.join(cells)}</tr>")
    return f'<table class="results"><thead>{head}</thead><tbody>{"".join(body)}</tbody></table>'


def _span(both: bool, rows: int) -> str:
    return ' colspan="2"' if both else f' rowspan="{rows}"'


def _html_entry(column: str, entry: Entry | None, *, published: bool) -> list[str]:
    if entry is None:
        return ['<td class="none"></td>'] * (1 + published)
    shown: Any = escape(entry.ours)
    shown = f"<strong>{shown}</strong>" if entry.best else shown
    shown = f'<span class="not-run">{shown}</span>' if entry.ours == "not run" else shown
    mark = f' <span class="mark">{escape(entry.mark)}</span>' if entry.mark else ""
    note = f"<br><small>{escape(entry.note)}</small>" if entry.note else ""
    label = f"{column}, ours" if published else column
    kind = "" if published else ' class="alone"'
    cells = [f'<td{kind} data-label="{escape(label)}">{shown}{mark}{note}</td>']
    return cells + [f'<td class="published" data-label="published">{escape(entry.published)}</td>'] * published
