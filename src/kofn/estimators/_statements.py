"""What labels of rows say of the counts of their bags, and the count loss that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._class_table import ClassTable, class_objective
from kofn.estimators._noise import noise_distribution
from kofn.estimators._row_labels import Array, numbers, proportions, require_groups, whole_counts
from kofn.learners import CountObjective, between
from kofn.targets import Exactly, Noisy, counts_of_proportions, from_bounds, from_counts, from_proportions


def count_statement(
    y: Array, bags: Bags, *, label: str, noise: Any, rounding: Any, classes: Array | None
) -> tuple[Array, Tensor, Any, Tensor]:
    """The statement of a single label, or of two bounds, for each bag.

    Args:
        y: (n,) or (n, 2) labels of the rows.
        bags: of the rows.
        label: "proportion", "count" or "interval".
        noise: that was added, or None.
        rounding: of proportions that are no whole counts.
        classes: those that were trained with, if any.

    Returns:
        The two classes, the label of each bag, the count loss that reads it, and about its count.

    Raises:
        ValueError: labels that differ within a bag, or that no bag of that size has.
    """
    zero_one = np.array([0, 1])
    if label == "interval":
        bounds = bags.common(whole_counts(y), name="y")
        with _naming_y():
            from_bounds(bounds, bags.sizes, names=bags.names)
        return zero_one, bounds, CountObjective(between), bounds.double().mean(1)
    if label == "proportion" and noise is None:
        together = bool((bags.sizes > 1).any())
        classes, values = proportions(y, together=together, classes=classes)
        if not together and rounding == "error":
            require_groups(values)
        shares = bags.common(values, name="y")
        with _naming_y():
            target = from_proportions(shares, bags.sizes, rounding=rounding, names=bags.names)
        counts = torch.as_tensor(target.counts)
        return classes, counts, CountObjective(type(target)), counts.double()
    if noise is not None:
        known = bags.common(numbers(y), name="y")
        if label == "proportion":
            known = counts_of_proportions(known, bags.sizes, noisy=True)
        known = known.double()
        return zero_one, known, CountObjective(partial(Noisy, noise=noise_distribution(noise))), known
    counts = bags.common(whole_counts(y), name="y")
    with _naming_y():
        from_counts(counts, bags.sizes, names=bags.names)
    return zero_one, counts, CountObjective(Exactly), counts.double()


def class_statement(
    table: ClassTable, bags: Bags, *, label: str, rounding: Any, loss: str
) -> tuple[Tensor, Any, Tensor]:
    """The same of a column for each class, without the classes. Two classes are one count: that of the second.

    Args:
        table: labels of the rows.
        bags: of the rows.
        label: "proportion" or "count".
        rounding: of proportions that are no whole counts.
        loss: "joint" or "marginal", or "count" for the joint one; of unknown counts it is the marginal one.
    """
    with _naming_y():
        counts = table.counts(bags, label=label, rounding=rounding)
    if len(table.names) == 2:
        return counts[:, 1], CountObjective(Exactly), counts[:, 1].double()
    known = bool((counts >= 0).all())
    return counts, class_objective(loss if known else "marginal", counts)[1], counts.double()


@contextmanager
def _naming_y() -> Iterator[None]:
    """Add the name of the argument to what `kofn.targets` says of a label."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"`y`: {error}") from None
