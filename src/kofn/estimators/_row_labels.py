"""What a column of labels means: two classes, or one number for each bag, repeated on its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from torch import Tensor

from kofn import _require
from kofn.bags import Bags
from kofn.estimators._frames import column_of

Array = np.ndarray[Any, np.dtype[Any]]
IN_ORDER = {("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("negative", "positive"), ("neg", "pos")}


def as_array(values: Any) -> Any:
    """A tensor, from whatever device, or a column of a data frame as an array; anything else as it is."""
    if not isinstance(values, Tensor):
        return column_of(values)
    host = values.detach().cpu()
    return host.float().numpy() if host.dtype == torch.bfloat16 else host.numpy()  # numpy has no bfloat16


def rows_of(y: Any, rows: int, *, name: str = "y") -> Array:
    """Labels to compare with a fitted estimator's, one for each row and none missing."""
    labels = np.asarray(as_array(y))
    if labels.ndim == 0 or len(labels) != rows:
        raise ValueError(f"`{name}` must have an entry for each of the {rows} rows of X; got shape {labels.shape}.")
    if labels.dtype == object:
        missing = any(label is None or label != label for label in labels.ravel().tolist())
    else:
        missing = bool((labels != labels).any())
    if missing:
        raise ValueError(f"`{name}` must not be NaN or None. Leave out bags without a label.")
    return labels.ravel() if labels.shape == (rows, 1) else labels


def whole_truth(truth: Array | None) -> Array | None:
    """True classes, from 0 on, if all are known, and so those of all rows of a bag; -1 is one that is not known."""
    return None if truth is None or bool((truth < 0).any()) else truth


def an_unknown_class(y: Array, classes: Array) -> Any:
    """The first label, in their order, that is not one of the classes; None if all are."""
    return next((label for label in np.unique(y).tolist() if label not in classes.tolist()), None)


def require_classes(y: Array, classes: Array) -> None:
    """Require the class of each row, where there are no groups and so no labels of bags."""
    if (unknown := an_unknown_class(y, classes)) is not None:
        raise ValueError(
            f"`y` must be the class of each row, one of {classes.tolist()}, where no `groups` are given; got "
            f"{unknown!r}. For labels of bags pass score(X, y, groups=...); in cross-validation or a search enable "
            f"scikit-learn's metadata routing, or use kofn.model_selection.search."
        )


def require_bags(groups: Any, *, method: str) -> None:
    """Require groups where labels are those of bags, and rows have none of their own."""
    if groups is None:
        raise ValueError(
            f"`groups` must name the bag of each row, because `y` has the labels of bags; got None. Pass {method}(X, "
            f"y, groups=...); in a pipeline, in cross-validation or in a search enable scikit-learn's metadata routing "
            f"(sklearn.set_config(enable_metadata_routing=True)), or use kofn.model_selection.search. "
            + (
                "The accuracy of rows is sklearn.metrics.accuracy_score(truth, model.predict(X))."
                if method == "score"
                else "If each row has a label of its own, each is a bag: groups=range(len(X))."
            )
        )


def known_classes(y: Array, classes: Array) -> NDArray[np.int64]:
    """0 or 1 for each row, from labels of the two classes that were trained with."""
    if (unknown := an_unknown_class(y, classes)) is not None:
        raise ValueError(f"`y` must be one of the classes {classes.tolist()}; got {unknown!r}.")
    row: NDArray[np.int64] = (y == classes[1]).astype(np.int64)
    return row


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
            f"`y` must have two values; got {len(classes)}. LLPClassifier learns several classes from a table with a "
            f"column for each, (n, C): their proportions or counts in the row's bag, or numpy.eye(C)[y] of single rows."
        )
    if len(classes) == 1:
        if y.dtype.kind not in "biuf" or classes[0] not in (0, 1):
            raise ValueError(
                f"`y` must have two classes; all {len(y)} rows have the class {classes[0]!r}. "
                f"Labels 0 and 1 may be all the same."
            )
        row = np.full(len(y), int(classes[0]))
        classes = np.array([0, 1], dtype=y.dtype)
    return classes, row.astype(np.int64).ravel()


def signed_classes(y: Array, pos_label: Any, *, positive: str) -> tuple[Array, NDArray[np.int64]]:
    """The classes, the positive one last, and each row's, 0 or 1.

    Args:
        y: (n,) labels.
        pos_label: the positive class; None for the larger of two numbers, and of words such as no and yes for the one
            that says it.
        positive: what the positive class says, for errors.

    Raises:
        ValueError: as `two_classes`; a `pos_label` that is none of the classes; words that do not say it themselves.
    """
    classes, row = two_classes(y)
    first, second = classes.tolist()
    if pos_label is not None:
        if pos_label not in (first, second):
            raise ValueError(f"`pos_label` must be one of the classes {[first, second]}; got {pos_label!r}.")
        return (classes, row) if pos_label == second else (classes[::-1].copy(), 1 - row)
    if classes.dtype.kind not in "biuf" and (str(first).lower(), str(second).lower()) not in IN_ORDER:
        raise ValueError(
            f"`pos_label` must say which class is that of {positive} where words do not say it themselves; the classes "
            f"are {first!r} and {second!r}. Say pos_label={first!r} or pos_label={second!r}."
        )
    return classes, row


