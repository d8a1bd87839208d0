"""Weakly labelled tasks made from labelled data.

Pure functions of the labels: they return positions of rows, never rows. The same generator gives the same task on every
machine.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kofn import _require
from kofn.bags import Bags
from kofn.datasets._draws import normal_sizes, permutation, random_integers, shuffled, uniform
from kofn.datasets._tasks import LLPTask, MILTask, PUTask


def make_llp_bags(
    labels: Tensor,
    *,
    bag_size: int,
    bags: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    generator: torch.Generator,
) -> LLPTask:
    """Bags of one size whose proportions of positives spread over an interval.

        p_j ~ Uniform(low, high),   count_j ~ Binomial(bag_size, p_j),

    then count_j positive and bag_size - count_j negative rows, drawn without replacement over all bags, in random
    order. The label of a bag is what was drawn, count_j / bag_size, never p_j.

    Args:
        labels: (n,) 0 or 1.
        bag_size: instances in each bag, at least 1.
        bags: number of bags; by default as many of n // bag_size as the rows allow: bags are drawn one after the other
            until positives or negatives run out.
        low: from 0 to `high`.
        high: from `low` to 1.
        generator: on the CPU.

    Raises:
        TypeError: labels that are not integers, a generator that is none.
        ValueError: labels other than 0 and 1; fewer positives or negatives than the bags want.

    Examples:
        >>> import torch
        >>> from kofn.datasets import make_llp_bags
        >>> labels = torch.tensor([0, 1]).repeat(50)
        >>> task = make_llp_bags(labels, bag_size=4, bags=5, generator=torch.Generator().manual_seed(0))
        >>> bool((task.bags.sum(labels) == task.counts).all())
        True

    Reference:
        Scott, Zhang. Learning from label proportions: a mutual contamination framework. NeurIPS 2020.
    """
    truth = _require_binary(labels)
    _require.whole_number("bag_size", bag_size, low=1)
    if _require.fraction("low", low) > _require.fraction("high", high):
        raise ValueError(f"`low` must not be above `high`; got {low} and {high}.")
    if bags is not None:
        _require.whole_number("bags", bags, low=1)
    number = len(truth) // bag_size if bags is None else bags
    share = low + (high - low) * uniform(number, 1, generator=generator)
    counts = (uniform(number, bag_size, generator=generator) < share).sum(1)
    positive, negative = (truth == 1).nonzero()[:, 0], (truth == 0).nonzero()[:, 0]
    if bags is None:
        fits = (counts.cumsum(0) <= len(positive)) & ((bag_size - counts).cumsum(0) <= len(negative))
        counts = counts[: int(fits.sum())]  # sums only grow: bags fit up to one, and none after it
        if not len(counts):
            raise ValueError(
                f"`bag_size` must leave room for one bag at least; the first of {bag_size} does not fit into "
                f"{len(positive)} positive and {len(negative)} negative rows. Take smaller bags, or another interval "
                f"from `low` to `high`."
            )
    ones = int(counts.sum())
    zeros = len(counts) * bag_size - ones
    _require_rows("positive", ones, len(positive), "fewer or smaller bags, or a lower interval")
    _require_rows("negative", zeros, len(negative), "fewer or smaller bags, or a higher interval")
    index = torch.empty(len(counts), bag_size, dtype=torch.int64)
    # The places of a bag in random order: its first count_j hold positives.
    places = uniform(len(counts), bag_size, generator=generator).argsort(dim=1, stable=True)
    holds_positive = places < counts[:, None]
    index[holds_positive] = shuffled(positive, generator)[:ones]
    index[~holds_positive] = shuffled(negative, generator)[:zeros]
    offsets = torch.arange(len(counts) + 1) * bag_size
    return LLPTask(Bags(index.flatten(), offsets), counts, counts.double() / bag_size)


def make_mil_bags(
    labels: Tensor,
    *,
    target: int,
    bags: int,
    mean_size: float,
    sd_size: float,
    generator: torch.Generator,
) -> MILTask:
    """Bags of random sizes, half of them with an instance of a target class.

    A size is round(N(mean_size, sd_size)), at least 1. Half of the bags, bags // 2, are positive, in random order. The
    rows of a negative bag are drawn one by one from all rows of other classes. Those of a positive bag are drawn one
    by one from all rows of all classes, given that at least one is of the target class. Every draw leaves the row where
    it was: bags may share rows, and a row may be in a bag twice.

    Args:
        labels: (n,) class of each row.
        target: the class that makes a bag positive.
        bags: number of bags, at least 1.
        mean_size: mean of the sizes before rounding.
        sd_size: their standard deviation.
        generator: on the CPU.

    Raises:
        TypeError: labels that are not integers, a generator that is none.
        ValueError: no row of the target class, or no other; sizes out of range.

    Examples:
        >>> import torch
        >>> from kofn.datasets import make_mil_bags
        >>> digits, seed = torch.arange(100) % 10, torch.Generator().manual_seed(0)
        >>> task = make_mil_bags(digits, target=9, bags=6, mean_size=10, sd_size=2, generator=seed)
        >>> int(task.bag_labels.sum()), bool(((task.bags.sum(digits == 9) > 0) == task.bag_labels).all())
        (3, True)

    Reference:
        Ilse, Tomczak, Welling. Attention-based deep multiple instance learning. ICML 2018.
    """
    classes = _require.whole_numbers("labels", labels)
    _require.whole_number("target", target)
    _require.whole_number("bags", bags, low=1)
    _require.number("mean_size", mean_size, low=1.0)
    _require.number("sd_size", sd_size, low=0.0)
    truth = (classes == target).long()
    hits, others = truth.nonzero()[:, 0], (truth == 0).nonzero()[:, 0]
    _require_rows("target", 1, len(hits), f"a `target` that occurs in `labels`, not {target}")
    _require_rows("other", 1, len(others), "rows of at least one other class")
    sizes = normal_sizes(mean_size, sd_size, bags, generator)
    bag_labels = (permutation(bags, generator) < bags // 2).long()
    result = Bags.from_sizes(sizes)
    # Given a target among the n rows of a bag, the first one's place t has the geometric distribution truncated at n,
    #     P(T <= t) = (1 - (1 - q)^(t + 1)) / (1 - (1 - q)^n),   q the share of targets;
    # before it there are others only, after it anything. In a negative bag no place is reached.
    q = torch.tensor(len(hits) / len(truth), dtype=torch.float64)
    u = uniform(bags, generator=generator)
    first = (torch.log1p(u * torch.expm1(sizes * torch.log1p(-q))) / torch.log1p(-q)).long().clamp(max=sizes - 1)
    bag_of = result.bag_of()
    place = torch.arange(len(bag_of)) - result.offsets[bag_of]
    ahead = torch.where(bag_labels == 1, first, sizes)[bag_of] - place  # places from here to the first target
    other = others[random_integers(len(others), len(place), generator=generator)]
    hit = hits[random_integers(len(hits), bags, generator=generator)][bag_of]
    anything = random_integers(len(truth), len(place), generator=generator)
    index = torch.where(ahead > 0, other, torch.where(ahead == 0, hit, anything))
    return MILTask(Bags(index, result.offsets), bag_labels, truth)


def make_pu_split(
    labels: Tensor, *, positives: int, unlabeled: int, mixture: float, generator: torch.Generator
) -> PUTask:
    """Labelled positives, and unlabelled rows of which a known share is positive; no row is in both.

    Exactly round(mixture * unlabeled) of the unlabelled rows are positive, in random order.

    Args:
        labels: (n,) 0 or 1.
        positives: number of labelled positives, at least 1.
        unlabeled: number of unlabelled rows, at least 1.
        mixture: share of positives among the unlabelled rows, from 0 to 1.
        generator: on the CPU.

    Raises:
        TypeError: labels that are not integers, a generator that is none.
        ValueError: labels other than 0 and 1; fewer positives or negatives than wanted.

    Examples:
        >>> import torch
        >>> from kofn.datasets import make_pu_split
        >>> labels, seed = torch.tensor([0, 1]).repeat(50), torch.Generator().manual_seed(0)
        >>> task = make_pu_split(labels, positives=10, unlabeled=40, mixture=0.5, generator=seed)
        >>> int(labels[task.positive].sum()), int(labels[task.unlabeled].sum())
        (10, 20)
    """
    truth = _require_binary(labels)
    _require.whole_number("positives", positives, low=1)
    _require.whole_number("unlabeled", unlabeled, low=1)
    _require.fraction("mixture", mixture)
    hidden = round(mixture * unlabeled)
    positive, negative = (truth == 1).nonzero()[:, 0], (truth == 0).nonzero()[:, 0]
    cure = "fewer `positives`, fewer `unlabeled` rows or another `mixture`"
    _require_rows("positive", positives + hidden, len(positive), cure)
    _require_rows("negative", unlabeled - hidden, len(negative), cure)
    positive, negative = shuffled(positive, generator), shuffled(negative, generator)
    mixed = torch.cat([positive[positives : positives + hidden], negative[: unlabeled - hidden]])
    known, mixed = positive[:positives], shuffled(mixed, generator)
    y = torch.cat([torch.ones_like(known), -torch.ones_like(mixed)])
    return PUTask(known, mixed, y, truth[torch.cat([known, mixed])])


def hold_out(n_bags: int, fraction: float, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Positions of bags to train on and to validate on, chosen at random, each in ascending order.

    Args:
        n_bags: number of bags.
        fraction: share to validate on, from 0 to 1; round(fraction n_bags) bags.
        generator: on the CPU.

    Returns:
        Positions to train on, positions to validate on, int64.

    Examples:
        >>> import torch
        >>> from kofn.datasets import hold_out
        >>> train, validation = hold_out(8, 0.25, generator=torch.Generator().manual_seed(0))
        >>> len(train), len(validation), sorted([*train.tolist(), *validation.tolist()]) == list(range(8))
        (6, 2, True)
    """
    _require.whole_number("n_bags", n_bags, low=0)
    _require.fraction("fraction", fraction)
    order = permutation(n_bags, generator)
    held = round(fraction * n_bags)
    return order[held:].sort().values, order[:held].sort().values


def _require_binary(labels: object) -> Tensor:
    """Require labels 0 and 1 of rows; returned as int64."""
    given = labels.long() if isinstance(labels, Tensor) and labels.dtype == torch.bool else labels
    classes = _require.whole_numbers("labels", given)
    odd = classes[(classes != 0) & (classes != 1)]
    if len(odd):
        raise ValueError(
            f"`labels` must be 0 (negative) or 1 (positive); got {int(odd[0])}. Of many classes make two first, "
            f"for instance (labels >= 5)."
        )
    return classes


def _require_rows(kind: str, wanted: int, there: int, cure: str) -> None:
    """Require as many rows of a kind as a task takes."""
    if wanted > there:
        raise ValueError(
            f"`labels` must have at least {wanted} {kind} rows for this task; there are {there}. Ask for {cure}."
        )
