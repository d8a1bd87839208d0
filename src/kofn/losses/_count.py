"""The count loss: the negative log-likelihood of what the labels of bags say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from kofn import _require
from kofn.targets import Statement

Reduction = Literal["none", "mean", "sum"]


def count_loss(
    logits: Tensor,
    target: Statement[Any],
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    copies: Tensor | Sequence[int] | None = None,
    known: Tensor | Sequence[int] | None = None,
    bag_effect: Tensor | float | None = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of a statement about the number of positives in each bag.

        loss_j = -log P(statement about S_j),  or KL(stated distribution || distribution of S_j).

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`. For statements about several classes (..., n, C) or (m, C).
        target: the statement: `Exactly`, `AtLeast`, `AtMost`, `Between`, `OneOf`, `Noisy` or `Distributed`; of several
            classes `ClassCounts` or `MarginalClassCounts`; of a total `Sum`.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        copies: how many alike instances each logit stands for, integers of its shape; by default one.
        known: labels of single instances, of the shape of the logits: 1 or 0, of several classes their numbers, and -1
            where a label is not known. The loss is -log P(statement, known labels): their own cross-entropy, and the
            statement given them.
        bag_effect: standard deviation, at least 0, of a shift that the logits of a bag have in common: a number, or one
            for each bag; see `kofn.CountDistribution`. The loss is differentiable in it.
        weight: (...) or (b,) factors for the bags' losses. As in `torch.nn.functional.binary_cross_entropy`, "mean"
            divides by the number of bags. A bag of weight 0 is left out, even if its label is impossible.
        reduction: "none", one loss for each bag; "mean" or "sum" over bags.

    Returns:
        A scalar, or (...) or (b,) with reduction="none"; in the dtype of `logits`. A statement that only infinite
        logits make impossible has the loss +inf, with gradient zero.

    Raises:
        TypeError: a target that is none, tensors of the wrong kind.
        ValueError: shapes that do not fit; a label that no bag of that size can have, whatever the logits are: a count,
            an interval or a set without a number from 0 to the bag's size, or one that known labels contradict. Bags
            of weight 0 are not looked at.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.zeros(5)
        >>> offsets = torch.tensor([0, 4, 5])  # a bag of four, a bag of one
        >>> kofn.count_loss(logits, kofn.Exactly(torch.tensor([2, 1])), offsets=offsets, reduction="none").neg().exp()
        tensor([0.3750, 0.5000])
        >>> labels = torch.tensor([1, -1, -1, -1])  # the label of the first of four is known
        >>> kofn.count_loss(torch.zeros(4), kofn.Exactly(2), known=labels).neg().exp()  # 1/2, and then 3/8
        tensor(0.1875)
    """
    if not isinstance(target, Statement):
        raise TypeError(
            f"`target` must say something of the count: kofn.Exactly(counts), kofn.AtLeast(1), ...; "
            f"got {type(target).__name__}. Plain counts are kofn.Exactly(counts)."
        )
    dist: Any = target.distribution(logits, mask=mask, offsets=offsets, copies=copies, bag_effect=bag_effect)
    if weight is None and known is None and reduction in ("mean", "sum"):
        bags = 1 if reduction == "sum" else math.prod(dist.shape)
        total = target.weighted_loss(dist, 1.0 / bags if bags else math.nan)  # the mean of nothing, as in torch
        if not _require.is_finite(total):
            target.require_possible(dist, None)
        return total
    if known is None:
        losses = target.loss(dist)
    else:
        given, log_known = dist.with_logits(dist.logits.double()).condition(known)
        losses = (target.loss(given) - log_known).to(dist.logits.dtype)  # rounded once, to a shorter dtype
    factors = None if weight is None else dist.instance_layout.numbers("weight", weight).to(losses.dtype)
    if not _require.holds(losses.isfinite()):
        counted = None if factors is None else factors != 0
        target.require_possible(dist, counted)
        if known is not None:
            _require_agreement(target, dist, known, counted)
    if factors is not None:
        losses = losses.masked_fill(factors == 0, 0.0) * factors
    return reduce(losses, reduction)


def _require_agreement(target: Statement[Any], dist: Any, known: object, counted: Tensor | None) -> None:
    """Require known labels that some labels of the others make true, whatever the logits are."""
    possible = target.loss(dist.with_logits(torch.zeros_like(dist.logits)).condition(known)[0]).isfinite()
    wrong = ~possible if counted is None else ~possible & counted
    if not _require.holds(~wrong):
        raise ValueError(
            f"`known` must agree with the target; of bag {int(wrong.flatten().nonzero()[0])} known labels leave no "
            f"others that make the target true, such as two known positives and a count of 1. Check the order of the "
            f"instances, or leave out labels that are wrong: -1."
        )


def reduce(losses: Tensor, reduction: Reduction) -> Tensor:
    """The losses, their mean or their sum."""
    _require.option("reduction", reduction, ("none", "mean", "sum"))
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()
