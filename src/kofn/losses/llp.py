"""Learning from label proportions: the count loss, then the baselines of the paper."""

from __future__ import annotations

from torch import Tensor, stack
from torch.nn.functional import logsigmoid

from kofn import _checks
from kofn._segments import Segments
from kofn.losses.count import Reduction, count_loss, reduce
from kofn.targets import Exactly


def llp_loss(
    logits: Tensor,
    counts: Tensor | int,
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
        counts: (...) or (b,) whole numbers from 0 to the bag's size, or one int for all bags. For proportions:
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
    bags = Segments(logits, mask, offsets)
    y = _checks.fractions("proportions", _checks.real_per_bag("proportions", proportions, logits, bags.shape))
    positive, negative = mean_log_probs(logits, bags)
    # 0 log 0 = 0: what is not wanted says nothing, even where its logarithm is infinite.
    losses = -y * positive.masked_fill(y == 0, 0.0) - (1 - y) * negative.masked_fill(y == 1, 0.0)
    return reduce(losses.to(logits.dtype), reduction)


def mean_log_probs(logits: Tensor, bags: Segments) -> tuple[Tensor, Tensor]:
    """Logarithms of the mean probability of each bag's instances to be positive, and negative, in float64."""
    x = bags.present(logits.double())
    size = bags.sizes.double().log()
    return bags.logsumexp(logsigmoid(x)) - size, bags.logsumexp(logsigmoid(-x)) - size


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
    order = _checks.is_tensor("proportions", proportions).argsort(stable=True)
    half = len(order) // 2
    pairs = stack([order.flip(0)[:half], order[:half]], -1)
    return pairs[proportions[pairs[:, 0]] > proportions[pairs[:, 1]]]


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
        reduction: "mean", the loss; "sum", it times the number of pairs; "none", (p,), of which it is the mean.

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
    bags = Segments(logits, mask, offsets)
    y = _checks.fractions("proportions", _checks.real_per_bag("proportions", proportions, logits, bags.shape)).flatten()
    pairs = _checks.bag_pairs(pair_bags(y) if pairs is None else pairs, len(y))
    x = bags.present(logits.double())
    sizes = bags.sizes
    as_positive = (bags.sum(-logsigmoid(x)) / sizes).flatten()[pairs]
    as_negative = (bags.sum(-logsigmoid(-x)) / sizes).flatten()[pairs]
    rich, poor = y[pairs].unbind(-1)
    gap = rich - poor
    # The weight gap^2 cancels the risk's 1 / gap: nothing is divided by a small difference.
    at_rich = (1 - poor) * as_positive[:, 0] - poor * as_negative[:, 0]
    at_poor = rich * as_negative[:, 1] - (1 - rich) * as_positive[:, 1]
    losses = 0.5 * gap * (at_rich + at_poor) * len(pairs) / gap.square().sum()
    return reduce(losses.to(logits.dtype), reduction)
