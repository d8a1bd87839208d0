"""What has no record yet, or a stale one: the commands that run it, and about how many hours they take on one core."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from paper.cells import TABLES, Run, runs
from paper.one_run import shared_run
from paper.records import RESULTS, load_records
from paper.whole_recipe import state, whole_recipe

Record = Mapping[str, Any]
SCORING = 1 / 3  # of the work of training on an image


class Missing(NamedTuple):
    """Runs of one method that are missing.

    Attributes:
        command: runs them.
        runs: their number.
        stale: how many of them have a record of another recipe.
        hours: estimated from the records of the table, None if there are none.
    """

    command: str
    runs: int
    stale: int
    hours: float | None


def missing(table: str, *, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> list[Missing]:
    """What is missing of a table, by method and setting.

    Examples:
        >>> from paper.missing import missing
        >>> first, *_ = missing("pu", results="no-such-folder")
        >>> first
        Missing(command='python -m paper pu --only data=binarized-mnist --only method=CL-expect', runs=3, stale=0, \
hours=None)
    """
    records = load_records(results, table)
    states = {_name(record): state(record) for record in records}
    groups: dict[str, list[Run]] = {}
    for run in runs(table, preset=preset):
        if (
            table == "mil-instance" and shared_run(run) is not None
        ):  # what the table of bags trains is measured here, too
            continue
        if states.get(run.name, "stale") == "stale":
            groups.setdefault(_command(run), []).append(run)
    return [
        Missing(command, len(group), sum(run.name in states for run in group), _hours(group, records))
        for command, group in groups.items()
    ]


def missing_markdown(*, results: str | os.PathLike[str] = RESULTS, preset: str = "fast") -> str:
    """The same of all tables, in Markdown."""
    lines = ["| command | runs | of these stale | hours |", "|---|---|---|---|"]
    found = [each for table in TABLES for each in missing(table, results=results, preset=preset)]
    lines += [f"| `{each.command}` | {each.runs} | {each.stale} | {_in_words(each.hours)} |" for each in found]
    total = sum(each.hours or 0.0 for each in found)
    runs_and_stale = f"{sum(each.runs for each in found)} | {sum(each.stale for each in found)}"
    return "\n".join([*lines, f"| all of it | {runs_and_stale} | {total:.1f} |"])


def _in_words(hours: float | None) -> str:
    return "unknown" if hours is None else "below 0.1" if hours < 0.05 else f"{hours:.1f}"


def _name(record: Record) -> str:
    return _run(record).name


def _run(record: Record) -> Run:
    return Run(*(record[key] for key in ("table", "cell", "method", "preset", "seed")))


def _command(run: Run) -> str:
    """The words that choose a run's data, setting and method, but not its size, number of bags or fold."""
    cell = [f"{key}={run.cell[key]}" for key in ("data", "setting", "figure") if key in run.cell]
    preset = f" --preset {run.preset}" if run.preset != "fast" else ""
    words = "".join(f" --only {_quoted(word)}" for word in [*_telling(run.table, cell), f"method={run.method}"])
    return f"python -m paper {run.table}{preset}{words}"


def _telling(table: str, words: Sequence[str]) -> list[str]:
    """Words that are not the same in the whole table."""
    known = {key for key in ("data", "setting") if len({run.cell.get(key) for run in runs(table, seeds=1)}) == 1}
    return [word for word in words if word.partition("=")[0] not in known]


def _quoted(word: str) -> str:
    return f"'{word}'" if re.search(r"[^\w=.-]", word) else word


def _hours(wanted: Sequence[Run], records: Sequence[Record]) -> float | None:
    """The work of the runs times the seconds that the records most like them took for a unit of work."""
    total = 0.0
    for run in wanted:
        network = _network(whole_recipe(run))
        same = [record for record in records if _network(_recipe(record)) == network]
        like = [record for record in same if record["method"] == run.method] or same or list(records)
        if not like:
            return None
        unit = fmean((record.get("cpu_seconds") or record["seconds"]) / _work_of(record) for record in like)
        total += unit * _work(whole_recipe(run), run)
    return total / 3600


def _work_of(record: Record) -> float:
    return _work(_recipe(record), _run(record))


def _recipe(record: Record) -> Record:
    """The recipe that a record was made with; where it keeps none, that of today."""
    return record.get("recipe") or whole_recipe(_run(record))


def _work(recipe: Record, run: Run) -> float:
    """Images or rows that a run sees in training and scoring; of what has no epochs, 1."""
    epochs = recipe.get("epochs", 0)
    if not epochs:
        return 1.0
    if run.table.startswith("mil"):
        size = float(re.findall(r"[\d.]+", run.cell["setting"])[0])
        return float(size * (epochs * run.cell["bags"] + SCORING * recipe["data"]["test_bags"]))
    if run.table == "pu":
        return float(epochs * sum(recipe["data"]["images"][:2]))
    return float(epochs * recipe.get("data", {}).get("instances", 1))


def _network(recipe: Record) -> Any:
    return [recipe.get("module"), recipe.get("hidden"), "trees" in recipe, "landmarks" in recipe]
