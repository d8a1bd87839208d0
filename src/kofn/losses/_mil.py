"""Multiple instance learning: the count loss, then the pooling baselines."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn import _require
from kofn.counts import CountDistribution
from kofn.losses._count import Reduction, reduce
from kofn.losses._llp import mean_log_probs


def mil_loss(
    logits: Tensor,
    bag_labels: Tensor | int,
    *,
    positive_weight: float = 1.0,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Count loss for bags of which it is known whether they have a positive.

        loss_j = -w y_j log P(S_j >= 1) - (1 - y_j) log P(S_j = 0),

    the cross-entropy of the probability of at least one positive, in closed form from logits, for bags of any size:
    log P(S = 0) = -sum_i softplus(x_i), log P(S >= 1) = log(1 - P(S = 0)) without cancellation or underflow.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        bag_labels: (...) or (b,), 1 if at least one instance is positive, 0 if none is; any dtype.
        positive_weight: w, the factor for positive bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        reduction: "none", "mean" or "sum" over bags.

    Returns:
        A scalar, or (...) or (b,) with reduction="none"; in the dtype of `logits`. An empty bag with label 1 is
        impossible: +inf, with gradient zero.

    Raises:
        ValueError: labels other than 0 and 1; shapes that do not fit.

    Examples:
        >>> import torch, kofn
        >>> kofn.losses.mil_loss(torch.zeros(2, 3), torch.tensor([1, 0]), reduction="none").neg().exp()
        tensor([0.8750, 0.1250])

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """
    dist = CountDistribution(logits, mask=mask, offsets=offsets)
    wide = dist.double()
    log_none, log_any = wide.log_prob(0), wide.log_prob_between(1, None)
    return _cross_entropy(dist, bag_labels, log_any, log_none, positive_weight, reduction)


def pooled_bag_loss(
    logits: Tensor,
    bag_labels: Tensor | int,
    *,
    pool: Literal["max", "mean", "logsumexp"] = "max",
    positive_weight: float = 1.0,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Cross-entropy of a bag's label and its instances' pooled prediction.

        loss_j = -w y_j log P_j - (1 - y_j) log(1 - P_j),
        "max", Instance-Max:  P = sigmoid(max_i x_i) = max_i p_i,
        "mean":               P = (1 / n) sum_i p_i,
        "logsumexp":          P = sigmoid(log((1 / n) sum_i exp(x_i))), between the two.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        bag_labels: (...) or (b,), 1 if at least one instance is positive, 0 if none is; any dtype.
        pool: how instances make a bag.
        positive_weight: w, the factor for positive bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        reduction: "none", "mean" or "sum" over bags.

    Returns:
        A scalar, or (...) or (b,) with reduction="none"; in the dtype of `logits`. An empty bag has P = 0 with "max",
        and no mean: NaN with the others.

    Raises:
        ValueError: labels other than 0 and 1, an unknown pool, shapes that do not fit.

    Examples:
        >>> import torch, kofn
        >>> x = torch.logit(torch.tensor([0.1, 0.5]))
        >>> [round(kofn.losses.pooled_bag_loss(x, 1, pool=p).neg().exp().item(), 4) for p in ("max", "mean")]
        [0.5, 0.3]

    References:
        Wang, Yan, Tang, Bai, Liu. Revisiting Multiple Instance Neural Networks. 2018 (max and mean).
        Pinheiro, Collobert. From Image-level to Pixel-level Labeling with Convolutional Networks. 2015 (log-sum-exp).
    """
    _require.option("pool", pool, ("max", "mean", "logsumexp"))
    dist = CountDistribution(logits, mask=mask, offsets=offsets)
    if pool == "mean":
        log_positive, log_negative = mean_log_probs(dist)
    else:
        x, layout = logits.double(), dist.instance_layout
        pooled = layout.max(x) if pool == "max" else layout.logsumexp(x) - dist.sizes.double().log()
        log_positive, log_negative = logsigmoid(pooled), logsigmoid(-pooled)
    return _cross_entropy(dist, bag_labels, log_positive, log_negative, positive_weight, reduction)


def _cross_entropy(
    dist: CountDistribution,
    bag_labels: Tensor | int,
    log_positive: Tensor,
    log_negative: Tensor,
    positive_weight: float,
    reduction: Reduction,
) -> Tensor:
    """-w y log P - (1 - y) log(1 - P), where the term that is not wanted says nothing, even if it is infinite."""
    positive = _require_bag_labels(bag_labels, dist)
    losses = torch.where(positive, -positive_weight * log_positive, -log_negative)
    return reduce(losses.to(dist.logits.dtype), reduction)


def _require_bag_labels(value: object, dist: CountDistribution) -> Tensor:
    """Require one label for each bag, 0 or 1 of any dtype: bool."""
    number = value.long() if isinstance(value, Tensor) and value.dtype == torch.bool else value
    labels = dist.instance_layout.numbers("bag_labels", number)
    if not _require.holds((labels == 0) | (labels == 1)):
        odd = float(labels[(labels != 0) & (labels != 1)][0])
        raise ValueError(
            f"`bag_labels` must be 0 (no positive in the bag) or 1 (at least one); got {odd:g}. "
            f"Labels of -1 and 1 convert with (labels > 0); proportions go to kofn.losses.llp_loss."
        )
    return labels == 1
