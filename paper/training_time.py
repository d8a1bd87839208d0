"""Training seconds beside quality: one line for each method of a task, over the cells that all of its methods have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from paper.cells import METHODS, METRICS
from paper.records import RESULTS
from paper.summary import Row, summary
from paper.table_layout import DIGITS

TASKS = ("llp", "mil", "mil-instance", "pu", "classes", "sums")


class Time(NamedTuple):
    """A method on a task.

    Attributes:
        task: table and data, and of bags of digits the distribution of their sizes.
        method: its name.
        cells: number of cells that all methods of the task have.
        quality: mean of the table's first metric over these cells.
        seconds: of one run with its scoring, on average.
        kind: "CPU" if all records of these cells have the time of the processor, else "wall": that includes what others
            did on the machine.
    """

    task: str
    method: str
    cells: int
    quality: float
    seconds: float
    kind: str


def times(table: str, *, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> list[Time]:
    """Quality and seconds of every method of a table, over the cells of a task in which the most methods ran.

    Nothing stale is among them.

    Examples:
        >>> from paper.training_time import times
        >>> times("llp", results="no-such-folder")
        []
    """
    rows = [row for row in summary(table, results=results, preset=preset) if row.metric == METRICS[table][0]]
    tasks: dict[str, dict[tuple[object, ...], dict[str, Row]]] = {}
    for row in rows:
        if row.values and not row.stale:
            cell = row.entry.cell
            words = [cell["data"]] + [cell["setting"]] * table.startswith("mil")
            task = f"{table}: {' '.join(words)}"
            tasks.setdefault(task, {}).setdefault(tuple(cell.values()), {})[row.entry.method] = row
    found = []
    for task, cells in tasks.items():
        most = max(map(len, cells.values()))
        whole = [methods for methods in cells.values() if len(methods) == most > 1]
        shared = [method for method in METHODS[table] if whole and all(method in methods for methods in whole)]
        found += [_time(task, method, [methods[method] for methods in whole]) for method in shared]
    return found


def _time(task: str, method: str, rows: Sequence[Row]) -> Time:
    cpu = [row.cpu_seconds for row in rows if row.cpu_seconds is not None]
    seconds = cpu if len(cpu) == len(rows) else [row.seconds for row in rows]
    kind = "CPU" if seconds is cpu else "wall"
    return Time(task, method, len(rows), fmean(row.mean for row in rows), fmean(seconds), kind)


def times_markdown(*, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> str:
    """The same of all tables, in Markdown."""
    lines = ["| task | method | cells | metric | mean | seconds |", "|---|---|---|---|---|---|"]
    for table in TASKS:
        for each in times(table, results=results, preset=preset):
            mean = f"{each.quality:.{DIGITS[table]}f}"
            words = [each.task, each.method, each.cells, f"`{METRICS[table][0]}`", mean]
            lines.append("| " + " | ".join(map(str, [*words, f"{each.seconds:.0f} {each.kind}"])) + " |")
    return "\n".join(lines)
