"""Bags for two processes: what each of them has, and what one process would have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

INF = math.inf


@dataclass(frozen=True)
class Case:
    """Bags as lists of their instances on either process, and the counts that are asked for."""

    parts: list[tuple[list[float], list[float]]]
    low: list[int]
    high: list[int]
    dtype: torch.dtype = torch.float64

    def whole(self) -> tuple[Tensor, Tensor]:
        """Logits and offsets on one process."""
        return self._ragged([[*first, *second] for first, second in self.parts])

    def half(self, rank: int) -> tuple[Tensor, Tensor]:
        return self._ragged([part[rank] for part in self.parts])

    def join(self, first: Tensor, second: Tensor) -> Tensor:
        """What the processes have of each instance, as one process has it."""
        pieces = []
        for a, b in self.parts:
            pieces += [first[: len(a)], second[: len(b)]]
            first, second = first[len(a) :], second[len(b) :]
        return torch.cat(pieces)

    def _ragged(self, bags: list[list[float]]) -> tuple[Tensor, Tensor]:
        offsets = torch.tensor([0, *(len(bag) for bag in bags)]).cumsum(0)
        return torch.tensor([x for bag in bags for x in bag], dtype=self.dtype), offsets


def halves(case: Case) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """What each process has: logits and offsets."""
    return case.half(0), case.half(1)


def ask(
    prob: Callable[..., Tensor], between: Callable[..., Tensor], bags: tuple[Tensor, Tensor], case: Case
) -> dict[str, Any]:
    """Log-probabilities of a count and of an interval of each bag, and gradients of weighted sums of them."""
    logits, offsets = bags
    x = logits.requires_grad_()
    low, high = torch.tensor(case.low), torch.tensor(case.high)
    values = [prob(x, low, offsets=offsets), between(x, low, high, offsets=offsets)]
    weights = torch.arange(1, len(low) + 1, dtype=case.dtype)
    gradients = [torch.autograd.grad(value, x, weights)[0] for value in values]
    return {"values": [value.detach() for value in values], "gradients": gradients}


def _normal(n: int, seed: int, scale: float = 1.5) -> list[float]:
    drawn = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale
    return drawn.float().tolist()


CASES = {
    "uneven": Case(
        [(_normal(40_000, 0), _normal(3_000, 1)), (_normal(5, 2), _normal(700, 3))], [20_000, 300], [20_100, 420]
    ),
    "one has nothing": Case([(_normal(500, 0), []), ([], _normal(300, 1)), ([], [])], [200, 290, 0], [260, 299, 0]),
    "far in the tail": Case([(_normal(2_000, 0), _normal(1_000, 1))], [2_990], [2_995]),
    "edges": Case([([0.5, -1.0], [2.0])] * 5, [0, 3, -1, 4, 0], [0, 3, -1, 9, 3]),
    "certain and absent": Case(
        [([INF, 0.5, -INF], [INF, INF, 1.0]), ([INF, INF], [-INF]), ([math.nan, 1.0], [2.0, INF])], [3, 2, 1], [4, 3, 2]
    ),
    "further apart than Newton likes": Case([(_normal(300, 0, 1e5), _normal(200, 1, 3.0))], [100], [250]),
    "float32": Case([(_normal(20_000, 0), _normal(900, 1))], [9_000], [9_500], torch.float32),
}
