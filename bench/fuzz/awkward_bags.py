"""Bags for the fuzz: awkward logits, counts in every tail and beyond, batches in every layout and dtype."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from sys import path
from typing import Any

import numpy as np
import torch
from torch import Tensor

path.append(str(Path(__file__).parents[2] / "tests"))
from bag_strategies import adversarial_logits as adversarial_logits

Array = np.ndarray[Any, np.dtype[Any]]
LAYOUTS = ("dense", "masked", "ragged")
DTYPES = {"float64": 0.4, "float32": 0.2, "float16": 0.2, "bfloat16": 0.2}  # the share of each
LARGEST_BAG, LARGEST_BATCH = 400, 256


@dataclass(frozen=True)
class Batch:
    """Bags that are given to an engine in one call."""

    place: str  # its seed, chunk and number: what it takes to draw it again
    layout: str
    dtype: str
    bags: list[Array]  # float64, of values that the dtype has
    counts: Array
    low: Array
    high: Array
    mask: Tensor | None  # of the layout "masked"; its instances lie between others that are not there
    garbage: Tensor | None  # what stands there

    @property
    def sizes(self) -> Tensor:
        return torch.tensor([len(bag) for bag in self.bags])

    def logits(self) -> Tensor:
        """The logits as the layout has them."""
        flat = torch.from_numpy(np.concatenate(self.bags)).to(getattr(torch, self.dtype))
        if self.mask is not None and self.garbage is not None:
            return self.garbage.to(flat.dtype).masked_scatter(self.mask, flat)
        return flat.reshape(len(self.bags), -1 if len(flat) else 0) if self.layout == "dense" else flat

    def where(self) -> dict[str, Tensor]:
        """The mask or the offsets, as the functions of kofn take them."""
        if self.mask is not None:
            return {"mask": self.mask}
        if self.layout == "ragged":
            return {"offsets": torch.cat([torch.zeros(1, dtype=torch.long), self.sizes.cumsum(0)])}
        return {}


def batches(seed: int, chunk: int, bags: int) -> list[Batch]:
    """So many bags, in batches of 1 to 256."""
    rng = np.random.default_rng([seed, chunk])
    drawn: list[Batch] = []
    while bags:
        size = min(bags, int(np.exp(rng.uniform(0, np.log(LARGEST_BATCH + 1)))))
        drawn.append(batch(rng, size, f"seed {seed}, chunk {chunk}, batch {len(drawn)}"))
        bags -= size
    return drawn


def batch(rng: np.random.Generator, bags: int, place: str) -> Batch:
    """A batch of mixed bags: mild ones beside those with logits of 2e4, so that they may spoil one another."""
    layout, dtype = str(rng.choice(LAYOUTS)), str(rng.choice(list(DTYPES), p=list(DTYPES.values())))
    sizes = np.exp(rng.uniform(0, np.log(LARGEST_BAG + 1), bags)).astype(int)
    sizes[rng.random(bags) < 0.02] = 0
    if layout == "dense":
        sizes[:] = sizes[0]
    drawn = [with_certain(rng, adversarial_logits(rng, n)) for n in sizes]
    drawn = [torch.from_numpy(bag).to(getattr(torch, dtype)).double().numpy() for bag in drawn]
    counts = np.array([[some_count(rng, bag) for bag in drawn] for _ in range(3)])
    ends = np.sort(counts[1:], 0)
    swapped = rng.random(bags) < 0.03  # an interval that holds no count
    low, high = np.where(swapped, ends[::-1], ends)
    mask = garbage = None
    if layout == "masked":
        places = rng.random((bags, sizes.max() + int(rng.integers(0, 20)))).argsort(1)
        mask = torch.from_numpy(places < sizes[:, None])
        garbage = torch.from_numpy(rng.choice([np.nan, np.inf, -np.inf, 0.0, 2e4, -3.0], places.shape))
    return Batch(place, layout, dtype, drawn, counts[0], low, high, mask, garbage)


def with_certain(rng: np.random.Generator, logits: Array) -> Array:
    """In one bag of six, some instances are certain."""
    if rng.random() < 1 / 6:
        certain = rng.random(len(logits)) < rng.random()
        logits[certain] = np.where(rng.random(certain.sum()) < rng.random(), np.inf, -np.inf)
    return logits


def some_count(rng: np.random.Generator, logits: Array) -> int:
    """A count anywhere, at an end, near the mean, in a deep tail, or one that is impossible."""
    n = len(logits)
    p = np.exp(np.minimum(logits, 0)) / (1 + np.exp(-np.abs(logits)))
    mean, deviation = p.sum(), np.sqrt((p * (1 - p)).sum())
    ones, zeros = int((logits == np.inf).sum()), int((logits == -np.inf).sum())
    kind = rng.choice(5, p=[0.25, 0.15, 0.25, 0.25, 0.1])
    if kind == 0:
        return int(rng.integers(0, n + 1))
    if kind == 1:
        return int(np.clip(rng.choice([0, 1, n - 1, n]), 0, n))
    if kind == 2:
        return int(np.clip(np.rint(rng.normal(mean, 1 + deviation)), 0, n))
    if kind == 3:
        sigmas = rng.uniform(3, 40) * rng.choice([-1, 1])
        return int(np.clip(np.rint(mean + sigmas * max(deviation, 0.5)), ones, n - zeros))
    return int(rng.choice([-1, -7, n + 1, n + 30, ones - 1, n - zeros + 1]))
