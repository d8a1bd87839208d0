"""The command `kofn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kofn.cli._main import main

if TYPE_CHECKING:
    from kofn.cli._commands import app

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    # Read where it is used: the commands take a while to import, and `main` must be ready for signals before.
    if name == "app":
        from kofn.cli._commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