def proportions(y: Array, *, together: bool, classes: Array | None = None) -> tuple[Array, NDArray[Any]]:
    """The classes and each row's proportion: numbers from 0 to 1 as they are, other labels as their class 0 or 1.

    Args:
        y: (n,) labels.
        together: some bag has more than one row, so that numbers beyond 0 and 1 would be counts or percentages.
        classes: those that were trained with, if any.
    """
    are_numbers = y.dtype.kind in "biuf"
    if are_numbers and ((y >= 0) & (y <= 1)).all() and (classes is None or together or classes.tolist() == [0, 1]):
        whole = np.isin(y, (0, 1)).all()
        return np.array([0, 1], dtype=y.dtype if whole else np.int64), numbers(y)
    if are_numbers and (together or (y.dtype.kind == "f" and len(np.unique(y)) > 2)):
        outside = y[(y < 0) | (y > 1)]
        rule = "proportions from 0 to 1" + ("" if together else ", or two classes")
        raise ValueError(
            f"Unknown label type: continuous. `y` must be {rule}; got {outside[0]:g}. "
            f"Percentages are divided by 100; for counts say label='count'; of several classes pass a column for each, "
            f"(n, C), their proportions in the row's bag."
        )
    if classes is not None:
        return classes, known_classes(y, classes).astype(np.float64)
    if together and not are_numbers and len(np.unique(y.astype(str))) > 2:
        raise ValueError(
            f"`y` must be numbers, proportions from 0 to 1; got text such as {str(y[0])!r}. Of '37 %' make 0.37: "
            f"y.str.rstrip(' %').astype(float) / 100 in pandas."
        )
    found, row = two_classes(y)
    return found, row.astype(np.float64)


def require_groups(proportions: NDArray[Any]) -> None:
    """Require 0 or 1 of rows that are bags of their own: a proportion between them wants a bag of several."""
    between = (proportions != 0) & (proportions != 1)
    if between.any():
        raise ValueError(
            f"`y` has the proportion {proportions[between][0]:g}, but without `groups` each row is a bag of its own, "
            f"positive or not. Pass fit(X, y, groups=...); in a pipeline or a search, enable scikit-learn's metadata "
            f"routing, or use kofn.model_selection.search."
        )


def whole_counts(y: Array) -> NDArray[np.int64]:
    """Counts, or bounds of counts, as int64."""
    values = numbers(y)
    if not (values == np.round(values)).all():
        odd = values[values != np.round(values)].flat[0]
        raise ValueError(
            f"`y` must be integer counts; got {odd:g}. Proportions go with label='proportion', counts with added noise "
            f"with noise=..."
        )
    return values.astype(np.int64)


def numbers(y: Array) -> NDArray[Any]:
    """Labels that are numbers, as floating point: of float32 they stay so, by whose precision a third is known."""
    if y.dtype in (np.float32, np.float64):
        return y
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"`y` must be numbers; got {y.dtype}, the first {y.flat[0]!r}.") from None


def bags_of(groups: Any, rows: int, copies: Any = None) -> Bags:
    """Bags of the rows' groups; without groups each row is its own. A row may be in its bag several times."""
    if groups is None:
        bags = Bags.from_sizes(np.ones(rows, dtype=np.int64))
    else:
        bags = Bags.from_ids(groups, name="groups")
        if len(bags.index) != rows:
            raise ValueError(f"`groups` must name the bag of each of the {rows} rows; got {len(bags.index)} names.")
    if copies is None:
        return bags
    times = _require.whole_numbers("copies", as_array(copies), low=0)
    if len(times) != rows:
        raise ValueError(f"`copies` must have a number for each of the {rows} rows; got {len(times)}.")
    counted = bags.with_copies(times)
    if bool((counted.sizes == 0).any()):
        empty = bags.names[int((counted.sizes == 0).nonzero()[0])]
        raise ValueError(f"`copies` must leave something in each bag; bag {empty!r} has 0 of every row. Leave it out.")
    return bags if bool((times == 1).all()) else counted


def bag_weights(weight: Any, bags: Bags, rows: int, *, name: str) -> Tensor | None:
    """The weight of each bag, from one that is repeated on its rows, none negative and not all 0."""
    if weight is None:
        return None
    weights = bags.common(numbers(rows_of(weight, rows, name=name)), name=name).double()
    if not bool((weights >= 0).all()) or not bool((weights > 0).any()):
        raise ValueError(f"`{name}` must be at least 0, and above 0 for some bag; got {float(weights.min()):g}.")
    if bool(weights.isinf().any()):
        raise ValueError(f"`{name}` must be finite; got inf. Leave out what is not to count.")
    return weights


def together(fold_by: Any, bags: Bags, rows: int) -> Tensor | None:
    """What each bag belongs to, (b,) integers, from names that are repeated on its rows; None without any."""
    if fold_by is None:
        return None
    names = rows_of(fold_by, rows, name="fold_by")
    codes = torch.from_numpy(np.unique(names, return_inverse=True)[1].ravel())
    first = codes[bags.index[bags.offsets[:-1]]]
    differ = (codes[bags.index] != first[bags.bag_of()]).nonzero()
    if len(differ):
        entry = int(differ[0, 0])
        bag = int(bags.bag_of()[entry])
        one, other = (names[int(bags.index[at])] for at in (int(bags.offsets[bag]), entry))
        raise ValueError(
            f"`fold_by` must be the same on all rows of a bag; bag {bags.names[bag]!r} has {one!s} and {other!s}. A "
            f"bag is held out as a whole, with all bags of the same value: correct the rows, or name the bags by both."
        )
    return first
