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
    second: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="Another one, to compare it with.", parser=options.path)
    ] = None,
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="A table in CSV or Parquet format to apply them to.", parser=options.path),
    ] = None,
    output: Annotated[Path, options.output_option("FILE", "The HTML page to write.")] = Path("report.html"),
    truth: Annotated[str | None, options.text_option("COLUMN", "The column of the rows' true classes.")] = None,
    positive: options.Positive = None,
    title: Annotated[str | None, options.text_option("TEXT", "The heading of the page.")] = None,
    force: Force = False,
) -> None:
    """Write an HTML page about a model and its predictions, or about two models.

    The page begins with whether to trust the model, which is also printed. On the training table it is about held-out
    bags. Without DATA, it shows how the model was trained. With two models, it says which is better, bag by bag. It is
    one file, which needs no network connection.

    \b
    Examples:
      kofn report model votes.csv -o report.html
      kofn report model test.parquet --truth voted
      kofn report trees linear test.csv -o compare.html
    """  # noqa: D301  # \b keeps the lines of the example
    if data is None:  # of two files the second is the table
        second, data = None, second
    if data is None and truth is not None:
        raise ValueError("--truth names a column of DATA. Name the table too.")
    from kofn.report import write
    from kofn.tables import TableFile, TableModel, compare_tables, report_table

    paths = [model] if second is None else [model, second]
    models = [TableModel.load(path) for path in paths]
    if data is not None:
        TableFile(data)
    require_writable(output, force=force, inputs=(*paths, data))
    if data is not None and len(models) == 2:
        names = [str(path.name if paths[0].name != paths[1].name else path) for path in paths]
        made = compare_tables(models[0], models[1], data, names=names, truth=truth, positive=positive, title=title)
    else:
        made = report_table(models[0], data, truth=truth, positive=positive, title=title)
    write(made, output)
    show_verdicts(made.verdicts)
    line(f"wrote {output}")
