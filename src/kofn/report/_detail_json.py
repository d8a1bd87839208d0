"""The details of bags as JSON inside the page, which its script draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from kofn.report._contents import BagTable, Report
from kofn.report._detail_contents import BagDetail, RowTable
from kofn.report._surprise import odds_text

NEGLIGIBLE = 1e-9  # probability of a count that is not written: what is left out sums to less than a millionth


def bag_address(prefix: str, name: str) -> str:
    """The part of a page's address, after #, that opens a bag of a chapter.

    Examples:
        >>> bag_address("part2-", "ward 7")
        'part2-bag-ward%207'
    """
    return f"{prefix}bag-{quote(_plain(name), safe='')}"


def details_json(chapters: Sequence[tuple[str, str, Report]]) -> Markup:
    """All details of a page, or nothing if there are none.

    Args:
        chapters: of each its prefix, what its counts are called ("known" or "true"), and the report.
    """
    tables: list[RowTable] = []
    found = []
    for prefix, word, report in chapters:
        if report.details is None or report.bags is None:
            continue
        details, bags = report.details, report.bags
        if not any(details.table is table for table in tables):
            tables.append(details.table)
        found.append(
            {
                "prefix": prefix,
                "word": word,
                "given": details.given,
                "positive": details.positive,
                "table": next(place for place, table in enumerate(tables) if table is details.table),
                "bags": [_bag(one, bags) for one in details.bags],
            }
        )
    if not found:
        return Markup("")
    page = {"tables": [_table(table) for table in tables], "chapters": found}
    # Inside a script element nothing but "<" could end it or begin another.
    return Markup(json.dumps(page, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def _bag(detail: BagDetail, bags: BagTable) -> dict[str, Any]:
    place = detail.bag
    there = np.flatnonzero((detail.distribution > NEGLIGIBLE) & bags.areas)
    first, last = (int(there[0]), int(there[-1])) if len(there) else (0, 0)
    known = None if bags.known is None or np.isnan(bags.known[place]) else _number(bags.known[place])
    return {
        "name": _plain(bags.names[place]),
        "size": int(bags.sizes[place]),
        "expected": _number(bags.expected[place]) if bags.areas else None,
        "interval": [int(bags.low[place]), int(bags.high[place])] if bags.areas else None,
        "atLeastOne": _number(bags.at_least_one[place]),
        "known": known,
        "exact": bags.exact,
        "surprise": "" if bags.surprise is None else odds_text(float(bags.surprise[place])),
        "label": _plain(detail.label),
        "bounds": detail.bounds,
        "first": first,
        "distribution": _numbers(detail.distribution[first : last + 1]) if bags.areas else [],
        "rows": detail.rows.tolist(),
        "probability": _numbers(detail.probability),
        "posterior": None if detail.posterior is None else _numbers(detail.posterior),
        "copies": None if detail.copies is None or (detail.copies == 1).all() else detail.copies.tolist(),
        "truth": None if detail.truth is None else detail.truth.astype(int).tolist(),
    }


def _table(table: RowTable) -> dict[str, Any]:
    return {
        "columns": [_plain(name) for name in table.columns],
        "values": [[_plain(one) if isinstance(one, str) else one for one in column] for column in table.values],
        "thumbnails": {_plain(name): list(column) for name, column in table.thumbnails.items()},
        "files": {_plain(name): [_plain(one) for one in column] for name, column in table.files.items()},
        "numbers": [int(one) for one in table.numbers],
        "note": table.note,
    }


def _numbers(values: Any) -> list[float]:
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float:
    """Seven digits, which are closer to the library's than anyone can see."""
    return float(f"{value:.7g}")


def _plain(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
