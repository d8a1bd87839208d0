"""The frame of all commands: errors in one line, exit codes, output for people or machines."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143

PLAIN: dict[str, Any] = {"rich_markup_mode": None, "no_args_is_help": True, "pretty_exceptions_enable": False}


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does, with a status of its own."""


class Commands(TyperGroup):
    """Commands whose errors are one line on stderr: 2 for bad input, 130 for Ctrl-C, 143 for SIGTERM.

    With KOFN_TRACEBACK=1 in the environment the traceback is shown, else none.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            ended = isinstance(error, Terminated)
            typer.echo(f"kofn: {'terminated' if ended else 'interrupted'}. {error}".rstrip(), err=True)
            raise typer.Exit(TERMINATED if ended else INTERRUPTED) from None
        except (ValueError, OSError, ImportError) as error:
            if os.environ.get("KOFN_TRACEBACK"):
                raise
            typer.echo(f"kofn: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(BAD_INPUT) from None


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Warnings of a fit become lines on stderr, after all else, without the line of the source."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", "this fit is no better")
            yield
    finally:
        for warning in caught:
            typer.echo(f"kofn: warning: {' '.join(str(warning.message).split())}", err=True)


def as_json(document: Any) -> None:
    """Print one JSON document; what JSON has no word for, NaN and infinity, is null."""
    typer.echo(json.dumps(_finite(document), indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
