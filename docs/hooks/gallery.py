"""The gallery: a thumbnail of every page that has a picture, in the order of the navigation, made from the pages.

A page shows itself: its title and its first picture, of a tutorial the first figure of its notebook. Nothing is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from markdown.extensions.toc import slugify  # type: ignore[import-untyped]  # Markdown has no types
from notebook_pages import recoloured, style

SECTIONS = ("Tutorials", "Guides", "Ideas")
PICTURE = re.compile(r"!\[(?P<words>[^\]]*)\]\((?:\.\./)?(?P<stem>figures/[\w/-]+)-light\.svg#only-light\)")
EXAMPLE = re.compile(r"^## (?P<title>.+)$|^!\[(?P<words>[^\]]*)\]\((?P<file>figures/examples/\w+\.svg)\)", flags=re.M)


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Replace `<!-- gallery -->` by the thumbnails, and `<!-- gallery: PAGE, ... -->` by those of some pages."""
    folder = Path(config["docs_dir"])

    def some(found: re.Match[str]) -> str:
        pages = [name.strip() for name in (found[1] or "").split(",") if name.strip()]
        return _grid(card for page in pages for card in cards(folder, page)) if pages else whole(folder, config["nav"])

    return re.sub(r"^<!-- gallery(?:: ([\w/., -]+))? -->$", some, markdown, flags=re.M)


def whole(folder: Path, nav: list[Any]) -> str:
    """All thumbnails, under a heading for each section of the navigation."""
    sections = {title: pages for entry in nav if isinstance(entry, dict) for title, pages in entry.items()}
    parts = []
    for title in SECTIONS:
        found = [card for page in sections.get(title, ()) if isinstance(page, str) for card in cards(folder, page)]
        if found:
            parts += [f"## {title}", _grid(found)]
    return "\n\n".join(parts)


def cards(folder: Path, page: str) -> Iterator[str]:
    """The thumbnails of a page: one, or of the examples one for each."""
    text = (folder / page).read_text()
    title = text.split("\n", 1)[0].removeprefix("# ")
    if page == "examples.md":
        yield from _examples(text)
    elif (notebook := (folder / page).with_suffix(".ipynb")).exists():
        cells = nbformat.read(notebook, as_version=4).cells
        drawn = [
            output.data["image/svg+xml"] for cell in cells for output in cell.get("outputs", ()) if _figure(output)
        ]
        if drawn:
            yield f"<style>{style()}</style>[{recoloured(drawn[0], title)} **{title}**]({page}){{ .card }}"
    elif found := PICTURE.search(text):
        yield _card(title, page, *(f"{found['stem']}-{shade}.svg#only-{shade}" for shade in ("light", "dark")))


def _figure(output: Any) -> str:
    drawn: str = output.get("data", {}).get("image/svg+xml", "")
    return drawn


def _examples(text: str) -> Iterator[str]:
    title = ""
    for found in EXAMPLE.finditer(text):
        title = found["title"] or title
        if found["file"]:
            yield _card(title, f"examples.md#{slugify(title, '-')}", found["file"])


def _card(title: str, link: str, *pictures: str) -> str:
    # The title is said; the picture beside it adds nothing for those who do not see it.
    return f"[{''.join(f'![]({picture})' for picture in pictures)} **{title}**]({link}){{ .card }}"


def _grid(found: Any) -> str:
    return '<div class="gallery" markdown>\n\n' + "\n\n".join(found) + "\n\n</div>"
