"""The options of the three tasks, whatever is done with them, and the estimators that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from kofn.cli import _options as options


@dataclass(frozen=True, kw_only=True)
class LLP:
    """Label proportions, counts, and bounds of counts."""

    bag: options.Bag
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="Proportion or count of positives in the bag; LOW,HIGH for bounds.")
    ]
    label_kind: Annotated[
        Literal["proportion", "count", "interval"] | None,
        typer.Option(help="Needed only where the values do not tell."),
    ] = None
    noise: Annotated[
        str | None, typer.Option(help="Noise that was added: laplace:SCALE, normal:SD or discrete-laplace:SCALE.")
    ] = None
    rounding: Annotated[
        Literal["error", "nearest", "spread"], typer.Option(help="Of proportions that are no whole count.")
    ] = "error"
    loss: Annotated[
        Literal["count", "proportion", "mutual-contamination"], typer.Option(help="What is made small.")
    ] = "count"

    def columns(self) -> dict[str, Any]:
        """Arguments of `kofn.tables.fit_table`."""
        return {"bag": self.bag, "label": self.label, "label_kind": self.label_kind}

    def estimator(self, **common: Any) -> Any:
        """The estimator, not fitted."""
        from kofn.estimators import LLPClassifier

        return LLPClassifier(loss=self.loss, noise=self.noise, rounding=self.rounding, **common)


@dataclass(frozen=True, kw_only=True)
class MIL:
    """At least one positive row."""

    bag: options.Bag
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="1 where the bag has at least one positive row, 0 where it has none.")
    ]
    positive: options.Positive = None
    loss: Annotated[
        Literal["count", "max", "mean", "logsumexp", "attention", "gated-attention"],
        typer.Option(help="What is made small."),
    ] = "count"

    def columns(self) -> dict[str, Any]:
        """Arguments of `kofn.tables.fit_table`."""
        return {"bag": self.bag, "label": self.label, "positive": self.positive}

    def estimator(self, **common: Any) -> Any:
        """The estimator, not fitted."""
        from kofn.estimators import MILClassifier

        return MILClassifier(loss=self.loss, **common)


@dataclass(frozen=True, kw_only=True)
class PU:
    """Labelled positives and unlabelled rows."""

    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="1 for labelled positives; 0, -1 or nothing for unlabelled rows.")
    ]
    prior: Annotated[
        float | None, typer.Option(help="Share of positives in all rows, labelled or not.", min=0.0, max=1.0)
    ] = None
    mixture: Annotated[
        float | None,
        typer.Option(help="Share of positives among the unlabelled, in place of --prior.", min=0.0, max=1.0),
    ] = None
    positive: options.Positive = None
    loss: Annotated[
        Literal["count", "expectation", "upu", "nnpu", "cvir"], typer.Option(help="What is made small.")
    ] = "count"

    def __post_init__(self) -> None:
        if (self.prior is None) == (self.mixture is None):
            raise ValueError(
                "either --prior (share of positives in all rows) or --mixture (among the unlabelled) must be given, "
                "not both: unlabelled rows alone do not tell it."
            )

    def columns(self) -> dict[str, Any]:
        """Arguments of `kofn.tables.fit_table`."""
        return {"label": self.label, "positive": self.positive}

    def estimator(self, **common: Any) -> Any:
        """The estimator, not fitted."""
        from kofn.estimators import PUClassifier

        return PUClassifier(prior=self.prior, mixture=self.mixture, loss=self.loss, **common)
