"""kofn effect: the mean probability of groups of rows, and how sure the model is of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kofn.cli import _options as options
from kofn.cli._app import as_json
from kofn.cli._outputs import Force, require_writable
from kofn.cli._screen_text import line

MOST = 60  # groups on a screen


def effect(
    model: options.Model,
    data: options.Data,
    by: Annotated[
        list[str],
        options.text_option(
            "COLUMNS", "The column to group rows by. With several, their combinations. May be repeated."
        ),
    ],
    interval: options.Interval = None,
    copies: options.CopiesAsTrained = None,
    output: Annotated[
        Path | None, options.output_option("OUT", "The table to write: CSV or Parquet, by its extension.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The figure to write: .svg or .png.", parser=options.path)
    ] = None,
    force: Force = False,
    json: options.Json = False,
) -> None:
    """Show the mean probability of groups of rows, such as P(vote | age).

    It is the mean of the rows' predicted probabilities, and ignores the result of each row's bag: a group in a bag with
    a high count has the same number as in one with a low count. For probabilities that use the result of the bag, see
    kofn predict --posterior.

    DATA needs the model's columns, but no labels and no bags. A column with many different numbers is cut into bins
    with round ends.

    A model that was fitted with --bootstrap also shows confidence intervals, at level 0.9 unless --interval gives
    another. They say how far another sample of bags could have moved the model.

    \b
    Examples:
      kofn effect model votes.csv --by age
      kofn effect model votes.csv --by age --by district --figure effect.svg
      kofn effect model votes.csv --by age --interval 0.95 -o effect.csv
    """  # noqa: D301  # \b keeps the lines of the example
    from kofn.tables import TableFile, TableModel, check_output, draw_effect, effect_of, write_table
    from kofn.tables._effect_figure import require_figure

    if output is not None:
        check_output(output)
        require_writable(output, force=force, inputs=(model, data))
    if figure is not None:
        require_figure(figure)
        require_writable(figure, force=force, inputs=(model, data), option="--figure")
    TableFile(data)
    found = effect_of(TableModel.load(model), data, by=by, copies=copies, interval=interval)
    if figure is not None:
        draw_effect(found, figure)  # first: it may have more groups than can be drawn
    if output is not None:
        write_table(output, [found.columns()])
    if json:
        columns = {name: values.tolist() for name, values in found.columns().items()}
        groups = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        as_json({"by": found.by, "averaged": found.averaged, "level": found.level, "groups": groups})
        return
    _show(found)
    for target in (output, figure):
        if target is not None:
            line(f"wrote {target}")


def _show(found: Any) -> None:
    """A table of the groups; of several classes, which would be too wide beside each other, a table of each."""
    if found.level is not None:
        line(f"Mean probability, with {100 * found.level:g} % confidence intervals")
    else:
        line("Mean probability. For confidence intervals, fit with --bootstrap.")
    line(found.averaged)
    for place, name in enumerate(found.classes):
        if len(found.classes) > 1:
            line("")
            line(_cut(str(name)))
        ends = {key: None if (of := getattr(found, key)) is None else of[:, [place]] for key in ("low", "high")}
        one = replace(found, classes=[name], probability=found.probability[:, [place]], **ends)
        _show_groups(one.columns(), found.by)
    if len(found.groups) > MOST:
        line(f"... and {len(found.groups) - MOST:,} more groups. Write all of them with -o.")


def _show_groups(values: dict[str, Any], by: list[str]) -> None:
    """A line for each group, numbers to the right."""
    columns = {name: [_cell(value) for value in of.tolist()[:MOST]] for name, of in values.items()}
    widths = {name: max(map(len, (name, *cells))) for name, cells in columns.items()}
    for cells in [list(columns), *zip(*columns.values(), strict=True)]:
        aligned = (
            f"{cell:<{widths[name]}}" if name in by else f"{cell:>{widths[name]}}"
            for name, cell in zip(columns, cells, strict=True)
        )
        line("  ".join(aligned).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
