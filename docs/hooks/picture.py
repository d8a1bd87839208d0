"""The picture of the layers: a box for each package, in the row of its layer, and an arrow for each import."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter
from html import escape
from itertools import pairwise
from textwrap import wrap

SIZES = {"desktop": (3, 212), "phone": (2, 164)}  # boxes beside each other, and their width in pixels
GAP, ROW_GAP, MARGIN = 20, 34, 9  # between boxes, between layers, around words
LETTER, LINE = 6.5, 15  # of the purpose, in 11.5 px of a wide sans-serif


@dataclass
class Box:
    """A package: its name, the lines of its purpose, and where it is drawn."""

    name: str
    lines: list[str]
    x: float
    y: float
    width: float
    link: str = ""

    @property
    def bottom(self) -> float:
        """Below the name and all lines."""
        return self.y + 30 + LINE * len(self.lines)

    @property
    def middle(self) -> float:
        """Where arrows begin and end."""
        return self.x + self.width / 2

    def svg(self) -> str:
        """A frame with words, which leads to the package's page if it has one."""
        private = " private" if self.name.startswith("_") or self.name == "native" else ""
        words = "".join(
            f'<text x="{self.x + MARGIN:.0f}" y="{self.y + 35 + LINE * number:.0f}">{escape(line)}</text>'
            for number, line in enumerate(self.lines)
        )
        drawn = (
            f'<g class="package{private}"><rect x="{self.x:.0f}" y="{self.y:.0f}" width="{self.width:.0f}" '
            f'height="{self.bottom - self.y:.0f}" rx="5"/><text class="name" x="{self.x + MARGIN:.0f}" '
            f'y="{self.y + 19:.0f}">{escape(self.name)}</text>{words}</g>'
        )
        return f'<a href="{self.link}">{drawn}</a>' if self.link else drawn


@dataclass
class Picture:
    """Boxes in rows, and the arrows between them as pairs of names."""

    rows: list[list[Box]]
    arrows: list[tuple[str, str]]
    width: float

    @property
    def boxes(self) -> list[Box]:
        """Of all rows."""
        return [box for row in self.rows for box in row]

    @property
    def height(self) -> float:
        """Of all rows."""
        return _bottom(self.rows[-1]) + 2

    def path(self, above: str, below: str) -> str:
        """A smooth line from box to box that passes the rows between them through the gaps of these rows."""
        start, end = (next(box for box in self.boxes if box.name == name) for name in (above, below))
        stops = [(start.middle, start.bottom)]
        for row in self.rows:
            if start.y < row[0].y < end.y:
                part = (row[0].y - start.bottom) / (end.y - start.bottom)
                wanted = start.middle + part * (end.middle - start.middle)
                free = [row[0].x - GAP / 2, *(box.x + box.width + GAP / 2 for box in row)]
                x = min(free, key=lambda place: abs(place - wanted))
                stops += [(x, row[0].y - 4), (x, _bottom(row) + 4)]
        stops.append((end.middle, end.y - 5))
        path = f"M{stops[0][0]:.0f} {stops[0][1]:.0f}"
        for (x0, y0), (x1, y1) in pairwise(stops):
            bend = (y1 - y0) / 2
            path += f" C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"
        return path

    def svg(self) -> str:
        """The picture for a page, in the page's own colours; one line, as Markdown wants it."""
        marker = f"arrow-{self.width:.0f}"
        parts = [
            f'<svg class="layers" role="img" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            f'style="max-width: {self.width * 1.15:.0f}px">',
            "<title>The packages of kofn and what they import</title>",
            f'<defs><marker id="{marker}" viewBox="0 0 8 8" refX="5" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
        ]
        parts += [
            f'<path class="import" d="{self.path(above, below)}" marker-end="url(#{marker})">'
            f"<title>{above} imports {below}</title></path>"
            for above, below in self.arrows
        ]
        return "".join([*parts, *(box.svg() for box in self.boxes), "</svg>"])


def draw(
    layers: list[list[str]],
    purposes: dict[str, str],
    imports: dict[str, set[str]],
    *,
    links: dict[str, str],
    size: str,
) -> Picture:
    """Draw the layers, one below the other; the lowest, on which all others stand, without arrows.

    Args:
        layers: names of packages, the highest layer first.
        purposes: what each is for; the library's own is that of "".
        imports: what each imports.
        links: pages about packages.
        size: one of `SIZES`. A layer of more boxes than have room beside each other goes on in the next row.

    Raises:
        graphlib.CycleError: packages that import each other in a circle.
    """
    columns, wide = SIZES[size]
    width = columns * (wide + GAP) + GAP
    # The library itself is no layer: its names are imported when they are asked for. It is written over all others.
    head = Box("kofn", _lines(purposes[""], width - 2 * GAP), GAP, 2, width - 2 * GAP)
    rows, y = [[head]], head.bottom + ROW_GAP
    for layer in layers:
        for first in range(0, len(layer), columns):
            names = layer[first : first + columns]
            left = (width + GAP - len(names) * (wide + GAP)) / 2
            row = [Box(name, _lines(purposes[name], wide), 0, y, wide, links.get(name, "")) for name in names]
            for number, box in enumerate(row):
                box.x = left + number * (wide + GAP)
            rows.append(row)
            y = _bottom(row) + (GAP if first + columns < len(layer) else ROW_GAP)
    return Picture(rows, [(above, below) for above, below in _arrows(imports) if below not in layers[-1]], width)


def _lines(words: str, width: float) -> list[str]:
    return wrap(words, int((width - 2 * MARGIN) / LETTER))


def _bottom(row: list[Box]) -> float:
    return max(box.bottom for box in row)


def _arrows(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports that do not follow from others: what an import imports needs no arrow of its own."""
    reached: dict[str, set[str]] = {}
    for name in TopologicalSorter(imports).static_order():  # the imported before those who import them
        reached[name] = imports[name].union(*(reached[other] for other in imports[name]))
    return [
        (above, below)
        for above, found in imports.items()
        for below in sorted(found)
        if not any(below in reached[via] for via in found)
    ]
