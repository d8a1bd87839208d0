"""The results pages are filled from `paper/results/*.jsonl` at every build: no number in them was typed.

In a page, on a line of its own,

    <!-- protocol: TABLE -->      how the table was run
    <!-- differences: TABLE -->   what differs from the paper
    <!-- findings: TABLE -->      what its records show, in sentences
    <!-- headline -->             all tables against the paper, in plain words
    <!-- behind -->               where attention is ahead, in plain words
    <!-- table: TABLE -->         ours beside the published numbers, and the same row by row
    <!-- figure: NAME -->         a figure and its caption, or "not run"
    <!-- standing -->             how many cells are as published, and which fall short
    <!-- missing -->              what is not run or is stale, and what it would take
    <!-- times -->                training seconds beside quality
    <!-- legend -->               what the signs mean
    <!-- records -->              how many records there are, of which versions and machines
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from ages import of_paper
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from paper.captions import CAPTIONS, LEGEND, PROTOCOLS
from paper.cells import TABLES
from paper.differences import differences_markdown
from paper.figures import figures
from paper.findings import as_published, findings
from paper.missing import missing_markdown
from paper.presets import presets_markdown
from paper.records import RESULTS, load_records
from paper.standing import short_markdown, standing_markdown
from paper.summary import ROUNDING, Row, summary
from paper.summary import markdown as flat_markdown
from paper.table_layout import DIGITS, html_layout, layouts
from paper.training_time import times_markdown
from paper.whole_recipe import state

drawn: dict[str, Path] = {}


def on_files(files: Files, *, config: Any) -> Files:
    """Draw the figures from the records and add them to the site."""
    drawn.update(figures(RESULTS, tempfile.mkdtemp(prefix="kofn-figures-")))
    for name, path in drawn.items():
        files.append(File.generated(config, f"results/{name}.svg", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the places of a page; an unknown name stops the build."""
    return re.sub(
        r"^<!-- (\w+)(?:: ([\w-]+))? -->$",
        lambda found: MADE[found[1]](found[2]) if found[1] in MADE else found[0],
        markdown,
        flags=re.M,
    )


def table(name: str) -> str:
    """One table, ours beside the published; below it, folded, every row."""
    rows = summary(name)
    parts = []
    for layout in layouts(rows):
        shown_as = f'<div class="wide">{html_layout(layout)}</div>'
        parts += ([f"**`{layout.metric}`**"] if layout.metric else []) + [shown_as]
    flat = flat_markdown(name).replace("*", "\\*")
    return "\n\n".join([*parts, of_paper(name), folded("Row by row, with differences and seconds", flat)])


def folded(title: str, markdown: str) -> str:
    """A part of a page that opens when it is asked for."""
    return f'??? note "{title}"\n\n' + re.sub(r"^", "    ", markdown, flags=re.M)


def shown(name: str) -> str:
    """A figure with its caption."""
    if name not in drawn:
        return f"{CAPTIONS[name]} *Not run.*"
    records = [record for record in load_records(RESULTS, "figures") if record["cell"]["figure"] == name]
    stale = " Stale: the recipe has been changed since." if "stale" in map(state, records) else ""
    return f"![{CAPTIONS[name]}]({name}.svg)\n\n*{CAPTIONS[name]}{stale}*"


def told(name: str) -> str:
    """The findings of a table as a list."""
    rows = summary(name)
    nothing = "Nothing to compare yet." if any(row.values for row in rows) else "Not run."
    return "\n".join(f"- {sentence}" for sentence in findings(rows) or [nothing])


def standing(_: str | None) -> str:
    """The count of all tables; folded below it, the cells that fall short."""
    return f"{standing_markdown()}\n\n{folded('The cells that fall short, the farthest first', short_markdown())}"


