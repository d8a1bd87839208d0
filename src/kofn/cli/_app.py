"""The frame of all commands: errors in one line, exit statuses, output for people or machines."""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from kofn.cli._option_names import with_options
from kofn.cli._screen_text import line, one_line, shell_command, system_error
from kofn.cli._signals import ended_by, terminating

UNFORESEEN, BAD_INPUT, BROKEN_PIPE = 1, 2, 141

PLAIN: dict[str, Any] = {"rich_markup_mode": None, "no_args_is_help": True, "pretty_exceptions_enable": False}

UsageError: Any = typer.BadParameter.__base__  # of click, which some versions of typer bring with them


class Commands(TyperGroup):
    """Commands that end with a status and, if it is not 0, with one line on stderr that says why.

    0 is success; 2 is bad input: an option, a file that cannot be read, a place that cannot be written to; 1 is an
    error that nobody foresaw, a fault of kofn. A signal adds its number to 128: 130 for Ctrl-C, 143 for SIGTERM, 141
    where nobody reads stdout any more. Tracebacks are shown with --debug alone.
    """

    order: tuple[str, ...] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order that is set; typer would have groups last."""
        return [name for name in self.order if name in self.commands]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and end the process with its status."""
        self._main_shell_completion(extra, prog_name or "kofn", complete_var)
        words = list(sys.argv[1:] if args is None else args)
        options = words[: words.index("--")] if "--" in words else words
        debug = "--debug" in options
        sys.exit(self._status([word for word in options if word != "--debug"] + words[len(options) :], debug, extra))

    def _status(self, words: list[str], debug: bool, extra: dict[str, Any]) -> int:
        try:
            with terminating(), warnings_as_lines(self), self.make_context("kofn", words.copy(), **extra) as context:
                self.invoke(context)
                sys.stdout.flush()
            return 0
        except typer.Exit as error:
            return int(error.exit_code)
        except KeyboardInterrupt as error:
            status, said = ended_by(error)
            _complain(said)
            return status
        except BrokenPipeError:
            _forget_stdout()
            return BROKEN_PIPE
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its message is the help
                error.show()
            else:
                path = error.ctx.command_path if error.ctx else "kofn"
                # Typer has pydantic look at choices, which begins its messages so.
                message = one_line(error.format_message()).replace("Value error, ", "").rstrip(".")
                _complain(f"{message}. See: {path} --help")
            return BAD_INPUT
        except Exception as error:
            if debug:
                traceback.print_exc()
            if isinstance(error, OSError):
                _forget_stdout()  # it may be what cannot be written to
                _complain(one_line(system_error(error)))
                return BAD_INPUT
            if isinstance(error, (ValueError, ImportError)):
                _complain(with_options(one_line(error), self))
                return BAD_INPUT
            what = f"{type(error).__name__}: {one_line(error)}".rstrip(": .")
            _complain(f"unforeseen error, {what}. For its traceback run: {shell_command('kofn', '--debug', *words)}")
            return UNFORESEEN


def _complain(message: str) -> None:
    with suppress(OSError):  # there is nowhere else to say it
        line(f"kofn: {message}", err=True)


def _forget_stdout() -> None:
    """What stdout does not take is dropped, or Python would try again at its end and change the status."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def warnings_as_lines(command: Any) -> Iterator[None]:
    """Warnings become lines on stderr, after all else, each once and without the line of the source."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    finally:
        for message in dict.fromkeys(with_options(one_line(warning.message), command) for warning in caught):
            _complain(f"warning: {message}")


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
