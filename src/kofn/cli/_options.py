"""Arguments and options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def text_option(metavar: str, words: str) -> Any:
    """An option that takes a text, such as the name of a column, which must not be empty."""
    return typer.Option(metavar=metavar, help=words, parser=_not_empty)


def output_option(metavar: str, words: str) -> Any:
    """The option -o of a command."""
    return typer.Option("--output", "-o", metavar=metavar, help=words, parser=path)


def _not_empty(text: str) -> str:
    if not text.strip():
        raise typer.BadParameter("it must not be empty")
    return text


def path(text: str) -> Path:
    return Path(_not_empty(str(text)))  # which would make "." of nothing


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table in CSV or Parquet format by its extension, or a folder of Parquet files.",
        parser=path,
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that kofn fit wrote.", parser=path)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Positive = Annotated[str | None, text_option("VALUE", "The value that means positive, if it is not 1, true or yes.")]
Bag = Annotated[str, text_option("COLUMNS", "The column that names each row's bag, or several, separated by commas.")]
Copies = Annotated[
    str | None, text_option("COLUMN", "The column with the number of instances that a row stands for. By default, one.")
]
FoldBy = Annotated[
    str | None,
    text_option(
        "COLUMN",
        "The column of what bags belong to, such as the patient of each slide: they are held out together. It is not a "
        "feature. By default, each bag (of PU, each row) stands for itself.",
    ),
]
CopiesAsTrained = Annotated[
    str | None, text_option("COLUMN", "The column with the number of instances of a row. By default, as in training.")
]
Interval = Annotated[
    float | None,
    typer.Option(metavar="LEVEL", help="Level of confidence intervals, above 0 and below 1, such as 0.9."),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.", min=0, max=2**32 - 1)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar on stderr.")]
Learner = Annotated[
    Literal["auto", "trees", "linear", "network"],
    typer.Option(help="The learner. auto is trees; for MIL the better of trees and linear; for attention a network."),
]
