"""kofn info: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kofn.cli import _options as options
from kofn.cli._app import as_json


def info(model: options.Model, json: options.Json = False) -> None:
    """Show how a model was trained and how good it is.

    \b
    Example:
      kofn info model
    """  # noqa: D301  # \b keeps the lines of the example
    from kofn import estimators
    from kofn.cli._screen import show_estimator, show_model
    from kofn.tables import TableModel
    from kofn.tables._table_model import NoTableError

    try:
        loaded = TableModel.load(model)
    except NoTableError:  # trained in Python, without a table
        estimator = estimators.load(model)
        task = type(estimator).__name__.removesuffix("Classifier").lower()
        if json:
            as_json({"model": str(model), "task": task} | training_facts(estimator))
        else:
            show_estimator(estimator, task, model)
        return
    if json:
        as_json(facts(loaded, model))
    else:
        show_model(loaded, model)


def facts(model: Any, path: Path) -> dict[str, Any]:
    """All about a model, for machines."""
    return (
        {"model": str(path), "task": model.task}
        | training_facts(model.estimator)
        | {
            "bag": model.bag,
            "labels": model.labels,
            "positive": model.positive,
            "copies": model.copies,
            "data": model.data,
            "numeric": model.columns.numeric,
            "categorical": list(model.columns.categories),
            "validation": model.validation,
            "seconds": model.seconds,
        }
    )


def training_facts(estimator: Any) -> dict[str, Any]:
    """How a model was trained, whatever on."""
    from kofn.cli._learner_options import options_of
    from kofn.estimators._saving import NOT_KEPT

    learner = estimator.fitted_learner_
    name = type(learner).__name__.lower()
    return {
        "learner": name,
        "options": {key: getattr(learner, key) for key in options_of(name) if key not in NOT_KEPT},
        "loss": estimator.loss,
        "label_kind": getattr(estimator, "label", None),
        "mixture": _mixture(estimator),
        "bag_effect": estimator.bag_effect_,
        "bag_effect_error": getattr(estimator, "bag_effect_error_", None),
        "bootstrap": len(estimator.members_),
        "steps": len(estimator.history_),
        "best_step": estimator.best_step_,
        "history": estimator.history_,
        "validation_loss": estimator.validation_loss_,
        "baselines": estimator.baselines_,
    }


def _mixture(estimator: Any) -> dict[str, Any] | None:
    """The share of positives among the unlabelled that a model of PU was trained with."""
    from kofn.estimators._mixture import ASSUMPTION

    if not hasattr(estimator, "mixture_"):
        return None
    interval = estimator.mixture_interval_
    told: dict[str, Any] = {"value": estimator.mixture_, "estimated": interval is not None}
    return told if interval is None else told | {"interval": list(interval), "level": 0.9, "assumes": ASSUMPTION}
