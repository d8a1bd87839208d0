"""One run: from a cell, a method and a seed to one record."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import torch

from bench.record import commit
from kofn import _require, counts
from paper import class_runs, colon_runs, figure_runs, llp_runs, mil_runs, pu_runs, sum_runs
from paper.cells import Run
from paper.outcome import Outcome
from paper.recipes import Recipe, recipe
from paper.whole_recipe import recipe_hash, whole_recipe

RUNNERS: dict[str, Callable[[Mapping[str, Any], str, Recipe, int], Outcome]] = {
    "llp": llp_runs.run,
    "mil": mil_runs.run,
    "mil-instance": mil_runs.run,
    "mil-small": mil_runs.run,
    "colon": colon_runs.run,
    "pu": pu_runs.run,
    "classes": class_runs.run,
    "sums": sum_runs.run,
    "figures": figure_runs.run,
}


def run_cell(run: Run) -> dict[str, Any]:
    """Train and score one cell with one random seed, on one thread.

    The same run gives the same record on the same machine, but for `seconds` and `cpu_seconds`.

    Args:
        run: what to run.

    Returns:
        A record: the run's facts, `recipe` (all of it) and `recipe_hash`, `metrics`, `seconds` by the clock and
        of the processor, which others on the machine do not lengthen (`cpu_seconds`), `versions`, `commit`,
        `machine` and `curve`.

    Examples:
        >>> from paper.cells import Run
        >>> from paper.one_run import run_cell
        >>> record = run_cell(Run("figures", {"figure": "dynamic-programming"}, "CL", "fast", 0))
        >>> [round(p, 3) for p in record["metrics"]["pmfs"][3]]  # of three instances with 0.1, 0.2, 0.3
        [0.504, 0.398, 0.092, 0.006]
    """
    options = recipe(run.table, run.cell, run.method, run.preset)
    whole = whole_recipe(run)
    threads = torch.get_num_threads()
    start, start_cpu = time.perf_counter(), time.process_time()
    try:
        torch.set_num_threads(1)
        with _require.package("threadpoolctl", extra="paper").threadpool_limits(1):
            outcome = RUNNERS[run.table](run.cell, run.method, options, run.seed)
    finally:
        torch.set_num_threads(threads)
    seconds, cpu_seconds = round(time.perf_counter() - start, 2), round(time.process_time() - start_cpu, 2)
    found = _of_level(outcome.metrics, "instance" if run.table == "mil-instance" else "bag")
    facts = {
        "metrics": found,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "versions": versions(),
        "commit": commit(),
        "machine": machine(),
    }
    return run.facts | {"recipe": whole, "recipe_hash": recipe_hash(whole)} | facts | {"curve": outcome.curve}


def shared_record(run: Run, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a run whose training another table has: "mil" and "mil-instance" measure the same classifier."""
    level = "instance" if run.table == "mil-instance" else "bag"
    return {**record, **run.facts, "metrics": _of_level(record["metrics"], level)}


def shared_run(run: Run) -> Run | None:
    """The run of another table that is the same training."""
    other = {"mil": "mil-instance", "mil-instance": "mil"}.get(run.table)
    return Run(other, run.cell, run.method, run.preset, run.seed) if other and run.method == "CL" else None


def _of_level(found: Mapping[str, Any], level: str) -> dict[str, Any]:
    """Metrics of bags and of instances, those of one level without a prefix.

    Examples:
        >>> _of_level({"auc": 0.9, "instance_auc": 0.8}, "instance")
        {'bag_auc': 0.9, 'auc': 0.8}
    """
    if not any(name.startswith(("bag_", "instance_")) for name in found):
        return dict(found)
    other = "bag" if any(name.startswith("instance_") for name in found) else "instance"
    whole = {
        name if name.startswith(("bag_", "instance_")) else f"{other}_{name}": value for name, value in found.items()
    }
    return {name.removeprefix(f"{level}_"): value for name, value in whole.items()}


def versions() -> dict[str, str]:
    """Of what a number may depend on."""
    names = ("kofn", "torch", "numpy", "scikit-learn", "lightgbm")
    return {"python": platform.python_version()} | {name: _version(name) for name in names}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def machine() -> dict[str, Any]:
    """Where a number was made. Digits of a network depend on the vector instructions, which one name does not tell."""
    facts = {"system": platform.system(), "architecture": platform.machine(), "processor": _processor()}
    facts |= {"vectors": torch.backends.cpu.get_cpu_capability()}
    return facts | {"cores": os.cpu_count(), "counts": counts.backend()}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"
