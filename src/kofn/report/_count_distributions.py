"""Exact distributions of counts, as a report needs them: of all bags, of a few in full, calibrated, the binomial."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kofn.bags import Bags
from kofn.counts import log_count_between, log_count_distribution, log_count_prob
from kofn.metrics import bag_scores, count_calibration
from kofn.report._contents import BagDistribution, Binomial, Calibration, Numbers

LEVELS = tuple(level / 20 for level in range(1, 20))
PIT_BINS = 10
MAX_SHOWN = 6  # distributions in a report


def intervals(logits: Tensor, offsets: Tensor, *, level: float = 0.9) -> tuple[Tensor, Tensor]:
    """Ends of the central interval of each bag's count.

        low = min {k : P(S <= k) > (1 - level) / 2},   high = min {k : P(S <= k) >= (1 + level) / 2}

    Args:
        logits: (m,) float64.
        offsets: (b + 1,) int64.
        level: at least so much probability lies inside.

    Returns:
        low and high, (b,) int64.

    Examples:
        >>> import torch
        >>> from kofn.report._count_distributions import intervals
        >>> intervals(torch.zeros(100, dtype=torch.float64), torch.tensor([0, 100]))  # a binomial of 100 and 1/2
        (tensor([42]), tensor([58]))
    """
    tail = (1 - level) / 2
    probabilities = log_count_distribution(logits, offsets=offsets).exp()
    n_bags = len(offsets) - 1
    starts = offsets[:-1] + torch.arange(n_bags)  # bag j has one more count than instances
    sizes = offsets.diff() + 1
    bag = torch.arange(n_bags).repeat_interleave(sizes)
    total = probabilities.cumsum(0)
    below = total - (total[starts] - probabilities[starts])[bag]

    def first(reached: Tensor) -> Tensor:
        """How many counts of each bag come before the first that has reached the probability."""
        return torch.zeros(n_bags, dtype=torch.int64).index_add(0, bag, (~reached).long()).clamp(max=sizes - 1)

    return first(below > tail), first(below >= 1 - tail)


def at_least_one(logits: Tensor, offsets: Tensor) -> Numbers:
    """P(S >= 1) of each bag, (b,)."""
    probability: Numbers = bag_scores(logits, offsets=offsets).sigmoid().numpy()
    return probability


def calibration(logits: Tensor, counts: Tensor, offsets: Tensor) -> Calibration:
    """Coverage of central intervals, and where the counts fall in their distributions.

    A count s stands for all of [P(S < s), P(S <= s)], evenly: so the histogram is flat for a calibrated model however
    small its bags are (Czado, Gneiting, Held 2009).
    """
    seen = count_calibration(logits, counts, offsets=offsets, levels=LEVELS)
    below = log_count_between(logits, 0, counts - 1, offsets=offsets).exp()
    here = log_count_prob(logits, counts, offsets=offsets).exp()
    edges = torch.linspace(0, 1, PIT_BINS + 1, dtype=torch.float64)
    # An impossible count has no width: it stands where it is.
    reached = torch.where(
        here[:, None] > 0, (edges - below[:, None]) / here[:, None], (edges > below[:, None]).double()
    ).clamp(0, 1)
    return Calibration(seen.levels, seen.coverage, reached.mean(0).diff().tolist(), len(counts))


def some_distributions(
    names: Sequence[str], bags: Bags, after: Tensor, before: Tensor | None, counts: Tensor | None
) -> list[BagDistribution]:
    """Distributions of a few bags, spread over the known counts, or over the expected ones.

    Args:
        names: of all bags.
        bags: all bags.
        after: (m,) logits by bag, float64.
        before: the same before training, or None.
        counts: (b,) known counts, or None.
    """
    by = counts.double() if counts is not None else bag_sums(after.sigmoid(), bags.offsets)
    order = by.argsort(stable=True)
    steps = torch.linspace(0, len(order) - 1, min(MAX_SHOWN, len(order))).round().long()
    chosen = order[steps].tolist()
    return [bag_distribution(bag, names, bags, after, before, counts) for bag in chosen]


def bag_distribution(
    bag: int, names: Sequence[str], bags: Bags, after: Tensor, before: Tensor | None, counts: Tensor | None
) -> BagDistribution:
    """The distribution of one bag; arguments as for `some_distributions`."""
    part = slice(int(bags.offsets[bag]), int(bags.offsets[bag + 1]))
    known = None if counts is None else int(counts[bag])
    return BagDistribution(
        names[bag],
        count_probabilities(after[part]),
        None if before is None else count_probabilities(before[part]),
        known,
    )


def count_probabilities(logits: Tensor) -> Numbers:
    """P(S = 0..n) of one bag, (n + 1,)."""
    probabilities: Numbers = log_count_distribution(logits.double()).exp().numpy()
    return probabilities


def bag_sums(values: Tensor, offsets: Tensor) -> Tensor:
    """Sums over bags that lie one after the other."""
    return Bags.from_sizes(offsets.diff()).sum(values)


def binomial(
    after: Tensor, before: Tensor | None, labelled: Tensor, mixture: float, size: int, *, n_bags: int = 12
) -> Binomial:
    """Distributions of the count in random bags of unlabelled instances, and the binomial.

    Args:
        after: (u,) logits of unlabelled instances.
        before: the same before training, or None.
        labelled: (p,) logits of the labelled positives.
        mixture: fraction of positives among them.
        size: instances in a bag.
        n_bags: how many bags to draw, each without repetition; drawn the same every time.
    """
    size = min(size, len(after))
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randperm(len(after), generator=generator)[:size] for _ in range(n_bags)]
    odds = torch.logit(torch.tensor(mixture, dtype=torch.float64))
    return Binomial(
        mixture,
        count_probabilities(odds.expand(size).contiguous()),
        [count_probabilities(after[draw]) for draw in draws],
        [] if before is None else [count_probabilities(before[draw]) for draw in draws],
        labelled.sigmoid().numpy(),
        after.sigmoid().numpy(),
    )


def initial_estimator(estimator: Any) -> Any:
    """The same estimator with the network that its training started from; None if its seed is not known."""
    seed = getattr(estimator, "seed_", None)
    if seed is None:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = estimator._new_network(estimator.instance_shape_)
    fresh = copy.copy(estimator)
    fresh.network_ = network.eval()
    return fresh
