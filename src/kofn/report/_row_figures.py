"""Figures of rows against their true classes: reliability, lift, precision and recall."""

from __future__ import annotations

import numpy as np

from kofn.report._column_contents import RowCurves
from kofn.report._figures import Figure
from kofn.report._plot import SMALL, Plot, number, percent

HEIGHT = 265


def reliability_curve(curves: RowCurves) -> Figure:
    """The share of rows that is positive against the probability that they were given."""
    plot = Plot((0.0, 1.0), (0.0, 1.0), x_label="mean probability", y_label="truly positive", height=HEIGHT,
                width=SMALL, x_percent=True, y_percent=True)  # fmt: skip
    plot.path([(0.0, 0.0), (1.0, 1.0)], "ideal")
    # Two standard deviations of a share of so many rows: what chance alone may do.
    slack = 2 * np.sqrt(curves.observed * (1 - curves.observed) / np.maximum(curves.members, 1))
    for x, y, room, rows in zip(curves.expected, curves.observed, slack, curves.members, strict=True):
        plot.upright(float(x), max(float(y - room), 0.0), min(float(y + room), 1.0), "interval held")
        hint = f"{number(int(rows))} rows of about {percent(float(x))}: {percent(float(y))} are positive"
        plot.dot(float(x), float(y), "point valid", radius=3.0, hint=hint)
    gap = float(np.average(np.abs(curves.expected - curves.observed), weights=curves.members))
    summary = (
        f"On average the mean probability of a group of rows is {number(100 * gap)} percentage points away from the "
        f"share of them that is positive: {number(curves.rows)} rows in {len(curves.members)} groups."
    )
    return Figure(plot.svg("Reliability of the probabilities of rows", summary), summary)


def lift_curve(curves: RowCurves) -> Figure:
    """How many times as many positives the most probable rows hold as random ones."""
    plot = Plot((0.0, 1.0), (0.0, max(float(curves.lift.max()), 1.2) * 1.04), x_label="rows taken, most probable first",
                y_label="lift", height=HEIGHT, width=SMALL, x_percent=True)  # fmt: skip
    plot.path([(0.0, 1.0), (1.0, 1.0)], "ideal")
    plot.path(list(zip(curves.taken.tolist(), curves.lift.tolist(), strict=True)), "curve valid")
    place = int(np.abs(curves.taken - 0.1).argmin())
    part, lift = float(curves.taken[place]), float(curves.lift[place])
    plot.dot(part, lift, "point valid", hint=f"the first {percent(part)}: lift {number(lift)}")
    summary = (
        f"The most probable {percent(part)} of the rows hold {number(lift)} times as many positives as a random "
        f"{percent(part)}: {percent(float(curves.recall[place]))} of all positives."
    )
    return Figure(plot.svg("Lift of the most probable rows", summary), summary)


def precision_recall_curve(curves: RowCurves) -> Figure:
    """Precision against recall, as more rows are taken."""
    plot = Plot((0.0, 1.0), (0.0, 1.0), x_label="recall", y_label="precision", height=HEIGHT, width=SMALL,
                x_percent=True, y_percent=True)  # fmt: skip
    plot.path([(0.0, curves.share), (1.0, curves.share)], "ideal")
    points = list(zip(curves.recall.tolist(), curves.precision.tolist(), strict=True))
    plot.path(points, "curve valid")
    place = int(np.searchsorted(curves.recall, 0.5))  # all rows hold all positives, so that there is such a place
    recall, precision = points[place]
    plot.dot(recall, precision, "point valid", hint=f"recall {percent(recall)}: precision {percent(precision)}")
    summary = (
        f"Where {percent(recall)} of the positives are found, {percent(precision)} of the rows taken are positive; of "
        f"all rows {percent(curves.share)} are."
    )
    return Figure(plot.svg("Precision and recall of rows", summary), summary)
