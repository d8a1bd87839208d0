"""The tutorials on the site: below each block of code what its cell of the notebook put out.

Figures are drawn once, in the colours of a light page. Here each colour becomes a variable of the style sheet, so that
they follow the page when it turns dark.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.exceptions import PluginError
from notebook_cells import FOLDER, Cell, cells_of

sys.path.insert(0, str(FOLDER.parent / "figures"))
from drawing import LOOKS

LIGHT, DARK = (dataclasses.asdict(LOOKS[shade]) for shade in ("light", "dark"))
INK = "#000000"  # matplotlib's own, where nothing else is said


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Add to a tutorial the output of its notebook, and the colours of its figures."""
    source = Path(page.file.abs_src_path or "")
    if source.parent != FOLDER or source.stem == "index":
        return markdown
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    return filled(markdown, notebook, name=source.name) + f"\n\n<style>{style()}</style>\n"


def filled(markdown: str, notebook: Any, *, name: str) -> str:
    """A page with the output of each block below it.

    Args:
        markdown: the page.
        notebook: its notebook, executed.
        name: of the page, for the error.

    Raises:
        mkdocs.exceptions.PluginError: the page was changed since the notebook was made.
    """
    cells = cells_of(markdown)
    if [cell.source for cell in cells] != [cell.source for cell in notebook.cells]:
        raise PluginError(f"The notebook of {name} is stale: run `make tutorials`.")
    parts = []
    for cell, done in zip(cells, notebook.cells, strict=True):
        if cell.kind == "markdown":
            parts.append(cell.text)
        else:
            parts.append(f"```{cell.kind}\n{cell.text}```\n")
            parts += [_output(output, cell) for output in done.outputs]
    return "\n".join(parts)


def _output(output: Any, cell: Cell) -> str:
    """What a cell put out, as Markdown: text, a table or a figure."""
    if "text" in output:
        return f"```output\n{output.text.rstrip()}\n```\n"
    if (drawn := output.data.get("image/svg+xml")) is not None:
        return f'<figure class="output" data-search-exclude>{recoloured(drawn, cell.figure)}</figure>\n'
    if (table := output.data.get("text/html")) is not None:
        return f'<div class="output">{_plain_table(table)}</div>\n'
    return f"```output\n{output.data['text/plain'].rstrip()}\n```\n"


def recoloured(svg: str, words: str) -> str:
    """A figure for the page itself, in one line as Markdown wants it, its colours as variables.

    Args:
        svg: as matplotlib writes it.
        words: what it shows, for those who do not see it.

    Examples:
        >>> recoloured('<svg width="9pt" viewBox="0 0 9 9"><path style="fill: #24292f"/></svg>', "A line")[-50:]
        '9 9"><path style="fill: var(--figure-ink)"/></svg>'
    """
    # Its style sheet would be that of the whole page.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg[svg.index("<svg") :], flags=re.S)
    head = f'<svg role="img" aria-label="{escape(words)}" stroke-linejoin="round"'
    svg = re.sub(r'<svg[^>]*(viewBox="[^"]*")[^>]*>', lambda found: f"{head} {found[1]}>", svg, count=1)
    svg = re.sub(r' id="(?:figure|axes|patch|line2d|text|xtick|ytick|matplotlib|legend|\w*Collection)[\w.]*"', "", svg)
    for role, colour in LIGHT.items():
        svg = svg.replace(colour, f"var(--figure-{role})")
    return re.sub(r"\s*\n\s*", " ", svg.replace(INK, "var(--figure-ink)")).strip()


def style() -> str:
    """The variables of the figures' colours, of light and of dark pages."""
    shades = {"default": LIGHT, "slate": DARK | {"paper": "var(--md-default-bg-color)"}}
    return "".join(
        f'[data-md-color-scheme="{scheme}"]{{'
        + "".join(f"--figure-{role}:{colour};" for role, colour in look.items())
        + "}"
        for scheme, look in shades.items()
    )


def _plain_table(html: str) -> str:
    """A table of pandas, without its own style and borders, in one line."""
    html = re.sub(r"<style.*?</style>", "", html, flags=re.S)
    html = re.sub(r'<table border="1" class="dataframe">', "<table>", html)
    return re.sub(r"\s*\n\s*", "", re.sub(r' style="[^"]*"', "", html))
