"""From records to the paper's tables: ours beside the published numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from kofn import _require
from paper.cells import METRICS, SEEDS, Cell, cells
from paper.records import RESULTS, load_records
from paper.whole_recipe import state

STANDARD_ERROR = ("mil", "mil-instance", "mil-small", "colon")  # what these tables print as spread
PERCENT = ("pu", "classes", "sums")
SIGNIFICANT = 0.05
ROUNDING = 1e-9  # the means of 0.1, 0.2 and of 0.15, 0.15 are not the same float


@dataclass(frozen=True)
class Row:
    """One metric of one method in one cell.

    Attributes:
        entry: the cell.
        metric: its name.
        values: ours, one a seed (of folds their mean); empty where nothing was run.
        seconds: that one record took on average, by the clock.
        folds: of a cross-validation, how many are recorded.
        stale: whether `values` are of a recipe that has been changed since: they are shown, and count for nothing.
        earlier: whether some are of the training loop before that of `kofn.learners`.
        cpu_seconds: of the processor, on average; None where a record lacks them.
    """

    entry: Cell
    metric: str
    values: tuple[float, ...]
    seconds: float
    folds: int = 0
    stale: bool = False
    earlier: bool = False
    cpu_seconds: float | None = None

    @property
    def published(self) -> tuple[float, float] | None:
        """Mean and spread, as printed."""
        return self.entry.published.get(self.metric)

    @property
    def mean(self) -> float:
        """Ours."""
        return fmean(self.values) if self.values else math.nan

    @property
    def sd(self) -> float:
        """The standard deviation of ours over seeds; nan for one."""
        return stdev(self.values) if len(self.values) > 1 else math.nan

    @property
    def standard_error(self) -> float:
        """Of the mean of ours; 0 for one seed, which tells nothing of it."""
        return self.sd / math.sqrt(len(self.values)) if len(self.values) > 1 else 0.0

    @property
    def spread(self) -> float:
        """Of the kind that the table prints: standard deviation or standard error."""
        return self.standard_error if self.entry.table in STANDARD_ERROR and len(self.values) > 1 else self.sd

    @property
    def difference(self) -> float:
        """Ours less the published mean."""
        return self.mean - self.published[0] if self.published else math.nan

    @property
    def mark(self) -> str:
        """How ours stands to the published: "=" within one published spread, "+" above, "-" below.

        A star says that the difference is significant (Welch's t-test, p < 0.05).
        """
        if not self.values or self.published is None:
            return ""
        # Numbers are printed with four digits: a difference in the fifth is none.
        near = abs(self.difference) <= self.published[1] + 5e-5
        sign = "=" if near else "+" if self.difference > 0 else "-"
        return sign + ("*" if self.p_value < SIGNIFICANT else "")

    @property
    def p_value(self) -> float:
        """Of Welch's t-test against the published mean, spread and number of seeds; 1 with fewer than two seeds."""
        if len(self.values) < 2 or self.published is None:
            return 1.0
        (mean, spread), runs = self.published, SEEDS[self.entry.table]
        sd = spread * math.sqrt(runs) if self.entry.table in STANDARD_ERROR else spread
        if self.sd == 0 and sd == 0:
            return 0.0 if self.difference else 1.0
        stats = _require.package("scipy.stats", extra="train")
        test = stats.ttest_ind_from_stats(self.mean, self.sd, len(self.values), mean, sd, runs, equal_var=False)
        return float(test.pvalue)


def summary(table: str, *, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> list[Row]:
    """Every cell, method and printed metric of a table, with what is recorded of it.

    Args:
        table: its name, not "figures".
        results: the folder with ``TABLE.jsonl``.
        preset: whose records are taken.

    Examples:
        >>> from paper.summary import summary
        >>> row = summary("llp", results="no-such-folder")[0]
        >>> row.entry.method, row.metric, row.published, row.values  # nothing was run
        ('PL', 'auc', (0.8889, 0.0024), ())
    """
    records = [record for record in load_records(results, table) if record["preset"] == preset]
    found: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault(_key(record["cell"], record["method"]), []).append(record)
    return [
        _row(entry, metric, found.get(_key(entry.cell, entry.method), []))
        for entry in cells(table)
        for metric in METRICS[table]
    ]


def _key(cell: Mapping[str, Any], method: str) -> tuple[Any, ...]:
    return tuple(sorted((key, value) for key, value in cell.items() if key != "fold")), method


def _row(entry: Cell, metric: str, records: Iterable[Mapping[str, Any]]) -> Row:
    found = [(record, state(record)) for record in records if metric in record["metrics"]]
    fresh = [record for record, how in found if how != "stale"]
    kept = fresh or [record for record, _ in found]
    by_seed: dict[int, list[float]] = {}
    scale = 100.0 if entry.table in PERCENT else 1.0
    for record in kept:
        by_seed.setdefault(record["seed"], []).append(scale * record["metrics"][metric])
    values = tuple(fmean(by_seed[seed]) for seed in sorted(by_seed))
    seconds = fmean(record["seconds"] for record in kept) if kept else math.nan
    folds = sum(map(len, by_seed.values())) if entry.folds else 0
    cpu = [record["cpu_seconds"] for record in kept if record.get("cpu_seconds") is not None]
    cpu_seconds = fmean(cpu) if kept and len(cpu) == len(kept) else None
    earlier = any(how == "earlier loop" for _, how in found)
    return Row(entry, metric, values, seconds, folds, bool(kept) and not fresh, earlier, cpu_seconds)


def header(table: str) -> list[str]:
    """The names of a table's columns."""
    keys = [key.replace("_", " ") for key in cells(table)[0].cell]
    return [*keys, "method", "metric", "ours", "published", "difference", "", "seeds", "seconds"]


def competing_rows(rows: Sequence[Row]) -> list[list[int]]:
    """Places of the rows that share a cell and a metric, where two methods or more ran with today's recipes."""
    groups: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        if row.values and not row.stale:
            groups.setdefault((_key(row.entry.cell, ""), row.metric), []).append(place)
    return [places for places in groups.values() if len(places) > 1]


def best_of(rows: Sequence[Row], places: Sequence[int]) -> list[int]:
    """Those of a contest's places with the highest mean; of equal means, as accuracies of few bags often are, all."""
    highest = max(rows[place].mean for place in places)
    return [place for place in places if rows[place].mean > highest - ROUNDING]


def best(rows: Sequence[Row]) -> set[int]:
    """Places of the rows to print in bold: within one standard error of the highest mean of their contest.

    The standard error is that of the row with this mean. A row with fewer seeds than a rival is not in bold.
    """
    found = set()
    for places in competing_rows(rows):
        first = rows[best_of(rows, places)[0]]
        seeds = max(len(rows[place].values) for place in places)
        near = first.mean - first.standard_error - ROUNDING
        found |= {place for place in places if rows[place].mean >= near and len(rows[place].values) == seeds}
    return found


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Rows as words; ▲ marks what `best` finds."""
    first = best(rows)
    return [line(row, best=place in first) for place, row in enumerate(rows)]


def line(row: Row, *, best: bool = False) -> list[str]:
    """A row as words, "not run" where there is no record."""
    digits = 2 if row.entry.table in PERCENT else 4
    printed = f"{row.published[0]:.{digits}f} ± {row.published[1]:.{digits}f}" if row.published else "none"
    names = [*map(str, row.entry.cell.values()), row.entry.method, row.metric]
    if not row.values:
        return [*names, "not run", printed, "", "", "0", ""]
    ours = f"{row.mean:.{digits}f}" + (f" ± {row.spread:.{digits}f}" if len(row.values) > 1 else "")
    ours += " stale" * row.stale + " †" * row.earlier + " ▲" * best
    apart = f"{row.difference:+.{digits}f}" if row.published else ""
    seeds = f"{len(row.values)}" + (f" ({row.folds} folds)" if row.entry.folds else "")
    return [*names, ours, printed, apart, row.mark, seeds, f"{row.seconds:.0f}"]


def markdown(table: str, *, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> str:
    """A table in Markdown."""
    found = [header(table), ["---"] * len(header(table))]
    found += lines(summary(table, results=results, preset=preset))
    return "".join("| " + " | ".join(words) + " |\n" for words in found)
