"""Bags as the recursion wants them: classes by descending count, those that do not occur left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kofn.classes._one_vs_rest import one_certain_class

NEVER = -1e300  # the logarithm of an impossible event: unlike -inf it has derivatives, and sums of it stay finite


@dataclass(frozen=True)
class SortedBags:
    """Log-probabilities of the classes that occur in some bag, in each bag by descending count.

    A class that must not occur takes its share of the softmax with it: what is left does not sum to one.
    An instance that is not there is of the first class for certain, whose count nobody keeps: it changes nothing.
    """

    log_p: Tensor  # (b, n, c) float64, NEVER for an impossible class
    counts: Tensor  # (b, c) int64
    order: Tensor  # (b, c) which class that is
    prior: Tensor  # (b, n, C) softmax of the logits
    possible: Tensor  # (b,) bool: counts that sum to the bag's size
    broken: Tensor  # (b,) bool: bags with a NaN

    @classmethod
    def of(cls, x: Tensor, counts: Tensor) -> SortedBags:
        """From logits (b, n, C) float64, -inf in all classes of absent instances, and counts (b, C); differentiable."""
        absent = (x == -torch.inf).all(-1, keepdim=True)
        x = one_certain_class(x).masked_fill(absent, 0.0)
        size = (~absent).sum((1, 2)).unsqueeze(-1)
        possible = (counts >= 0).all(-1) & (counts.clamp(max=x.shape[1] + 1).sum(-1, keepdim=True) == size).all(-1)
        counts = counts.clamp(0, x.shape[1])  # says nothing of the logits, which torch.func.vmap may hide
        present = max(1, int((counts > 0).sum(-1).max())) if len(counts) else 1
        order = counts.argsort(dim=-1, descending=True, stable=True)[:, :present]
        log_p = x.log_softmax(-1)
        prior = log_p.exp().masked_fill(absent, 0.0)
        log_p = log_p.gather(2, order.unsqueeze(1).expand(*x.shape[:2], present))
        log_p = log_p.masked_fill(log_p == -torch.inf, NEVER)
        nothing = torch.full_like(log_p[:1, :1], NEVER)
        nothing[..., 0] = 0.0
        log_p = torch.where(absent, nothing, log_p)
        return cls(log_p, counts.gather(1, order), order, prior, possible, x.isnan().flatten(1).any(-1))

    def value(self, log_prob: Tensor) -> Tensor:
        """log P of each bag (b,), from that of the recursion: -inf for what cannot be."""
        return log_prob.masked_fill(~self._speaks(log_prob), -torch.inf).masked_fill(self.broken, torch.nan)

    def posteriors(self, log_prob: Tensor, sorted_posteriors: Tensor) -> Tensor:
        """P(y_i = c | K = k) of all classes, (b, n, C), from that of the sorted ones."""
        order = self.order.unsqueeze(1).expand_as(sorted_posteriors)
        value = torch.zeros_like(self.prior).scatter(2, order, sorted_posteriors)
        value = value.masked_fill((self.prior == 0).all(-1, keepdim=True), 0.0)
        value = torch.where(self._speaks(log_prob)[:, None, None], value, self.prior)
        return value.masked_fill(self.broken[:, None, None], torch.nan)

    def _speaks(self, log_prob: Tensor) -> Tensor:
        return self.possible & (log_prob > NEVER / 2)
