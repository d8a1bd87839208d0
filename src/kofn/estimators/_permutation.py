"""Permutation importance: how much worse labels are predicted when the values of a column change places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._bag_losses import MODEL, bag_losses
from kofn.estimators._columns import Floats
from kofn.estimators._mil_classifier import ATTENTION
from kofn.estimators._pu_classifier import PUClassifier
from kofn.estimators._verdicts import FEWEST, Estimate, auc_gain, mean_of

Array = NDArray[Any]
MOST_ROWS = 20_000  # that are measured on, in whole bags
MOST_REPEATS, MOST_COLUMNS = 5, 20
# Scores of rows that are asked for: repeats are given up before columns, for chance between bags is what an interval
# is about, and each repeat looks at the same bags.
BUDGET = 1_000_000
RANKING_BUDGET = 100_000  # scores of rows that rank all columns
FEWEST_ROWS, FEWEST_COLUMNS = 64, 3
BATCH = 4096  # rows scored at once, of many columns


@dataclass(frozen=True, eq=False)
class Permutations:
    """What shuffling columns costs.

    Attributes:
        columns: (k,) places of the columns, the most important first.
        drops: (k,) how much the score fell, each with its 90 % interval.
        repeats: how many times each column was shuffled.
        rows: how many rows were measured.
        bags: in how many bags; None where rows have labels of their own.
        used: how many columns change the scores of rows at all; `columns` are the first of them by how much.
    """

    columns: NDArray[np.int64]
    drops: list[Estimate]
    repeats: int
    rows: int
    bags: int | None
    used: int


def permutation_importance(estimator: Any, values: Floats, labels: Any, bags: Bags | None) -> Permutations | None:
    """How much the mean log-likelihood of a bag's label falls when a column is shuffled between rows.

        drop_j = mean over bags of d_b,   d_b = log P(label of b | X) - log P(label of b | X with column j shuffled)

    with Student's interval over the bags, each d_b the mean over the repeats: another sample of bags is what the drop
    may differ in. Of positives and unlabelled the score is `kofn.metrics.pu_auc`, with DeLong's interval over rows. It
    is the same for every learner. Measured is the one model of the main fit, not each member of a bootstrap, on all
    bags of up to 20,000 rows, or as many drawn at random. Columns are first ranked by how far one shuffle moves the
    scores of a few rows; the leading 20 are then measured, up to five times each. Two columns that say the same share
    their importance, or hide each other's.

    Args:
        estimator: fitted to a table.
        values: (n, columns) rows as the learner takes them.
        labels: of the rows, as `fit` takes them.
        bags: of the rows; None for positives and unlabelled.

    Returns:
        None if there is nothing to measure: no rows, or labels of one kind only.
    """
    rng = np.random.default_rng(0)
    if bags is None:
        positive = np.asarray(labels == estimator.classes_[1])
        kinds = (_some(np.flatnonzero(kind), MOST_ROWS // 2, rng) for kind in (positive, ~positive))
        rows = np.sort(np.concatenate(list(kinds)))
        if min(positive[rows].sum(), (~positive[rows]).sum()) < 2:
            return None
        part = None
    else:
        part, rows = _some_bags(bags, MOST_ROWS, rng)
        if not len(rows):
            return None
    table = np.array(values[rows])
    drop = _drop_of(estimator, table, labels[rows], part)
    ranked = _ranked(estimator, table, max(RANKING_BUDGET // table.shape[1], FEWEST_ROWS), rng)
    columns = ranked[: min(MOST_COLUMNS, max(BUDGET // len(rows), FEWEST_COLUMNS))]
    repeats = min(max(BUDGET // (len(rows) * max(len(columns), 1)), 1), MOST_REPEATS)
    drops = []
    for column in columns.tolist():
        kept = table[:, column].copy()

        def shuffled(column: int = column, kept: Floats = kept) -> Floats:
            table[:, column] = kept[rng.permutation(len(kept))]
            return table

        drops.append(drop([shuffled] * repeats))
        table[:, column] = kept
    order = np.argsort([-one.mean for one in drops], kind="stable")
    found = [drops[place] for place in order.tolist()]
    bag_number = None if part is None else len(part)
    return Permutations(columns[order], found, repeats, len(rows), bag_number, len(ranked))


def _some(rows: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rows if len(rows) <= most else rng.choice(rows, most, replace=False)


def _some_bags(bags: Bags, most: int, rng: np.random.Generator) -> tuple[Bags, NDArray[np.int64]]:
    """Bags at random, of at most so many entries in all but at least five, of the rows that lie in them."""
    order = torch.from_numpy(rng.permutation(len(bags)))
    number = max(int((bags.sizes[order].cumsum(0) <= most).sum()), FEWEST)
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
    """Log-odds of rows, (n,) or (n, C), by the main fit."""
    return torch.from_numpy(estimator.fitted_.logits(values))


def _drop_of(
    estimator: Any, table: Floats, labels: Any, bags: Bags | None
) -> Callable[[Sequence[Callable[[], Floats]]], Estimate]:
    """From tables that are made one after the other, how much lower their score is than that of the first table."""
    if isinstance(estimator, PUClassifier) or bags is None:
        positive = np.asarray(labels == estimator.classes_[1])
        before = _logits(estimator, table).numpy()

        def of_order(others: Sequence[Callable[[], Floats]]) -> Estimate:
            each = [auc_gain(before, _logits(estimator, other()).numpy(), positive) for other in others]
            return Estimate(*np.mean([(one.mean, one.low, one.high) for one in each], axis=0).tolist())

        return of_order
    first = label_losses(estimator, table, labels, bags)

    def of_labels(others: Sequence[Callable[[], Floats]]) -> Estimate:
        return mean_of(np.mean([label_losses(estimator, other(), labels, bags) - first for other in others], axis=0))

    return of_labels


def label_losses(estimator: Any, values: Floats, labels: Any, bags: Bags) -> NDArray[np.float64]:
    """-log P(label) of each bag, (b,), by the main fit."""
    if estimator.loss in ATTENTION:
        scores: dict[str, Any] = {"bag_logits": estimator.fitted_.bag_logits(values, bags)}
    else:
        scores = {"members": _logits(estimator, values)[bags.index].unsqueeze(0)}
    found: NDArray[np.float64] = bag_losses(estimator, labels, bags, **scores)[MODEL].double().numpy()
    return found
