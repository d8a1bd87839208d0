"""Words and optional packages."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType


def option(name: str, value: object, allowed: Sequence[str]) -> None:
    """One of a few words."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def extra(module: str, name: str) -> ModuleType:
    """A module of an optional dependency."""
    try:
        return import_module(module)
    except ImportError as error:
        package = {"sklearn": "scikit-learn", "PIL": "pillow"}.get(module.split(".")[0], module.split(".")[0])
        raise ImportError(f"This needs {package}, which is not installed: pip install kofn[{name}]") from error
