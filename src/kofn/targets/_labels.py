"""From the label of a bag to the target that it is: what a label may be is known here, and errors name the bag."""

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


def from_proportions(
    proportions: Tensor | float,
    sizes: Tensor | int,
    *,
    rounding: Rounding = "error",
    names: Sequence[Any] | None = None,
) -> Exactly | Spread:
    """The target that a bag's proportion of positives is.

    Args:
        proportions: (...) or (b,) from 0 to 1, or one number for all bags.
        sizes: (...) or (b,) sizes of the bags, whole numbers, or one int.
        rounding: what to do with a proportion that is no whole count of its bag: "error" raises, "nearest" takes the
            nearest count, "spread" shares it between the two neighbouring counts (`Spread`).
        names: of the bags, for errors; by default their positions.

    Returns:
        `Exactly` the counts, or `Spread` over their neighbours.

    Raises:
        ValueError: proportions outside [0, 1], or not whole with rounding="error".

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
                f"a proportion must be a whole count of its bag: {_named(bag, names)} has {_at(sizes, bag):g} "
                f"instances and the proportion {_at(proportions, bag):g}, which would be {_at(exact, bag):g} "
                f"positives. Are instances of the bag missing? A cut file, a filter or a split leaves half a bag with "
                f"the proportion of the whole: keep bags whole (GroupKFold). Only if proportions were rounded when "
                f"published, say `rounding='nearest'` or `rounding='spread'`."
            )
    return Exactly(exact.round().long())


def counts_of_proportions(
    proportions: Tensor | float, sizes: Tensor | int, *, noisy: bool = False, names: Sequence[Any] | None = None
) -> Tensor:
    """The number of positives that a proportion of a bag is, float64: whole where it is whole but for rounding.

        count = proportion * size

    A proportion carries the rounding error of its dtype, and its count that error times the size of the bag: within it,
    7 % of 100 is 7 and not 7.000000000000001.

    Args:
        proportions: (...) or (b,) from 0 to 1, or one number for all bags.
        sizes: (...) or (b,) sizes of the bags, whole numbers, or one int.
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
            f"Percentages are divided by 100 first."
        )
    n = torch.as_tensor(sizes, device=shares.device)
    exact = shares * n
    nearest = exact.round()
    # Clamped: of a bag so large that half a count could not be told apart, nothing would be wrong.
    slack = (torch.finfo(given.dtype if given.is_floating_point() else torch.float64).eps * n.double()).clamp(max=0.1)
    return torch.where((exact - nearest).abs() <= slack, nearest, exact)


def from_counts(counts: Tensor, sizes: Tensor, *, names: Sequence[Any] | None = None) -> Exactly:
    """The target that a bag's number of positives is: S = count.

        0 <= count <= size, whole

    Args:
        counts: (b,) whole numbers, of any dtype.
        sizes: (b,) sizes of the bags.
        names: of the bags, for errors; by default their positions.

    Raises:
        ValueError: a count that is not whole, below 0 or above the bag's size.

    Examples:
        >>> import torch, kofn
        >>> kofn.targets.from_counts(torch.tensor([1.0, 3.0]), torch.tensor([2, 3])).counts
        tensor([1, 3])
    """
    bag = _first((counts.double() != counts.double().round()) | (counts < 0) | (counts > sizes))
    if bag is not None:
        raise ValueError(
            f"a count must be a whole number from 0 to the size of its bag: {_named(bag, names)} has "
            f"{_at(sizes, bag):g} instances and the count {_at(counts, bag):g}. {_cure(counts, sizes)}"
        )
    return Exactly(counts.long())


def from_bounds(bounds: Tensor, sizes: Tensor, *, names: Sequence[Any] | None = None) -> Between:
    """The target that bounds of a bag's number of positives are.

        low <= S <= high

    Args:
        bounds: (b, 2) whole numbers, of any dtype: the smallest and the largest count, both included.
        sizes: (b,) sizes of the bags.
        names: of the bags, for errors; by default their positions.

    Raises:
        ValueError: bounds that are not whole, in the wrong order, or that no count from 0 to the bag's size meets.

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
            f"bounds must be whole counts, the lower one first, that a bag of that size can have: {_named(bag, names)} "
            f"has {_at(sizes, bag):g} instances and the bounds {_at(low, bag):g} and {_at(high, bag):g}."
        )
    return Between(low.long(), high.long())


def _cure(counts: Tensor, sizes: Tensor) -> str:
    """What to do about counts that are not whole, or do not fit their bags."""
    if bool((counts > sizes).any()):
        return (
            "If a row stands for several instances, say how many: `copies`. Else check that counts and bags belong "
            "together, and that no instances are missing; percentages are no counts."
        )
    return "Check that counts and bags belong together; proportions and percentages are no counts."


def _first(wrong: Tensor) -> int | None:
    """The first bag of which it is true, by position; None if there is none."""
    return None if _require.holds(~wrong) else int(wrong.flatten().nonzero()[0])


def _named(bag: int, names: Sequence[Any] | None) -> str:
    return f"bag {bag}" if names is None else f"bag {names[bag]!r}"


def _at(values: Tensor | float, bag: int) -> float:
    """A bag's own number, or the one of all bags."""
    flat = torch.as_tensor(values).flatten()
    return float(flat[bag if len(flat) > 1 else 0])
