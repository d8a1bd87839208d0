"""A tutorial is a Markdown page; its notebook is the same page, cut into cells, with the output of each block of code.

A `python` block is a cell. A `console` block is a cell whose commands go to the shell, with the `!` of IPython. All
between them is prose. A comment ``<!-- figure: ... -->`` before a block says in words what the figure below it shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tutorials"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$\n?", flags=re.S | re.M)
FIGURE = re.compile(r"<!-- figure: (.*?) -->\s*\Z", flags=re.S)


@dataclass(frozen=True)
class Cell:
    """Prose, or a block of code.

    Attributes:
        kind: "markdown", "python" or "console".
        text: as it stands on the page, without the fence of a block.
        figure: what the figure below a block shows, in words; empty if nothing is said.
    """

    kind: str
    text: str
    figure: str = ""

    @property
    def source(self) -> str:
        """What the notebook's cell holds."""
        if self.kind != "console":
            return self.text.strip()
        # A line that ends in a backslash goes on in the next one.
        return re.sub(r"(?<!\\\n)^", "!", self.text.strip(), flags=re.M)


def pages() -> list[Path]:
    """The tutorials, without the page that lists them."""
    return sorted(path for path in FOLDER.glob("*.md") if path.stem != "index")


def cells_of(page: str) -> list[Cell]:
    r"""Cut a page into prose and code.

    Examples:
        >>> [cell.kind for cell in cells_of("One\n\n```python\n1 + 1\n```\n\nTwo\n")]
        ['markdown', 'python', 'markdown']
        >>> print(cells_of("```console\nkofn demo\nkofn info \\\n  model\n```\n")[0].source)
        !kofn demo
        !kofn info \
          model
    """
    cells, end = [], 0
    for block in BLOCK.finditer(page):
        prose = page[end : block.start()]
        words = FIGURE.search(prose)
        if prose.strip():
            cells.append(Cell("markdown", prose))
        cells.append(Cell(block[1], block[2], " ".join(words[1].split()) if words else ""))
        end = block.end()
    if page[end:].strip():
        cells.append(Cell("markdown", page[end:]))
    return cells
