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
        str,
        options.text_option(
            "COLUMN",
            "The proportion or the count of positive rows in the bag, two columns LOW,HIGH, or a column per class.",
        ),
    ]
    label_kind: Annotated[
        Literal["proportion", "count", "interval", "classes"] | None,
        typer.Option(help="The kind of label, where the values leave it open. With classes, a column per class."),
    ] = None
    copies: options.Copies = None
    noise: Annotated[
        str | None,
        options.text_option("NOISE", "The noise added to counts: laplace:SCALE, normal:SD or discrete-laplace:SCALE."),
    ] = None
    rounding: Annotated[
        Literal["error", "nearest", "spread"],
        typer.Option(help="What to do with a proportion that is not a whole count."),
    ] = "error"
    bag_effect: Annotated[
        str | None,
        options.text_option(
            "fit|SD",
            "The standard deviation of a shift that the rows of a bag have in common, or fit to estimate it: bags may "
            "then differ by more than their rows explain.",
        ),
    ] = None
    loss: Annotated[
        Literal["count", "proportion", "mutual-contamination", "joint", "marginal", "transport"],
        typer.Option(help="Training loss. The last three are losses of several classes."),
    ] = "count"

    def columns(self) -> dict[str, Any]:
        """Arguments of `kofn.tables.fit_table`."""
        return {"bag": self.bag, "label": self.label, "label_kind": self.label_kind, "copies": self.copies}

    def estimator(self, **common: Any) -> Any:
        """The estimator, not fitted."""
        from kofn.estimators import LLPClassifier

        return LLPClassifier(
            loss=self.loss, noise=self.noise, rounding=self.rounding, bag_effect=self._bag_effect(), **common
        )

    def _bag_effect(self) -> Any:
        if self.bag_effect is None or self.bag_effect == "fit":
            return self.bag_effect
        try:
            return float(self.bag_effect)
        except ValueError:
            raise ValueError(
                f"--bag-effect must be fit, to estimate it, or a standard deviation of at least 0; got "
                f"{self.bag_effect!r}."
            ) from None


@dataclass(frozen=True, kw_only=True)
class MIL:
    """At least one positive row."""

    bag: options.Bag
    label: Annotated[
        str,
        options.text_option("COLUMN", "1 if the bag has at least one positive row, 0 if it has none."),
    ]
    positive: options.Positive = None
    loss: Annotated[
        Literal["count", "max", "mean", "logsumexp", "attention", "gated-attention"],
        typer.Option(help="Training loss."),
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
        str,
        options.text_option("COLUMN", "1 for a labelled positive row; 0, -1 or empty for an unlabelled one."),
    ]
    prior: Annotated[
        float | None,
        typer.Option(help="The proportion of positives among all rows. By default, it is estimated.", min=0.0, max=1.0),
    ] = None
    mixture: Annotated[
        float | None,
        typer.Option(help="The proportion of positives among the unlabelled rows, instead.", min=0.0, max=1.0),
    ] = None
    positive: options.Positive = None
    loss: Annotated[Literal["count", "expectation", "upu", "nnpu", "cvir"], typer.Option(help="Training loss.")] = (
        "count"
    )
    surrogate: Annotated[
        Literal["sigmoid", "logistic"], typer.Option(help="The loss of one row, with --loss upu or nnpu.")
    ] = "sigmoid"

    def __post_init__(self) -> None:
        if self.prior is not None and self.mixture is not None:
            raise ValueError(
                "--prior (the proportion of positives among all rows) or --mixture (among the unlabelled rows) may be "
                "given, and not both. With neither it is estimated."
            )

    def columns(self) -> dict[str, Any]:
        """Arguments of `kofn.tables.fit_table`."""
        return {"label": self.label, "positive": self.positive}

    def estimator(self, **common: Any) -> Any:
        """The estimator, not fitted."""
        from kofn.estimators import PUClassifier

        return PUClassifier(prior=self.prior, mixture=self.mixture, loss=self.loss, surrogate=self.surrogate, **common)
