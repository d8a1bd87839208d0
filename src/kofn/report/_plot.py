"""A small plot as SVG that follows the page's colours: scales, ticks, axes, marks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

WIDE, SMALL = 440.0, 320.0  # of a figure alone, and of one among others
LEFT, RIGHT, TOP, BOTTOM = 50.0, 30.0, 36.0, 48.0  # room for the numbers in the larger type of a phone
Point = tuple[float, float]


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; children and attributes are escaped unless they are markup. `class_` is written class, a_b a-b.

    Examples:
        >>> from kofn.report._plot import tag
        >>> tag("text", "a < b", class_="big", text_anchor="end", x=1.5)
        Markup('<text class="big" text-anchor="end" x="1.5">a &lt; b</text>')
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _short(value))
        for key, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(escape(child) for child in children)
    return Markup("<{}{}>{}</{}>").format(name, written, inner, name)


def _short(value: object) -> object:
    """Coordinates to a tenth of a unit: a figure of thousands of marks stays small."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def number(value: float) -> str:
    """A number for a reader: three digits that matter, thousands apart, a true minus.

    Examples:
        >>> from kofn.report._plot import number
        >>> [number(value) for value in (0.12345, 12.0, 1234567.0, -0.5, 0.0)]
        ['0.123', '12', '1,234,567', '\u22120.5', '0']
    """
    if not math.isfinite(value):
        return "none" if math.isnan(value) else ("∞" if value > 0 else "\u2212∞")
    if value != 0 and abs(value) < 1e-3:
        text = f"{value:.1e}"
    elif abs(value) >= 100 or value == round(value):
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{3 if abs(value) < 1 else 2 if abs(value) < 10 else 1}f}".rstrip("0").rstrip(".")
    return text.replace("-", "\u2212")


def percent(value: float) -> str:
    r"""A share as a percentage; a share that is not 0 or 1 is never rounded to it.

    Examples:
        >>> from kofn.report._plot import percent
        >>> [percent(share) for share in (0.5, 0.1234, 0.9996, 1.0, 0.0001)]
        ['50\xa0%', '12.3\xa0%', '>\xa099.9\xa0%', '100\xa0%', '<\xa00.1\xa0%']
    """
    if math.isnan(value):
        return "none"
    if 0 < value < 0.001:
        return "<\u00a00.1\u00a0%"
    if 0.999 < value < 1:
        return ">\u00a099.9\u00a0%"
    return f"{100 * value:.1f}".removesuffix(".0") + "\u00a0%"


def ticks(low: float, high: float, *, about: int = 5, whole: bool = False) -> list[float]:
    """Round numbers from low to high: multiples of 1, 2 or 5 times a power of ten.

    Examples:
        >>> from kofn.report._plot import ticks
        >>> ticks(0, 16, whole=True), ticks(0.0, 0.6)
        ([0.0, 5.0, 10.0, 15.0], [0.0, 0.2, 0.4, 0.6])
    """
    span = max(high - low, 1e-300)
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    if whole:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


class Scale:
    """A straight map from values to coordinates; a span of no width is widened."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = (low, high) if high > low else (low - 0.5, low + 0.5)
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        """The coordinate of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


