"""kofn demo: the main job on embedded data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kofn.cli import _options as options
from kofn.cli._app import as_json

_MODELS = ("llp", "mil", "pu")  # files of the three tasks


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the page and the models.")
    ] = Path("kofn-demo"),
    learner: Annotated[
        Literal["trees", "linear", "network"], typer.Option(help="What learns, with its defaults.")
    ] = "network",
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn from proportions, from "at least one" and from unlabelled digits; beside baselines and full supervision.

    \b
    Example:
      kofn demo
    """  # noqa: D301  # \b keeps the lines of the example
    start = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    from rich.console import Console
    from rich.progress import Progress

    from kofn import demo as digits_demo
    from kofn.report import write
    from kofn.tables import check_model_target

    for name in _MODELS:
        check_model_target(output / name)  # before a minute of training, not after it
    progress = Console(stderr=True, quiet=quiet)
    runs = list(digits_demo.fits(learner, seed=seed))
    done = []
    with Progress(console=progress, transient=True) as bar:
        task = bar.add_task("digits", total=len(runs))
        for run in runs:
            done.append(run())
            bar.update(task, advance=1, description=f"{done[-1].method}: {digits_demo.TASKS[done[-1].task]}")
    page = output / "report.html"
    write(digits_demo.report(done, seed=seed), page)
    for fit in done:
        if fit.method == "count loss":
            fit.model.save(output / _MODELS[fit.task])
    compared = digits_demo.compare(done)
    seconds = time.monotonic() - start
    if json:
        rows = {method.name: list(method.scores) for method in compared.methods}
        as_json({"measure": compared.measure, "tasks": list(compared.tasks), "methods": rows, "seconds": seconds})
        return
    _show(compared)
    typer.echo(f"{seconds:.0f} s. Open {page} to see what was learned; the models are in {output}.")


def _show(compared: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=compared.measure, title_justify="left")
    table.add_column("method")
    for name in compared.tasks:
        table.add_column(name, justify="right")
    for method in compared.methods:
        style = {"count": "bold", "bound": "dim"}.get(method.role)
        scores = ["" if score is None else f"{score:.3f}" for score in method.scores]
        table.add_row(method.name, *scores, style=style, end_section=method.role != "baseline" or method.name == "uPU")
    Console().print(table)
