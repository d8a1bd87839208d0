"""The most frequent questions, as functions: each is one line on `ClassCountDistribution`."""

from __future__ import annotations

from torch import Tensor

from kofn.classes._class_distribution import ClassCountDistribution
from kofn.classes._joint import Method


def log_class_count_prob(
    logits: Tensor,
    counts: Tensor,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    method: Method = "auto",
) -> Tensor:
    """Log-probability that so many instances of each bag are of each class, jointly.

    With labels y_i ~ Categorical(softmax(x_i)), independent, and K_c the number of i with y_i = c,

        log P(K_1 = k_1, ..., K_C = k_C) = log sum_{y: counts k} prod_i softmax(x_i)_{y_i},

    in tails of any depth. Its gradient is a posterior less a prior:

        d log P(K = k) / d x_ic = P(y_i = c | K = k) - softmax(x_i)_c.

    Small bags, and large ones of two to four classes, are exact to rounding. Beyond `kofn.classes.BUDGET` it is the
    local limit: the Gaussian approximation under the tilt that makes the counts the mean, with its first Edgeworth term
    and the exact distribution of each class by itself to correct it. With five or more of each class its error falls
    like 1 / n^2: 1e-3 for bags of 50, 1e-5 for bags of 500. With counts of 0 to 4 it is about 1e-3, with confident
    predictions up to 0.1. It is linear in the bag's size.

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the classes, float16, bfloat16, float32 or float64;
            (m, C) with `offsets`. The work is done in float64 whatever the dtype. -inf is an impossible class, +inf a
            certain one.
        counts: (..., C) or (b, C) integers of any integer dtype, or (C,) for all bags. They sum to the bag's size.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        method: "exact" computes the exact probability however large the bag is, "limit" the local limit however small.
            "auto" is exact up to a million `kofn.classes.joint_cells`, a few milliseconds, and the limit beyond.

    Returns:
        (...) or (b,), in the dtype of `logits`. Counts that are impossible (negative, not summing to the bag's size, or
        at odds with infinite logits) give -inf with gradient zero; a NaN among a bag's logits gives NaN.

    Raises:
        TypeError: a tensor of the wrong kind.
        ValueError: shapes that do not fit, both `mask` and `offsets`, offsets that do not run from 0 to m;
            another `method`; logits beyond 1e5 that make possible counts less likely than e^-10,000,000.
        MemoryError: method="exact" and a table that no memory holds.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.zeros(4, 3, dtype=torch.float64)  # four instances, three classes, all equally likely
        >>> kofn.log_class_count_prob(logits, torch.tensor([2, 1, 1])).exp()  # 12 of the 81 outcomes
        tensor(0.1481, dtype=torch.float64)

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023. (For two classes; several are named as future work.)
    """
    return ClassCountDistribution(logits, mask=mask, offsets=offsets).log_prob(counts, method=method)


def class_count_posteriors(
    logits: Tensor,
    counts: Tensor,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    method: Method = "auto",
) -> Tensor:
    """Probability of each class for each instance, given the counts of all classes in its bag.

        P(y_i = c | K = k) = softmax(x_i)_c + d log P(K = k) / d x_ic.

    They sum to 1 over the classes, and to k_c over the instances of the bag.

    Args:
        logits: (..., n, C) unnormalised log-probabilities of the classes; (m, C) with `offsets`.
        counts: (..., C) or (b, C) integers that sum to the bag's size, or (C,) for all bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        method: as for `log_class_count_prob`.

    Returns:
        The shape and dtype of `logits`; 0 where there is no instance. Impossible counts say nothing of the labels: the
        probabilities without them, softmax(x_i), come back. NaN in a bag with a NaN.

    Raises:
        TypeError, ValueError: as for `log_class_count_prob`.

    Examples:
        >>> import torch, kofn
        >>> kofn.class_count_posteriors(torch.zeros(4, 3), torch.tensor([2, 1, 1]))[0]  # four alike
        tensor([0.5000, 0.2500, 0.2500])
    """
    return ClassCountDistribution(logits, mask=mask, offsets=offsets).posteriors(counts, method=method)
