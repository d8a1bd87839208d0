"""kofn info: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kofn.cli import _options as options
from kofn.cli._app import as_json


def info(model: options.Model, json: options.Json = False) -> None:
    """Show what a model learned from, how, and how good it was on held-out data.

    \b
    Example:
      kofn info model
    """  # noqa: D301  # \b keeps the lines of the example
    from kofn.tables import TableModel

    loaded = TableModel.load(model)
    if json:
        as_json(facts(loaded, model))
        return
    from kofn.cli._screen import show_model

    show_model(loaded, model)


def facts(model: Any, path: Path) -> dict[str, Any]:
    """All about a model, for machines."""
    from kofn.cli._learner_options import options_of
    from kofn.estimators._saving import NOT_KEPT

    estimator = model.estimator
    learner = estimator.fitted_learner_
    name = type(learner).__name__.lower()
    return {
        "model": str(path),
        "task": model.task,
        "learner": name,
        "options": {key: getattr(learner, key) for key in options_of(name) if key not in NOT_KEPT},
        "loss": estimator.loss,
        "label_kind": getattr(estimator, "label", None),
        "bag": model.bag,
        "labels": model.labels,
        "positive": model.positive,
        "data": model.data,
        "numeric": model.columns.numeric,
        "categorical": list(model.columns.categories),
        "steps": len(estimator.history_),
        "best_step": estimator.best_step_,
        "history": estimator.history_,
        "validation_loss": estimator.validation_loss_,
        "baselines": estimator.baselines_,
        "validation": model.validation,
        "seconds": model.seconds,
    }
