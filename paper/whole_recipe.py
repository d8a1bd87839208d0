"""All that the numbers of a run depend on but its code: the recipe and how its data are drawn. A record keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from paper import class_runs, colon_runs, figure_runs, llp_runs, mil_runs, pu_runs, sum_runs
from paper.cells import Run
from paper.recipes import Recipe, recipe

PROTOCOLS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "llp": llp_runs.protocol,
    "mil": mil_runs.protocol,
    "mil-instance": mil_runs.protocol,
    "mil-small": mil_runs.protocol,
    "colon": colon_runs.protocol,
    "pu": pu_runs.protocol,
    "classes": class_runs.protocol,
    "sums": sum_runs.protocol,
    "figures": figure_runs.protocol,
}
State = Literal["current", "stale", "earlier loop"]


def whole_recipe(run: Run) -> Recipe:
    """The recipe of a run and, as `data`, the numbers by which its data are drawn; plain values that JSON can hold.

    Examples:
        >>> run = Run("mil", {"data": "mnist", "setting": "N(10,2)", "bags": 50}, "CL", "fast", 0)
        >>> whole_recipe(run)["data"]
        {'target': 9, 'test_bags': 1000}
    """
    return recipe(run.table, run.cell, run.method, run.preset) | {"data": PROTOCOLS[run.table](run.cell)}


def recipe_hash(whole: Recipe) -> str:
    """Twelve hexadecimal digits that tell a recipe from others; the order of its words does not matter.

    Examples:
        >>> recipe_hash({"lr": 0.1, "epochs": 5}) == recipe_hash({"epochs": 5, "lr": 0.1}) != recipe_hash({"lr": 0.1})
        True
    """
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:12]


def state(record: Mapping[str, Any]) -> State:
    """How a record stands to the recipe that its run has today.

    "stale": the recipe is another one today, so that the record is run again by the next start. "earlier loop": the
    recipe is the same, but the network was trained by the loop before that of `kofn.learners`, which drew other random
    numbers: a run of today differs from it as another seed would; such a record has no hash.

    Examples:
        >>> run = Run("llp", {"data": "adult", "setting": "[0,1]", "bag_size": 8}, "CL", "fast", 0)
        >>> today = whole_recipe(run)
        >>> state(run.facts | {"recipe": today, "recipe_hash": recipe_hash(today)})
        'current'
        >>> state(run.facts | {"recipe": today | {"lr": 1.0}, "recipe_hash": "0123456789ab"})
        'stale'
        >>> state(run.facts | {"recipe": today, "recipe_hash": None})
        'earlier loop'
    """
    run = Run(*(record[key] for key in ("table", "cell", "method", "preset", "seed")))
    if record.get("recipe") not in (None, whole_recipe(run)):
        return "stale"
    return "current" if record.get("recipe_hash") else "earlier loop"
