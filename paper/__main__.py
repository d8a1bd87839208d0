"""python -m paper: the tables of the paper, run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from paper.records import RESULTS
from paper.reproduce import reproduce
from paper.rerun import rerun

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: python -m paper llp --only data=adult --only bag_size=8 --seeds 1")
def paper(
    table: Annotated[
        Literal["llp", "mil", "mil-instance", "mil-small", "colon", "pu", "classes", "sums", "figures", "all"],
        typer.Argument(
            metavar="TABLE",
            help="Table to run: llp, mil, mil-instance, mil-small, colon, pu, classes and sums (which the paper does "
            "not have), figures (their data), or all.",
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Run only these cells, such as data=adult; may be repeated."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Number of random seeds; by default as many as in the paper.", min=1)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of processes on this machine.", min=1)] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address of a dask.distributed scheduler, in place of --jobs.")
    ] = None,
    preset: Annotated[
        Literal["fast", "paper"], typer.Option(help="Fast recipes, or the published networks and numbers of epochs.")
    ] = "fast",
    results: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the records.")] = RESULTS,
    report: Annotated[
        bool, typer.Option("--report", help="Also write the tables and figures as Markdown and HTML.")
    ] = False,
    again: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Run so many recorded runs again instead, chosen at random, and compare.",
            min=1,
        ),
    ] = None,
) -> None:
    """Run a table of the paper. Runs that have a record are not repeated, unless their recipe has been changed."""
    if again is not None:
        raise typer.Exit(_compare(again, table, results))
    try:
        written = reproduce(
            table, only=only, seeds=seeds, jobs=jobs, scheduler=scheduler, preset=preset, results=results, report=report
        )
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        typer.echo(f"paper: {error}", err=True)
        raise typer.Exit(2 if not isinstance(error, RuntimeError) else 1) from None
    for path in written:
        typer.echo(str(path))


def _compare(number: int, table: str, results: Path) -> int:
    """Run records again and say what came of it; 1 if one differs."""
    differ = 0
    for number_done, each in enumerate(rerun(number, table=table, results=results), 1):
        differ += not each.equal
        said = "equal" if each.equal else f"differs: recorded {each.recorded}, now {each.again}"
        typer.echo(f"{number_done} {each.run.table} {each.run.name}: {said}")
    return min(differ, 1)


if __name__ == "__main__":
    app(prog_name="python -m paper")
