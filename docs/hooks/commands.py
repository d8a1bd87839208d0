"""The command line as a page: every command with its arguments and options, as typer knows them."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import typer

from kofn.cli import app


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words ("kofn fit llp"), and what typer made of it."""
    yield from _walk("kofn", typer.main.get_command(app))


def _walk(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, inner in _inner(command).items():
        yield from _walk(f"{words} {name}", inner)


def _inner(command: Any) -> dict[str, Any]:
    """The commands of a group, in the order in which its help has them; of a command none."""
    commands = getattr(command, "commands", {})
    return {name: commands[name] for name in command.list_commands(None)} if commands else {}


def anchor(words: str) -> str:
    """Where a command is on the page."""
    return words.replace(" ", "-")


def options(command: Any) -> list[str]:
    """All words that a command takes as options, the long and the short."""
    return [word for one in _shown(command) if one.param_type_name == "option" for word in one.opts]


def _shown(command: Any) -> list[Any]:
    """Arguments first. Shell completion is typer's own, the same for every program."""
    shown = [one for one in command.params if not (one.name or "").endswith("_completion")]
    return sorted(shown, key=lambda one: one.param_type_name != "argument")


def page() -> str:
    """Markdown of all commands."""
    return "\n\n".join(_section(words, command) for words, command in commands())


def _section(words: str, command: Any) -> str:
    says, _, example = cleandoc(command.help or "").partition("\b")
    level = "##" if words.count(" ") < 2 else "###"
    parts = [f"{level} `{words}` {{ #{anchor(words)} }}", says.strip()]
    inner = _inner(command)
    if inner:
        rows = [f"| [`{words} {name}`](#{anchor(f'{words} {name}')}) | {_first(one)} |" for name, one in inner.items()]
        parts.append("\n".join(["| command | what it does |", "|---|---|", *rows]))
    else:
        parts.append(_shell(_usage(words, command)))
    if rows := [_row(one, command) for one in _shown(command)]:
        parts.append("\n".join(["| argument or option | what it is |", "|---|---|", *rows]))
    if example:
        title, _, lines = example.strip().partition("\n")
        parts += [title, _shell(cleandoc(lines))]
    return "\n\n".join(parts)


def _first(command: Any) -> str:
    return cleandoc(command.help or "").split("\n")[0]


def _shell(lines: str) -> str:
    return f"```sh\n{lines}\n```"


def _usage(words: str, command: Any) -> str:
    arguments = [_name(one, command) for one in _shown(command) if one.param_type_name == "argument"]
    return " ".join([words, *arguments, "[OPTIONS]"])


def _record(one: Any, command: Any) -> tuple[str, str]:
    """What `--help` says of an argument or option, in two columns; the second ends in notes in brackets."""
    names, says = one.get_help_record(command.context_class(command))
    return names, says


def _name(one: Any, command: Any) -> str:
    names = _record(one, command)[0]
    return names.split(" <")[0] if one.param_type_name == "argument" else names


def _row(one: Any, command: Any) -> str:
    says, bracket, notes = _record(one, command)[1].partition("  [")
    return f"| `{_name(one, command)}` | {says}{f' *{notes.removesuffix(chr(93))}*' if bracket else ''} |"
