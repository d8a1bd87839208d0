"""The one call behind ``python -m paper``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from kofn import _require
from paper.cells import TABLES, allowed_values, runs
from paper.grid import run_grid
from paper.records import RESULTS, collect
from paper.report import report as write_report


def reproduce(
    table: str,
    *,
    only: Iterable[str] | str | None = None,
    seeds: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    preset: str = "fast",
    results: str | os.PathLike[str] = RESULTS,
    report: bool = False,
    progress: bool = True,
) -> list[Path]:
    """Run a table of the paper, or what is missing of it, and gather its records.

    Args:
        table: one of `TABLES`, or "all".
        only: words such as "data=adult", "bag_size=8", "method=CL"; a key named twice allows both values. Of "all",
            tables that do not have such a key or value are left out.
        seeds: number of random seeds; by default as many as in the paper.
        jobs: number of processes on this machine.
        scheduler: address of a dask.distributed scheduler, in place of `jobs`.
        preset: "fast" or "paper".
        results: folder for ``TABLE.jsonl`` and ``records/``.
        report: write ``results/tables.md``, and the page with figures into ``results/report``, too.
        progress: show a progress bar.

    Returns:
        The files written.

    Raises:
        ValueError: an unknown table, preset, or word of `only`.
        RuntimeError: runs that failed, and why; the others are recorded.
    """
    _require.option("table", table, (*TABLES, "all"))
    words = [only] if isinstance(only, str) else list(only or [])
    wanted = [run for name in _tables(table, words) for run in runs(name, only=words, seeds=seeds, preset=preset)]
    try:
        run_grid(wanted, results=results, jobs=jobs, scheduler=scheduler, progress=progress)
    finally:
        written = collect(results)
    return written + (write_report(results, Path(results) / "report", preset=preset) if report else [])


def _tables(table: str, only: list[str]) -> list[str]:
    if table != "all":
        return [table]
    fitting = [name for name in TABLES if _has_cells(name, only)]
    if not fitting:
        raise ValueError(f"`only` must fit a table; no table has {' '.join(only)}.")
    return fitting


def _has_cells(table: str, only: list[str]) -> bool:
    try:
        allowed_values(table, only)
    except ValueError:
        return False
    return True
