"""kofn report: one page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kofn.cli import _options as options
from kofn.cli._outputs import Force, require_writable
from kofn.cli._screen_text import line
from kofn.cli._screen_verdicts import show_verdicts


def report(
    model: options.Model,
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A table to apply the model to, in CSV or Parquet format.")
    ] = None,
    output: Annotated[Path, options.output_option("FILE", "The HTML page to write.")] = Path("report.html"),
    truth: Annotated[str | None, options.text_option("COLUMN", "The column of the rows' true classes.")] = None,
    positive: options.Positive = None,
    title: Annotated[str | None, options.text_option("TEXT", "The heading of the page.")] = None,
    force: Force = False,
) -> None:
    """Write an HTML page about a model and its predictions.

    Without DATA, the page shows how the model was trained. It is one file, which needs no network connection.

    \b
    Examples:
      kofn report model votes.csv -o report.html
      kofn report model test.parquet --truth voted
    """  # noqa: D301  # \b keeps the lines of the example
    if data is None and truth is not None:
        raise ValueError("--truth names a column of DATA. Name the table too.")
    require_writable(output, force=force, inputs=(model, data))
    from kofn.report import write
    from kofn.tables import TableFile, TableModel, report_table

    if data is not None:
        TableFile(data)
    loaded = TableModel.load(model)
    made = report_table(loaded, data, truth=truth, positive=positive, title=title)
    write(made, output)
    show_verdicts(made.verdicts)
    line(f"wrote {output}")
