"""Learning from positives and unlabelled images, of MNIST and CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from kofn import datasets, metrics
from kofn.datasets import Labelled, Splits
from paper.outcome import Outcome
from paper.recipes import Recipe, split_recipe

MIXTURE = 0.5


class Setting(NamedTuple):
    """Which classes are positive and negative, and how many images of each kind there are."""

    positive: tuple[int, ...]
    negative: tuple[int, ...]
    labeled: int
    unlabeled: int
    test: int


LOW, HIGH = (0, 1, 2, 3, 4), (5, 6, 7, 8, 9)
SETTINGS = {
    "binarized-mnist": Setting(LOW, HIGH, 15000, 15000, 2500),
    "mnist17": Setting((1,), (7,), 3000, 3000, 500),
    "binarized-cifar": Setting(LOW, HIGH, 12500, 12500, 2500),
    "cifar-cat-dog": Setting((3,), (5,), 3000, 3000, 500),
}


def run(cell: Mapping[str, Any], method: str, recipe: Recipe, seed: int) -> Outcome:
    """Train on labelled positives and unlabelled images, score unlabelled test images.

    Of the baselines the mean accuracy of the last epochs is taken, as Garg et al. (2021) do; ours take the epoch that
    validation data choose. `accuracy_all` is of all test images of these classes, which are more.
    """
    model, test, chosen, last_scores = fitted(cell["data"], recipe, seed)
    scores = last_scores.scores or [model.decision_function(test.instances)]
    found = {
        "accuracy": float(np.mean([metrics.accuracy(test.labels[chosen], score[chosen.numpy()]) for score in scores])),
        "accuracy_all": float(np.mean([metrics.accuracy(test.labels, score) for score in scores])),
    }
    notes = {} if model.best_step_ is None else {"best_epoch": model.best_step_ - 1}  # records count from 0
    return Outcome(found | notes, model.history_)


def protocol(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Which classes are positive, and how many images of each kind there are."""
    positive, negative, *numbers = SETTINGS[cell["data"]]
    return {"positive": list(positive), "negative": list(negative), "images": numbers, "mixture": MIXTURE}


def fitted(data: str, recipe: Recipe, seed: int) -> tuple[Any, Labelled, Tensor, LastEpochScores]:
    """A trained classifier, all test images, which of them are the test set, and scores of the last epochs."""
    from kofn.estimators import PUClassifier
    from paper.networks import augmented

    setting = SETTINGS[data]
    train, test = (two_classes(part, setting) for part in load("cifar" if "cifar" in data else "mnist"))
    generator = torch.Generator().manual_seed(seed)
    split: dict[str, Any] = {"mixture": MIXTURE, "generator": generator}
    task = datasets.make_pu_split(train.labels, positives=setting.labeled, unlabeled=setting.unlabeled, **split)
    chosen = datasets.make_pu_split(test.labels, positives=1, unlabeled=setting.test, **split).unlabeled
    options = dict(recipe)
    if options.get("module") in ("mlp", "pu_mnist_mlp"):
        train, test = (Labelled(part.instances.flatten(1), part.labels, (), part.classes) for part in (train, test))
    last_scores = LastEpochScores(test.instances, options["epochs"] - options.pop("average", 0))
    if "average" in recipe:
        options["callback"] = last_scores
    if "crop" in options:  # a factory: the network is made from the estimator's seed
        options["module"] = partial(augmented, options["module"], options["crop"])
    network, task_options = split_recipe(options)
    X, y = task.rows(train.instances)  # noqa: N806
    model = PUClassifier(network, mixture=MIXTURE, random_state=seed, **task_options).fit(X, y)
    return model, test, chosen, last_scores


class LastEpochScores:
    """Scores of the test images after each epoch from one on."""

    def __init__(self, images: Tensor, start: int) -> None:
        self.images, self.start = images, start
        self.scores: list[np.ndarray[Any, np.dtype[np.float64]]] = []

    def __call__(self, network: nn.Module, entry: Mapping[str, float]) -> None:
        """Score with a network in evaluation mode after an epoch, if it is time."""
        if entry["epoch"] <= self.start:
            return
        with torch.no_grad():
            self.scores.append(torch.cat([network(part) for part in self.images.split(2048)]).double().numpy())


def two_classes(part: Labelled, setting: Setting) -> Labelled:
    """The images of the setting's classes, labelled 1 where positive."""
    wanted = part.select(torch.isin(part.labels, torch.tensor(setting.positive + setting.negative)))
    labels = torch.isin(wanted.labels, torch.tensor(setting.positive)).long()
    return Labelled(wanted.instances, labels, (), ("negative", "positive"))


@lru_cache(maxsize=1)
def load(data: str) -> Splits:
    """MNIST from 0 to 1, CIFAR-10 from -1 to 1, read once a process."""
    if data == "mnist":
        return Splits(*(_scaled(part, 0.0, 255.0) for part in datasets.load_mnist()))
    return Splits(*(_scaled(part, 127.5, 127.5) for part in datasets.load_cifar10()))


def _scaled(part: Labelled, shift: float, scale: float) -> Labelled:
    return Labelled((part.instances.float() - shift) / scale, part.labels, (), part.classes)
