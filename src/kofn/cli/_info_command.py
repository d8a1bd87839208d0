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
    estimator = model.estimator
    return {
        "model": str(path),
        "task": model.task,
        "loss": estimator.loss,
        "label_kind": getattr(estimator, "label", None),
        "bag": model.bag,
        "labels": model.labels,
        "positive": model.positive,
        "data": model.data,
        "features": model.encoder.feature_names,
        "numeric": model.encoder.numeric,
        "categorical": model.encoder.categorical,
        "epochs": len(estimator.history_),
        "best_epoch": estimator.best_epoch_,
        "history": estimator.history_,
        "validation": model.validation,
        "seconds": model.seconds,
    }
