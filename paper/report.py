"""The report: all tables as Markdown beside the records, where GitHub shows it, and with figures as one HTML page."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from kofn import _require
from kofn._io.atomic_write import atomic_write
from paper.captions import CAPTIONS, LEGEND, PROTOCOLS, TITLES
from paper.cells import TABLES
from paper.differences import NOTES, differences, differences_markdown
from paper.figures import figures
from paper.findings import findings
from paper.records import RESULTS, load_records
from paper.standing import short_markdown, standing_markdown
from paper.summary import header, lines, summary
from paper.table_layout import html_layout, layouts, markdown_layout

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>kofn: the paper's tables, run again</title>
<style>
:root { color-scheme: light dark; --line: #8884; --quiet: light-dark(#666, #aaa) }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 84em; margin: 2em auto; padding: 0 1em }
.wide { overflow-x: auto } p, li { max-width: 50em }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9em }
td, th { padding: 0.2em 0.9em 0.2em 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: nowrap }
small, .not-run { color: var(--quiet) } img { max-width: 100% } .best { font-weight: bold }
</style></head><body>
<h1>The paper's tables, run again</h1>
<p>Preset: {{ preset }}.</p>
<ul>{% for sentence in legend %}<li>{{ sentence }}</li>{% endfor %}</ul>
{% for part in tables %}<h2>{{ part.title }}</h2>
<p>{% for words in part.protocol.split("`") %}{% if loop.index is even %}<code>{{ words }}</code>{% else %}{{ words }}
{%- endif %}{% endfor %}</p>
<p>{{ part.recorded }} of {{ part.lines | length }} rows have records.</p>
<ul>{% for sentence in part.findings %}<li>{{ sentence }}</li>{% endfor %}</ul>
<ul>{% for name, methods, papers, ours in part.differences %}<li><code>{{ name }}</code> ({{ methods }}): {{ papers }}
in the paper, {{ ours }} here</li>{% endfor %}{% for note in part.notes %}<li>{{ note }}</li>{% endfor %}</ul>
{% for layout in part.layouts %}{% if layout.metric %}<p>{{ layout.metric }}</p>{% endif %}
<div class="wide">{{ html_layout(layout) | safe }}</div>
{% endfor %}<details><summary>Row by row, with differences and seconds</summary>
<div class="wide"><table><tr>{% for name in part.header %}<th>{{ name }}</th>{% endfor %}</tr>
{% for words in part.lines %}<tr{% if "not run" in words %} class="not-run"{% endif %}>
{%- for word in words %}<td>{{ word }}</td>{% endfor %}</tr>
{% endfor %}</table></div></details>
{% endfor %}{% for figure in figures %}<h2>Figure: {{ figure.name }}</h2>
{% if figure.data %}<img alt="{{ figure.caption }}" src="data:image/svg+xml;base64,{{ figure.data }}">{% else %}
<p class="not-run">not run</p>{% endif %}
<p>{{ figure.caption }}</p>
{% endfor %}</body></html>
"""


def report(
    results: str | os.PathLike[str] = RESULTS, out: str | os.PathLike[str] = RESULTS / "report", *, preset: str = "fast"
) -> list[Path]:
    """Write the tables, ``reproduction.html`` and the figures from the records.

    Args:
        results: the folder with the ``TABLE.jsonl`` files; ``tables.md`` is written beside them, of another preset
            ``tables-PRESET.md``.
        out: folder for the page and the figures.
        preset: whose records are shown.

    Returns:
        The files written: the Markdown, the page, then the figures.

    Raises:
        ValueError: a file of records that cannot be read; nothing is written then.
    """
    for table in TABLES:
        load_records(results, table)  # a damaged file is an error before anything is written
    tables = [_table(table, results, preset) for table in TITLES]
    folder = Path(out)
    drawn = figures(results, folder, preset=preset)
    shown = [
        {
            "name": name,
            "caption": caption,
            "data": _picture(drawn.get(name)),
        }
        for name, caption in CAPTIONS.items()
    ]
    environment = _require.package("jinja2", extra="paper").Environment(autoescape=True)
    page = environment.from_string(PAGE).render(
        tables=tables, figures=shown, preset=preset, legend=LEGEND, html_layout=html_layout
    )
    name = "tables.md" if preset == "fast" else f"tables-{preset}.md"
    written = [Path(results) / name, folder / "reproduction.html"]
    _write(written[0], tables_markdown(results, preset=preset))
    _write(written[1], page)
    return written + list(drawn.values())


def _table(table: str, results: str | os.PathLike[str], preset: str) -> dict[str, Any]:
    rows = summary(table, results=results, preset=preset)
    recorded = sum(bool(row.values) for row in rows)
    texts = {"title": TITLES[table], "protocol": PROTOCOLS[table], "header": header(table)}
    return texts | {
        "lines": lines(rows),
        "recorded": recorded,
        "findings": findings(rows),
        "layouts": layouts(rows),
        "differences": differences(table),
        "notes": NOTES[table],
        "differs": differences_markdown(table),
    }


def _section(table: dict[str, Any]) -> str:
    parts = ["What differs from the paper:", table["differs"]]
    parts.append(f"{table['recorded']} of {len(table['lines'])} rows have records.")
    if table["findings"]:
        parts.append("\n".join(f"- {sentence}" for sentence in table["findings"]))
    for layout in table["layouts"]:
        parts += ([f"`{layout.metric}`"] if layout.metric else []) + [markdown_layout(layout)]
    words = [table["header"], ["---"] * len(table["header"]), *table["lines"]]
    body = "\n".join("| " + " | ".join(line) + " |" for line in words)
    return "\n\n".join([*parts, "Row by row, with differences and seconds:", body])


def tables_markdown(results: str | os.PathLike[str] = RESULTS, *, preset: str = "fast") -> str:
    """All tables as Markdown, after the count of cells that are as published and those that fall short."""
    tables = [_table(table, results, preset) for table in TITLES]
    parts = [
        "# The paper's tables, run again",
        f"Preset: {preset}. Made from the records of this folder by `python -m paper all --report`.",
        "## All tables in one count",
        "Cells within one published spread of the published number, or above it. A cell is one method and one metric "
        "that the paper prints.",
        standing_markdown(results=results, preset=preset),
        "The cells that fall short, the farthest first:",
        short_markdown(results=results, preset=preset),
        "## How to read the tables",
        "\n".join(f"- {sentence}" for sentence in LEGEND),
    ]
    parts += [f"## {table['title']}\n\n{table['protocol']}\n\n{_section(table)}" for table in tables]
    return "\n\n".join(parts) + "\n"


def _picture(path: Path | None) -> str:
    return "" if path is None else base64.b64encode(path.read_bytes()).decode()


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")