def counted(_: str | None) -> str:
    """How many records there are of each table, and where they were made."""
    lines = ["| table | records | machine | versions |", "|---|---|---|---|"]
    for name in TABLES:
        records = load_records(RESULTS, name)
        machines = {f"{r['machine']['processor']}, {r['machine']['cores']} cores" for r in records}
        versions = {f"kofn {r['versions']['kofn']}, torch {r['versions']['torch']}" for r in records}
        lines.append(f"| `{name}` | {len(records)} | {'; '.join(sorted(machines))} | {'; '.join(sorted(versions))} |")
    return "\n".join(lines)


def headline(_: str | None) -> str:
    """The count loss against the paper in all tables, the worst first, without the short names of methods."""
    held = {words: [as_published(row) for row in _of(name, "CL")] for name, words in WORDS.items()}
    worst_first = sorted(held, key=lambda words: fmean(held[words]))
    told = " ".join(findings(summary("llp")))
    trees = re.search(r"CL-trees is at or above the published CL in (\d+ of \d+) cells", told)
    if trees is None:
        raise PluginError("the finding of the home page is not there any more")
    cells = ", ".join(f"{sum(held[words])} of {len(held[words])} {words}" for words in worst_first)
    every = [each for some in held.values() for each in some]
    return (
        f"In networks, with the preset `fast`, the count loss is within one published spread of the paper's numbers, "
        f"or above, in {sum(every)} of {len(every)} cells: {cells}. Boosted trees, without an option set, are at or "
        f"above the published count loss in {trees[1]} cells on label proportions."
    )


def behind(_: str | None) -> str:
    """In how many cells pooling by attention is ahead of the count loss, as both ran here and as it was published."""
    counts = {name: (_ahead(name, here=True), _ahead(name, here=False), len(_of(name, "CL"))) for name in ATTENTION}
    here = " and ".join(f"{ours} of {cells} cells {WORDS[name]}" for name, (ours, _, cells) in counts.items())
    published = " and ".join(str(theirs) for _, theirs, _ in counts.values())
    return (
        f"Attention pooling as it ran here is ahead of the count loss in {here}, and as it was published in "
        f"{published} of them."
    )


def _ahead(table: str, *, here: bool) -> int:
    """In how many cells one of the ways to pool by attention, run here or published, has a higher mean than CL here."""
    attention: dict[tuple[Any, ...], float] = {}
    for row in summary(table):
        if row.entry.method in ("Attention", "Gated Attention") and row.published:
            mean = row.mean if here else row.published[0]
            if mean == mean:  # a cell that was not run has no mean
                attention[_place(row)] = max(mean, attention.get(_place(row), 0.0))
    # Published means have so many digits.
    ours = {_place(row): row.mean if here else round(row.mean, DIGITS[table]) for row in _of(table, "CL")}
    return sum(attention.get(place, 0.0) > mean + ROUNDING for place, mean in ours.items())


def _place(row: Row) -> tuple[Any, ...]:
    return *row.entry.cell.values(), row.metric


def _of(table: str, method: str) -> list[Row]:
    """What is recorded of a method and printed in the paper, without what is stale."""
    rows = (row for row in summary(table) if row.entry.method == method)
    return [row for row in rows if row.values and not row.stale and row.published]


ATTENTION = ("mil", "colon")  # tables that have methods of that name
# The tables with published numbers, in words that follow a number of cells.
WORDS = {
    "llp": "on label proportions",
    "mil": "on bags of digits",
    "mil-instance": "on the digits in bags",
    "colon": "on colon tissue",
    "pu": "on positive and unlabelled images",
}

MADE: dict[str, Callable[[Any], str]] = {
    "headline": headline,
    "behind": behind,
    "protocol": PROTOCOLS.__getitem__,
    "differences": differences_markdown,
    "findings": told,
    "table": table,
    "figure": shown,
    "standing": standing,
    "missing": lambda _: folded("What is not run or is stale, and about how long it takes", missing_markdown()),
    "presets": lambda _: presets_markdown(),
    "times": lambda _: times_markdown(),
    "legend": lambda _: "\n".join(f"- {words}" for words in LEGEND),
    "records": counted,
}
