"""What tasks are made of: true labels, numbers of rows and bags, a generator."""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Real

import torch
from torch import Tensor

from kofn._checks._data import whole_numbers
from kofn._checks._tensors import is_tensor


def generator(value: object) -> torch.Generator:
    """A torch generator on the CPU."""
    if not isinstance(value, torch.Generator):
        raise TypeError(
            f"`generator` must be a torch.Generator; got {type(value).__name__}. "
            f"From a seed: torch.Generator().manual_seed(0)."
        )
    if value.device.type != "cpu":
        raise ValueError(
            f"`generator` must be on the CPU, so that its draws are the same everywhere; it is on {value.device}."
        )
    return value


def whole_number(name: str, value: object, *, low: int | None = None, high: int | None = None) -> None:
    """A whole number, in a range if one is given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if (low is not None and int(value) < low) or (high is not None and int(value) > high):
        rule = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"`{name}` must be {rule}; got {value}.")


def real_number(name: str, value: object, *, low: float) -> None:
    """A finite number from a bound on."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    if not isfinite(value) or float(value) < low:
        raise ValueError(f"`{name}` must be finite and at least {low:g}; got {value}.")


def fraction(name: str, value: object) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"`{name}` must lie between 0 and 1; got {value}. Percentages are divided by 100 first.")
    return float(value)


def interval(low: object, high: object) -> None:
    """An interval of proportions."""
    if fraction("low", low) > fraction("high", high):
        raise ValueError(f"`low` must not be above `high`; got {low} and {high}.")


def binary_labels(value: object) -> Tensor:
    """Labels 0 and 1 of rows, int64."""
    labels = whole_numbers("labels", value.long() if isinstance(value, Tensor) and value.dtype == torch.bool else value)
    odd = labels[(labels != 0) & (labels != 1)]
    if len(odd):
        raise ValueError(
            f"`labels` must be 0 (negative) or 1 (positive); got {int(odd[0])}. Of many classes make two first, "
            f"for instance (labels >= 5)."
        )
    return labels


def enough_rows(kind: str, wanted: int, there: int, cure: str) -> None:
    """As many rows of a kind as a task takes."""
    if wanted > there:
        raise ValueError(
            f"`labels` must have at least {wanted} {kind} rows for this task; there are {there}. Ask for {cure}."
        )


def a_bag_fits(bags: int, bag_size: int, positives: int, negatives: int) -> None:
    """At least one bag."""
    if not bags:
        raise ValueError(
            f"`bag_size` must leave room for one bag at least; the first of {bag_size} does not fit into {positives} "
            f"positive and {negatives} negative rows. Take smaller bags, or another interval from `low` to `high`."
        )


def labelled(instances: object, labels: object, features: int, classes: int) -> None:
    """Instances with one label each."""
    x, y = is_tensor("instances", instances), is_tensor("labels", labels)
    if y.dtype != torch.int64:
        raise TypeError(f"`labels` must be int64; got {y.dtype}. Convert with labels.long().")
    if y.dim() != 1 or x.dim() < 1 or len(x) != len(y):
        raise ValueError(
            f"`labels` must be one for each instance, shape (n,); got {tuple(y.shape)} for instances of "
            f"{tuple(x.shape)}."
        )
    if features and tuple(x.shape[1:]) != (features,):
        raise ValueError(f"`features` must name each of the columns; got {features} for instances of {tuple(x.shape)}.")
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise ValueError(
            f"`labels` must be positions in `classes`, 0 to {classes - 1}; got {int(y.min())} to {int(y.max())}."
        )


def standardisable(instances: Tensor, train: Tensor) -> None:
    """Floating point rows with the columns of the training rows, of which there is one."""
    if not instances.is_floating_point():
        raise TypeError(
            f"instances must be floating point; got {instances.dtype}. Images convert with x.float() / 255."
        )
    if not len(train):
        raise ValueError(
            "`train` must have at least one row to take the mean and the standard deviation from; got none."
        )
    if instances.shape[1:] != train.shape[1:]:
        raise ValueError(
            f"`others` must have the columns of `train`, {tuple(train.shape[1:])}; got {tuple(instances.shape[1:])}."
        )


def square_patches(value: object) -> int:
    """The size of square patches."""
    patches = is_tensor("patches", value)
    if patches.dim() != 4 or patches.shape[2] != patches.shape[3]:
        raise ValueError(
            f"`patches` must be square, (n, channels, size, size); got shape {tuple(patches.shape)}. "
            f"One patch is a batch of one: patch[None]."
        )
    return patches.shape[3]
