"""What the joint distribution of a bag's class counts costs, known from the counts alone."""

from __future__ import annotations

from math import log, log1p

import torch
from torch import Tensor

from kofn import _require

BUDGET = 10**8
"""The largest bag, in `joint_cells`, whose joint distribution is computed unless `budget` says otherwise."""
#: States of the largest table, one row of which takes 32 GB (`most_states` of native/src/class_counts.cpp).
LARGEST_TABLE = 2**32
#: Of the characteristic function of so many classes, about.
FREQUENCIES = (1, 1, 40, 400, 6_000, 100_000)


def joint_cells(counts: Tensor) -> Tensor:
    """Size of the table from which the joint probability of class counts is computed, for each bag.

        n * min(states, frequencies),   states = prod_{c: all but the largest} (k_c + 1),   n = k_1 + ... + k_C,

    where `frequencies`, those of the characteristic function, are about 40, 400, 6,000 and 100,000 for two,
    three, four and five classes that occur, and infinitely many beyond: large bags of few classes are linear in n. Each
    cell costs about a nanosecond for each class that occurs, value and gradient together.

    Args:
        counts: (..., C) integers.

    Returns:
        (...) float64.

    Examples:
        >>> import torch, kofn
        >>> kofn.classes.joint_cells(torch.tensor([[4, 1, 1, 2], [100, 0, 0, 0]]))
        tensor([ 96., 100.], dtype=torch.float64)
    """
    kinds = (counts > 0).sum(-1)
    known = torch.tensor(FREQUENCIES, dtype=torch.float64, device=counts.device)
    frequencies = torch.where(kinds < len(known), known[kinds.clamp(max=len(known) - 1)], torch.inf)
    return torch.minimum(joint_states(counts), frequencies) * counts.clamp(min=0).sum(-1)


def joint_states(counts: Tensor) -> Tensor:
    """prod (k_c + 1) over all classes but the one with the largest count: (..., C) to (...) float64."""
    k = counts.double().clamp(min=0)
    return (k + 1).prod(-1) / (k.amax(-1) + 1)


def require_within_budget(counts: Tensor, longest: int, budget: float) -> None:
    """Require joint distributions that are not too large to compute, of bags of up to `longest` instances."""
    _require.number("budget", budget, low=0)
    # Of all counts that sum to n, equal ones have the largest product: then nobody need look at each.
    classes = counts.shape[-1]
    if longest == 0 or (budget and log(longest) + classes * log1p(longest / classes) <= log(budget)):
        return
    cells = joint_cells(counts).flatten()
    if not _require.holds(cells <= budget):
        bag = int((cells > budget).nonzero()[0])
        raised = ", or raise `budget`" if float(cells[bag]) <= LARGEST_TABLE else ""
        raise ValueError(
            f"the joint distribution of `counts` must not need more than budget={budget:g} cells (states * instances); "
            f"bag {bag} with counts {counts.reshape(-1, counts.shape[-1])[bag].tolist()} needs {float(cells[bag]):.3g}."
            f" Use kofn.MarginalClassCounts(counts), which is linear in the bag's size{raised}."
        )


def require_table(counts: Tensor) -> None:
    """Require counts whose table of states may fit into memory, as the C++ core does."""
    if not _require.holds(joint_states(counts) <= LARGEST_TABLE):
        raise MemoryError(
            "there is no memory for the joint distribution of `counts`. Use kofn.MarginalClassCounts(counts), which is "
            "linear in the bag's size, or smaller bags."
        )
