"""The frame of all commands: errors in one line, exit codes, output for people or machines."""

from __future__ import annotations

import json
import os
from typing import Any

import typer
from typer.core import TyperGroup

BAD_INPUT, INTERRUPTED = 2, 130

PLAIN: dict[str, Any] = {"rich_markup_mode": None, "no_args_is_help": True, "pretty_exceptions_enable": False}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what to tell the user."""


class Commands(TyperGroup):
    """Commands whose errors are one line on stderr: 2 for bad input, 130 for Ctrl-C; no traceback.

    With KOFN_TRACEBACK=1 in the environment the traceback is shown.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            typer.echo(f"kofn: interrupted. {error}".rstrip(), err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, OSError, ImportError) as error:
            if os.environ.get("KOFN_TRACEBACK"):
                raise
            typer.echo(f"kofn: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(BAD_INPUT) from None


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
