"""One screen for people: what was learned, from what, how well, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kofn.cli._screen_mixture import show_mixture, show_sensitivity
from kofn.cli._screen_text import line, listed, shell_command

BASELINES = {"no features": "Baseline without features", "bag means": "Baseline on bag means"}


def show_fit(model: Any, path: Path) -> None:
    """The screen after a fit."""
    show_model(model, path)
    bag = ("--bag", model.bag) if model.bag else ()
    line()
    line(f"next       {shell_command('kofn', 'predict', path, model.data['file'], *bag, '-o', 'predictions.csv')}")


def show_model(model: Any, path: Path) -> None:
    """What a model is and how good it was on validation data."""
    data, columns, estimator = model.data, model.columns, model.estimator
    sizes = data.get("sizes")
    spread = "" if not sizes else f" of {' to '.join(map(str, sorted(set(sizes))))}"
    bags = f", {data['bags']:,} bags{spread}" if data.get("bags") else ""
    kinds = f"{_named(columns.numeric, 'numeric')}; {_named(list(columns.categories), 'text')}"
    line(f"model      {path}: {_kind(model.task, estimator)}, trained in {model.seconds:.1f} s")
    line(f"data       {data['file']}: {data['rows']:,} rows{bags}")
    line(f"features   {len(columns.names)} columns ({kinds})")
    copies = "" if model.copies is None else f"; a row stands for {model.copies} instances"
    line(f"label      {', '.join(model.labels)}{_label_kind(model)}{copies}")
    show_mixture(estimator)
    _show_curve(estimator)
    found = model.validation
    counted = f"{found['bags']:,} bags" if "bags" in found else f"{found['rows']:,} rows"
    line()
    line(f"Measured on {found['on']}, {counted}")
    _show_losses(estimator)
    if estimator.validation_loss_ is not None and estimator.loss == "count":  # the likelihood is this loss, turned
        found = {name: value for name, value in found.items() if not name.startswith("log_likelihood")}
    show_measures(found)
    show_sensitivity(found)


def show_estimator(estimator: Any, task: str, path: Path) -> None:
    """The same of a model that was trained in Python, which knows no table."""
    line(f"model      {path}: {_kind(task, estimator)}")
    line("data       not a table: the model was trained in Python")
    line(f"features   {' x '.join(map(str, estimator.instance_shape_))}")
    show_mixture(estimator)
    _show_curve(estimator)
    if estimator.validation_loss_ is not None:
        from kofn.estimators._judged import held_out_words

        line()
        line(f"Measured on {held_out_words(estimator)}")
        _show_losses(estimator)


def show_measures(measures: Mapping[str, Any]) -> None:
    """Measures, one a line."""
    from kofn.estimators._measure_names import MEASURES

    for name, about in MEASURES.items():
        if name in measures:
            _line(about.name, measures[name])
    if "confusion" in measures:
        _show_confusion(measures["confusion"])


def _show_confusion(rows: Mapping[str, Mapping[str, int]]) -> None:
    """A line for each true class, a column for each predicted one."""
    width = max(10, *(len(name) + 2 for name in rows))
    line()
    line("True class, by predicted class")
    line(" " * width + "".join(f"{name:>{width}}" for name in rows))
    for name, row in rows.items():
        line(f"{name:<{width}}" + "".join(f"{number:>{width},}" for number in row.values()))


class FoldTable:
    """Folds as they come, a line each, then their mean and spread.

    Args:
        of: what is held out, in words.
    """

    def __init__(self, of: str) -> None:
        self._of = of
        self._columns: list[tuple[str, str]] = []  # a method and a measure

    def fold(self, number: int, measures: Mapping[str, Mapping[str, float]]) -> None:
        """The line of a fold, and before the first the heading."""
        if not self._columns:
            self._columns = [(name, "loss") for name in measures]
            self._columns += [(name, "bag_auc") for name, found in measures.items() if "bag_accuracy" in found]
            names = [f"{name}{'' if measure == 'loss' else ' AUC'}" for name, measure in self._columns]
            line(f"Mean loss of held-out {self._of}" + (", and AUC of bags" if len(names) > len(measures) else ""))
            self._row("fold", names)
        self._row(str(number + 1), (_number(measures[name].get(measure)) for name, measure in self._columns))

    def summary(self, found: Mapping[str, Any]) -> None:
        """The last lines."""
        for word in ("mean", "spread"):
            means = (found["summary"][name].get(measure, {}) for name, measure in self._columns)
            self._row(word, (_number(mean.get(word)) for mean in means))

    def _row(self, first: str, cells: Iterable[str]) -> None:
        line(f"{first:<8}" + "".join(f"{cell:>14}" for cell in cells))


def _number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.4f}"


def _line(words: str, value: float) -> None:
    line(f"  {words:<42}{value:>10.4f}")


def _named(columns: list[str], kind: str) -> str:
    """How many columns of a kind there are, and the first of them: an identifier among the numbers is seen here."""
    return f"{len(columns)} {kind}: {listed(columns)}" if columns else f"0 {kind}"


def _kind(task: str, estimator: Any) -> str:
    loss = getattr(estimator, "loss_", estimator.loss)
    bootstrap = f", {len(estimator.members_)} bootstrap fits" if estimator.members_ else ""
    return f"{task}, {type(estimator.fitted_learner_).__name__.lower()}, loss {loss}{_bag_effect(estimator)}{bootstrap}"


def _bag_effect(estimator: Any) -> str:
    error = getattr(estimator, "bag_effect_error_", None)
    if not estimator.bag_effect_ and error is None:
        return ""
    return f", bag effect {estimator.bag_effect_:.3g}" + ("" if error is None else f" (standard error {error:.2g})")


def _label_kind(model: Any) -> str:
    labelled = model.data.get("labelled")  # files of before have none
    if isinstance(labelled, int):
        return f" ({labelled:,} labelled positives, {model.data['rows'] - labelled:,} unlabelled)"
    if model.task != "llp":
        return ""
    noise = f" with noise {model.estimator.noise}" if model.estimator.noise else ""
    classes = "s of each class" if len(model.labels) > 1 and model.estimator.label != "interval" else ""
    return f" ({model.estimator.label}{classes}{noise} of the bag)"


def _show_losses(estimator: Any) -> None:
    """The validation loss, and that of the baselines on the same bags."""
    if estimator.validation_loss_ is not None:
        _line("Validation loss", estimator.validation_loss_)
        for name, loss in estimator.baselines_.items():
            _line(BASELINES.get(name, name), loss)


def _show_curve(estimator: Any) -> None:
    """The training curve in at most eight lines: first, last, best, and some between."""
    from kofn.learners._learner import step_name

    history = estimator.history_
    if not history:  # a learner of the user's own need not have steps
        return
    line()
    line(f"{step_name(history).capitalize():<8}training loss   validation loss")
    best = estimator.best_step_
    steps = {round(i * (len(history) - 1) / 6) for i in range(7)}
    for place in sorted(steps if best is None else steps | {best - 1}):
        entry = history[place]
        losses = (_number(entry.get(name)) for name in ("train_loss", "val_loss"))
        step = f"{entry['l2']:.3g}" if "l2" in entry else str(place + 1)
        line("{:<8}{:>13}{:>18}".format(step, *losses) + ("  selected" if place + 1 == best else ""))
