"""Arguments and options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Table in CSV or Parquet, by its extension.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File that kofn fit wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, for machines.")]
Positive = Annotated[str | None, typer.Option(help="Value that means positive, if not 1, true or yes.")]
Bag = Annotated[str, typer.Option(metavar="COLUMN", help="Column that names each row's bag.")]
Seed = Annotated[int, typer.Option(help="Decides all that is random.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Learner = Annotated[
    Literal["auto", "trees", "linear", "network"],
    typer.Option(help="What is fitted; auto is trees, or a network for attention."),
]
