"""What a column of labels means: two classes, or one number for each bag, repeated on its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from torch import Tensor

from kofn.bags import Bags

Array = np.ndarray[Any, np.dtype[Any]]


def two_classes(y: Array) -> tuple[Array, NDArray[np.int64]]:
    """The classes, smaller first, and each row's, 0 or 1.

    Labels that are all 0 or all 1 are of the classes 0 and 1, of which one is missing: a bag label may well be.

    Raises:
        ValueError: three classes or more, numbers that are no classes, one class of another name.
    """
    check_classification_targets(y)
    classes, row = np.unique(y, return_inverse=True)
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {type_of_target(y)}. "
            f"`y` must have two values; got {len(classes)}."
        )
    if len(classes) == 1:
        if y.dtype.kind not in "biuf" or classes[0] not in (0, 1):
            raise ValueError(
                f"`y` must have two classes; all {len(y)} rows have the class {classes[0]!r}. "
                f"Labels 0 and 1 may be all the same."
            )
        row = np.full(len(y), int(classes[0]))
        classes = np.array([0, 1], dtype=y.dtype if y.dtype.kind != "b" else np.int64)
    return classes, row.astype(np.int64).ravel()


def proportions(y: Array) -> tuple[Array, NDArray[np.float64]]:
    """The classes and each row's proportion: numbers from 0 to 1 as they are, other labels as their class 0 or 1."""
    if y.dtype.kind in "biuf" and ((y >= 0) & (y <= 1)).all():
        whole = np.isin(y, (0, 1)).all()
        return np.array([0, 1], dtype=y.dtype if whole and y.dtype.kind in "iuf" else np.int64), y.astype(np.float64)
    if y.dtype.kind == "f" and len(np.unique(y)) > 2 and len(y):
        outside = y[(y < 0) | (y > 1)]
        raise ValueError(
            f"Unknown label type: continuous. `y` must be proportions from 0 to 1, or two classes; got {outside[0]:g}. "
            f"Percentages are divided by 100; for counts say label='count'."
        )
    classes, row = two_classes(y)
    return classes, row.astype(np.float64)


def whole_counts(y: Array) -> NDArray[np.int64]:
    """Counts, or bounds of counts, as int64."""
    values = y.astype(np.float64)
    if not (values == np.round(values)).all():
        odd = values[values != np.round(values)].flat[0]
        raise ValueError(
            f"`y` must be whole counts; got {odd:g}. Proportions go with label='proportion', counts to which noise was "
            f"added with noise=..."
        )
    return values.astype(np.int64)


def bags_of(groups: Any, rows: int) -> Bags:
    """Bags of the rows' groups; without groups each row is its own."""
    if groups is None:
        return Bags.from_sizes(np.ones(rows, dtype=np.int64))
    bags = Bags.from_ids(groups)
    if len(bags.index) != rows:
        raise ValueError(f"`groups` must name the bag of each of the {rows} rows; got {len(bags.index)} names.")
    return bags


def hold_out(strata: Tensor, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Positions to train on and to validate on: of each stratum the given fraction, rounded down, is held out."""
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(strata), dtype=torch.bool)
    for stratum in strata.unique():
        members = (strata == stratum).nonzero().flatten()
        order = members[torch.randperm(len(members), generator=generator)]
        held[order[: int(fraction * len(members))]] = True
    return (~held).nonzero().flatten(), held.nonzero().flatten()
