"""What of an SVG does not stand out from the page behind it, by the contrast that WCAG defines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, fromstring

PAPER = {"light": "#ffffff", "dark": "#1e2029"}  # behind the figures of a page
TEXT, MARK = 4.5, 3.0
Style = dict[str, str]


def pale(svg: str, paper: str) -> list[str]:
    """Words below 4.5 to 1, lines and areas below 3 to 1.

    What is translucent is left out: it is the shade under a line that is checked itself. So is what has the colour of
    the paper, which is a gap.
    """
    found = set()
    sheet = re.search(r"<style>\s*text\{[^}]*fill:(#[0-9a-f]{6})", svg)  # of an SVG that was written by hand
    start = {"fill": "#000000", "stroke": "none"}
    for element, style in _drawn(fromstring(svg), {**start, "fill": sheet[1]} if sheet else start):
        if element == "text":
            colours, needed = [_colour(style, "fill")], TEXT
        else:
            colours, needed = [_colour(style, "fill"), _colour(style, "stroke")], MARK
        ratios = [contrast(colour, paper) for colour in colours if colour and colour != paper]
        if ratios and max(ratios) < needed:
            found.add(f"{element} {' '.join(filter(None, colours))}: {max(ratios):.2f}")
    return sorted(found)


def contrast(one: str, other: str) -> float:
    """Of two colours such as #24292f: from 1, the same, to 21, black on white."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * c for part, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _drawn(element: Element, inherited: Style) -> Iterator[tuple[str, Style]]:
    """Every element that draws something, with the style that it has from those around it."""
    name = element.tag.rpartition("}")[2]
    told: Style = dict(re.findall(r"([\w-]+):\s*([^;]+?)\s*(?:;|$)", element.get("style", "")))
    own = {key: element.attrib[key] for key in ("fill", "stroke", "opacity") if key in element.attrib}
    style = inherited | own | told
    if name in ("clipPath", "defs", "metadata", "style"):
        return
    if name in ("path", "rect", "line", "circle", "polyline", "polygon", "use", "text"):
        yield name, style
    for child in element:
        yield from _drawn(child, style)


def _colour(style: Style, kind: str) -> str:
    opaque = all(float(style.get(key, 1)) == 1 for key in ("opacity", f"{kind}-opacity"))
    value = style.get(kind, "none")
    return value if opaque and re.fullmatch("#[0-9a-f]{6}", value) else ""
