"""Multiple instance learning on images of colon tissue: does an image have an epithelial nucleus?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kofn import _require, datasets
from kofn.bags import Bags
from paper.cells import FOLDS
from paper.outcome import Outcome, compute_metrics
from paper.recipes import Recipe, split_recipe

LEFT_OUT = "img76"  # the paper uses 99 images of 100; see `kofn.datasets.load_colon`
METRICS = ("accuracy", "auc", "auc_rounded", "f1", "precision", "recall")


def run(cell: Mapping[str, Any], method: str, recipe: Recipe, seed: int) -> Outcome:
    """Train on nine folds of the images, score the tenth.

    Folds have the same share of positive images, and are drawn anew with every seed. Patches are mirrored, turned and
    shifted at random whenever they are seen in training.
    """
    from kofn.estimators import MILClassifier

    instances, bags, labels = load()
    selection = _require.package("sklearn.model_selection", extra="train")
    folds = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    train, test = list(folds.split(np.zeros(len(labels)), labels.numpy()))[cell["fold"]]
    # A factory: the network is made from the estimator's seed.
    network, options = split_recipe(recipe | {"module": partial(augmented, recipe["module"])})
    model = MILClassifier(network, random_state=seed, **options)
    model.fit(*rows(instances, bags.select(train), labels[train]))
    X, _, groups = rows(instances, bags.select(test), labels[test])  # noqa: N806
    return Outcome(compute_metrics(labels[test], model.bag_decision_function(X, groups), METRICS), model.history_)


def protocol(cell: Mapping[str, Any]) -> dict[str, Any]:
    """How many folds there are, and which image is left out."""
    return {"folds": FOLDS, "left_out": LEFT_OUT}


def rows(instances: Tensor, bags: Bags, labels: Tensor) -> tuple[Any, Any, Any]:
    """X, y and groups of some bags."""
    bag = bags.bag_of()
    return instances[bags.index].numpy(), labels[bag].numpy(), bag.numpy()


@lru_cache(maxsize=1)
def load() -> tuple[Tensor, Bags, Tensor]:
    """Patches, the paper's 99 images as bags, and their labels, read once a process."""
    colon = datasets.load_colon()
    kept = torch.tensor([name != LEFT_OUT for name in colon.bags.names])
    return colon.instances, colon.bags.select(kept), colon.bag_labels[kept]


def augmented(name: str) -> nn.Sequential:
    """A new network that sees its training patches augmented."""
    from paper.networks import NETWORKS  # and with it all that trains

    return nn.Sequential(Augmented(), *NETWORKS[name]().children())


class Augmented(nn.Module):
    """Patches of 0 to 255 scaled to about -2 to 2; in training mode augmented from torch's stream."""

    def forward(self, patches: Tensor) -> Tensor:
        """(m, 3, size, size) to the same shape."""
        if self.training:
            seed = int(torch.randint(2**31 - 1, ()))
            patches = datasets.augment_patches(patches, generator=torch.Generator().manual_seed(seed))
        return (patches - 127.5) / 64
