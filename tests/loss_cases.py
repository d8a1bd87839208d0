"""Every loss as a function of a bag's logits and its label, for the laws that all of them obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Laplace, Normal

import kofn
from kofn import losses, targets

SIZES = [5, 1, 0, 3, 4, 2]
Loss = Callable[..., Tensor]

COUNTS = torch.tensor([2, 1, 0, 3, 0, 1])
SHARES = torch.tensor([0.4, 1.0, 0.0, 1.0, 0.0, 0.3])
LABELS = torch.tensor([1, 1, 0, 0, 1, 0])


def of_target(make: Callable[..., targets.Statement[Any]], *labels: Tensor) -> tuple[Loss, tuple[Tensor, ...]]:
    """A count loss as function(logits, *labels, ...)."""

    def loss(logits: Tensor, *each: Tensor, **options: Any) -> Tensor:
        return kofn.count_loss(logits, make(*each), **options)

    return loss, labels


def pooled(pool: Any) -> Loss:
    return lambda x, y, **options: losses.pooled_bag_loss(x, y, pool=pool, **options)


#: loss, labels (one for each of the bags of SIZES)
PER_BAG: dict[str, tuple[Loss, tuple[Tensor, ...]]] = {
    "exactly": of_target(kofn.Exactly, COUNTS),
    "at least one": of_target(kofn.AtLeast, LABELS),
    "at least": of_target(kofn.AtLeast, COUNTS),
    "at most": of_target(kofn.AtMost, COUNTS),
    "between": of_target(kofn.Between, COUNTS - 1, COUNTS + 1),
    "one of": of_target(kofn.OneOf, torch.stack([COUNTS, torch.tensor([5, -1, 3, 0, 2, 2])], -1)),
    "one of, for all": of_target(lambda y: kofn.OneOf([0, 2, 3]), COUNTS),
    "noisy, normal": of_target(lambda y: kofn.Noisy(y, Normal(0.3, 0.8)), COUNTS + 0.4),
    "noisy, laplace": of_target(lambda y, b: kofn.Noisy(y, Laplace(0.0, b)), COUNTS - 1.3, SHARES + 0.5),
    "noisy, discrete": of_target(lambda y: kofn.Noisy(y, targets.DiscreteLaplace(1.5)), COUNTS + 1),
    "noisy, discrete scales": of_target(
        lambda y, b: kofn.Noisy(y, targets.DiscreteLaplace(b)), COUNTS - 2, SHARES + 0.5
    ),
    "sum": of_target(lambda y: kofn.Sum(y, 3), 3 * COUNTS),
    "spread": of_target(targets.Spread, torch.tensor([2.3, 0.5, 0.0, 3.0, 0.0, 1.9])),
    "llp": (losses.llp_loss, (COUNTS,)),
    "proportion": (losses.proportion_loss, (SHARES,)),
    "mil": (losses.mil_loss, (LABELS,)),
    "mil, weighted": (lambda x, y, **options: losses.mil_loss(x, y, positive_weight=3.0, **options), (LABELS,)),
    "max": (pooled("max"), (LABELS,)),
    "mean": (pooled("mean"), (LABELS,)),
    "logsumexp": (pooled("logsumexp"), (LABELS,)),
}
NO_MEAN = {"proportion", "mean", "logsumexp"}  # of an empty bag


def bags(seed: int = 0, scale: float = 2.0, *, empty: bool = True) -> tuple[list[Tensor], list[int]]:
    """Bags of SIZES, and their indices; without the empty one if so wanted."""
    generator = torch.Generator().manual_seed(seed)
    every = [torch.randn(n, generator=generator, dtype=torch.float64) * scale for n in SIZES]
    kept = [i for i, n in enumerate(SIZES) if n or empty]
    return [every[i] for i in kept], kept


def as_ragged(each: list[Tensor]) -> tuple[Tensor, Tensor]:
    sizes = torch.tensor([len(x) for x in each])
    return torch.cat(each), torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def as_dense(each: list[Tensor], fill: float = 0.0) -> tuple[Tensor, Tensor]:
    """Padded logits in which absent instances are not at the end only."""
    width = max(len(x) for x in each) + 1
    x = torch.full((len(each), width), fill, dtype=torch.float64)
    mask = torch.zeros(len(each), width, dtype=torch.bool)
    for row, bag in enumerate(each):
        shift = row % (width - len(bag) + 1)
        x[row, shift : shift + len(bag)] = bag
        mask[row, shift : shift + len(bag)] = True
    return x, mask
