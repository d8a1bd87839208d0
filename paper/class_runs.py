"""Counts of several classes: digits of MNIST, and rows of Adult by trees. The paper names it as future work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from kofn import datasets
from kofn.datasets import Labelled, Splits
from paper.outcome import Outcome
from paper.recipes import Recipe, split_recipe

INSTANCES = {1: 16_384, 8: 16_384, 32: 16_384, 128: 32_768, 512: 49_152}  # by the size of the bags


def run(cell: Mapping[str, Any], method: str, recipe: Recipe, seed: int) -> Outcome:
    """Train on bags of one size whose class counts are known, measure the accuracy of test instances.

    Bags are drawn at random with every seed, without replacement: their proportions differ by chance alone. A bag
    of one knows its label: what the counts of larger bags are compared with.
    """
    from kofn.estimators import LLPClassifier
    from kofn.learners import Trees

    train, test = load(cell["data"])
    instances, proportions, groups = draw(train, cell, seed)
    learner: Any
    options: Recipe
    if "trees" in recipe:
        learner, options = Trees(**recipe["trees"]), {"loss": recipe["loss"]}
    else:
        learner, options = split_recipe(recipe)
    model = LLPClassifier(learner, random_state=seed, **options).fit(instances, proportions, groups=groups)
    logits = torch.from_numpy(model.decision_function(test.instances.numpy())).double()
    found = {
        "accuracy": float((logits.argmax(1) == test.labels).double().mean()),
        "cross_entropy": float(torch.nn.functional.cross_entropy(logits, test.labels)),
    }
    return Outcome(found, model.history_)


def protocol(cell: Mapping[str, Any]) -> dict[str, Any]:
    """How many instances are in bags."""
    return {"instances": INSTANCES[cell["bag_size"]]}


def draw(train: Labelled, cell: Mapping[str, Any], seed: int) -> tuple[Any, Any, Any]:
    """Instances, the proportions of the classes in the bag of each, and its bag."""
    rng = np.random.default_rng(seed)
    size = cell["bag_size"]
    rows = rng.permutation(len(train))[: min(INSTANCES[size], len(train) // size * size)]
    chosen = train.select(torch.from_numpy(rows))
    groups = np.arange(len(rows)) // size
    one_hot = np.eye(len(train.classes))[chosen.labels.numpy()]
    proportions = np.stack([np.bincount(groups, weights=column) for column in one_hot.T], 1) / size
    return chosen.instances.numpy(), proportions[groups], groups


@lru_cache(maxsize=2)
def load(data: str) -> Splits:
    """A data set with several classes, read once a process."""
    if data == "mnist":
        return Splits(
            *(
                Labelled(part.instances.flatten(1).float() / 255, part.labels, (), part.classes)
                for part in datasets.load_mnist()
            )
        )
    return Splits(*map(_by_marital_status, datasets.load_adult()))


CLASSES = ("married", "never married", "formerly married")
STATUS = {"Married-civ-spouse": 0, "Married-AF-spouse": 0, "Never-married": 1}


def _by_marital_status(rows: Labelled) -> Labelled:
    """Adult with marital status as its class, and without what gives it away: relationship to the householder."""
    names = rows.features
    status = {i: name.split("=")[1] for i, name in enumerate(names) if name.startswith("marital-status")}
    kept = [i for i, name in enumerate(names) if not name.startswith(("marital-status", "relationship"))]
    x = torch.cat([rows.instances[:, kept], rows.labels[:, None].float()], 1)
    class_of = torch.tensor([STATUS.get(word, 2) for word in status.values()])
    labels = class_of[rows.instances[:, list(status)].argmax(1)]
    return Labelled(x, labels, (*(names[i] for i in kept), "income"), CLASSES)
