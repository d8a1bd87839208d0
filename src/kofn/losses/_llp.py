"""Learning from label proportions: the count loss, then the baselines of the paper."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn import _require
from kofn.counts import CountDistribution, Counts
from kofn.losses._count import Reduction, count_loss, reduce
from kofn.targets import Exactly


def llp_loss(
    logits: Tensor,
    counts: Counts,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Count loss for bags of which the number of positives is known.

        loss_j = -log P(S_j = count_j).

    For bags of one instance this is the cross-entropy.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        counts: (...) or (b,) integers from 0 to the bag's size, or one int for all bags. For proportions:
            ``kofn.count_loss(logits, kofn.targets.from_proportions(proportions, sizes))``.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        reduction: "none", "mean" or "sum" over bags.

    Returns:
        A scalar, or (...) or (b,) with reduction="none"; in the dtype of `logits`.

    Raises:
        TypeError: counts that are not of an integer dtype.
        ValueError: counts below 0 or above the bag's size; shapes that do not fit.

    Examples:
        >>> import torch, kofn
        >>> x, y = torch.tensor([[0.5], [-2.0]]), torch.tensor([1, 0])
        >>> cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits(x[:, 0], y.float())
        >>> torch.allclose(kofn.losses.llp_loss(x, y), cross_entropy)
        True

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """
    return count_loss(logits, Exactly(counts), mask=mask, offsets=offsets, reduction=reduction)


