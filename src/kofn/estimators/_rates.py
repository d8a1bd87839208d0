"""How common the classes are before anything is learned, from the counts of bags."""

from __future__ import annotations

import torch
from torch import Tensor


def count_rates(counts: Tensor, sizes: Tensor, weight: Tensor | None) -> tuple[float | Tensor, Tensor]:
    """The base rate of positives, or (C,) of the classes, and about the proportions, (b,) or (b, C), of each bag.

    Args:
        counts: (b,) about the number of positives in each bag; or (b, C) numbers of each class, -1 where unknown.
        sizes: (b,) of the bags.
        weight: (b,) of the bags, or None for ones.

    Returns:
        Rates above 0 and below 1, and proportions from 0 to 1, unknown ones filled in.
    """
    if counts.dim() == 2:
        return _class_rates(counts, sizes, weight)
    shares = (counts / sizes).clamp(0.0, 1.0)
    times = sizes if weight is None else sizes * weight
    rate = float((shares * times).sum() / times.sum())
    half = 0.5 / float(sizes[times > 0].sum())  # a rate that is 0 or 1 is only known to be near it
    return min(max(rate, half), 1 - half), shares


def _class_rates(counts: Tensor, sizes: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Base rates (C,) of the classes, and about the proportions (b, C) of each bag, unknown ones filled in.

    The rate of a class is its share of the bags in which it is known; the rest is shared by classes that are never
    known. The unknown classes of a bag share what the known ones leave, in the ratio of their rates.

    Examples:
        >>> import torch
        >>> rates, shares = _class_rates(torch.tensor([[2, 1, 1], [3, -1, -1]]), torch.tensor([4, 5]), None)
        >>> shares.tolist()
        [[0.5, 0.25, 0.25], [0.6, 0.2, 0.2]]
    """
    known = counts >= 0
    n = (sizes if weight is None else sizes * weight).double().unsqueeze(1)
    shares = counts.clamp(min=0).double() / sizes.unsqueeze(1)
    seen = (known * n).sum(0)
    rates = (shares * known * n).sum(0) / seen.clamp(min=torch.finfo(torch.float64).tiny)
    never_known = seen == 0
    left = (1 - rates.sum()).clamp(min=0.0) / never_known.sum().clamp(min=1)
    rates = torch.where(never_known, left, rates)
    # A rate that is 0 is only known to be near it.
    rates = rates.clamp(min=0.5 / float(sizes[n.flatten() > 0].sum()))
    rates = rates / rates.sum()
    unknown = torch.where(known, 0.0, rates)
    rest = (1 - (shares * known).sum(1, keepdim=True)) / unknown.sum(1, keepdim=True).clamp(min=1e-300)
    return rates, torch.where(known, shares, unknown * rest)
