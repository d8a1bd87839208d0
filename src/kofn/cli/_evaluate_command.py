"""kofn evaluate: how good a model is on other data."""

from __future__ import annotations

from typing import Annotated

from kofn.cli import _options as options
from kofn.cli._app import as_json
from kofn.cli._screen_text import line


def evaluate(
    model: options.Model,
    data: options.Data,
    truth: Annotated[str | None, options.text_option("COLUMN", "The column of the rows' true classes.")] = None,
    positive: options.Positive = None,
    bag: Annotated[
        str | None, options.text_option("COLUMNS", "The columns of bags. By default, as in training.")
    ] = None,
    label: Annotated[
        str | None, options.text_option("COLUMN", "The column of labels. By default, as in training.")
    ] = None,
    copies: options.CopiesAsTrained = None,
    json: options.Json = False,
) -> None:
    """Evaluate a model on a table with labels.

    With --truth, these are the true classes of rows; without it, labels like those that the model was trained on. With
    several classes, --truth also shows which classes are taken for which.

    \b
    Examples:
      kofn evaluate model test.csv --truth voted
      kofn evaluate model test.csv
    """  # noqa: D301  # \b keeps the lines of the example
    if truth is not None and any(column is not None for column in (bag, label, copies)):
        raise ValueError("--truth evaluates rows; --bag, --label and --copies evaluate bags. Leave one of them out.")
    if truth is None and positive is not None:
        raise ValueError("--positive says which value of --truth is positive. Name that column with --truth.")
    from kofn.tables import TableFile, TableModel, evaluate_bags, evaluate_rows

    TableFile(data)
    loaded = TableModel.load(model)
    if truth is not None:
        measures = evaluate_rows(loaded, data, truth=truth, positive=positive)
    else:
        measures = evaluate_bags(loaded, data, bag=bag, label=label, copies=copies)
    if json:
        as_json(measures)
        return
    from kofn.cli._screen import show_measures

    counted = f"{measures['bags']:,} bags, " if "bags" in measures else ""
    known = measures.get("known_rows", measures["rows"])
    told = f", {known:,} of them with a true class" if known < measures["rows"] else ""
    line(f"{data}: {counted}{measures['rows']:,} rows{told}")
    if measures["trained_on"]:
        line("The model was trained on these data: others are measured worse. For held-out data: kofn report.")
    show_measures(measures)
    if "selection" in measures:
        line()
        line(measures["selection"])
