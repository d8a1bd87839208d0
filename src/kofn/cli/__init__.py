"""The command `kofn`."""

from kofn.cli._commands import app, main

__all__ = ["app", "main"]
