"""Multiple instance learning on bags of MNIST digits: does a bag have a nine?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch

from kofn import datasets, metrics
from kofn.datasets import Labelled, MILTask, Splits
from paper.outcome import Outcome, compute_metrics
from paper.recipes import Recipe, split_recipe

TARGET = 9
TEST_BAGS = 1000
MEAN, SD = 0.1307, 0.3081  # of a pixel of the training set
METRICS = ("auc", "auc_rounded", "accuracy")


def run(cell: Mapping[str, Any], method: str, recipe: Recipe, seed: int) -> Outcome:
    """Train on bags of the training digits; score 1000 bags of test digits.

    The sizes of the test bags have the same distribution. Their instances are scored, too, by the methods that classify
    instances.
    """
    model, test = fitted(cell, recipe, seed)
    X, _, groups = test.rows(load(recipe.get("pixels")).test.instances)  # noqa: N806
    if "Attention" in method:
        return Outcome(
            compute_metrics(test.bag_labels, model.bag_decision_function(X, groups), METRICS), model.history_
        )
    logits = torch.from_numpy(model.decision_function(X))
    found = compute_metrics(test.bag_labels, metrics.bag_scores(logits, offsets=test.bags.offsets), METRICS)
    found |= compute_metrics(test.instance_labels[test.bags.index], logits, METRICS, prefix="instance_")
    return Outcome(found, model.history_)


def protocol(cell: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a bag positive, and how many bags are scored."""
    return {"target": TARGET, "test_bags": TEST_BAGS}


def fitted(cell: Mapping[str, Any], recipe: Recipe, seed: int) -> tuple[Any, MILTask]:
    """A trained classifier, and the test bags."""
    from kofn.estimators import MILClassifier

    digits = load(recipe.get("pixels"))
    generator = torch.Generator().manual_seed(seed)
    train = draw(digits.train, cell["setting"], cell["bags"], generator)
    test = draw(digits.test, cell["setting"], TEST_BAGS, generator)
    X, y, groups = train.rows(digits.train.instances)  # noqa: N806
    network, options = split_recipe(recipe)
    return MILClassifier(network, random_state=seed, **options).fit(X, y, groups=groups), test


def draw(digits: Labelled, sizes: str, bags: int, generator: torch.Generator) -> MILTask:
    """Bags whose sizes are distributed as, for one, N(10,2), the second number being the standard deviation."""
    mean, sd = (float(number) for number in re.findall(r"[\d.]+", sizes))
    return datasets.make_mil_bags(
        digits.labels, target=TARGET, bags=bags, mean_size=mean, sd_size=sd, generator=generator
    )


@lru_cache(maxsize=2)
def load(pixels: str | None = None) -> Splits:
    """MNIST, read once a process; pixels from 0 to 1, or "standardised" over the training set."""
    mean, sd = (MEAN, SD) if pixels == "standardised" else (0.0, 1.0)
    parts = datasets.load_mnist()
    return Splits(*(replace(part, instances=(part.instances.float() / 255 - mean) / sd) for part in parts))
