"""The figure of an effect: the probability of each group, with its interval."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from kofn import _require
from kofn._io.atomic_write import atomic_write
from kofn.tables._effect_table import Effect

MOST_GROUPS, MOST_LINES = 40, 8  # that can be read
FORMATS = (".svg", ".png")
LONGEST = 28  # signs of a name
# Told apart by people who do not see all colours too (Okabe, Ito 2008), the darker ones first.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#8a4f7d", "#56b4e9", "#e69f00", "#000000", "#8c8c8c")


def require_figure(path: str | os.PathLike[str]) -> Path:
    """Require the name of a picture that can be drawn."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise ValueError(f"{target} must end in .svg or .png, which says what kind of picture it is.")
    return target


def draw_effect(effect: Effect, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Draw the mean probability of each group, from top to bottom, with its confidence interval.

    Of two columns the groups of the first stand below each other, and each value of the second has a colour; so has
    each of several classes.

    Args:
        effect: of one column, or of two and of two classes.
        path: the picture, .svg or .png.
        title: heading; by default what is shown.

    Raises:
        ValueError: another kind of file; more than can be read.
        ImportError: matplotlib is not installed.

    Examples:
        >>> import numpy as np
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.tables import Effect, draw_effect
        >>> share, groups = np.array([[0.3], [0.6]]), [("18 to 29",), ("70 to 79",)]
        >>> effect = Effect(["age"], groups, np.array([9, 7]), ["1"], share, share - 0.1, share + 0.1, level=0.9)
        >>> with TemporaryDirectory() as folder:
        ...     draw_effect(effect, Path(folder) / "effect.svg")
        ...     (Path(folder) / "effect.svg").read_text().count("70 to 79") > 0
        True
    """
    target = require_figure(path)
    rows, lines = _layout(effect)
    if len(rows) > MOST_GROUPS or len(lines) > MOST_LINES:
        raise ValueError(
            f"`figure` shows up to {MOST_GROUPS} groups in up to {MOST_LINES} colours; there are {len(rows)} in "
            f"{len(lines)}. Group by fewer values, or write a table with `output`."
        )
    matplotlib = _require.package("matplotlib", extra="demo")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style = {"font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "kofn", "text.parse_math": False}
    with matplotlib.rc_context(style):
        step = 0.34 + 0.14 * (len(lines) - 1)
        figure = Figure(figsize=(7.0, 1.5 + step * len(rows) + (0.3 if len(lines) > 1 else 0)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _draw(axes, effect, rows, lines)
        axes.set_title(_shown(title or _title(effect), 90), loc="left", fontsize=11)
        with atomic_write(target) as part:
            kind = target.suffix.lower().lstrip(".")
            figure.savefig(part, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)


def _layout(effect: Effect) -> tuple[list[str], list[str]]:
    """The groups below each other, and what has a colour: the values of a second column, or several classes."""
    if len(effect.by) > 2 or (len(effect.by) == 2 and len(effect.classes) > 1):
        raise ValueError(
            f"`figure` shows groups by one column, or by two of a model of two classes; got {', '.join(effect.by)} and "
            f"{len(effect.classes)} classes. Group by fewer columns, or write a table with `output`."
        )
    rows = list(dict.fromkeys(group[0] for group in effect.groups))
    if len(effect.by) == 2:
        return rows, list(dict.fromkeys(group[1] for group in effect.groups))
    return rows, effect.classes


def _draw(axes: Any, effect: Effect, rows: list[str], lines: list[str]) -> None:
    two = len(effect.by) == 2
    for line, name in enumerate(lines):
        groups = [place for place, group in enumerate(effect.groups) if not two or group[1] == name]
        at = np.array([rows.index(effect.groups[place][0]) for place in groups], dtype=float)
        at += (line - (len(lines) - 1) / 2) * 0.55 / max(len(lines), 2)
        column = 0 if two else line
        colour = COLOURS[line]
        p = 100 * effect.probability[groups, column]
        if effect.low is not None and effect.high is not None:
            ends = 100 * effect.low[groups, column], 100 * effect.high[groups, column]
            axes.hlines(at, *ends, color=colour, linewidth=2.2, alpha=0.55)
        axes.plot(p, at, "o", color=colour, markersize=5.5, label=_shown(name), clip_on=False, zorder=3)
    axes.set_yticks(range(len(rows)), [_shown(name) for name in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, -1.0), min(high, 101.0))
    axes.set_xlabel("mean probability, %")
    axes.set_ylabel(_shown(effect.by[0]))
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if len(lines) > 1:
        heading = _shown(effect.by[1]) if two else "class"
        axes.legend(title=heading, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _title(effect: Effect) -> str:
    what = "P(class" if len(effect.classes) > 1 else "P(positive"
    level = "" if effect.level is None else f", with {100 * effect.level:g} % intervals"
    return f"{what} | {', '.join(effect.by)}){level}"


def _shown(text: str, longest: int = LONGEST) -> str:
    """A text that fits, without signs that a font has no picture of or that would break its line."""
    plain = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"
