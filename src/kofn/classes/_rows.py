"""Bags side by side in rectangles, as the arithmetic in torch wants them: log-probabilities, weights and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kofn.counts import Layout
from kofn.counts._bag_distribution import one_certain_class
from kofn.counts._host import transformed

NEVER = -1e300  # the logarithm of an impossible event: unlike -inf it has derivatives, and sums of it stay finite


class Rows(NamedTuple):
    """Bags side by side."""

    log_p: Tensor  # (b, n, C) float64 log-probabilities, NEVER for an impossible class; 0 where the weight is 0
    weight: Tensor  # (b, n) float64: how many instances a row stands for, 0 where there is none
    counts: Tensor  # (b, C) float64, which sum to the weights
    copied: bool = False  # whether weights may be other than 0 and 1

    def select(self, bags: Tensor) -> Rows:
        """Those of some bags."""
        return Rows(self.log_p[bags], self.weight[bags], self.counts[bags], self.copied)


class Answer(NamedTuple):
    """What makes a log-probability that was computed of rows right for all bags."""

    possible: Tensor  # (b,) bool: counts that sum to the bag's size
    broken: Tensor  # (b,) bool: bags with a NaN

    def value(self, log_prob: Tensor) -> Tensor:
        """-inf for what cannot be, NaN for a bag with a NaN."""
        never = ~self.possible | (log_prob < NEVER / 2)
        return log_prob.masked_fill(never, -torch.inf).masked_fill(self.broken, torch.nan)


def cut(x: Tensor, layout: Layout, counts: Tensor, *, absent_classes: bool) -> list[tuple[Rows, Answer]]:
    """The bags of flat logits (m, C), -inf in all classes of absent instances, and counts (b, C), in rectangles.

    Differentiable in the logits. Without `absent_classes`, those with count 0 are made impossible: they take their
    share of the softmax with them, and what is left does not sum to one.
    """
    rectangles = layout.rectangles()
    logits = [piece.movedim(0, -1) for piece in rectangles.cut_entries(x.double().mT, -torch.inf)]
    if layout.copies is None:
        copies: Sequence[Tensor] = [torch.ones_like(piece[..., 0]) for piece in logits]
    else:
        copies = rectangles.cut_entries(layout.copies.double(), 0.0)
    parts = zip(logits, copies, rectangles.cut(counts), strict=True)
    return [_rows(*part, absent_classes, layout.copies is not None) for part in parts]


def _rows(x: Tensor, copies: Tensor, counts: Tensor, absent_classes: bool, copied: bool) -> tuple[Rows, Answer]:
    absent = (x == -torch.inf).all(-1)
    weight = copies.masked_fill(absent, 0.0)
    x = one_certain_class(x)
    broken = x.isnan().flatten(1).any(-1)
    x = x.masked_fill(absent.unsqueeze(-1) | broken[:, None, None], 0.0)
    size, k = weight.sum(-1, keepdim=True), counts.double()
    possible = (counts >= 0).all(-1) & (k.sum(-1, keepdim=True) == size).all(-1)
    if transformed():  # the size of a table must not depend on values that torch.func.vmap hides
        k = k.clamp(0.0, None if copied else x.shape[1])
    else:  # impossible counts need no large table
        first = torch.arange(k.shape[-1], device=k.device) == 0
        k = torch.where(possible.unsqueeze(-1), k, torch.where(first, size, 0.0))
    never = torch.zeros_like(x, dtype=torch.bool) if absent_classes else (k == 0).unsqueeze(1)
    log_p = x.log_softmax(-1)
    log_p = log_p.masked_fill((log_p == -torch.inf) | never, NEVER).masked_fill(absent.unsqueeze(-1), 0.0)
    return Rows(log_p, weight, k, copied), Answer(possible, broken)


def join(layout: Layout, values: Sequence[Tensor]) -> Tensor:
    """From one number for each bag of each rectangle to (b,)."""
    return layout.rectangles().join(values)


def in_batches(rows: Rows, batches: Sequence[Tensor], log_prob: Callable[[Rows], Tensor]) -> Tensor:
    """log P of each bag, (b,), so many bags at a time."""
    if len(batches) == 1 and len(batches[0]) == len(rows.log_p):
        return log_prob(rows)
    values = [log_prob(rows.select(bags)) for bags in batches]
    return torch.cat(values)[torch.cat(list(batches)).argsort()]
