"""The table of bags, as cells to show and values to sort by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kofn.report._contents import BagTable
from kofn.report._plot import number, percent
from kofn.report._surprise import listed_bags, odds_text


@dataclass(frozen=True)
class Cell:
    """What is read, what is sorted by, and how it looks."""

    text: str
    value: str | float
    words: bool = False
    known: bool = False
    link: str = ""


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


def bag_rows(bags: BagTable, links: Mapping[int, str] | None = None, word: str = "known") -> Rows:
    """The bags that are listed: all, or some of very many; with surprise, the most surprising first.

    Args:
        bags: the table.
        links: by place of a bag, where it opens.
        word: "known", or "true" if the model was told less than the counts.
    """
    listed = listed_bags(len(bags), bags.surprise)
    chosen, note = (listed.places, listed.note) if bags.listed is None else (bags.listed, bags.note)
    columns = ["Bag", "Size", *(["Expected", "Low", "High"] if bags.areas else []), "At least one"]
    columns[2:2] = [] if bags.known is None else [word.capitalize()]
    columns += [] if bags.labels is None else ["Label"]
    if bags.surprise is not None:
        columns.insert(1, "Surprise")  # beside the name, where a phone shows it too
        chosen = chosen[np.argsort(-np.nan_to_num(bags.surprise[chosen], nan=-1.0), kind="stable")]
    return Rows(columns, [_row(bags, int(bag), (links or {}).get(int(bag), "")) for bag in chosen], note)


def _row(bags: BagTable, bag: int, link: str) -> Row:
    low, high = int(bags.low[bag]), int(bags.high[bag])
    cells = [Cell(bags.names[bag], bags.names[bag], words=True, link=link), _number(float(bags.sizes[bag]))]
    missed = False
    if bags.known is not None:
        known = float(bags.known[bag])
        missed = bags.exact and (known < low or known > high)  # not of an unknown count, which is NaN
        cells.append(Cell("", "") if np.isnan(known) else Cell(number(known), known, known=missed))
    if bags.areas:
        cells += [_number(float(bags.expected[bag])), _number(low), _number(high)]
    cells.append(Cell(percent(float(bags.at_least_one[bag])), float(bags.at_least_one[bag])))
    if bags.labels is not None:
        cells.append(Cell(bags.labels[bag], bags.labels[bag], words=True))
    if bags.surprise is not None:
        bits = float(bags.surprise[bag])
        told = Cell(odds_text(bits), "" if np.isnan(bits) else "Infinity" if np.isinf(bits) else bits)
        cells.insert(1, told)
    return Row(cells, missed)


def _number(value: float) -> Cell:
    return Cell(number(value), value)
