"""Exact distributions of counts, as a report needs them: of all bags, of a few in full, calibrated, the binomial."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._count_mixture import count_distribution
from kofn.metrics._calibration import calibration_of
from kofn.report._contents import BagDistribution, Binomial, Calibration, Numbers

LEVELS = tuple(level / 20 for level in range(1, 20))
PIT_BINS = 10
MAX_SHOWN = 6  # distributions in a report


def calibration(logits: Tensor, counts: Tensor, offsets: Tensor, bag_effect: float) -> Calibration:
    """Coverage of central intervals, and where the counts fall in their distributions, from (B, m) logits."""
    seen = calibration_of(count_distribution(logits, offsets, bag_effect), counts, LEVELS)
    return Calibration(seen.levels, seen.coverage, seen.histogram(PIT_BINS), len(counts))


def some_distributions(
    names: Sequence[str], bags: Bags, after: Tensor, before: Tensor | None, counts: Tensor | None, bag_effect: float
) -> list[BagDistribution]:
    """Distributions of a few bags, spread over the known counts, or over the expected ones.

    Args:
        names: of all bags.
        bags: all bags.
        after: (B, m) logits by each of B models, one bag after the other, float64.
        before: (m,) those before training, or None.
        counts: (b,) known counts, or None.
        bag_effect: of the trained model.
    """
    by = counts.double() if counts is not None else count_distribution(after, bags.offsets, bag_effect).mean
    order = by.argsort(stable=True)
    steps = torch.linspace(0, len(order) - 1, min(MAX_SHOWN, len(order))).round().long()
    chosen = order[steps].tolist()
    return [bag_distribution(bag, names, bags, after, before, counts, bag_effect) for bag in chosen]


def bag_distribution(
    bag: int,
    names: Sequence[str],
    bags: Bags,
    after: Tensor,
    before: Tensor | None,
    counts: Tensor | None,
    bag_effect: float,
) -> BagDistribution:
    """The distribution of one bag; arguments as for `some_distributions`."""
    part = slice(int(bags.offsets[bag]), int(bags.offsets[bag + 1]))
    known = None if counts is None else int(counts[bag])
    return BagDistribution(
        names[bag],
        count_probabilities(after[:, part], bag_effect),
        None if before is None else count_probabilities(before[part]),
        known,
    )


def count_probabilities(logits: Tensor, bag_effect: float = 0.0) -> Numbers:
    """P(S = 0..n) of one bag, (n + 1,), from its logits, (n,), or those by each of B models, (B, n)."""
    each = logits.double().reshape(-1, logits.shape[-1])
    dist = count_distribution(each, torch.tensor([0, each.shape[1]]), bag_effect)
    probabilities: Numbers = dist.log_probs().exp().numpy()
    return probabilities


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
