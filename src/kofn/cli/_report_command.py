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
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL [MODEL] [DATA]",
            help="A model file that kofn fit wrote, or two to compare; and a table to apply them to, in CSV or Parquet "
            "format.",
            parser=options.path,
        ),
    ],
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
    if len(paths) > 3:
        raise ValueError(f"MODEL [MODEL] [DATA] are at most two models and a table; got {len(paths)} files.")
    model, data = paths[0], paths[-1] if len(paths) > 1 else None
    if data is None and truth is not None:
        raise ValueError("--truth names a column of DATA. Name the table too.")
    require_writable(output, force=force, inputs=tuple(paths))
    from kofn.report import write
    from kofn.tables import TableFile, TableModel, compare_tables, report_table

    if data is not None:
        TableFile(data)
    loaded = TableModel.load(model)
    if len(paths) == 3:
        second = TableModel.load(paths[1])
        names = [str(path.name if paths[0].name != paths[1].name else path) for path in paths[:2]]
        made = compare_tables(loaded, second, paths[2], names=names, truth=truth, positive=positive, title=title)
    else:
        made = report_table(loaded, data, truth=truth, positive=positive, title=title)
    write(made, output)
    show_verdicts(made.verdicts)
    line(f"wrote {output}")
