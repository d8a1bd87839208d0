"""The command line in this process, for tests of what a user types."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from kofn.cli import app


def kofn(*args: object) -> Result:
    """What a command comes to, whatever that is."""
    return CliRunner().invoke(app, [str(arg) for arg in args])


def fine(*args: object) -> str:
    """What a command prints that must succeed."""
    result = kofn(*args)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout
