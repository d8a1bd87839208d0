"""Permutation importance: how much worse labels are predicted when the values of a column change places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn import metrics
from kofn.bags import Bags
from kofn.estimators._bag_losses import MODEL, bag_losses
from kofn.estimators._columns import Floats
from kofn.estimators._ensemble import mixed
from kofn.estimators._mil_classifier import ATTENTION
from kofn.estimators._pu_classifier import PUClassifier

Array = NDArray[Any]
REPEATS = 5
MOST_COLUMNS = 20  # that are measured in full
# Scores of rows that are asked for in each of the two passes, over all members of a bootstrap: seconds, not minutes.
BUDGET = 100_000
FEWEST_ROWS = 64
BATCH = 4096  # rows scored at once


@dataclass(frozen=True, eq=False)
class Permutations:
    """What shuffling columns costs.

    Attributes:
        columns: (k,) places of the columns, the most important first.
        drops: (k, repeats) how much the score fell.
        rows: how many rows were measured.
        bags: in how many bags; None where rows have labels of their own.
        used: how many columns change the scores of rows at all; `columns` are the first of them by how much.
    """

    columns: NDArray[np.int64]
    drops: NDArray[np.float64]
    rows: int
    bags: int | None
    used: int


def permutation_importance(estimator: Any, values: Floats, labels: Any, bags: Bags | None) -> Permutations | None:
    """How much the mean log-likelihood of a bag's label falls when a column is shuffled between rows.

        drop_j = L(X) - L(X with column j shuffled),   L = mean over bags of log P(label of the bag)

    It is the same for every learner. Of positives and unlabelled L is `kofn.metrics.pu_auc`. Columns are first ranked
    by how far one shuffle moves the scores of a few rows; the leading 20 are then measured, five times each, on bags
    drawn at random. Two columns that say the same share their importance, or hide each other's.

    Args:
        estimator: fitted to a table.
        values: (n, columns) rows as the learner takes them.
        labels: of the rows, as `fit` takes them.
        bags: of the rows; None for positives and unlabelled.

    Returns:
        None if there is nothing to measure: no rows, or labels of one kind only.
    """
    members = max(len(estimator.members_), 1)
    rng = np.random.default_rng(0)
    most = max(BUDGET // (MOST_COLUMNS * REPEATS * members), FEWEST_ROWS)
    if bags is None:
        positive = np.asarray(labels == estimator.classes_[1])
        rows = np.sort(np.concatenate([_some(np.flatnonzero(kind), most // 2, rng) for kind in (positive, ~positive)]))
        if not 0 < positive[rows].sum() < len(rows):
            return None
        part = None
    else:
        part, rows = _some_bags(bags, most, rng)
        if not len(rows):
            return None
    table, told = np.array(values[rows]), labels[rows]
    score = _score(estimator, told, part)
    ranked = _ranked(estimator, table, max(BUDGET // (table.shape[1] * members), FEWEST_ROWS), rng)
    first, drops = score(table), []
    for column in ranked[:MOST_COLUMNS].tolist():
        kept = table[:, column].copy()
        found = []
        for _ in range(REPEATS):
            table[:, column] = kept[rng.permutation(len(kept))]
            found.append(first - score(table))
        table[:, column] = kept
        drops.append(found)
    each = np.array(drops, dtype=np.float64).reshape(-1, REPEATS)
    order = np.argsort(-each.mean(1), kind="stable")
    columns = ranked[:MOST_COLUMNS][order]
    return Permutations(columns, each[order], len(rows), None if part is None else len(part), len(ranked))


def _some(rows: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rows if len(rows) <= most else rng.choice(rows, most, replace=False)


def _some_bags(bags: Bags, most: int, rng: np.random.Generator) -> tuple[Bags, NDArray[np.int64]]:
    """Bags at random, of at most so many entries in all but at least one, of the rows that lie in them."""
    order = torch.from_numpy(rng.permutation(len(bags)))
    number = max(int((bags.sizes[order].cumsum(0) <= most).sum()), 1)
    chosen = bags.select(order[:number].sort().values)
    rows, index = chosen.index.unique(return_inverse=True)
    return Bags(index, chosen.offsets, names=chosen.names), rows.numpy()


def _ranked(estimator: Any, table: Floats, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Columns whose values matter to the scores, those first that move them furthest when they are shuffled once."""
    few = table[_some(np.arange(len(table)), most, rng)]
    before = _logits(estimator, few)
    moved = np.zeros(few.shape[1])
    at_once = max(BATCH // len(few), 1)
    for start in range(0, len(moved), at_once):
        columns = range(start, min(start + at_once, len(moved)))
        changed = np.repeat(few[None], len(columns), 0)
        for place, column in enumerate(columns):
            changed[place, :, column] = few[rng.permutation(len(few)), column]
        after = _logits(estimator, changed.reshape(-1, few.shape[1])).reshape(len(columns), *before.shape)
        moved[start : start + len(columns)] = (after - before).abs().flatten(1).mean(1).numpy()
    return np.argsort(-moved, kind="stable")[: int((moved > 0).sum())]


def _logits(estimator: Any, values: Floats) -> Tensor:
    """Log-odds of rows, (n,) or (n, C), by all members together."""
    members = _member_logits(estimator, values)
    return mixed(members, classes=members.dim() == 3)


def _member_logits(estimator: Any, values: Floats) -> Tensor:
    return torch.stack([torch.from_numpy(one.logits(values)) for one in estimator.members_ or [estimator.fitted_]])


def _score(estimator: Any, labels: Any, bags: Bags | None) -> Callable[[Floats], float]:
    """The score of a table of rows with these labels: larger is better."""
    if isinstance(estimator, PUClassifier) or bags is None:
        positive = np.asarray(labels == estimator.classes_[1])

        def order(values: Floats) -> float:
            scores = _logits(estimator, values).numpy()
            return metrics.pu_auc(scores[positive], scores[~positive])

        return order

    def likelihood(values: Floats) -> float:
        if estimator.loss in ATTENTION:
            scores: dict[str, Any] = {"bag_logits": estimator._pooled_logits(values, bags)}
        else:
            scores = {"members": _member_logits(estimator, values)[:, bags.index]}
        return -float(bag_losses(estimator, labels, bags, **scores)[MODEL].mean())

    return likelihood
