"""Reliability, lift, precision and recall of rows whose true classes are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kofn import metrics
from kofn.report._column_contents import RowCurves

GROUPS = 10  # of rows of like probability
FEWEST = 20  # rows of a group, so that its share means something
# From the top hundredth to all: closer where decisions are made.
TAKEN = np.unique(np.concatenate([np.arange(1, 21) / 100, np.arange(5, 21) / 20]))


def row_curves(log_odds: NDArray[np.float64], positive: NDArray[np.bool_]) -> RowCurves | None:
    """The curves of log-odds, (n,); None unless there are rows of both classes.

    Groups of the reliability curve have equally many rows. Lift and recall are `kofn.metrics.lift` and `recall_at` of
    the scores of positives among those of all rows; precision is the share of positives times the lift.

    Examples:
        >>> curves = row_curves(np.arange(100.0), np.arange(100) >= 75)
        >>> float(curves.lift[0]), float(curves.precision[-1])
        (4.0, 0.25)
    """
    number, positives = len(log_odds), int(positive.sum())
    if not 0 < positives < number:
        return None
    share = positives / number
    probability = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    order = np.argsort(log_odds, kind="stable")
    groups = np.array_split(order, max(min(GROUPS, number // FEWEST), 1))
    taken = TAKEN[TAKEN * number >= 1]  # less than a row is nothing
    recall = np.array([metrics.recall_at(log_odds[positive], log_odds, float(part)) for part in taken])
    return RowCurves(
        number,
        share,
        np.array([probability[group].mean() for group in groups]),
        np.array([positive[group].mean() for group in groups]),
        np.array([len(group) for group in groups]),
        taken,
        recall / taken,
        recall,
        share * recall / taken,
    )
