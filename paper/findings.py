"""What the records show, in sentences whose every number is counted from them.

One criterion holds for every table: a mean is as the paper has it if it is within one published spread of it, or above.
And a method is compared twice: with the other methods as they ran here, and with what was published of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from paper.cells import METHODS, cells
from paper.summary import Row, best_of, competing_rows
from paper.table_layout import DIGITS

OURS = ("CL", "CL-expect", "CL-trees")  # of the paper, or of this library; the rest are baselines


def findings(rows: Sequence[Row]) -> list[str]:
    """Sentences on a table; none about what was not run, or is stale.

    Args:
        rows: from `summary`, all of one table.
    """
    run = [row for row in rows if row.values and not row.stale]
    if not any(row.values for row in rows):
        return []
    told = FINDINGS[rows[0].entry.table](run) if run else []
    return [sentence for sentence in [*told, _coverage(rows)] if sentence]


def as_published(row: Row) -> bool:
    """Whether ours is within one published spread of the published mean, or above."""
    return row.mark[:1] in ("=", "+")


def _compared(rows: Sequence[Row], words: str = "") -> list[str]:
    """CL and the baselines against the paper, CL against the other methods as they ran here and as published."""
    return [
        _counted(rows, "CL", as_published, f"within one published spread or above{words}"),
        _baselines(rows, words),
        _highest_mean(rows, "CL", words),
        _above_published(rows, "CL", words),
    ]


def _llp(rows: Sequence[Row]) -> list[str]:
    papers = [row for row in rows if row.entry.method != "CL-trees"]
    printed = {tuple(each.cell.values()): each.published["auc"][0] for each in cells("llp") if each.method == "CL"}
    above = partial(_at_least, printed)
    return [
        *_compared(papers),
        _counted(rows, "CL-trees", above, "at or above the published CL"),
        _highest_mean(rows, "CL-trees"),
    ]


def _instances(rows: Sequence[Row]) -> list[str]:
    metrics = dict.fromkeys(row.metric for row in rows)
    return [sentence for m in metrics for sentence in _compared([row for row in rows if row.metric == m], f" by {m}")]


def _small(rows: Sequence[Row]) -> list[str]:
    return [_highest_mean(rows, "CL")]


def _colon(rows: Sequence[Row]) -> list[str]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(f"{row.entry.method} over {row.folds} fold" + "s" * (row.folds > 1), []).append(row)
    return [
        f"{over}: {', '.join(f'{row.metric} {row.mean:.3f}' for row in mine)}; "
        f"{sum(map(as_published, mine))} of {len(mine)} are within one published spread or above."
        for over, mine in found.items()
    ]


def _pu(rows: Sequence[Row]) -> list[str]:
    found = []
    for row in rows:
        if row.entry.method == "CL":
            lowest = f" (lowest {min(row.values):.2f})" if len(row.values) > 1 else ""
            found.append(f"CL on {row.entry.cell['data']}: {row.mean:.2f} %, {_seeds([len(row.values)])}{lowest}.")
    return [*found, *_compared(rows)]


def _classes(rows: Sequence[Row]) -> list[str]:
    found = []
    for better, worse in (("Marginal", "Proportion"), ("Joint", "Marginal"), ("Marginal", "Transport")):
        means = {tuple(row.entry.cell.values()): row.mean for row in rows if row.entry.method == worse}
        ours = [row for row in rows if tuple(row.entry.cell.values()) in means]
        found.append(_counted(ours, better, partial(_at_least, means), f"ahead of {worse} or equal to it"))
    return found


def _sums(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row.entry.method}: {row.mean:.2f} %, {_seeds([len(row.values)])} (lowest {min(row.values):.2f})."
        for row in rows
    ]


def _at_least(means: dict[tuple[object, ...], float], row: Row) -> bool:
    return row.mean >= means[tuple(row.entry.cell.values())]


FINDINGS: dict[str, Callable[[Sequence[Row]], list[str]]] = {
    "llp": _llp,
    "mil": _compared,
    "mil-instance": _instances,
    "mil-small": _small,
    "colon": _colon,
    "pu": _pu,
    "classes": _classes,
    "sums": _sums,
}


def _counted(rows: Sequence[Row], method: str, holds: Callable[[Row], bool], words: str) -> str:
    """For how many of a method's rows something holds, and where it does not."""
    mine = [row for row in rows if row.entry.method == method]
    against = [row for row in mine if not holds(row)]
    if not mine:
        return ""
    seeds = _seeds(len(row.values) for row in mine)
    return f"{method} is {words} in {len(mine) - len(against)} of {len(mine)} cells ({seeds}){_exceptions(against)}."


