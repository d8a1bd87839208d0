"""From labels of classes to the counts of a bag: what such a label may be is known here, and errors name the bag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from kofn import _require
from kofn.targets._labels import COPIES, counts_of_proportions

UNKNOWN = -1


def class_counts_of_proportions(
    proportions: Tensor,
    sizes: Tensor,
    *,
    rounding: Literal["error", "nearest"] = "error",
    names: Sequence[Any] | None = None,
) -> Tensor:
    """The counts of classes that their proportions in a bag are.

        k_c = proportion_c * size,  sum_c k_c = size

    Args:
        proportions: (b, C) from 0 to 1, with the sum 1 over the classes; NaN where one is not known.
        sizes: (b,) sizes of the bags.
        rounding: what to do with proportions that are not integer counts of their bag: "error" raises, "nearest" rounds
            all down and gives what is left to the classes that lost most, so that they sum to the size. A proportion
            between 0 and 1 that would become none or all of the bag is refused: it would be a certainty.
        names: of the bags, for errors; by default their positions.

    Returns:
        (b, C) int64, -1 where unknown; what follows from the others is filled in.

    Raises:
        ValueError: proportions outside [0, 1] or with another sum; not whole with rounding="error"; a certainty by
            rounding.

    Examples:
        >>> import torch, kofn
        >>> shares = torch.tensor([[0.5, 0.25, 0.25], [0.5, torch.nan, 0.0]])
        >>> kofn.targets.class_counts_of_proportions(shares, torch.tensor([4, 2]))
        tensor([[2, 1, 1],
                [1, 1, 0]])
        >>> rounded = torch.tensor([[0.4, 0.3, 0.3]])
        >>> kofn.targets.class_counts_of_proportions(rounded, torch.tensor([4]), rounding="nearest")
        tensor([[2, 1, 1]])
    """
    _require.option("rounding", rounding, ("error", "nearest"))
    known = ~proportions.isnan()
    classes, bags = proportions.shape[1], range(len(sizes)) if names is None else names
    flat = proportions.nan_to_num(nan=0.0).flatten()
    named = [bag for bag in bags for _ in range(classes)]
    exact = counts_of_proportions(flat, sizes.repeat_interleave(classes), names=named).reshape(proportions.shape)
    total, all_known = exact.sum(1), known.all(1)
    # Published shares are rounded, and may sum to 1 within a hundredth.
    off = torch.where(all_known, (total - sizes).abs(), (total - sizes).clamp(min=0.0))
    _refuse(
        off > 0.01 * sizes + 1e-6,
        names,
        lambda bag: (
            f"proportions of classes must sum to 1: {{bag}} has {proportions[bag].tolist()}. Counts go with "
            f"label='count', percentages are divided by 100."
        ),
    )
    if rounding == "nearest":
        whole = _largest_remainders(exact, known, sizes, all_known)
        moved = known & (exact != exact.round()) & ((whole == 0) | (whole == sizes.unsqueeze(1)))
        _refuse(
            moved.any(1),
            names,
            lambda bag: (
                f"`rounding='nearest'` must not make a certainty of a proportion: {{bag}} has {int(sizes[bag])} "
                f"instances and the proportions {proportions[bag].tolist()}, which would become "
                f"{whole[bag].long().tolist()} of each class. {COPIES}"
            ),
        )
        exact = whole
    _refuse(
        (exact != exact.round()).any(1),
        names,
        lambda bag: (
            f"proportions of classes times the size of the bag must be integers: {{bag}} has {int(sizes[bag])} "
            f"instances and the proportions {proportions[bag].tolist()}, which would be {exact[bag].tolist()} of each "
            f"class. If a cut file, a filter or a split left a part of the bag, keep bags whole (GroupKFold). {COPIES} "
            f"Only if proportions were rounded when published, say rounding='nearest'."
        ),
    )
    return require_class_counts(torch.where(known, exact.round().long(), UNKNOWN), sizes, names=names)


def require_class_counts(counts: Tensor, sizes: Tensor, *, names: Sequence[Any] | None = None) -> Tensor:
    """Require counts of classes that a bag can have, and fill in what follows from the others.

        k_c >= 0,  sum_c k_c = size

    Args:
        counts: (b, C) integer values of any dtype, NaN or -1 where one is not known.
        sizes: (b,) sizes of the bags.
        names: of the bags, for errors; by default their positions.

    Returns:
        (b, C) int64, -1 where unknown. One unknown count of a bag is what the others leave; of a bag that the known
        ones fill, all others are 0.

    Raises:
        ValueError: counts that are not integers, are negative, or do not sum to the bag's size; a bag without any.

    Examples:
        >>> import torch, kofn
        >>> nan = torch.nan
        >>> counts = torch.tensor([[2.0, nan, 1.0], [4.0, nan, nan], [1.0, nan, nan]])
        >>> kofn.targets.require_class_counts(counts, torch.tensor([4, 4, 4]))
        tensor([[ 2,  1,  1],
                [ 4,  0,  0],
                [ 1, -1, -1]])
    """
    values = counts.double().nan_to_num(nan=float(UNKNOWN))
    known = values != UNKNOWN
    _refuse(
        ((values != values.round()) | (known & (values < 0))).any(1),
        names,
        lambda bag: (
            f"counts of classes must be integers, 0 or more, and NaN where one is not known: {{bag}} has "
            f"{values[bag].tolist()}. Proportions go with label='proportion'."
        ),
    )
    _refuse(~known.any(1), names, lambda _: "a bag must have some known count: {bag} has none. Leave it out.")
    left = sizes - values.where(known, torch.zeros_like(values)).sum(1)
    unknown = (~known).sum(1)
    _refuse(
        (left < 0) | ((left != 0) & (unknown == 0)),
        names,
        lambda bag: (
            f"counts of classes must sum to the size of their bag: {{bag}} has {int(sizes[bag])} instances and the "
            f"counts {values[bag].where(known[bag], torch.nan).tolist()}. Check that counts and bags belong together; "
            f"instances of no named class are a class of their own."
        ),
    )
    follows = ~known & ((unknown == 1) | (left == 0)).unsqueeze(1)
    return torch.where(follows, left.unsqueeze(1).expand_as(values), values).long()


def _largest_remainders(exact: Tensor, known: Tensor, sizes: Tensor, all_known: Tensor) -> Tensor:
    """Whole counts near these: of a bag all of whose classes are known, with the sum of its size."""
    # Shares of .333 three times are a whole: scaled first, so that less than one for each class is left to give.
    total = exact.sum(1, keepdim=True)
    exact = torch.where(all_known.unsqueeze(1), exact * sizes.unsqueeze(1) / total, exact)
    lower = exact.floor()
    left = (sizes - lower.sum(1)).long()
    # The place of each class in the order of what rounding down takes from it.
    place = (exact - lower).argsort(dim=1, descending=True, stable=True).argsort(1)
    raised = lower + (place < left.unsqueeze(1))
    return torch.where(all_known.unsqueeze(1), raised, exact.round()).where(known, torch.zeros_like(exact))


def _refuse(wrong: Tensor, names: Sequence[Any] | None, problem: Any) -> None:
    """Raise what is wrong with the first bag of which it is true."""
    if not _require.holds(~wrong):
        bag = int(wrong.nonzero()[0])
        raise ValueError(problem(bag).replace("{bag}", f"bag {bag if names is None else repr(names[bag])}"))
