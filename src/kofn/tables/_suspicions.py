"""What is likely a mistake in a table to learn from, and cannot be known to be one: told in a warning."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray

from kofn.bags import Bags
from kofn.estimators._columns import EncodedTable
from kofn.tables._table_file import TableFile
from kofn.tables._table_warning import TableWarning


def warn_of_missing_header(file: TableFile) -> None:
    """Warn where the names of a CSV's columns look like its first row.

    That is a name with a fraction or a sign, such as 0.37 or -2, or integers that do not ascend: columns are
    numbered 0, 1, 2 or called 2019, 2020, 2021, but hardly 7, 3, 3.
    """
    if file.separator is None:
        return
    whole: list[float] = []
    odd: list[float] = []
    for name in file.columns:
        try:
            value = float(name)
        except ValueError:
            continue
        if np.isfinite(value):
            (whole if name.isdigit() else odd).append(value)
    if odd or whole != sorted(set(whole)):
        shown = ", ".join(file.columns[:6]) + (", ..." if len(file.columns) > 6 else "")
        warnings.warn(
            f"{file.path} seems to have no header: its columns are called {shown}. The first line is taken for their "
            f"names, and is not learned from. Write a line of names above it.",
            TableWarning,
            stacklevel=4,
        )


def warn_of_truth(table: EncodedTable, counts: NDArray[np.float64] | None, bags: Bags, file: TableFile) -> None:
    """Warn of a feature of two values that is the truth, by its counts in the bags.

    Args:
        table: the features.
        counts: (b,) the known number of positives in each bag; only its sign is known where it is infinite.
        bags: of its rows.
        file: to name.
    """
    if counts is None or len(np.unique(counts)) < 2:
        return
    index, sizes = bags.index.numpy(), bags.sizes.numpy()
    starts = bags.offsets.numpy()[:-1]
    some = np.isinf(counts)
    for place, name in enumerate(table.columns.names):
        column = table.values[:, place]
        if not np.isin(column[:1000], (0, 1)).all() or not np.isin(column, (0, 1)).all():
            continue
        sums = np.add.reduceat(column[index].astype(np.float64), starts)
        for found in (sums, sizes - sums):
            if np.where(some, found > 0, found == counts).all():
                warnings.warn(
                    f"{file.path}, column {name!r} has 0 and 1 whose counts in the bags are the labels, in all "
                    f"{len(counts):,} bags. If it is the truth about rows, leave it out: `drop={name!r}`.",
                    TableWarning,
                    stacklevel=4,
                )
                break


def warn_of_true_classes(table: EncodedTable, counts: NDArray[np.int64], bags: Bags, file: TableFile) -> None:
    """Warn of a text column that is the truth of several classes, by the counts of its values in the bags.

    Args:
        table: the features.
        counts: (b, C) the known number of each class in each bag.
        bags: of its rows.
        file: to name.
    """
    if len(np.unique(counts, axis=0)) < 2:
        return
    for place, values in table.columns.category_counts.items():
        column = table.values[:, place]
        if values < counts.shape[1] or np.isnan(column).any():
            continue
        each = [bags.sum(torch.from_numpy(column == code)).numpy() for code in range(values)]
        if all(any(np.array_equal(found, of_class) for found in each) for of_class in counts.T):
            name = table.columns.names[place]
            warnings.warn(
                f"{file.path}, column {name!r} has values whose counts in the bags are the labels, in all "
                f"{len(counts):,} bags. If it is the truth about rows, leave it out: `drop={name!r}`.",
                TableWarning,
                stacklevel=4,
            )
