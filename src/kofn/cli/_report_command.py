"""kofn report: one page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kofn.cli import _options as options


def report(
    model: options.Model,
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="Table to look at it on, in CSV or Parquet.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Page to write.")] = Path(
        "report.html"
    ),
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the rows' true classes, where they are known.")
    ] = None,
    positive: options.Positive = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
) -> None:
    """Write one HTML page about a model: what it learned and, with DATA, what it says of their bags. No network needed.

    \b
    Examples:
      kofn report model votes.csv -o report.html
      kofn report model test.parquet --truth voted
    """  # noqa: D301  # \b keeps the lines of the example
    if data is None and truth is not None:
        raise ValueError("--truth is a column of DATA. Name the table too.")
    if output.is_dir():
        raise ValueError(f"{output} is a folder. Name the page: -o {output / 'report.html'}.")
    from kofn.report import write
    from kofn.tables import TableFile, TableModel, report_table

    if data is not None:
        TableFile(data)
    loaded = TableModel.load(model)
    write(report_table(loaded, data, truth=truth, positive=positive, title=title), output)
    typer.echo(f"wrote {output}")
