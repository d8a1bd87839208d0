"""The picture of the layers: a box for each package, an arrow for each import, drawn from the code."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import wrap

DESKTOP, PHONE = 4, 2  # boxes beside each other
BOX, GAP, ROW_GAP = 164, 14, 34  # pixels
LETTER, LINE = 5.9, 15  # of the purpose, in 11.5 px of a usual sans-serif


@dataclass
class Box:
    """A package: its name, the lines of its purpose, and where it is drawn."""

    name: str
    lines: list[str]
    x: float = 0
    y: float = 0
    width: float = BOX
    link: str = ""

    @property
    def height(self) -> float:
        """Of the name and all lines."""
        return 30 + LINE * len(self.lines)

    @property
    def middle(self) -> float:
        """Where arrows begin and end."""
        return self.x + self.width / 2


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
        return max(box.y + box.height for box in self.rows[-1]) + 2

    def path(self, above: str, below: str) -> str:
        """A smooth line from box to box that passes the rows between them through the gaps of these rows."""
        row_of = {box.name: number for number, row in enumerate(self.rows) for box in row}
        box_of = {box.name: box for box in self.boxes}
        start, end = box_of[above], box_of[below]
        stops = [(start.middle, start.y + start.height)]
        for row in self.rows[row_of[above] + 1 : row_of[below]]:
            top, bottom = row[0].y, max(box.y + box.height for box in row)
            part = (top - stops[0][1]) / (end.y - stops[0][1])
            wanted = start.middle + part * (end.middle - start.middle)
            free = [row[0].x - GAP / 2, *(box.x + box.width + GAP / 2 for box in row)]
            x = min(free, key=lambda place: abs(place - wanted))
            stops += [(x, top - 4), (x, bottom + 4)]
        stops.append((end.middle, end.y - 5))
        path = f"M{stops[0][0]:.0f} {stops[0][1]:.0f}"
        for (x0, y0), (x1, y1) in pairwise(stops):
            bend = (y1 - y0) / 2
            path += f" C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"
        return path

    def svg(self) -> str:
        """The picture for a page, in the page's own colours; one line, as Markdown wants it."""
        marker = f"arrow-{len(self.rows)}-{self.width:.0f}"
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
        for box in self.boxes:
            private = " private" if box.name.startswith("_") or box.name == "native" else ""
            words = "".join(
                f'<text x="{box.x + 9:.0f}" y="{box.y + 35 + LINE * number:.0f}">{escape(line)}</text>'
                for number, line in enumerate(box.lines)
            )
            drawn = (
                f'<g class="package{private}"><rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" '
                f'height="{box.height:.0f}" rx="5"/><text class="name" x="{box.x + 9:.0f}" y="{box.y + 19:.0f}">'
                f"{escape(box.name)}</text>{words}</g>"
            )
            parts.append(f'<a href="{box.link}">{drawn}</a>' if box.link else drawn)
        return "".join([*parts, "</svg>"])


def draw(
    purposes: dict[str, str], imports: dict[str, set[str]], *, columns: int, links: dict[str, str] | None = None
) -> Picture:
    """Lay the packages out in layers, each above all that it imports.

    Args:
        purposes: what each package is for; the library's own is that of "".
        imports: what each imports.
        columns: boxes beside each other.
        links: pages about packages.

    Raises:
        ValueError: packages that import each other.
    """
    levels = _levels(imports)
    arrows = [(above, below) for above in purposes for below in sorted(_direct(above, imports))]
    width = columns * (BOX + GAP) + GAP
    letters = int((BOX - 14) / LETTER)
    links = links or {}
    # The library itself is no layer: its names are imported when they are asked for. It is written over all others.
    head = Box("kofn", wrap(purposes[""], int((width - 2 * GAP - 14) / LETTER)), GAP, 2, width - 2 * GAP)
    rows, places, y = [[head]], {"": width / 2}, head.height + 2 + ROW_GAP
    for level in sorted(set(levels.values()), reverse=True):
        names = [name for name, found in levels.items() if found == level]
        # Below those that import it, so that arrows are short and seldom cross.
        names.sort(key=lambda name: (_mean([places[up] for up in places if name in imports[up]], width / 2), name))
        count = -(-len(names) // columns)
        for number in range(count):
            part = names[number::count]
            row = [Box(name, wrap(purposes[name], letters), y=y, link=links.get(name, "")) for name in part]
            left = (width - len(row) * (BOX + GAP) + GAP) / 2
            for column, box in enumerate(row):
                box.x = left + column * (BOX + GAP)
                places[box.name] = box.middle
            rows.append(row)
            y += max(box.height for box in row) + (ROW_GAP if number == count - 1 else GAP)
    return Picture(rows, arrows, width)


def _direct(name: str, imports: dict[str, set[str]]) -> set[str]:
    """Imports that do not follow from others: what an import imports need no arrow of its own."""
    return {other for other in imports[name] if not any(other in _reached(via, imports) for via in imports[name])}


def _reached(name: str, imports: dict[str, set[str]]) -> set[str]:
    return imports[name].union(*(_reached(other, imports) for other in imports[name]))


def _levels(imports: dict[str, set[str]]) -> dict[str, int]:
    """Layers, 0 the lowest: just under the lowest importer, or just over the imports of what nobody imports."""
    least = {name: _least(name, imports) for name in imports if name}
    levels: dict[str, int] = {}
    for name in sorted(least, key=least.__getitem__, reverse=True):
        above = [levels[other] for other in levels if name in imports[other]]
        levels[name] = min(above) - 1 if above else least[name]
    return levels


def _least(name: str, imports: dict[str, set[str]], above: tuple[str, ...] = ()) -> int:
    if name in above:
        raise ValueError(f"packages must not import each other in a circle: {' -> '.join([*above, name])}")
    return max((_least(other, imports, (*above, name)) + 1 for other in imports[name]), default=0)


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default
