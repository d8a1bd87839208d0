"""kofn learners: which there are, and their options."""

from __future__ import annotations

import shutil
import textwrap
from typing import Annotated, Literal

import typer

from kofn.cli import _options as options
from kofn.cli._app import as_json
from kofn.cli._screen_text import line


def learners(
    name: Annotated[
        Literal["trees", "linear", "network"] | None,
        typer.Argument(metavar="NAME", help="trees, linear or network. By default, all three."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show the learners, and the options that --set takes.

    \b
    Examples:
      kofn learners trees
      kofn fit llp votes.csv --bag county --label share --set rounds=200 -o model
    """  # noqa: D301  # \b keeps the lines of the example
    from kofn.cli._learner_options import NAMES, about, options_of, written

    shown = {one: options_of(one) for one in ([name] if name else NAMES)}
    if json:
        as_json(
            {
                one: {
                    "about": about(one),
                    "options": {
                        option.name: {"default": option.default, "takes": option.takes, "about": option.words}
                        for option in known.values()
                    },
                }
                for one, known in shown.items()
            }
        )
        return
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    for number, (one, known) in enumerate(shown.items()):
        if number:
            line()
        for text in textwrap.wrap(f"{one}: {about(one)}", width):
            line(text)
        for option in known.values():
            line()
            line(f"  --set {option.name}={written(option.default)}")
            words = f"{option.words[:1].upper()}{option.words[1:]} Takes {option.takes}."
            for text in textwrap.wrap(words, width, initial_indent="      ", subsequent_indent="      "):
                line(text)
