"""The table of bags, as cells to show and values to sort by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kofn.report._contents import BagTable
from kofn.report._plot import number, percent

MAX_ROWS = 300


@dataclass(frozen=True)
class Cell:
    """What is read, what is sorted by, and how it looks."""

    text: str
    value: str | float
    words: bool = False
    known: bool = False


@dataclass(frozen=True)
class Row:
    """One bag; missed if its known count lies outside the interval."""

    cells: Sequence[Cell]
    missed: bool


@dataclass(frozen=True)
class Rows:
    """The table and what to say of it."""

    columns: Sequence[str]
    rows: Sequence[Row]
    note: str


def bag_rows(bags: BagTable) -> Rows:
    """At most 300 bags: all, or those whose known counts are furthest from what was expected; else the first ones."""
    chosen = np.arange(len(bags))
    note = f"{number(len(bags))} bags."
    if len(bags) > MAX_ROWS and bags.known is not None:
        # Distance in units of the interval's width, so that large bags do not crowd out the others.
        off = np.abs(bags.known - bags.expected) / (bags.high - bags.low + 1)
        chosen = np.argsort(-np.nan_to_num(off), kind="stable")[:MAX_ROWS]
        note = f"The {MAX_ROWS} of {number(len(bags))} bags that are furthest from their known counts."
    elif len(bags) > MAX_ROWS:
        chosen = chosen[:MAX_ROWS]
        note = f"The first {MAX_ROWS} of {number(len(bags))} bags."
    columns = ["Bag", "Size", "Expected", "Low", "High", "At least one"]
    columns[2:2] = [] if bags.known is None else ["Known"]
    columns += [] if bags.labels is None else ["Label"]
    return Rows(columns, [_row(bags, int(bag)) for bag in chosen], note)


def _row(bags: BagTable, bag: int) -> Row:
    low, high = int(bags.low[bag]), int(bags.high[bag])
    cells = [Cell(bags.names[bag], bags.names[bag], words=True), _number(float(bags.sizes[bag]))]
    missed = False
    if bags.known is not None:
        known = float(bags.known[bag])
        missed = bags.exact and (known < low or known > high)  # not of an unknown count, which is NaN
        cells.append(Cell("", "") if np.isnan(known) else Cell(number(known), known, known=missed))
    cells += [_number(float(bags.expected[bag])), _number(low), _number(high)]
    cells.append(Cell(percent(float(bags.at_least_one[bag])), float(bags.at_least_one[bag])))
    if bags.labels is not None:
        cells.append(Cell(bags.labels[bag], bags.labels[bag], words=True))
    return Row(cells, missed)


def _number(value: float) -> Cell:
    return Cell(number(value), value)