def proportion_loss(
    logits: Tensor,
    proportions: Tensor | float,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Proportion Loss: the cross-entropy between a bag's proportion and the mean of its predicted probabilities.

        mean_j = (1 / n) sum_i sigmoid(x_i),
        loss_j = -y_j log mean_j - (1 - y_j) log(1 - mean_j),

    from logits, by log-sums: the mean is one of probabilities, never of their logarithms.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        proportions: (...) or (b,) from 0 to 1, or one number for all bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        reduction: "none", "mean" or "sum" over bags.

    Returns:
        A scalar, or (...) or (b,) with reduction="none"; in the dtype of `logits`. NaN for an empty bag, which has no
        mean.

    Raises:
        ValueError: proportions outside [0, 1]; shapes that do not fit.

    Examples:
        >>> import torch, kofn
        >>> kofn.losses.proportion_loss(torch.logit(torch.tensor([0.1, 0.5])), 1.0).neg().exp()
        tensor(0.3000)

    Reference:
        Tsai, Lin. Learning from Label Proportions with Consistency Regularization. ACML 2020.
    """
    dist = CountDistribution(logits, mask=mask, offsets=offsets)
    y = _require.fractions("proportions", dist.instance_layout.numbers("proportions", proportions))
    positive, negative = mean_log_probs(dist)
    # 0 log 0 = 0: what is not wanted says nothing, even where its logarithm is infinite.
    losses = -y * positive.masked_fill(y == 0, 0.0) - (1 - y) * negative.masked_fill(y == 1, 0.0)
    return reduce(losses.to(logits.dtype), reduction)


def mean_log_probs(dist: CountDistribution) -> tuple[Tensor, Tensor]:
    """Logarithms of the mean probability of each bag's instances to be positive, and negative, in float64."""
    layout = dist.instance_layout
    x = layout.present(dist.logits.double(), 0.0)
    size = dist.sizes.double().log()
    return layout.logsumexp(logsigmoid(x)) - size, layout.logsumexp(logsigmoid(-x)) - size


def pair_bags(proportions: Tensor) -> Tensor:
    """Pair the bag of the largest proportion with that of the smallest, the second largest with the second smallest...

    No other pairing has a larger sum of squared differences. Pairs of equal proportions and the middle one of an odd
    number of bags are left out.

    Args:
        proportions: (b,) from 0 to 1.

    Returns:
        (p, 2) int64, bags by index, the richer of each pair first.

    Examples:
        >>> import torch, kofn
        >>> kofn.losses.pair_bags(torch.tensor([0.2, 0.9, 0.5, 0.1, 0.6]))
        tensor([[1, 3],
                [4, 0]])
    """
    pairs = _opposite(_require.tensor("proportions", proportions))
    return pairs[proportions[pairs[:, 0]] > proportions[pairs[:, 1]]]


def _opposite(proportions: Tensor) -> Tensor:
    """The pairs of `pair_bags`, those of equal proportions too: (b // 2, 2)."""
    order = proportions.argsort(stable=True)
    half = len(order) // 2
    return torch.stack([order.flip(0)[:half], order[:half]], -1)


def mutual_contamination_loss(
    logits: Tensor,
    proportions: Tensor,
    *,
    pairs: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """LMMCM: an unbiased estimate of the balanced logistic risk from pairs of bags with different proportions.

    A pair of bags with proportions r > p is a sample of two mixtures of the classes. Solving for the classes, and with
    means over each bag,

        risk = 1/2 mean_rich [ (1 - p) l+ - p l- ] / (r - p) + 1/2 mean_poor [ r l- - (1 - r) l+ ] / (r - p),
        l+ = softplus(-x),  l- = softplus(x),

    has the expectation (E[l+ | positive] + E[l- | negative]) / 2. The loss is the mean over pairs with weights
    proportional to (r - p)^2. It may be negative.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        proportions: (...) or (b,) from 0 to 1.
        pairs: (p, 2) int64, bags by index (over all leading dimensions, flattened), the richer first; by default
            ``pair_bags(proportions)``.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        reduction: "mean", the loss; "sum", it times the number of pairs; "none", (p,), of which it is the mean. A pair
            of equal proportions adds nothing.

    Returns:
        A scalar, or (p,) with reduction="none"; in the dtype of `logits`.

    Raises:
        ValueError: no pair of bags with different proportions; shapes that do not fit.

    Examples:
        >>> import torch, kofn
        >>> x = torch.tensor([[3.0], [-1.0]])  # two bags of one, of known labels: the balanced cross-entropy
        >>> loss = kofn.losses.mutual_contamination_loss(x, torch.tensor([1.0, 0.0]))
        >>> torch.allclose(loss, torch.nn.functional.softplus(torch.tensor([-3.0, -1.0])).mean())
        True

    Reference:
        Scott, Zhang. Learning from Label Proportions: A Mutual Contamination Framework. NeurIPS 2020.
    """
    dist = CountDistribution(logits, mask=mask, offsets=offsets)
    layout = dist.instance_layout
    y = _require.fractions("proportions", layout.numbers("proportions", proportions)).flatten()
    pairs = require_pairs(_opposite(y) if pairs is None else pairs, y)
    x = layout.present(logits.double(), 0.0)
    as_positive = (layout.sum(-logsigmoid(x)) / dist.sizes).flatten()[pairs]
    as_negative = (layout.sum(-logsigmoid(-x)) / dist.sizes).flatten()[pairs]
    rich, poor = y[pairs].unbind(-1)
    gap = rich - poor
    # The weight gap^2 cancels the risk's 1 / gap: nothing is divided by a small difference, and a pair of equal
    # proportions weighs nothing.
    at_rich = (1 - poor) * as_positive[:, 0] - poor * as_negative[:, 0]
    at_poor = rich * as_negative[:, 1] - (1 - rich) * as_positive[:, 1]
    losses = 0.5 * gap * (at_rich + at_poor) * len(pairs) / gap.square().sum()
    return reduce(losses.to(logits.dtype), reduction)


def require_pairs(value: object, proportions: Tensor) -> Tensor:
    """Require pairs of bags, (p, 2), the richer first, of which one at least has two different proportions."""
    pairs = _require.tensor("pairs", value)
    bags = len(proportions)
    if pairs.dtype != torch.int64 or pairs.dim() != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"`pairs` must be int64 of shape (pairs, 2), the richer bag first; got {pairs.dtype} of shape "
            f"{tuple(pairs.shape)}. kofn.losses.pair_bags(proportions) makes them."
        )
    if not _require.holds((pairs >= 0) & (pairs < bags)):
        raise ValueError(f"`pairs` must index bags 0 to {bags - 1}; got {int(pairs.min())} to {int(pairs.max())}.")
    if not len(pairs) or not _require.holds((proportions[pairs[:, 0]] != proportions[pairs[:, 1]]).any()):
        raise ValueError(
            f"`pairs` must hold at least one pair of bags with different proportions; got none from {bags} bags. "
            f"Equal proportions do not distinguish the classes; put more bags into a batch."
        )
    return pairs
