"""Learning from label proportions on Adult and MAGIC."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

from kofn import datasets
from kofn.datasets import Labelled, LLPTask
from paper.kernel_machine import MutualContaminationKernelMachine
from paper.outcome import Outcome, compute_metrics
from paper.recipes import Recipe, split_recipe

INTERVALS = {"[0,1/2]": (0.0, 0.5), "[1/2,1]": (0.5, 1.0), "[0,1]": (0.0, 1.0)}
INSTANCES = {"adult": 8192, "magic": 6144}
METRICS = ("auc", "auc_rounded")


def run(cell: Mapping[str, Any], method: str, recipe: Recipe, seed: int) -> Outcome:
    """Train on bags of one size, score the instances of the test set.

    The number of bags is 8192 (Adult) or 6144 (MAGIC) over their size. MAGIC is split anew, 80 to 20, with every seed.
    Features are standardised by the rows that are in a bag. The number of trees is chosen on folds of the bags.
    """
    task, rows, test = draw(cell, seed)
    if method == "LMMCM":
        machine = MutualContaminationKernelMachine(random_state=seed, **recipe)
        machine.fit(rows.instances.numpy(), task.proportions.numpy(), task.bags.offsets.numpy())
        scores = machine.decision_function(test.instances.numpy())
        notes = {"penalty": machine.penalty_, "landmarks": recipe["landmarks"] or len(rows)}
        return Outcome(compute_metrics(test.labels, scores, METRICS) | notes)
    model, kept = classifier(task, method, recipe, seed)
    groups = task.bags.bag_of()
    model.fit(rows.instances[kept], task.proportions[groups[kept]], groups=groups[kept])
    notes = {} if model.best_step_ is None else {"best_epoch": model.best_step_ - 1}  # records count from 0
    if method == "CL-trees":
        notes = {"rounds": model.best_step_ or len(model.history_)}
    return Outcome(
        compute_metrics(test.labels, model.decision_function(test.instances), METRICS) | notes, model.history_
    )


def protocol(cell: Mapping[str, Any]) -> dict[str, Any]:
    """How the bags are drawn."""
    return {"instances": INSTANCES[cell["data"]], "proportions": list(INTERVALS[cell["setting"]])}


def draw(cell: Mapping[str, Any], seed: int) -> tuple[LLPTask, Labelled, Labelled]:
    """The bags, their rows one bag after the other, and the test set."""
    generator = torch.Generator().manual_seed(seed)
    train, test = split(cell["data"], generator)
    (low, high), size = INTERVALS[cell["setting"]], cell["bag_size"]
    number = INSTANCES[cell["data"]] // size
    task = datasets.make_llp_bags(train.labels, bag_size=size, bags=number, low=low, high=high, generator=generator)
    rows, test = datasets.standardise(train.select(task.bags.index), test)
    return task, rows, test


def split(data: str, generator: torch.Generator) -> tuple[Labelled, Labelled]:
    """Training and test rows."""
    loaded = load(data)
    return loaded.split(0.8, generator=generator) if isinstance(loaded, Labelled) else loaded


@lru_cache(maxsize=2)
def load(data: str) -> Any:
    """A data set, read once a process."""
    return datasets.load_adult() if data == "adult" else datasets.load_magic()


def classifier(task: LLPTask, method: str, recipe: Recipe, seed: int) -> tuple[Any, torch.Tensor]:
    """The estimator, and which rows it sees: where the last epoch is taken, without the bags that are held out."""
    from kofn.estimators import LLPClassifier
    from kofn.learners import Trees

    everything = torch.arange(len(task.bags.index))
    if method == "CL-trees":
        return LLPClassifier(Trees(**recipe["trees"]), loss=recipe["loss"], random_state=seed), everything
    options = dict(recipe)
    held_out, stop = options.pop("held_out"), options.pop("stop")
    if stop == "best":  # of the bags this part, rounded down: the estimator rounds up
        options["validation_fraction"] = int(held_out * len(task.bags)) / len(task.bags)
    network, task_options = split_recipe(options)
    model = LLPClassifier(network, random_state=seed, **task_options)
    if stop == "best":
        return model, everything
    chosen, _ = datasets.hold_out(len(task.bags), held_out, generator=torch.Generator().manual_seed(seed))
    return model, everything[torch.isin(task.bags.bag_of(), chosen)]
