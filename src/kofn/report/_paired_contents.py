"""Two models on the same bags, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairedBags:
    """How probable two models find the label of each of b bags.

    Attributes:
        models: the names of the two.
        names: (b,) of the bags.
        sizes: (b,) instances.
        log_likelihoods: (2, b) log P(label) by each model.
        expected: (2, b) expected number of positives by each model; None of several classes, of attention, and
            of multiple instances without a truth, whose labels do not tell it.
        known: (b,) the known number of positives, or None.
        told: whether the models were told these numbers; False if they are a truth that they never saw.

    Examples:
        >>> import numpy as np
        >>> from kofn.report import PairedBags, Report, render
        >>> bags = PairedBags(["trees", "linear"], ["ward 7"], np.array([9]), np.array([[-1.5], [-0.5]]))
        >>> bags.difference
        array([1.])
        >>> "ward 7" in render(Report("Two models", "llp", paired=bags))
        True
    """

    models: Sequence[str]
    names: Sequence[str]
    sizes: NDArray[np.int64]
    log_likelihoods: Numbers
    expected: Numbers | None = None
    known: Numbers | None = None
    told: bool = True

    @property
    def difference(self) -> Numbers:
        """(b,) log-likelihood by the second model less that by the first: above 0 the second is better."""
        found: Numbers = self.log_likelihoods[1] - self.log_likelihoods[0]
        return found
