"""Importance and effects of columns, as lines of a list: a name, marks on a common scale, a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kofn.report._column_contents import ColumnEffect, Importance
from kofn.report._plot import number, percent

FIRST = 8  # lines that are seen at once; the others are folded


@dataclass(frozen=True)
class Mark:
    """A line: places are in percent of the scale's length.

    Attributes:
        name: what it is about.
        text: its number.
        place: of the number.
        low, high: ends of its interval or spread; None if there is none.
        observed: place of what was observed; None if nothing was.
        more: what the marks say beyond the number, in words.
    """

    name: str
    text: str
    place: float
    low: float | None = None
    high: float | None = None
    observed: float | None = None
    more: str = ""


@dataclass(frozen=True)
class Marks:
    """The lines of a list, the place of zero, and the ends of the scale in words."""

    lines: Sequence[Mark]
    zero: float
    ends: tuple[str, str]
    summary: str


def importance_marks(importance: Importance) -> Marks:
    """A line for each column: the mean drop and its interval; those whose interval is above zero are certain."""
    drops = importance.drops
    ends = np.concatenate([drops, importance.low, importance.high])
    ends = ends[np.isfinite(ends)]
    low, high = float(ends.min(initial=0.0)), float(ends.max(initial=0.0))
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return 100 * (min(max(value, low), high) - low) / span

    lines = []
    for name, mean, least, most in zip(importance.columns, drops, importance.low, importance.high, strict=True):
        known = np.isfinite(least) and np.isfinite(most)
        more = f"90\u00a0% interval {number(least)} to {number(most)}" if known else "interval not known from one bag"
        lines.append(Mark(name, number(mean), place(mean), place(least), place(most), more=more))
    certain = np.flatnonzero(importance.low > 0)
    if len(certain):
        first, total = int(certain[0]), np.maximum(drops, 0).sum()
        words = "Most important" if first == 0 else "Most important of those that are certain"
        said = f"{words}: {importance.columns[first]}, {percent(float(drops[first] / total))} of the sum of these."
    else:
        said = "No column is certain to matter: no interval lies above 0."
    return Marks(lines, place(0.0), (number(low), number(high)), f"{said} {importance.note}".strip())


def effect_scale(effects: Sequence[ColumnEffect]) -> float:
    """The end of the common scale of effects: a round probability above all of them."""
    ends = [one for effect in effects for one in (effect.probability, effect.high, effect.observed) if one is not None]
    top = max((float(end.max()) for end in ends), default=1.0)
    return next((one for one in (0.05, 0.1, 0.2, 0.5) if top <= one), 1.0)


def effect_marks(effect: ColumnEffect, top: float) -> Marks:
    """A line for each group: the mean probability, its interval, and what was observed."""
    lines, names = [], [re.sub(r"(?<!\S)-(?=\d)", "\u2212", name) for name in effect.groups]
    for place, name in enumerate(names):
        p, rows = float(effect.probability[place]), int(effect.rows[place])
        observed = None if effect.observed is None else float(effect.observed[place])
        low, high = (None if end is None else float(end[place]) for end in (effect.low, effect.high))
        more = f"mean of {number(rows)} rows"
        if low is not None and high is not None:
            more += f", 90\u00a0% interval {percent(low)} to {percent(high)}"
        if observed is not None:
            more += f"; truly {percent(observed)}"
        start, end, seen = (None if value is None else 100 * value / top for value in (low, high, observed))
        lines.append(Mark(name, percent(p), 100 * p / top, start, end, seen, more))
    order = np.argsort(effect.probability, kind="stable")
    least, most = int(order[0]), int(order[-1])
    summary = (
        f"From {percent(float(effect.probability[least]))} ({names[least]}) to "
        f"{percent(float(effect.probability[most]))} ({names[most]}). {effect.note}"
    )
    return Marks(lines, 0.0, (percent(0.0), percent(top)), summary.strip())