class Plot:
    """Axes and marks. Marks have classes; the page's style gives them their colours, in light and in dark.

    Args:
        x, y: ends of the axes.
        x_label, y_label: their names.
        width, height: of the picture.
        x_whole: whether x counts something.
        y_percent, x_percent: shares, shown as percentages.
        y_about: how many ticks on y, about.
        two_sided: y counts up and down from 0; its numbers have no sign.
    """

    def __init__(
        self,
        x: Point,
        y: Point,
        *,
        x_label: str = "",
        y_label: str = "",
        width: float = WIDE,
        height: float,
        x_whole: bool = False,
        y_whole: bool = False,
        x_percent: bool = False,
        y_percent: bool = False,
        y_about: int = 5,
        two_sided: bool = False,
    ) -> None:
        self.width, self.height = width, height
        self.x = Scale(*x, LEFT, width - RIGHT)
        self.y = Scale(*y, height - BOTTOM, TOP)
        self.marks: list[Markup] = []
        foot = height - BOTTOM
        for value in ticks(self.y.low, self.y.high, about=y_about, whole=y_whole):
            at = self.y(value)
            self.marks.append(tag("line", class_="grid", x1=LEFT, x2=width - RIGHT, y1=at, y2=at))
            text = percent(value) if y_percent else number(abs(value) if two_sided else value)
            self.marks.append(tag("text", text, class_="tick end", x=LEFT - 7, y=at + 4))
        for value in ticks(self.x.low, self.x.high, about=6, whole=x_whole):
            at = self.x(value)
            self.marks.append(tag("line", class_="axis", x1=at, x2=at, y1=foot, y2=foot + 5))
            text = percent(value) if x_percent else number(value)
            self.marks.append(tag("text", text, class_="tick mid", x=at, y=foot + 19))
        self.marks.append(tag("line", class_="axis", x1=LEFT, x2=width - RIGHT, y1=foot, y2=foot))
        self.marks.append(tag("text", x_label, class_="label mid", x=(LEFT + width - RIGHT) / 2, y=height - 7))
        self.marks.append(tag("text", y_label, class_="label", x=4.0, y=15.0))

    def path(self, points: Iterable[Point], kind: str, *, close: bool = False) -> None:
        """A line through points, in values; closed, an area."""
        corners = " L".join(f"{_short(self.x(x))} {_short(self.y(y))}" for x, y in points)
        if corners:
            self.marks.append(tag("path", class_=kind, d=f"M{corners}{' Z' if close else ''}"))

    def steps(self, start: int, heights: Sequence[float], kind: str) -> None:
        """The outline of bars of width one around start, start + 1, ..."""
        corners = [(start - 0.5, 0.0)]
        for index, height in enumerate(heights):
            corners += [(start + index - 0.5, height), (start + index + 0.5, height)]
        self.path([*corners, (start + len(heights) - 0.5, 0.0)], kind)

    def bar(self, left: float, right: float, height: float, kind: str, hint: str = "") -> None:
        """A bar from 0 up or down to height between two values of x, with a small gap to the next."""
        start, end = self.x(left), self.x(right)
        gap = min(1.5, (end - start) * 0.1)
        top, foot = sorted((self.y(height), self.y(0.0)))
        box = {"x": start + gap, "width": end - start - 2 * gap, "y": top, "height": foot - top}
        self.marks.append(tag("rect", *_hint(hint), class_=kind, **box))

    def dot(self, x: float, y: float, kind: str, *, radius: float = 3.5, hint: str = "") -> None:
        """A round mark."""
        self.marks.append(tag("circle", *_hint(hint), class_=kind, cx=self.x(x), cy=self.y(y), r=radius))

    def upright(self, x: float, low: float, high: float, kind: str) -> None:
        """A vertical line between two values of y."""
        at = self.x(x)
        self.marks.append(tag("line", class_=kind, x1=at, x2=at, y1=self.y(low), y2=self.y(high)))

    def words(self, x: float, text: str, kind: str) -> None:
        """Words above the plot at a value of x, kept inside the picture."""
        at = self.x(x)
        side = "end" if at > self.width * 0.75 else "" if at < self.width * 0.3 else "mid"
        self.marks.append(tag("text", text, class_=f"{kind} {side}".strip(), x=at, y=TOP - 5))

    def svg(self, title: str, description: str) -> Markup:
        """The picture, with a title and a description for those who do not see it."""
        return tag(
            "svg",
            tag("title", title),
            tag("desc", description),
            *self.marks,
            class_="wide" if self.width == WIDE else "small",
            viewBox=f"0 0 {_short(self.width)} {_short(self.height)}",
            role="img",
            aria_label=title,
        )


def _hint(text: str) -> tuple[Markup, ...]:
    return (tag("title", text),) if text else ()
