"""Labels of groups, priors, and checkpoints: what the estimators are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def counts_of_bags(counts: Tensor, sizes: Tensor, names: Sequence[Any]) -> None:
    """Counts from 0 to the size of the bag."""
    odd = ((counts < 0) | (counts > sizes)).nonzero().flatten()
    if len(odd):
        bag = int(odd[0])
        raise ValueError(
            f"`y` must be a count from 0 to the bag's size; bag {names[bag]!r} has {int(sizes[bag])} instances and "
            f"count {int(counts[bag])}. Check that `groups` and `y` belong together."
        )


def intervals(bounds: Tensor, sizes: Tensor, names: Sequence[Any]) -> None:
    """Bounds that some count of the bag meets."""
    if bounds.dim() != 2 or bounds.shape[1] != 2:
        raise ValueError(f"`y` must be bounds, shape (n, 2), with label='interval'; each row has {bounds.shape[1:]}.")
    low, high = bounds.unbind(1)
    odd = ((low > high) | (high < 0) | (low > sizes)).nonzero().flatten()
    if len(odd):
        bag = int(odd[0])
        raise ValueError(
            f"`y` must be an interval, low first, that a count from 0 to the bag's size can meet; bag {names[bag]!r} "
            f"has {int(sizes[bag])} instances and the interval {bounds[bag].tolist()}."
        )


def shares_of_bags(shares: Tensor, sizes: Tensor, names: Sequence[Any], rounding: str) -> None:
    """Proportions that are a whole count of their bag, unless they may be rounded."""
    exact = shares * sizes
    slack = (torch.finfo(torch.float64).eps * sizes.double()).clamp(max=0.1)
    odd = ((exact - exact.round()).abs() > slack).nonzero().flatten()
    if not len(odd) or rounding != "error":
        return
    bag = int(odd[0])
    if bool((sizes == 1).all()):
        raise ValueError(
            f"`y` has the proportion {float(shares[bag]):g}, but without `groups` each row is a bag of its own, "
            f"positive or not. Pass fit(X, y, groups=...); in a pipeline or a search, enable scikit-learn's metadata "
            f"routing, or use kofn.estimators.search."
        )
    raise ValueError(
        f"`y` must be a whole count of the bag; bag {names[bag]!r} has {int(sizes[bag])} instances and proportion "
        f"{float(shares[bag]):g}, which would be {float(exact[bag]):g} positives. If proportions were rounded when "
        f"published, say rounding='nearest' or 'spread'; if a split cut the bag in two, split by groups (GroupKFold)."
    )


def start(value: float | str, loss: str) -> None:
    """A rate to begin at, which only the count of positives has."""
    if loss != "count":
        raise ValueError(f"`start` goes with loss='count', the law of a count; got loss={loss!r}. Leave `start` out.")
    if value != "bags" and (isinstance(value, str) or not 0 < value < 1):
        raise ValueError(f"`start` must be a probability above 0 and below 1, or 'bags'; got {value!r}.")


def prior_or_mixture(prior: float | None, mixture: float | None) -> None:
    """One of the two, a fraction."""
    if (prior is None) == (mixture is None):
        raise ValueError(
            f"either `prior` (fraction of positives in all the data) or `mixture` (among the unlabelled) must be "
            f"given, not both; got {prior} and {mixture}. Unlabelled data alone do not tell it."
        )
    name, value = ("prior", prior) if prior is not None else ("mixture", mixture)
    if value is None or not 0 <= value <= 1:
        raise ValueError(f"`{name}` must lie between 0 and 1; got {value}.")


def prior_allows(prior: float, labeled_fraction: float) -> None:
    """A prior that the labelled positives do not exceed."""
    if prior < labeled_fraction:
        raise ValueError(
            f"`prior` must be at least the fraction of rows that are labelled, since these are positives too; got "
            f"{prior:g}, and {labeled_fraction:g} of the rows are labelled. Of the unlabelled alone: mixture=..."
        )


def both_kinds(labeled: int, rows: int) -> None:
    """Labelled positives and unlabelled rows."""
    if labeled in (0, rows):
        raise ValueError(
            f"`y` must have two classes, labelled positives (1) and unlabelled rows (-1); there is only "
            f"one class: all of the {rows} rows are {'labelled' if labeled else 'unlabelled'}."
        )


def same_fit(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """A checkpoint of this very fit."""
    other = [name for name in now if before.get(name) != now[name]]
    if other:
        changed = ", ".join(f"{name} was {before.get(name)} and is {now[name]}" for name in other)
        raise ValueError(
            f"`checkpoint` must be of the same fit; it is of another: {changed}. "
            f"Choose an empty folder, or delete the checkpoint to start anew."
        )