def _baselines(rows: Sequence[Row], words: str) -> str:
    """How many cells of each baseline are as published; which they are the table shows."""
    texts = []
    for method in METHODS[rows[0].entry.table]:
        mine = [row for row in rows if row.entry.method == method and row.published and method not in OURS]
        if mine:
            texts.append(f"{method} in {sum(map(as_published, mine))} of {len(mine)} cells")
    return (
        f"Of the baselines{words}, these are within one published spread or above: {'; '.join(texts)}." if texts else ""
    )


def _highest_mean(rows: Sequence[Row], method: str, words: str = "") -> str:
    """In how many cells a method has the highest mean of all that ran there; nothing if it ran alone."""
    held = [places for places in competing_rows(rows) if method in _methods(rows, places)]
    first = [best_of(rows, places) for places in held]
    lost = [rows[places[0]] for places in first if method not in _methods(rows, places)]
    if not held:
        return ""
    counted = f"{len(held) - len(lost)} of {len(held)} cells"
    return f"{method} has the highest mean of the methods as they ran here in {counted}{words}{_exceptions(lost)}."


def _above_published(rows: Sequence[Row], method: str, words: str = "") -> str:
    """In how many cells a method's mean here is no lower than every published mean of a baseline."""
    printed: dict[tuple[object, ...], tuple[float, str]] = {}
    metric = rows[0].metric
    for each in cells(rows[0].entry.table):
        if each.method not in OURS and metric in each.published:
            key = tuple(each.cell.values())
            printed[key] = max(printed.get(key, (0.0, "")), (each.published[metric][0], each.method))
    mine = [row for row in rows if row.entry.method == method and tuple(row.entry.cell.values()) in printed]
    if not mine:
        return ""
    digits, texts = DIGITS[mine[0].entry.table], []
    for row in mine:
        mean, baseline = printed[tuple(row.entry.cell.values())]
        if round(row.mean, digits) < mean:
            cell = " ".join(map(str, row.entry.cell.values()))
            texts.append(f"{cell}: {method} {row.mean:.{digits}f}, {baseline} {mean:.{digits}f}")
    counted = f"{len(mine) - len(texts)} of {len(mine)} cells"
    not_in = f"; not in {'; '.join(texts)}" if texts else ""
    return f"{method} is no lower than the best published baseline in {counted}{words}{not_in}."


def _coverage(rows: Sequence[Row]) -> str:
    """What the sentences do not count."""
    first = [row for row in rows if row.metric == rows[0].metric]
    missing, stale = sum(not row.values for row in first), sum(row.stale for row in first)
    parts = [f"{missing} {_are(missing)} not run" if missing else "", f"{stale} {_are(stale)} stale" if stale else ""]
    told = " and ".join(filter(None, parts))
    return f"Of {len(first)} cells, each with one method, {told}, and not counted." if told else ""


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _methods(rows: Sequence[Row], places: Iterable[int]) -> set[str]:
    return {rows[place].entry.method for place in places}


def _exceptions(rows: Sequence[Row]) -> str:
    """The exceptions: which cell, which method, ours and the published mean."""
    texts = []
    for row in rows:
        digits = DIGITS[row.entry.table]
        cell = " ".join(map(str, row.entry.cell.values()))
        printed = f", published {row.published[0]:.{digits}f}" if row.published else ""
        texts.append(f"{cell}: {row.entry.method} {row.mean:.{digits}f}{printed}")
    return f"; not in {'; '.join(texts)}" if texts else ""


def _seeds(numbers: Iterable[int]) -> str:
    few, many = min(found := list(numbers)), max(found)
    return ("" if few == many else f"{few} to ") + f"{many} seed" + "s" * (many > 1)
