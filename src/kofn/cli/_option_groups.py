"""Options that commands have together: dataclasses whose fields are the options, so that each is written once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer

from kofn.cli import _options as options


@dataclass(frozen=True, kw_only=True)
class Table:
    """The table, and which of its columns are features."""

    data: options.Data
    features: Annotated[
        str | None,
        options.text_option(
            "COLUMNS", "The feature columns, separated by commas. By default, all others but those of bags."
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        options.text_option("COLUMNS", "Columns to leave out, separated by commas. May be repeated."),
    ] = None
    fold_by: options.FoldBy = None
    max_categories: Annotated[
        int, typer.Option(metavar="N", help="Maximum number of different values of a text column.", min=1)
    ] = 256

    def columns(self) -> dict[str, Any]:
        """Arguments of `kofn.tables.fit_table`."""
        return {
            "features": self.features,
            "drop": self.drop or (),
            "fold_by": self.fold_by,
            "max_categories": self.max_categories,
        }


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The learner's own options, and the seed."""

    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="An option of the learner; see kofn learners. May be repeated."
        ),
    ] = None
    seed: options.Seed = 0


@dataclass(frozen=True, kw_only=True)
class Talk:
    """What is shown while a command runs and afterwards."""

    quiet: options.Quiet = False
    json: options.Json = False


def takes(*groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that takes objects of these dataclasses: its options are their fields."""

    def command_of(function: Callable[..., None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            function(*(group(**{field.name: given[field.name] for field in fields(group)}) for group in groups))

        parameters = []
        for group in groups:
            hints = get_type_hints(group, include_extras=True)
            for field in fields(group):
                default = Parameter.empty if field.default is MISSING else field.default
                parameters.append(
                    Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
                )
        parameters.sort(key=lambda parameter: parameter.default is not Parameter.empty)  # what must be given, first
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return command_of
