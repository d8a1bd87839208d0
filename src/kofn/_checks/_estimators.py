"""Labels of groups: what the estimator for label proportions is told."""

from __future__ import annotations

from collections.abc import Sequence
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
