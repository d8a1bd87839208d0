"""Which columns of a table matter to a model, and how its probabilities go with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._count_errors import LEVEL
from kofn.estimators._ensemble import group_sums, interval_of, mixed
from kofn.estimators._permutation import permutation_importance
from kofn.estimators._value_groups import MISSING, value_groups
from kofn.report._column_contents import ColumnEffect, Importance
from kofn.report._plot import number

EFFECTS = 6  # columns whose effect is drawn
MOST_GROUPS = 12  # of one column
LIKELIHOOD, ORDER = "log-likelihood of a bag's label", "AUC of labelled positives against unlabelled rows"


def column_importance(
    estimator: Any, values: Any, labels: Any, bags: Bags | None, *, seen: bool = False
) -> Importance | None:
    """The permutation importance of columns; None for images, or without labels to measure by.

    Args:
        estimator: fitted.
        values: (n, columns) rows as the learner takes them.
        labels: of the rows, or None.
        bags: of the rows; None for positives and unlabelled.
        seen: whether the model was fitted to these rows.
    """
    if values.ndim != 2 or labels is None or not len(values):
        return None
    found = permutation_importance(estimator, values, labels, bags)
    if found is None or not len(found.columns):
        return None
    on = f"{number(found.rows)} rows"
    if found.bags is not None:
        on = (
            f"{number(found.bags)} {'bag' if found.bags == 1 else 'bags'} of {on}{'' if found.bags == 1 else ' in all'}"
        )
    all_of = values.shape[1]
    times = "once" if found.repeats == 1 else f"{found.repeats} times"
    note = f"Each column was shuffled {times}, on {on}."
    if estimator.members_:
        note += " Measured is the main fit, without its bootstrap."
    if found.used < all_of:
        note += f" The model's scores depend on {number(found.used)} of {number(all_of)} columns."
    if len(found.columns) < found.used:
        note += f" Measured are the {len(found.columns)} that move the scores most."
    if seen:
        note += " The model was fitted to these rows, too: this is what it relies on, not what would hold of others."
    names = column_names(estimator, all_of)
    leading = [names[place] for place in found.columns.tolist()]
    drops, low, high = np.array([(one.mean, one.low, one.high) for one in found.drops]).T
    return Importance(leading, drops, low, high, ORDER if bags is None else LIKELIHOOD, note, seen)


def column_names(estimator: Any, columns: int) -> list[str]:
    """The names of the columns that a model was fitted to, or x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{place}" for place in range(columns)] if names is None else [str(name) for name in names]


def column_effects(
    columns: Sequence[tuple[str, Any]], log_odds: Tensor, truth: NDArray[np.bool_] | None
) -> list[ColumnEffect]:
    """The mean probability of rows by the values of the first six columns, as `kofn effect` has it.

    Args:
        columns: names and values, (n,) each, the most important first.
        log_odds: (B, n) of rows, in a bag of which nothing is known, by each of B models.
        truth: (n,) whether rows are positive, if known.
    """
    found = []
    for name, column in columns:
        effect = _effect(name, column, log_odds, truth)
        if effect is not None:
            found.append(effect)
        if len(found) == EFFECTS:
            break
    return found


def _effect(name: str, column: Any, log_odds: Tensor, truth: NDArray[np.bool_] | None) -> ColumnEffect | None:
    """The effect of one column; None if its values make no groups."""
    try:
        codes, names = value_groups(column, name)
    except ValueError:  # neither numbers nor text
        return None
    rows = np.bincount(codes, minlength=len(names))
    there = np.flatnonzero(rows)
    if len(there) < 2:
        return None
    note = ""
    if len(there) > MOST_GROUPS:  # of numbers there are fewer: these are words, and may be names
        there = np.sort(np.argsort(-rows, kind="stable")[:MOST_GROUPS])
        note = f"The {MOST_GROUPS} most frequent of {number(int((rows > 0).sum()))} values."
    log_p, log_q = group_sums(log_odds, torch.from_numpy(codes), len(names))
    each = (log_p - log_q)[:, torch.from_numpy(there)]
    low, high = (None, None) if len(each) == 1 else interval_of(each, LEVEL)
    observed = None if truth is None else np.bincount(codes, truth, minlength=len(names))[there] / rows[there]
    shown = ["missing" if names[place] == MISSING else names[place] for place in there.tolist()]
    return ColumnEffect(name, shown, rows[there], mixed(each).sigmoid().numpy(), low, high, observed, note)
