"""Runs of the experiments that take no time: a made-up outcome, or real tasks with small recipes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paper import one_run
from paper.cells import Run
from paper.outcome import Outcome
from paper.whole_recipe import recipe_hash, whole_recipe


def made_up(cell: Any, method: str, recipe: Any, seed: int) -> Outcome:
    """Numbers that depend on the method and the seed only."""
    value = {"CL": 0.9, "PL": 0.85}.get(method, 0.8) + 0.001 * seed
    return Outcome({"auc": value, "auc_rounded": value, "accuracy": value}, [{"epoch": 0, "train_loss": 1.0}])


def slow_grid(results: str) -> None:
    """A grid whose runs take a moment each, to be killed in the middle; see test_grid.py."""
    import time

    from paper.cells import runs
    from paper.grid import run_grid

    def wait(*arguments: Any) -> Outcome:
        time.sleep(0.2)
        with (Path(results) / "started").open("a") as log:
            log.write("x")
        return made_up(*arguments)

    one_run.RUNNERS["llp"] = wait
    run_grid(runs("llp", only=["data=adult", "method=CL"], seeds=1), results=results, progress=False)


def record(run: Run, **metrics: float) -> dict[str, Any]:
    """A whole record."""
    whole = whole_recipe(run)
    facts: dict[str, Any] = {"recipe": whole, "recipe_hash": recipe_hash(whole), "metrics": metrics}
    return run.facts | facts | {"seconds": 2.0, "versions": {}, "machine": {}, "curve": []}


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a jsonl file."""
    return [json.loads(line) for line in path.read_text().splitlines()]
