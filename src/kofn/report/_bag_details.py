"""The details of bags, from the scores of a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.report._contents import BagTable
from kofn.report._count_distributions import count_probabilities
from kofn.report._detail_contents import BagDetail, BagDetails
from kofn.report._row_table import MOST_ROWS, row_table


@dataclass(frozen=True, eq=False)
class ShownRows:
    """The rows of some bags that a page shows: of each bag all, or the first hundred by an order of rows.

    Attributes:
        places: (k,) the bags.
        rows: of each bag its rows, (r,) each row once.
        copies: of each bag how many times it has each of these rows.
        all: (rows,) all rows that are shown, ascending.
    """

    places: NDArray[np.int64]
    rows: list[NDArray[np.int64]]
    copies: list[NDArray[np.int64]]
    all: NDArray[np.int64]


def shown_rows(bags: Bags, places: NDArray[np.int64], order: Tensor) -> ShownRows:
    """Choose the rows of bags.

    Args:
        bags: all bags.
        places: which bags.
        order: (n,) rows with a higher number come first.
    """
    rows, copies = [], []
    for place in places.tolist():
        each, times = bags[place].unique(return_counts=True)
        first = order[each].argsort(descending=True, stable=True)[:MOST_ROWS]
        rows.append(each[first].numpy())
        copies.append(times[first].numpy())
    return ShownRows(places, rows, copies, np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *rows])))


def bag_details(
    shown: ShownRows,
    table: BagTable,
    bags: Bags,
    log_odds: Tensor,
    probability: NDArray[np.float64],
    *,
    bag_effect: float,
    columns: Sequence[tuple[str, Any]],
    posterior: Callable[[Bags], Tensor] | None = None,
    truth: NDArray[np.bool_] | None = None,
    labels: Sequence[str] | None = None,
    bounds: Tensor | None = None,
    numbers: NDArray[np.int64] | None = None,
) -> BagDetails:
    """The details of some bags.

    Args:
        shown: which bags and which of their rows.
        table: what is said of all bags.
        bags: all bags.
        log_odds: (B, n) of rows by each of B models, in a bag without a shift.
        probability: (n,) of rows to be positive.
        bag_effect: of the model.
        columns: names and values of the columns to show, the most important first.
        posterior: from some bags to the posteriors of their entries, (m,); None without labels.
        truth: (n,) whether each row is positive, or None.
        labels: (b,) what labels say, in words.
        bounds: (b, 2) the counts that labels allow.
        numbers: (n,) of rows in the data, from 1.
    """
    part = bags.select(torch.from_numpy(shown.places))
    given = None if posterior is None else posterior(part).double().numpy()
    found = []
    for at, (place, rows, copies) in enumerate(zip(shown.places.tolist(), shown.rows, shown.copies, strict=True)):
        entries = slice(int(part.offsets[at]), int(part.offsets[at + 1]))
        index = part.index[entries]
        found.append(
            BagDetail(
                place,
                count_probabilities(log_odds[:, index], bag_effect),
                np.searchsorted(shown.all, rows),
                probability[rows],
                posterior=None if given is None else _by_row(index.numpy(), given[entries], rows),
                copies=copies,
                truth=None if truth is None else truth[rows],
                label="" if labels is None else labels[place],
                bounds=None if bounds is None else (int(bounds[place, 0]), int(bounds[place, 1])),
            )
        )
    # The first row of every bag, then the second of every bag, and so on.
    ranks = sorted((rank, int(row)) for one in found for rank, row in enumerate(one.rows))
    return BagDetails(found, row_table(columns, shown.all, list(dict.fromkeys(row for _, row in ranks)), numbers))


def _by_row(index: NDArray[np.int64], values: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The values of some rows, from those of the entries of a bag: copies of a row have the same."""
    order = index.argsort(kind="stable")
    return values[order[np.searchsorted(index[order], rows)]]
