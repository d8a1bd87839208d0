"""Arguments and options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Table in CSV or Parquet, by its extension.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File that kofn fit wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, for machines.")]
Positive = Annotated[str | None, typer.Option(help="Value that means positive, if not 1, true or yes.")]

Output = Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File to write the model to.")]
Bag = Annotated[str, typer.Option(metavar="COLUMN", help="Column that names each row's bag.")]
Features = Annotated[
    str | None, typer.Option(metavar="COLUMNS", help="Columns to learn from, with commas; by default all others.")
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out, with commas or repeated.")
]
MaxCategories = Annotated[int, typer.Option(help="Refuse text columns with more different values.", min=1)]
Hidden = Annotated[str, typer.Option(help="Widths of the hidden layers, such as 128,64; none for a linear model.")]
Dropout = Annotated[float, typer.Option(help="Dropout of the hidden layers.", min=0.0, max=0.99)]
Epochs = Annotated[int, typer.Option(help="At most so many.", min=1)]
BatchSize = Annotated[int | None, typer.Option(help="Bags in a step; by default it fits their number.", min=1)]
LearningRate = Annotated[float, typer.Option("--lr", help="Learning rate of Adam.", min=0.0)]
Schedule = Annotated[
    Literal["constant", "cosine", "one-cycle"],
    typer.Option(help="Of the learning rate: constant, down to 0, or up and down."),
]
WeightDecay = Annotated[float, typer.Option(help="Weight decay of Adam.", min=0.0)]
L1 = Annotated[float, typer.Option("--l1", help="Factor of the sum of absolute weights.", min=0.0)]
ValidFraction = Annotated[
    float, typer.Option(help="Part of the data held out to choose the best epoch.", min=0.0, max=0.9)
]
Patience = Annotated[
    int | None, typer.Option(help="Stop after so many epochs without a better one; by default never.", min=1)
]
Seed = Annotated[int, typer.Option(help="Decides all that is random.", min=0)]
Device = Annotated[str, typer.Option(help="cpu, gpu or auto.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a fit that was cut off.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
