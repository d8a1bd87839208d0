"""Names and values of a fitted model: what was trained, on what, and how."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofn.estimators import PUClassifier
from kofn.estimators._count_errors import LEVEL
from kofn.estimators._mixture import ASSUMPTION
from kofn.learners._learner import step_name
from kofn.report._contents import BagTable, Task
from kofn.report._plot import percent

TASKS: dict[Task, str] = {"llp": "Label proportions", "mil": "Multiple instances", "pu": "Positive and unlabelled"}

STEPS = {"round": "Rounds", "epoch": "Epochs", "penalty": "Penalties"}


def bootstrap_facts(estimator: Any, X: Any, rows: int) -> list[tuple[str, str]]:
    """How many fits there are to resampled bags, and how sure they are of the mean probability of all rows."""
    if not estimator.members_ or not rows:
        return []
    low, high = estimator.predict_interval(X, LEVEL, groups=np.zeros(rows, dtype=np.int64), mean=True)
    names = estimator.classes_.tolist() if len(estimator.classes_) > 2 else [""]
    ends = zip(names, np.ravel(low), np.ravel(high), strict=True)
    told = ", ".join(f"{name}{' ' if name != '' else ''}{percent(a)} to {percent(b)}" for name, a, b in ends)
    return [("Bootstrap", f"{len(estimator.members_)} fits"), (f"Mean probability, {percent(LEVEL)} interval", told)]


def _mixture_text(estimator: PUClassifier) -> str:
    """How much of the unlabelled is positive and, if that was estimated, how well it is known."""
    if estimator.mixture_interval_ is None:
        return f"{estimator.mixture_:.3g}"
    low, high = estimator.mixture_interval_
    return (
        f"{estimator.mixture_:.3g}, 90\u00a0% interval {low:.3g} to {high:.3g}: estimated, which assumes that "
        f"{ASSUMPTION}"
    )


def model_facts(estimator: Any, task: Task, rows: int, table: BagTable | None) -> list[tuple[str, str]]:
    """What was trained, on what, and how."""
    found = [
        ("Task", TASKS[task]),
        ("Loss", str(getattr(estimator, "loss_", estimator.loss))),
        ("Instances", f"{rows:,}"),
    ]
    if table is not None:
        sizes = table.sizes
        spread = f"{sizes.min():,}" if sizes.min() == sizes.max() else f"{sizes.min():,} to {sizes.max():,}"
        found += [("Bags", f"{len(table):,}"), ("Bag size", spread)]
    if hasattr(estimator, "n_features_in_"):
        found.append(("Features", f"{estimator.n_features_in_:,}"))
    found.append(("Learner", type(estimator.fitted_learner_).__name__.lower()))
    if estimator.history_:
        steps = f"{estimator.best_step_ or len(estimator.history_):,}"
        found.append((STEPS.get(step_name(estimator.history_), "Steps"), steps))
    if estimator.bag_effect_:
        found.append(("Bag effect", f"{estimator.bag_effect_:.3g}"))
    if task == "pu":
        found.append(("Mixture", _mixture_text(estimator)))
    if estimator.random_state is not None:
        found.append(("Random seed", str(estimator.random_state)))
    return found
