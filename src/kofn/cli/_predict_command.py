"""kofn predict: probabilities of rows, or laws of counts of bags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kofn.cli import _options as options
from kofn.cli._app import as_json


def predict(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="CSV or Parquet, by its extension.")],
    bag: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Write one line a bag instead: the distribution of its count.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Columns of DATA to repeat beside each probability.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the probability of each row to be positive or, with --bag, how many of each bag are.

    A bag's line has its size, the mean of its count, the ends (low, high) of its central 90 % interval and the
    probability that at least one row is positive. An attention model has only the latter.

    \b
    Examples:
      kofn predict model new.csv --keep id -o rows.csv
      kofn predict model new.parquet --bag county -o counties.csv
    """  # noqa: D301  # \b keeps the lines of the example
    if bag is not None and keep is not None:
        raise ValueError("--keep repeats columns of rows, and --bag writes bags. Leave one of them out.")
    from kofn.tables import TableFile, TableModel, check_output, predict_bags, predict_rows

    check_output(output)
    TableFile(data)
    loaded = TableModel.load(model)
    if bag is None:
        lines = predict_rows(loaded, data, output, keep=keep)
    else:
        lines = predict_bags(loaded, data, output, bag=bag)
    what = "rows" if bag is None else "bags"
    if json:
        as_json({"output": str(output), what: lines})
    else:
        typer.echo(f"{output}: {lines:,} {what}")
