"""All commands in one place. A new one is a function in a file of its own, and a line here."""

from __future__ import annotations

import gc
from typing import Annotated

import typer

from kofn.cli import (
    _cv_command,
    _data_command,
    _demo_command,
    _evaluate_command,
    _fit_command,
    _info_command,
    _learners_command,
    _predict_command,
    _report_command,
)
from kofn.cli._app import PLAIN, Commands

app = typer.Typer(
    name="kofn",
    cls=Commands,
    help="Train classifiers of rows on counts: label proportions, multiple instances, positive and unlabelled rows.",
    epilog="Exit status: 0 success; 1 an unforeseen error; 2 bad input or usage; 130 after Ctrl-C, 143 after SIGTERM. "
    "No command replaces a file unless --force is given. "
    "Example: kofn fit llp votes.csv --bag county --label share -o model",
    **PLAIN,
)
app.add_typer(_fit_command.app, name="fit")
app.add_typer(_cv_command.app, name="cv")
app.command("learners")(_learners_command.learners)
app.command("predict")(_predict_command.predict)
app.command("evaluate")(_evaluate_command.evaluate)
app.command("info")(_info_command.info)
app.add_typer(_data_command.app, name="data")
app.command("report")(_report_command.report)
app.command("demo")(_demo_command.demo)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        try:
            typer.echo(f"kofn {metadata.version('kofn')}")
        except metadata.PackageNotFoundError:  # run from its sources
            typer.echo("kofn (not installed)")
        raise typer.Exit


@app.callback()
def _kofn(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[  # which the frame takes out, wherever it stands
        bool, typer.Option("--debug", help="Show the traceback of an error. It may stand anywhere in a command.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    # PyTorch, scikit-learn and pandas make a million objects that live until the end. With Python's own thresholds the
    # garbage collector goes through all of them again and again while they are imported, a tenth of the time.
    gc.set_threshold(200_000, 30, 30)
    app(prog_name="kofn")
