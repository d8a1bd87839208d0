"""kofn reproduce: the tables of the paper, run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def reproduce(
    table: Annotated[
        Literal["llp", "mil", "mil-instance", "mil-small", "colon", "pu", "figures", "all"],
        typer.Argument(metavar="TABLE", help="llp, mil, mil-instance, mil-small, colon, pu, figures or all."),
    ],
    only: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only these cells, such as data=adult; repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many; by default as many as the paper has.", min=1)] = None,
    jobs: Annotated[int, typer.Option(help="Processes on this machine.", min=1)] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A dask.distributed scheduler, in place of --jobs.")
    ] = None,
    preset: Annotated[
        Literal["fast", "paper"], typer.Option(help="A quick recipe, or the published networks and epochs.")
    ] = "fast",
    results: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the records are.")] = Path("results"),
    report: Annotated[bool, typer.Option("--report", help="Write Markdown, HTML and figures too.")] = False,
) -> None:
    """Run a table of the paper, or what is missing of it: what is recorded is not run again.

    \b
    Examples:
      kofn reproduce llp --only data=adult --only bag_size=8 --seeds 1
      kofn reproduce all --jobs 2 --report
    """  # noqa: D301  # \b keeps the lines of the example
    from kofn import experiments

    written = experiments.reproduce(
        table, only=only, seeds=seeds, jobs=jobs, scheduler=scheduler, preset=preset, results=results, report=report
    )
    for path in written:
        typer.echo(str(path))
