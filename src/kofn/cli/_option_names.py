"""Errors and warnings of the library speak of arguments, in backticks; the command line shows them as its options."""

from __future__ import annotations

import re
import shlex
from typing import Any

# Arguments whose options have another name.
OTHER_NAMES = {"n_folds": "--folds", "random_state": "--seed", "n_jobs": "--jobs"}
ARGUMENT = re.compile(r"`(\w+)(?:=(?:'([^'`]*)'|\"([^\"`]*)\"))?`")


def with_options(message: str, command: Any) -> str:
    """A message in which `label_kind='count'` is --label-kind count.

    Args:
        message: of an error or a warning. What is in backticks and no option stays as it is.
        command: of click, whose options and whose subcommands' options are meant.

    Examples:
        >>> import click
        >>> fit = click.Command("fit", params=[click.Option(["--label-kind"])])
        >>> with_options("Say `label_kind='count'`; `rounds` is none.", fit)
        'Say --label-kind count; `rounds` is none.'
    """
    options = _options(command) | OTHER_NAMES

    def shown(found: re.Match[str]) -> str:
        name, value = found[1], found[2] or found[3]
        if name not in options:
            return found[0]
        return options[name] if value is None else f"{options[name]} {shlex.quote(value)}"

    return ARGUMENT.sub(shown, message)


def _options(command: Any) -> dict[str, str]:
    """The long names of a command's options by the names of their arguments."""
    found = {}
    for parameter in command.params:
        long = [name for name in parameter.opts if name.startswith("--")]
        if parameter.name and long:
            found[parameter.name] = max(long, key=len)
    for inner in getattr(command, "commands", {}).values():
        found |= _options(inner)
    return found
