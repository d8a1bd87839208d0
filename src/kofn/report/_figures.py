"""Figures of training, of counts and of probabilities: each a picture and the sentence that says what is in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from kofn.learners._learner import step_name
from kofn.report._contents import BagTable, Binomial, Numbers
from kofn.report._plot import Plot, number, percent

MAX_DOTS = 400  # bags in the scatter; more would be ink without news, and a heavy page
APART = 2.0  # units between the intervals of neighbours, so that they can be told apart


@dataclass(frozen=True)
class Figure:
    """A picture and its sentence."""

    svg: Markup
    summary: str


def loss_curves(history: Sequence[Mapping[str, float]], best_step: int | None) -> Figure | None:
    """Loss of each step (epoch, round, penalty), on training and on validation bags; None without a finite loss."""
    step = step_name(history)
    curves: dict[str, list[tuple[float, float]]] = {}
    for kind, key in (("train", "train_loss"), ("valid", "val_loss")):
        points = [(float(entry.get(step, n)), float(entry.get(key, math.nan))) for n, entry in enumerate(history, 1)]
        curves[kind] = [point for point in points if math.isfinite(point[1])]
    seen = [point for points in curves.values() for point in points]
    if not seen:
        return None
    losses = [y for _, y in seen]
    steps = [x for x, _ in seen]
    plot = Plot(
        (min(steps), max(steps)),
        (min(0.0, *losses), max(losses) * 1.04 if max(losses) > 0 else 0.0),
        x_label=step,
        height=235,
        y_label="loss",
        x_whole=True,
    )
    if best_step is not None:
        plot.upright(best_step, plot.y.low, plot.y.high, "best")
        plot.words(best_step, f"{_step_text(history, best_step)} selected", "note")
    words = []
    for kind, name in (("train", "Training"), ("valid", "Validation")):
        points = curves[kind]
        if points:
            plot.path(points, f"curve {kind}")
            for x, y in points if len(points) == 1 else ():
                plot.dot(x, y, f"point {kind}")
            # To the step that was selected: what comes after it only shows why it was.
            last = [y for x, y in points if best_step is None or x <= best_step] or [points[0][1]]
            words.append(f"{name} loss went from {number(points[0][1])} to {number(last[-1])}.")
    if best_step is not None:
        said = _step_text(history, best_step)
        words.append(f"{said[0].upper()}{said[1:]} was selected.")
    summary = " ".join(words)
    return Figure(plot.svg("Loss while learning", summary), summary)


def _step_text(history: Sequence[Mapping[str, float]], at: int) -> str:
    """A step by its number, "epoch 7"; of penalties, whose numbers say nothing, by the penalty too."""
    step = step_name(history)
    penalty = next((entry["l2"] for entry in history if entry.get(step) == at and "l2" in entry), None)
    return f"{step} {at}" if penalty is None else f"penalty {number(penalty)} (step {at} of {len(history)})"


def count_scatter(bags: BagTable, word: str = "known") -> Figure | None:
    """Expected against known count of each bag with its 90 % interval; None if no count is known.

    Args:
        bags: the table.
        word: "known", or "true" if the model was told less than the count.
    """
    if bags.known is None or not np.isfinite(bags.known).any():
        return None
    there = np.flatnonzero(np.isfinite(bags.known))
    known, total = bags.known, len(there)
    held = (bags.low <= known) & (known <= bags.high)
    # Sorted by what is known, then by what is expected: bags of one count stand beside each other as a small slope.
    there = there[np.lexsort((bags.expected[there], known[there]))]
    top, bottom = float(max(known[there].max(), bags.high[there].max(), 1)), float(min(known[there].min(), 0))
    plot = Plot(
        (bottom - 0.5, top + 0.5),
        (bottom, top),
        x_label=f"{word} number of positives",
        y_label="expected number, with 90\u00a0% interval",
        height=350,
        x_whole=True,
        y_whole=True,
    )
    plot.path([(bottom, bottom), (top, top)], "ideal")
    column = 0.75 * (plot.x(1.0) - plot.x(0.0))
    shown, beside = _thinned(known[there], column)
    for place, x in zip(there[shown].tolist(), beside.tolist(), strict=True):
        kind = "held" if held[place] or not bags.exact else "missed"
        plot.upright(x, float(bags.low[place]), float(bags.high[place]), f"interval {kind}")
        hint = (
            f"{bags.names[place]}: {word} {number(float(known[place]))}, expected "
            f"{number(float(bags.expected[place]))}, 90\u00a0% from {bags.low[place]} to {bags.high[place]}"
        )
        plot.dot(x, float(bags.expected[place]), f"bag {kind}", radius=2.3, hint=hint)
    error = float(np.nanmean(np.abs(bags.expected - known)))
    summary = f"On average the expected count is {number(error)} away from the {word} one, over {number(total)} bags."
    if bags.exact:
        summary += f" Bags whose {word} count lies outside their 90\u00a0% interval are orange."
    if len(shown) < total:
        summary += f" The figure shows {number(len(shown))} bags, evenly chosen among those of each count."
    return Figure(plot.svg(f"Expected against {word} count of each bag", summary), summary)


def _thinned(known: Numbers, column: float) -> tuple[NDArray[np.int64], Numbers]:
    """Which bags to draw, and where on x.

    Bags of one count spread over three quarters of its column, as many as can be told apart. The choice is even, and
    does not favour the ends of a column, where the misses are. Columns too narrow for two bags are not spread.

    Args:
        known: (k,) in ascending order.
        column: room for a count, in units of the picture.
    """
    room = int(column / APART)
    if room < 2:
        chosen = _evenly(len(known), MAX_DOTS)
        return chosen, known[chosen]
    places, beside = [], []
    for start, size in zip(*np.unique(known, return_index=True, return_counts=True)[1:], strict=True):
        kept = start + _evenly(int(size), room)
        places.append(kept)
        beside.append(known[kept] + 0.75 * ((np.arange(len(kept)) + 0.5) / len(kept) - 0.5))
    return np.concatenate(places), np.concatenate(beside)


def _evenly(size: int, most: int) -> NDArray[np.int64]:
    """At most so many places of a row, each the middle of its share."""
    number_of = min(size, most)
    middles = (np.arange(number_of) + 0.5) * size / max(number_of, 1)
    return np.floor(middles).astype(np.int64)


def bag_probabilities(bags: BagTable) -> Figure | None:
    """How P(at least one) spreads over positive and over negative bags; None without bag labels."""
    if bags.positive is None or not len(bags):
        return None
    with_one, without = bags.at_least_one[bags.positive], bags.at_least_one[~bags.positive]
    found, cleared = int((with_one > 0.5).sum()), int((without <= 0.5).sum())
    summary = (
        f"{number(found + cleared)} of {number(len(bags))} bags are on their side of 50\u00a0%: {number(found)} of "
        f"{number(len(with_one))} positive ones, {number(cleared)} of {number(len(without))} negative ones."
    )
    plot = _two_histograms(with_one, without, "P(at least one positive)", "bags: with a positive above, without below")
    return Figure(plot.svg("Probability of at least one positive instance, by bag label", summary), summary)


def instance_probabilities(binomial: Binomial) -> Figure | None:
    """How P(positive) spreads over labelled and over unlabelled instances; None if there are none of one kind."""
    labelled, others = binomial.labelled, binomial.unlabelled
    if labelled is None or others is None or not len(labelled) or not len(others):
        return None
    summary = (
        f"{percent(float((labelled > 0.5).mean()))} of {number(len(labelled))} labelled positives and "
        f"{percent(float((others > 0.5).mean()))} of {number(len(others))} unlabelled instances are above 50\u00a0%."
    )
    plot = _two_histograms(labelled, others, "P(positive)", "instances: labelled above, unlabelled below")
    return Figure(plot.svg("Probability of instances to be positive", summary), summary)


def _two_histograms(above: Numbers, below: Numbers, x_label: str, y_label: str) -> Plot:
    """Probabilities of two kinds, one upwards and one downwards."""
    edges = np.linspace(0, 1, 21)
    up, down = (np.histogram(values, edges)[0] for values in (above, below))
    plot = Plot(
        (0.0, 1.0),
        (-float(max(down.max(), 1)), float(max(up.max(), 1))),
        x_label=x_label,
        y_label=y_label,
        height=250,
        x_percent=True,
        y_whole=True,
        two_sided=True,
    )
    for left, right, *heights in zip(edges.tolist(), edges[1:].tolist(), up.tolist(), down.tolist(), strict=False):
        for height, sign, kind in zip(heights, (1, -1), ("known", "off"), strict=True):
            if height:
                plot.bar(left, right, sign * height, kind, f"{height} between {percent(left)} and {percent(right)}")
    plot.path([(0.0, 0.0), (1.0, 0.0)], "axis")
    return plot
