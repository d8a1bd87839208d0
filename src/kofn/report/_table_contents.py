"""What a report says of the columns of a table, gathered: importance, effects, and the order in which columns come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.classes import one_vs_rest
from kofn.estimators._ensemble import mixed
from kofn.estimators._judged import Judged
from kofn.learners._network import FittedNetwork
from kofn.report._column_contents import Importance
from kofn.report._column_effects import column_effects, column_importance
from kofn.report._contents import Report, Task
from kofn.report._examples import leading_columns
from kofn.report._pictures import name_pictures, with_pictures
from kofn.report._row_curves import row_curves
from kofn.report._scope import Drawn

Columns = list[tuple[str, Any]]


def table_contents(
    estimator: Any,
    task: Task,
    judged: Judged,
    shown: Drawn,
    X: Any,
    table: Any,
    labels: Any,
    truth: Any,
    *,
    folder: Path | None = None,
) -> tuple[dict[str, Any], Columns]:
    """Importance and effects of columns, and all columns in the order of their importance. Of two classes.

    Args:
        estimator: fitted.
        task: its task.
        judged: the rows that the report is about.
        shown: those of them that are drawn.
        X: all instances, as they were given.
        table: the same to be read, or a function that gives some of them.
        labels: of the rows that are drawn, or None.
        truth: whether they are positive, if known.
        folder: of image files that columns name.
    """
    values, marginal = estimator._instances(X)[shown.places], estimator._marginal(shown.members)
    columns = leading_columns(shown.given(table), mixed(marginal).numpy())
    bags = None if task == "pu" else shown.bags
    importance = column_importance(estimator, values, labels, bags, seen=_has_seen(estimator, judged))
    columns, matter = _by_importance(columns, importance, getattr(estimator, "feature_names_in_", None))
    effects = column_effects(matter, marginal, truth) if values.ndim == 2 else []
    return {"importance": importance, "effects": effects}, with_pictures(columns, folder)


def class_contents(
    chapters: Sequence[Report],
    estimator: Any,
    judged: Judged,
    shown: Drawn,
    X: Any,
    table: Any,
    labels: Any,
    truth: NDArray[np.int64] | None,
    *,
    folder: Path | None = None,
) -> tuple[list[Report], dict[str, Any], Columns]:
    """The same of several classes: chapters with effects and curves of each class, importance, and the columns."""
    values, members = estimator._instances(X)[shown.places], shown.members
    importance = column_importance(estimator, values, labels, shown.bags, seen=_has_seen(estimator, judged))
    columns = leading_columns(shown.given(table), mixed(members, classes=True).softmax(1).amax(1).numpy())
    columns, matter = _by_importance(columns, importance, getattr(estimator, "feature_names_in_", None))
    found = []
    for code, (chapter, log_odds) in enumerate(zip(chapters, one_vs_rest(members).movedim(1, 0), strict=True)):
        positive = None if truth is None else truth == code
        effects = column_effects(matter, log_odds, positive) if values.ndim == 2 else []
        curves = None if positive is None else row_curves(mixed(log_odds).numpy(), positive)
        found.append(replace(chapter, effects=effects, row_curves=curves))
    return found, {"importance": importance}, with_pictures(columns, folder)


def _has_seen(estimator: Any, judged: Judged) -> bool:
    """Whether the main fit saw the rows. Trees and linear models are fitted again to all bags at last."""
    once = isinstance(estimator.fitted_, FittedNetwork)
    return judged.source == "training" or (judged.source == "held-out" and not once)


def _by_importance(columns: Columns, importance: Importance | None, features: Any) -> tuple[Columns, Columns]:
    """All columns with the most important first, and those whose effects are worth a look.

    Columns that the model was not trained with come last, if their names tell, and have no effects.
    """
    of_model = {str(name) for name in (() if features is None else features)}
    own = [column for column in columns if column[0] in of_model] or columns
    if len(own) < len(columns):
        columns = [*own, *(column for column in columns if column[0] not in of_model)]
    if importance is None:
        return columns, [column for column in own if not name_pictures(column[1])]
    place = {name: rank for rank, name in enumerate(importance.columns)}
    ordered = sorted(columns, key=lambda column: place.get(column[0], len(place)))  # stable: the others as they came
    useful = {name for name, drop in zip(importance.columns, importance.drops, strict=True) if drop > 0}
    return ordered, [column for column in ordered if column[0] in useful] or own
