"""What mkdocs fills in at every build: parts of pages that are made from the code, so that they cannot go stale."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import getdoc
from typing import Any

import commands
import layers
import picture
import walk

import kofn
from kofn.estimators._measure_names import MEASURES


def pictures() -> str:
    """The layers, once for wide screens and once for phones; style.css shows one of them."""
    pages = {name: f"reference/{page}.html" for name, page in PAGES.items()}
    real = layers.layers(), layers.packages(), layers.package_imports()
    drawn = {size: picture.draw(*real, links=pages, size=size).svg() for size in picture.SIZES}
    return "".join(f'<div class="layers-{size}">{svg}</div>\n' for size, svg in drawn.items())


# Packages whose page of the reference has another name, or that have none.
PAGES = {
    name: {"cli": "command-line"}.get(name, name)
    for name in layers.packages()
    if name and not name.startswith("_") and name not in ("native", "demo", "contrib")
}


def package_table() -> str:
    """The packages in words: what each is for, and all that it imports."""
    real = layers.package_imports()
    rows = [
        f"| `{name}` | {purpose} | {', '.join(f'`{other}`' for other in sorted(real[name])) or 'nothing of kofn'} |"
        for name, purpose in layers.packages().items()
        if name
    ]
    return "\n".join(["| package | what it is for | what it imports |", "|---|---|---|", *rows])


def names() -> str:
    """The names that `kofn` itself has, with the first sentence about each."""
    rows = []
    for name in kofn.__all__:
        home = kofn._HOME.get(name)
        target = f"kofn.{home}.{name}" if home else f"kofn.{name}"
        says = (getdoc(getattr(kofn, name)) or "").split("\n")[0]
        link = f"[`kofn.{name}`][{target}]" if home else f"[`kofn.{name}`]({PAGES[name]}.md)"
        rows.append((home is None, f'| <span id="kofn.{name}"></span>{link} | {says} |'))
    return "\n".join(["| name | what it is |", "|---|---|", *(row for _, row in sorted(rows))])


def measures() -> str:
    """The measures of a model: their names in JSON, on the screen and in reports, and what they say."""
    rows = [f"| `{key}` | {about.name} | {about.meaning} |" for key, about in MEASURES.items()]
    return "\n".join(["| in JSON and Python | on the screen | meaning |", "|---|---|---|", *rows])


FILLED: dict[str, Callable[[], str]] = {
    "layers": pictures,
    "packages": package_table,
    "names": names,
    "commands": commands.page,
    "measures": measures,
    "walk": walk.table,
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace every ``<!-- made: NAME -->`` by what its function makes; an unknown name stops the build."""
    return re.sub(r"^<!-- made: (\w+) -->$", lambda found: FILLED[found[1]](), markdown, flags=re.M)


def on_page_content(html: str, **_: Any) -> str:
    """Make links of names such as `kofn.Bags` in the text, where the reference has them; autorefs fills them in."""
    return re.sub(r"(?<!>)<code>kofn\.([\w.]+)</code>", _linked, html)


def _linked(found: re.Match[str]) -> str:
    name = found[1]
    home = kofn._HOME.get(name)
    target = f"kofn.{home}.{name}" if home else f"kofn.{name}"
    return f'<autoref optional identifier="{target}">{found[0]}</autoref>'
