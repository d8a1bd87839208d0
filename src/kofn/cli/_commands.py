"""All commands in one place. A new one is a function in a file of its own, and a line here."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kofn.cli import (
    _cv_command,
    _data_command,
    _demo_command,
    _effect_command,
    _evaluate_command,
    _fit_command,
    _info_command,
    _learners_command,
    _predict_command,
    _report_command,
)
from kofn.cli._app import PLAIN, Commands

_EPILOG = """\b
Example:
  kofn fit llp votes.csv --bag county --label share -o model
  kofn predict model votes.csv --bag county -o counties.csv

\b
Exit status:
  0    success
  1    an error that nobody foresaw; --debug shows its traceback
  2    bad input: an option, a file, or a place that cannot be written to
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM

No command replaces a file unless --force is given.
"""

app = typer.Typer(
    name="kofn",
    cls=Commands,
    help="Train classifiers of rows on counts: label proportions, multiple instances, positive and unlabelled rows.",
    epilog=_EPILOG,
    **PLAIN,
)
# In the order in which they are used, and shown.
COMMANDS: dict[str, Any] = {
    "fit": _fit_command.app,
    "cv": _cv_command.app,
    "predict": _predict_command.predict,
    "effect": _effect_command.effect,
    "evaluate": _evaluate_command.evaluate,
    "report": _report_command.report,
    "info": _info_command.info,
    "learners": _learners_command.learners,
    "data": _data_command.app,
    "demo": _demo_command.demo,
}
for _name, _command in COMMANDS.items():
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        app.command(_name)(_command)
Commands.order = tuple(COMMANDS)


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
