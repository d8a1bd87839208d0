"""Words, whole numbers and optional packages."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from numbers import Integral
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


def whole_number(name: str, value: object, *, low: int | None = None, high: int | None = None) -> None:
    """A whole number, in a range if one is given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if (low is not None and int(value) < low) or (high is not None and int(value) > high):
        rule = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"`{name}` must be {rule}; got {value}.")
