"""kofn evaluate: how good a model is on other data."""

from __future__ import annotations

from typing import Annotated

import typer

from kofn.cli import _options as options
from kofn.cli._app import as_json


def evaluate(
    model: options.Model,
    data: options.Data,
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the rows' true classes, where they are known.")
    ] = None,
    positive: options.Positive = None,
    bag: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of bags; by default as in training.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of labels; by default as in training.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure a model against the truth about rows (--truth), or against labels such as it learned from.

    \b
    Examples:
      kofn evaluate model test.csv --truth voted
      kofn evaluate model test.csv
    """  # noqa: D301  # \b keeps the lines of the example
    if truth is not None and (bag is not None or label is not None):
        raise ValueError("--truth measures rows, --bag and --label measure bags. Leave one of them out.")
    if truth is None and positive is not None:
        raise ValueError("--positive says which value of --truth is positive. Name that column with --truth.")
    from kofn.tables import TableFile, TableModel, evaluate_bags, evaluate_rows

    TableFile(data)
    loaded = TableModel.load(model)
    if truth is not None:
        measures = evaluate_rows(loaded, data, truth=truth, positive=positive)
    else:
        measures = evaluate_bags(loaded, data, bag=bag, label=label)
    if json:
        as_json(measures)
        return
    from kofn.cli._screen import show_measures

    counted = f"{measures['bags']:,} bags, " if "bags" in measures else ""
    typer.echo(f"{data}: {counted}{measures['rows']:,} rows")
    show_measures(measures)
