"""The order of instances within their bags, which no knowledge of a bag as a whole can improve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.metrics._classification import _array, _pair, _Values


def auc_within_bags(labels: _Values, scores: _Values, groups: Any) -> float:
    """Area under the ROC curve within bags: how often a positive scores above a negative of the same bag.

        AUC = sum_j U_j / sum_j P_j

    over the bags j, where P_j is the number of pairs of a positive and a negative instance of bag j, and U_j the number
    of those in which the positive scores higher, ties counting half. The usual AUC also compares instances of different
    bags, so a model that only recognises the bag (each campaign has its own rate) has a good one. Here it has 1/2.

    Takes O(n log n).

    Args:
        labels: 0 and 1; a tensor, an array or a list of any shape.
        scores: of the same shape.
        groups: the bag of each instance, of the same shape: numbers or text.

    Raises:
        ValueError: shapes that differ, labels other than 0 and 1, NaN, no bag with both labels.

    Examples:
        >>> from kofn import metrics
        >>> labels, scores, bags = [0, 1, 0, 1], [-3.0, -2.0, 2.0, 2.0], ["a", "a", "b", "b"]
        >>> metrics.auc_within_bags(labels, scores, bags), metrics.auc(labels, scores)  # one pair in order, one tie
        (0.75, 0.625)
    """
    truth, values = _pair(labels, scores, "auc_within_bags")
    shape, of = _array(labels).shape, _array(groups)
    if of.shape != shape:
        raise ValueError(f"`groups` must name the bag of each instance, shape {shape}; got shape {of.shape}.")
    in_order, pairs = pairs_within_bags(truth, values, of.ravel())
    if not pairs.any():
        raise ValueError(
            "`groups` must have a bag with both labels for `auc_within_bags` to exist; none has. Label several "
            "instances of the same bag."
        )
    return float(in_order.sum() / pairs.sum())


def pairs_within_bags(
    truth: NDArray[Any], values: NDArray[np.float64], groups: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each bag, how many pairs of a positive and a negative are in order, ties counting half, and how many exist.

    Args:
        truth: (n,) of 0 and 1, or bool.
        values: (n,) scores, without NaN.
        groups: (n,) the bag of each.

    Returns:
        U and P, both (bags,).
    """
    codes = np.unique(groups, return_inverse=True)[1].ravel()
    order = np.lexsort((values, codes))
    bag, score, positive = codes[order], values[order], np.asarray(truth, dtype=np.float64)[order]
    below = np.append(0.0, np.cumsum(1 - positive))  # negatives before each place, of all bags
    new_bag = np.append(True, bag[1:] != bag[:-1])
    new_run = new_bag | np.append(True, score[1:] != score[:-1])  # of equal scores in a bag
    starts = np.flatnonzero(new_run)
    run = np.cumsum(new_run) - 1
    ends = np.append(starts[1:], len(bag))
    of_bag = np.flatnonzero(new_bag)[bag]
    lower = below[starts][run] - below[of_bag]
    tied = (below[ends] - below[starts])[run]
    in_order, positives, sizes = (np.bincount(bag, each) for each in (positive * (lower + tied / 2), positive, None))
    return in_order.astype(np.float64), positives * (sizes - positives)
