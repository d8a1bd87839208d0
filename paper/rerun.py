"""Recorded runs, chosen at random, run again: the numbers must be those of the record, to the last digit."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from kofn import _require
from paper.cells import TABLES, Run
from paper.one_run import run_cell
from paper.records import RESULTS, load_records
from paper.whole_recipe import state


class Comparison(NamedTuple):
    """A record and the same run today.

    Attributes:
        run: what was run.
        recorded: the metrics of the record.
        again: the same metrics of today's run; None where it has no such metric.
    """

    run: Run
    recorded: dict[str, Any]
    again: dict[str, Any]

    @property
    def equal(self) -> bool:
        """Whether every number of the record came again."""
        return self.recorded == self.again


def choose(
    number: int, *, table: str = "all", seed: int = 0, results: str | os.PathLike[str] = RESULTS
) -> list[dict[str, Any]]:
    """Records to run again, drawn without replacement from those that are neither stale nor of the earlier loop.

    Args:
        number: of records; fewer if there are not so many.
        table: one of `TABLES`, or "all".
        seed: of the draw.
        results: the folder with the ``TABLE.jsonl`` files.
    """
    _require.whole_number("number", number, low=1)
    _require.option("table", table, (*TABLES, "all"))
    names = TABLES if table == "all" else (table,)
    found = [record for name in names for record in load_records(results, name) if state(record) == "current"]
    return random.Random(seed).sample(found, min(number, len(found)))


def rerun(
    number: int, *, table: str = "all", seed: int = 0, results: str | os.PathLike[str] = RESULTS
) -> Iterator[Comparison]:
    """Run recorded runs again, one after the other; arguments as in `choose`. Nothing is written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from paper.reproduce import reproduce
        >>> from paper.rerun import rerun
        >>> with TemporaryDirectory() as here:
        ...     _ = reproduce("figures", only="figure=dynamic-programming", results=here, progress=False)
        ...     [(each.run.name, each.equal) for each in rerun(12, table="figures", results=here)]
        [('dynamic-programming_CL_fast_0', True)]
    """
    for record in choose(number, table=table, seed=seed, results=results):
        run = Run(*(record[key] for key in ("table", "cell", "method", "preset", "seed")))
        again = run_cell(run)["metrics"]
        yield Comparison(run, record["metrics"], {name: again.get(name) for name in record["metrics"]})
