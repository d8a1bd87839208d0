"""Statements about every count: a set of them, or a distribution over them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from kofn import _require
from kofn.counts import CountDistribution
from kofn.targets._target import Target, refuse


@dataclass(frozen=True, eq=False)
class OneOf(Target):
    """The count is one of a set: -log sum_{s in set} P(S = s), in time n^1.5.

    Args:
        allowed: integers: a list, a set or a tensor (k,) for all bags alike, a tensor (..., k) or (b, k) for each
            bag its own (fill up with -1: a count that no bag has adds nothing, nor does one that is named twice).
            Or a bool tensor of the shape of `kofn.log_count_distribution`, True at allowed counts.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_loss(torch.zeros(4), kofn.OneOf({0, 4})).neg().exp()  # all alike
        tensor(0.1250)
    """

    allowed: Tensor | Collection[int]

    def loss(self, dist: CountDistribution) -> Tensor:
        log_probs, counts = dist.double().log_probs(), dist.count_layout
        allowed = _require_each_count("allowed", self._marked(dist), log_probs, dist)
        return -counts.logsumexp(log_probs.masked_fill(~allowed, -torch.inf)).to(dist.logits.dtype)

    def require_possible(self, dist: CountDistribution, counted: Tensor | None) -> None:
        counts, sizes = dist.count_layout, dist.sizes
        there = counts.place() <= counts.spread(sizes)
        some = counts.sum((self._marked(dist).expand(there.shape) & there).double())
        refuse(
            some == 0,
            counted,
            lambda bag: (
                f"`allowed` must have a count from 0 to the bag's size; bag {bag} has {int(sizes.flatten()[bag])} "
                f"instances and none of them. Check the order of the bags, or that these are counts, not labels."
            ),
        )

    def _marked(self, dist: CountDistribution) -> Tensor:
        """True at the allowed counts of each bag."""
        allowed = self.allowed
        if not isinstance(allowed, Tensor):
            allowed = torch.tensor(tuple(allowed) or (-1,), device=dist.logits.device)
        if allowed.dtype != torch.bool:
            columns = allowed.shape[-1] if allowed.dim() else 1
            places = dist.instance_layout.whole_numbers("allowed", allowed, columns=(columns,))
            allowed = dist.count_layout.mark(places)
        return allowed


@dataclass(frozen=True, eq=False)
class Distributed(Target):
    """The count follows a known distribution: the divergence of the model's from it, in nats, in time n^1.5.

        KL(target || distribution of S) = sum_s q(s) (log q(s) - log P(S = s)),

    summed over counts, never divided by their number; 0 log 0 = 0.

    Args:
        log_probs: log q, of the shape of `kofn.log_count_distribution`: (..., n + 1) or, broadcasting, (n + 1,);
            ragged: flat (m + b,). -inf where q is 0, as past a bag's size.

    Examples:
        >>> import torch, kofn
        >>> fair = torch.tensor([0.25, 0.5, 0.25]).log()
        >>> torch.allclose(kofn.count_loss(torch.zeros(2), kofn.Distributed(fair)), torch.zeros(()), atol=1e-7)
        True
    """

    log_probs: Tensor

    def loss(self, dist: CountDistribution) -> Tensor:
        log_p, counts = dist.double().log_probs(), dist.count_layout
        log_q = _require_each_count("log_probs", self.log_probs, log_p, dist).double()
        _require_sums_to_one(counts.logsumexp(log_q.detach()))
        unwanted, impossible = log_q == -torch.inf, log_p == -torch.inf
        apart = log_q.masked_fill(unwanted, 0.0) - log_p.masked_fill(unwanted | impossible, 0.0)
        divergence = counts.sum(log_q.exp() * apart)
        excluded = counts.sum((impossible & ~unwanted).double()) > 0  # some wanted count cannot be
        return divergence.masked_fill(excluded, torch.inf).to(dist.logits.dtype)


def _require_each_count(name: str, value: object, log_probs: Tensor, dist: CountDistribution) -> Tensor:
    """Require one entry for every count of every bag, as `log_probs` has them."""
    tensor = _require.tensor(name, value)
    try:
        return tensor.expand(log_probs.shape)
    except RuntimeError:
        rule = "(..., n + 1)" if dist.instance_layout.offsets is None else "flat (instances + bags,)"
        raise ValueError(
            f"`{name}` must have an entry for each count, {rule}, here {tuple(log_probs.shape)}; "
            f"got {tuple(tensor.shape)}. kofn.log_count_distribution returns this shape; counts past a bag's size have "
            f"-inf."
        ) from None


def _require_sums_to_one(log_totals: Tensor) -> None:
    right = log_totals.abs() <= 1e-3
    if not _require.holds(right):
        bag = int((~right).flatten().nonzero()[0])
        raise ValueError(
            f"`log_probs` must be logarithms of probabilities that sum to one; those of bag {bag} sum to "
            f"{float(log_totals.flatten()[bag].exp()):g}. Take the log of probabilities, or torch.log_softmax of "
            f"scores."
        )
