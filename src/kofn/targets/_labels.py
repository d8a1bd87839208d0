"""From the label of a bag to its target: what a label may be is checked here, and errors name the bag."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import torch
from torch import Tensor

from kofn import _require
from kofn.targets._bounds import Between, Exactly
from kofn.targets._spread import Spread

Rounding = Literal["error", "nearest", "spread"]
#: What most often cures a proportion that is no count of its bag.
COPIES = "If a row stands for many people, say how many: `copies`."


def from_proportions(
    proportions: Tensor | float,
    sizes: Tensor | int,
    *,
    rounding: Rounding = "error",
    names: Sequence[Any] | None = None,
) -> Exactly | Spread:
    """The target for a bag's proportion of positives.

    Args:
        proportions: (...) or (b,) from 0 to 1, or one number for all bags.
        sizes: (...) or (b,) sizes of the bags, integers, or one int.
        rounding: what to do with a proportion that is not an integer count of its bag: "error" raises, "nearest" takes
            the nearest count, "spread" shares it between the two neighbouring counts (`Spread`). A proportion between 0
            and 1 whose nearest count is 0 or the size of the bag is refused: it would become a certainty.
        names: of the bags, for errors; by default their positions.

    Returns:
        `Exactly` the counts, or `Spread` over their neighbours.

    Raises:
        ValueError: proportions outside [0, 1]; not an integer count with rounding="error"; a certainty by rounding.

    Examples:
        >>> import torch, kofn
        >>> kofn.targets.from_proportions(torch.tensor([0.25, 0.5]), 8).counts
        tensor([2, 4])
    """
    _require.option("rounding", rounding, ("error", "nearest", "spread"))
    exact = counts_of_proportions(proportions, sizes, names=names)
    if rounding == "spread":
        return Spread(exact)
    if rounding == "error":
        bag = _first(exact != exact.round())
        if bag is not None:
            raise ValueError(
                f"a proportion times the size of its bag must be an integer: {_named(bag, names)} has "
                f"{_at(sizes, bag):g} instances and the proportion {_at(proportions, bag):g}, which would be "
                f"{_at(exact, bag):g} positives. Are instances of the bag missing? A cut file, a filter or a split "
                f"leaves half a bag with the proportion of the whole: keep bags whole (GroupKFold). {COPIES} Only if "
                f"proportions were rounded when published, say `rounding='nearest'` or `rounding='spread'`."
            )
    counts = exact.round()
    bag = _first((counts != exact) & ((counts == 0) | (counts == torch.as_tensor(sizes, device=counts.device))))
    if bag is not None:
        raise ValueError(
            f"`rounding='nearest'` must not make a certainty of a proportion: {_named(bag, names)} has "
            f"{_at(sizes, bag):g} instances and the proportion {_at(proportions, bag):g}, which would become "
            f"{_at(counts, bag):g} positives. {COPIES} Else `rounding='spread'` "
            f"keeps the proportion as it is, and if noise was added, say which: `noise`."
        )
    return Exactly(counts.long())


def counts_of_proportions(
    proportions: Tensor | float, sizes: Tensor | int, *, noisy: bool = False, names: Sequence[Any] | None = None
) -> Tensor:
    """The number of positives that a proportion of a bag means, float64; an integer where it is one up to rounding.

        count = proportion * size

    A proportion carries the rounding error of its dtype, and its count that error times the size of the bag: within it,
    7 % of 100 is 7 and not 7.000000000000001.

    Args:
        proportions: (...) or (b,) from 0 to 1, or one number for all bags.
        sizes: (...) or (b,) sizes of the bags, integers, or one int.
        noisy: whether noise was added to them, so that they may lie outside [0, 1].
        names: of the bags, for errors; by default their positions.

    Raises:
        TypeError: proportions that are no numbers.
        ValueError: proportions outside [0, 1], unless they are noisy.

    Examples:
        >>> import torch, kofn
        >>> kofn.targets.counts_of_proportions(torch.tensor([0.07, 0.125], dtype=torch.float64), 100)
        tensor([ 7.0000, 12.5000], dtype=torch.float64)
    """
    if not isinstance(proportions, (Tensor, Real)):
        raise TypeError(f"`proportions` must be a number or a torch.Tensor; got {type(proportions).__name__}.")
    given = torch.as_tensor(proportions, dtype=None if isinstance(proportions, Tensor) else torch.float64)
    shares = given.double()
    bag = _first((shares < 0) | (shares > 1) | shares.isnan())
    if bag is not None and not noisy:
        raise ValueError(
            f"`proportions` must lie between 0 and 1; {_named(bag, names)} has {_at(shares, bag):g}. "
            f"Percentages are divided by 100 first; numbers that had noise added for privacy want `noise`, such as "
            f"'laplace:1.5'."
        )
    n = torch.as_tensor(sizes, device=shares.device)
    exact = shares * n
    nearest = exact.round()
    # Clamped: in a bag so large that half a count is below rounding, no proportion would be refused.
    slack = (torch.finfo(given.dtype if given.is_floating_point() else torch.float64).eps * n.double()).clamp(max=0.1)
    return torch.where((exact - nearest).abs() <= slack, nearest, exact)


def from_counts(counts: Tensor, sizes: Tensor, *, names: Sequence[Any] | None = None) -> Exactly:
    """The target for a bag's number of positives: S = count.

        0 <= count <= size, an integer

    Args:
        counts: (b,) integer values, of any dtype.
        sizes: (b,) sizes of the bags.
        names: of the bags, for errors; by default their positions.

    Raises:
        ValueError: a count that is not an integer, below 0 or above the bag's size.

    Examples:
        >>> import torch, kofn
        >>> kofn.targets.from_counts(torch.tensor([1.0, 3.0]), torch.tensor([2, 3])).counts
        tensor([1, 3])
    """
    bag = _first((counts.double() != counts.double().round()) | (counts < 0) | (counts > sizes))
    if bag is not None:
        raise ValueError(
            f"a count must be an integer from 0 to the size of its bag: {_named(bag, names)} has "
            f"{_at(sizes, bag):g} instances and the count {_at(counts, bag):g}. {_cure(counts, sizes)}"
        )
    return Exactly(counts.long())


def from_bounds(bounds: Tensor, sizes: Tensor, *, names: Sequence[Any] | None = None) -> Between:
    """The target for bounds of a bag's number of positives.

        low <= S <= high

    Args:
        bounds: (b, 2) integer values, of any dtype: the smallest and the largest count, both included.
        sizes: (b,) sizes of the bags.
        names: of the bags, for errors; by default their positions.

    Raises:
        ValueError: bounds that are not integers, in the wrong order, or that no count from 0 to the bag's size meets.

    Examples:
        >>> import torch, kofn
        >>> target = kofn.targets.from_bounds(torch.tensor([[1, 3]]), torch.tensor([4]))
        >>> target.low, target.high
        (tensor([1]), tensor([3]))
    """
    if bounds.dim() != 2 or bounds.shape[1] != 2:
        raise ValueError(f"`bounds` must be a lower and an upper one for each bag, (b, 2); got {tuple(bounds.shape)}.")
    low, high = bounds.unbind(1)
    bag = _first((bounds.double() != bounds.double().round()).any(1) | (low > high) | (high < 0) | (low > sizes))
    if bag is not None:
        raise ValueError(
            f"bounds must be integers, the lower one first, with a count between them that the bag can have: "
            f"{_named(bag, names)} has {_at(sizes, bag):g} instances and the bounds {_at(low, bag):g} and "
            f"{_at(high, bag):g}."
        )
    return Between(low.long(), high.long())


def _cure(counts: Tensor, sizes: Tensor) -> str:
    """What to do about counts that are not integers, or do not fit their bags."""
    if bool((counts < 0).any()):
        return (
            "A negative count most often had noise added for privacy: say which with `noise`, such as 'laplace:1.5', "
            "or take kofn.Noisy; do not clip or round it."
        )
    if bool((counts > sizes).any()):
        return (
            "If a row stands for several instances, say how many: `copies`. Else check that counts and bags belong "
            "together, and that no instances are missing; percentages are not counts."
        )
    return "Check that counts and bags belong together; proportions and percentages are not counts."


def _first(wrong: Tensor) -> int | None:
    """The first bag of which it is true, by position; None if there is none."""
    return None if _require.holds(~wrong) else int(wrong.flatten().nonzero()[0])


def _named(bag: int, names: Sequence[Any] | None) -> str:
    return f"bag {bag}" if names is None else f"bag {names[bag]!r}"


def _at(values: Tensor | float, bag: int) -> float:
    """A bag's own number, or the one of all bags."""
    flat = torch.as_tensor(values).flatten()
    return float(flat[bag if len(flat) > 1 else 0])
