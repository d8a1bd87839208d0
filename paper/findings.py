"""What the records show, in sentences whose every number is counted from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from paper.cells import cells
from paper.summary import Row, best_of, competing_rows
from paper.table_layout import DIGITS

NEAR = 0.015  # as near as runs of three seeds tell


def findings(rows: Sequence[Row]) -> list[str]:
    """Sentences on a table; none about what was not run.

    Args:
        rows: from `summary`, all of one table.
    """
    run = [row for row in rows if row.values]
    return [sentence for sentence in FINDINGS[rows[0].entry.table](run) if sentence] if run else []


def _llp(rows: Sequence[Row]) -> list[str]:
    ours = [row for row in rows if row.entry.method == "CL"]
    trees = [row for row in rows if row.entry.method == "CL-trees"]
    small = [row for row in rows if row.entry.cell["bag_size"] in (8, 32) and row.entry.method != "CL-trees"]
    printed = {tuple(each.cell.values()): each.published["auc"][0] for each in cells("llp") if each.method == "CL"}
    return [
        _counted(ours, lambda row: row.mark[0] in "=+", "within one published standard deviation or above", "CL"),
        _highest_mean(small, "CL", " with bags of 8 and 32", among=" of the paper's methods"),
        _counted(
            trees, lambda row: row.mean > printed[tuple(row.entry.cell.values())], "above the published CL", "CL-trees"
        ),
        _highest_mean(rows, "CL-trees") if trees else "",
    ]


def _mil(rows: Sequence[Row], words: str = "") -> list[str]:
    ours = [row for row in rows if row.entry.method == "CL"]
    near = f"within {NEAR} of the paper or above{words}"
    return [_counted(ours, lambda row: row.difference >= -NEAR, near, "CL"), _highest_mean(rows, "CL", words)]


def _instances(rows: Sequence[Row]) -> list[str]:
    metrics = dict.fromkeys(row.metric for row in rows)
    return [sentence for m in metrics for sentence in _mil([row for row in rows if row.metric == m], f" by {m}")]


def _small(rows: Sequence[Row]) -> list[str]:
    return [_highest_mean(rows, "CL")]


def _colon(rows: Sequence[Row]) -> list[str]:
    texts: dict[str, list[str]] = {}
    for row in rows:
        if row.folds:
            over = f"{row.entry.method} over {row.folds} fold" + "s" * (row.folds > 1)
            texts.setdefault(over, []).append(f"{row.metric} {row.mean:.3f}")
    return [f"{over}: {', '.join(means)}." for over, means in texts.items()]


def _pu(rows: Sequence[Row]) -> list[str]:
    found = []
    for row in rows:
        if row.entry.method == "CL":
            lowest = f" (lowest {min(row.values):.2f})" if len(row.values) > 1 else ""
            found.append(f"CL on {row.entry.cell['data']}: {row.mean:.2f} %, {_seeds([len(row.values)])}{lowest}.")
    return [*found, _highest_mean(rows, "CL")]


def _classes(rows: Sequence[Row]) -> list[str]:
    found = []
    for better, worse in (("Marginal", "Proportion"), ("Joint", "Marginal"), ("Marginal", "Transport")):
        means = {tuple(row.entry.cell.values()): row.mean for row in rows if row.entry.method == worse}
        ours = [row for row in rows if row.entry.method == better and tuple(row.entry.cell.values()) in means]
        ahead = partial(_ahead, means)
        found.append(_counted(ours, ahead, f"ahead of {worse} or equal to it", better))
    return found


def _ahead(means: dict[tuple[object, ...], float], row: Row) -> bool:
    return row.mean >= means[tuple(row.entry.cell.values())]


FINDINGS: dict[str, Callable[[Sequence[Row]], list[str]]] = {
    "llp": _llp,
    "mil": _mil,
    "mil-instance": _instances,
    "mil-small": _small,
    "colon": _colon,
    "pu": _pu,
    "classes": _classes,
}


def _counted(rows: Sequence[Row], holds: Callable[[Row], bool], words: str, method: str) -> str:
    """How many of the rows something holds for, and where it does not."""
    against = [row for row in rows if not holds(row)]
    if not rows:
        return ""
    seeds = _seeds(len(row.values) for row in rows)
    return f"{method} is {words} in {len(rows) - len(against)} of {len(rows)} cells ({seeds}){_exceptions(against)}."


def _highest_mean(rows: Sequence[Row], method: str, words: str = "", *, among: str = "") -> str:
    """In how many cells a method has the highest mean of all that were run there; nothing if it ran alone."""
    held = [places for places in competing_rows(rows) if method in _methods(rows, places)]
    first = [best_of(rows, places) for places in held]
    lost = [rows[places[0]] for places in first if method not in _methods(rows, places)]
    if not held:
        return ""
    counted = f"{len(held) - len(lost)} of {len(held)} cells"
    return f"{method} has the highest mean{among} in {counted}{words}{_exceptions(lost)}."


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
