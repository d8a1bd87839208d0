"""One screen for people: what was learned, from what, how well, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer


def show_fit(model: Any, path: Path) -> None:
    """The screen after a fit."""
    show_model(model, path)
    bag = f" --bag {model.bag}" if model.bag else ""
    typer.echo(f"\nnext       kofn predict {path} {model.data['file']}{bag} -o predictions.csv")


def show_model(model: Any, path: Path) -> None:
    """What a model is and how good it was on validation data."""
    data, encoder = model.data, model.encoder
    sizes = data.get("sizes")
    spread = "" if not sizes else f" of {sizes[0]}" if sizes[0] == sizes[1] else f" of {sizes[0]} to {sizes[1]}"
    bags = f", {data['bags']:,} bags{spread}" if data.get("bags") else ""
    kinds = f"{_named(encoder.numeric, 'numeric')}; {_named(encoder.categorical, 'text')}"
    typer.echo(f"model      {path}: {model.task}, loss {model.estimator.loss}, trained in {model.seconds:.1f} s")
    typer.echo(f"data       {data['file']}: {data['rows']:,} rows{bags}")
    typer.echo(f"features   {len(encoder.feature_names)} from {len(encoder.columns)} columns ({kinds})")
    typer.echo(f"label      {', '.join(model.labels)}{_label_kind(model)}")
    _show_curve(model.estimator)
    counted = (
        f"{model.validation['bags']:,} bags" if "bags" in model.validation else f"{model.validation['rows']:,} rows"
    )
    typer.echo(f"\nmeasured on {model.validation['on']}, {counted}")
    show_measures(model.validation)


def _named(columns: list[str], kind: str) -> str:
    """How many columns of a kind there are, and the first of them: an identifier among the numbers is seen here."""
    first = ", ".join(columns[:6]) + (", ..." if len(columns) > 6 else "")
    return f"{len(columns)} {kind}: {first}" if columns else f"0 {kind}"


def show_measures(measures: Mapping[str, Any]) -> None:
    """Measures, one a line."""
    from kofn.tables._measures import MEASURE_NAMES

    for name, words in MEASURE_NAMES.items():
        if name in measures:
            typer.echo(f"  {words:<36}{measures[name]:>10.4f}")


def _label_kind(model: Any) -> str:
    if model.task != "llp":
        return ""
    noise = f" with noise {model.estimator.noise}" if model.estimator.noise else ""
    return f" ({model.estimator.label}{noise} of the bag)"


def _show_curve(estimator: Any) -> None:
    """The training curve in at most eight lines: first, last, best, and some between."""
    history = estimator.history_
    typer.echo("\nepoch   training loss   validation loss")
    steps = {round(i * (len(history) - 1) / 6) for i in range(7)}
    best = next((i for i, entry in enumerate(history) if entry["epoch"] == estimator.best_epoch_), None)
    for place in sorted(steps | ({best} if best is not None else set())):
        entry = history[place]
        valid = f"{entry['val_loss']:>18.4f}" if "val_loss" in entry else f"{'-':>18}"
        mark = "  kept" if place == best else ""
        typer.echo(f"{entry['epoch'] + 1:>5}{entry['train_loss']:>16.4f}{valid}{mark}")
