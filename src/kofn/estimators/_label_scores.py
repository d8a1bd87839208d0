"""How much each row looks like a labelled one, by models that had not seen it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d

from kofn.bags import Bags
from kofn.learners import CountObjective, Problem, Progress, Trees
from kofn.learners._random_stream import generator_of
from kofn.learners._splits import folds

MOST = 20_000  # rows of a kind: with more, scores are not the reason for an uncertain mixture
ROUNDS, FOLDS = 100, 5  # of 200 rounds, and of means over three ways to cut folds, the mixture was no better
SIDE = 16  # pixels of an image, at most


def label_scores(
    instances: NDArray[np.float32],
    labeled: Tensor,
    *,
    categories: Mapping[int, int],
    seed: int,
    together: Tensor | None = None,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float64], Tensor]:
    """Log-odds of being labelled, of rows drawn at random, by boosted trees that were fitted to other rows.

    Trees serve whatever learner is trained afterwards: scores need to rank rows, not to be final. Of images they see
    the means of blocks of pixels.

    Args:
        instances: (n, ...) of a table or images.
        labeled: (n,) bool.
        categories: as those of a `Problem`.
        seed: random seed.
        together: as that of a `Problem`.
        progress: called after each model.

    Returns:
        Scores (k,) and the rows (k,) that they belong to: all, or 20,000 labelled and as many unlabelled ones.

    Raises:
        ValueError: rows that stay together in fewer groups than folds.
    """
    rows = _some_of_each(labeled, seed)
    table, labels = _as_table(instances[rows.numpy()]), labeled[rows].long()
    problem = Problem(
        instances=table,
        bags=Bags.from_sizes(torch.ones_like(labels)),  # of bags of one row the count loss is the cross-entropy
        labels=labels,
        objective=CountObjective(),
        rate=float(labels.double().mean()),
        proportions=labels.double(),
        categories=categories,
    )
    scores = np.zeros(len(rows))
    learner = Trees(rounds=ROUNDS)
    together = None if together is None else together[rows]
    splits = folds(labels, FOLDS, seed, together=together)
    if not splits:
        raise ValueError(
            f"`prior` or `mixture` must be given where `fold_by` has fewer than {FOLDS} values, since the mixture is "
            f"estimated in {FOLDS} folds that hold the rows of a value together."
        )
    for done, (train, held) in enumerate(splits, 1):
        _, part = problem.take(train).compact()
        scores[held.numpy()] = learner.fit(part, seed=seed).logits(table[held.numpy()])
        if progress is not None:
            progress("estimating the mixture", done, FOLDS, {})
    return scores, rows


def _some_of_each(labeled: Tensor, seed: int) -> Tensor:
    """All rows, or of a kind that has more than enough some at random, in ascending order."""
    generator = generator_of(seed, 3)
    kinds = [rows.nonzero().flatten() for rows in (labeled, ~labeled)]
    chosen = [rows[torch.randperm(len(rows), generator=generator)[:MOST]] for rows in kinds]
    return torch.cat(chosen).sort().values


def _as_table(instances: NDArray[np.float32]) -> Any:
    """Rows of columns: of images (n, height, width) or (n, channels, height, width) the means of blocks of pixels."""
    if instances.ndim in (3, 4):
        block = [-(-side // SIDE) for side in instances.shape[-2:]]
        pixels = torch.from_numpy(instances)
        instances = avg_pool2d(pixels, block, ceil_mode=True, count_include_pad=False).numpy()
    return np.ascontiguousarray(instances.reshape(len(instances), -1))
