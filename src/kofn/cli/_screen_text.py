"""Text for a terminal: what stands in a file is shown there, and never obeyed."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable

import typer


def screen_text(text: str) -> str:
    r"""A text in one line that a terminal shows as it is: all that would move, colour or reorder it is escaped.

    Names of columns, bags and files come from strangers. Control characters, line ends, marks of direction and bytes
    that are no text become the escapes that Python writes for them.

    Examples:
        >>> print(screen_text("caf\u00e9 \x1b[31mred\n\u202egnp.exe"))
        café \x1b[31mred\n\u202egnp.exe
    """
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def line(text: str = "", *, err: bool = False) -> None:
    """Print one line, safe for a terminal, in characters that it has: on stdout, or with `err` on stderr."""
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    typer.echo(screen_text(text).encode(encoding, "backslashreplace").decode(encoding), err=err)


def shell_command(*words: str | os.PathLike[str]) -> str:
    """Words as a shell must be given them; what is no plain word is quoted.

    Examples:
        >>> print(shell_command("kofn", "predict", "my model", "--bag", "x;touch PWNED;#"))
        kofn predict 'my model' --bag 'x;touch PWNED;#'
    """
    return shlex.join(os.fspath(word) for word in words)


def system_error(error: OSError) -> str:
    """What the system said, with the file that it is about, without the number of the error.

    Examples:
        >>> system_error(OSError(28, "No space left on device", "model"))
        'model: No space left on device'
    """
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def one_line(message: object) -> str:
    """A message of any number of lines in one, at most 1,000 characters of it."""
    text = " ".join(str(message).split())
    return text if len(text) <= 1000 else f"{text[:1000]} ..."


def listed(names: Iterable[str], most: int = 6) -> str:
    """The first of some names, each cut to a length that can be read."""
    shown = list(names)
    some = ", ".join(name if len(name) <= 40 else f"{name[:40]}..." for name in shown[:most])
    return some + (", ..." if len(shown) > most else "")
