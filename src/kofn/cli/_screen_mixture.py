"""The mixture of a model of positives and unlabelled rows, for people: how it is known, and what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kofn.cli._screen_text import line


def show_mixture(estimator: Any) -> None:
    """The share of positives that a model of PU was trained with; if it was estimated, what that assumes."""
    from kofn.estimators._mixture import ASSUMPTION

    if not hasattr(estimator, "mixture_"):
        return
    if estimator.mixture_interval_ is None:
        line(f"mixture    {estimator.mixture_:.4g} of the unlabelled rows are positive, as given")
        return
    low, high = estimator.mixture_interval_
    share = f"{estimator.mixture_:.3f} of the unlabelled rows are positive"
    line(f"mixture    {share}, 90 % interval {low:.3f} to {high:.3f}")
    line(f"           estimated, which assumes that {ASSUMPTION}")


def show_sensitivity(measures: Mapping[str, Any]) -> None:
    """A line for each mixture that was tried."""
    if "sensitivity" not in measures:
        return
    line()
    line("If the mixture were another: fits to the same rows, and what they make of the unlabelled ones")
    line(f"  {'mixture':>9}{'predicted positive':>20}{'rank correlation':>18}{'top tenth shared':>18}")
    for row in measures["sensitivity"]:
        shares = (row["predicted_positive_share"], row["rank_correlation"], row["top_overlap"])
        line(f"  {row['mixture']:>9.3f}" + "{:>20.4f}{:>18.4f}{:>18.4f}".format(*shares))
