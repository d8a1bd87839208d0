"""Many runs: on the cores of this machine or on a cluster, skipping what is recorded, going on after a kill."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kofn import _require
from paper import records
from paper.cells import Run
from paper.one_run import run_cell, shared_record, shared_run
from paper.records import RESULTS
from paper.whole_recipe import state


class RunResult(NamedTuple):
    """What came of a run: its record, or what went wrong."""

    run: Run
    record: dict[str, Any] | None
    error: str


def run_grid(
    wanted: Sequence[Run],
    *,
    results: str | os.PathLike[str] = RESULTS,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: bool = True,
) -> list[Path]:
    """Run what has no record yet. Each record is written when it comes, so that a killed grid goes on where it was.

    A record is kept if it is whole and of the recipe that the run has today. A run that fails is reported at the end;
    the others go on.

    Args:
        wanted: the runs; see `paper.cells.runs`.
        results: folder for the records.
        jobs: number of processes on this machine, one thread each.
        scheduler: address of a dask.distributed scheduler, such as "tcp://10.0.0.1:8786", whose workers run the grid in
            place of `jobs` processes. They need kofn and the data; records are written here.
        progress: show a progress bar with the remaining time.

    Returns:
        The files of the new records.

    Raises:
        RuntimeError: some runs failed.
    """
    _require.whole_number("jobs", jobs, low=1)
    for table in {run.table for run in wanted}:
        records.restore(results, table)
    todo = [run for run in wanted if not recorded(results, run)]
    written: list[Path] = []
    failed: list[RunResult] = []
    with _progress_bar(len(wanted), len(wanted) - len(todo), progress) as on_done:
        todo = [run for run in todo if not _reuse_shared_record(results, run, written, on_done)]
        for done in _results(todo, jobs, scheduler):
            if done.record is None:
                failed.append(done)
            else:
                written.append(records.write(results, done.run, done.record))
            on_done(done)
    if failed:
        text = "; ".join(f"{done.run.table} {done.run.name}: {done.error}" for done in failed[:5])
        raise RuntimeError(f"{len(failed)} of {len(todo)} runs failed, the others are recorded: {text}")
    return written


def recorded(results: str | os.PathLike[str], run: Run) -> bool:
    """Whether there is a whole record of this run that is not stale, see `paper.whole_recipe.state`."""
    record = records.read(records.record_path(results, run))
    if record is None:
        return False
    return {key: record[key] for key in run.facts} == run.facts and state(record) != "stale"


def _reuse_shared_record(results: str | os.PathLike[str], run: Run, written: list[Path], on_done: Any) -> bool:
    """Whether another table has this training; its record is then this run's too."""
    other = shared_run(run)
    if other is None or not recorded(results, other):
        return False
    record = records.read(records.record_path(results, other))
    if record is None:
        return False
    done = shared_record(run, record)
    written.append(records.write(results, run, done))
    on_done(RunResult(run, done, ""))
    return True


def _results(todo: Sequence[Run], jobs: int, scheduler: str | None) -> Iterator[RunResult]:
    """The runs' outcomes as they come."""
    if not todo:
        return
    joblib = _require.package("joblib", extra="paper")
    with _backend(joblib, jobs, scheduler):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
        yield from parallel(joblib.delayed(_attempt)(run) for run in todo)


@contextmanager
def _backend(joblib: Any, jobs: int, scheduler: str | None) -> Iterator[None]:
    if scheduler is None:
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
        return
    distributed = _require.package("distributed", extra="paper")
    with distributed.Client(scheduler), joblib.parallel_config("dask", n_jobs=-1, wait_for_workers_timeout=60):
        yield


def _attempt(run: Run) -> RunResult:
    try:
        return RunResult(run, run_cell(run), "")
    except Exception as error:  # one cell must not end the others
        return RunResult(run, None, f"{type(error).__name__}: {error}")


@contextmanager
def _progress_bar(total: int, done: int, progress: bool) -> Iterator[Any]:
    """A line for each run, and a bar with the time left below them."""
    if not progress:
        yield lambda _: None
        return
    rich = _require.package("rich.progress", extra="paper")
    columns = [rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn()]
    with rich.Progress(*columns, speed_estimate_period=3600) as bar:
        task = bar.add_task("runs", total=total, completed=done)

        def on_done(outcome: RunResult) -> None:
            bar.console.print(_line(outcome), markup=False, highlight=False, soft_wrap=True)
            bar.advance(task)

        yield on_done


def _line(done: RunResult) -> str:
    if done.record is None:
        return f"{done.run.table} {done.run.name}: failed, {done.error}"
    numbers = {name: value for name, value in done.record["metrics"].items() if isinstance(value, float)}
    text = ", ".join(f"{name} {value:.4f}" for name, value in numbers.items())
    return f"{done.run.table} {done.run.name}: {text} ({done.record['seconds']:.0f} s)"
