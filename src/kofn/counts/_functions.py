"""The four questions that are asked most, as functions: each is one line on `CountDistribution`."""

from __future__ import annotations

from torch import Tensor

from kofn.counts._distribution import CountDistribution, Counts


def log_count_prob(
    logits: Tensor, counts: Counts, *, mask: Tensor | None = None, offsets: Tensor | None = None
) -> Tensor:
    """Log-probability that exactly so many instances of each bag are positive.

    With labels y_i ~ Bernoulli(sigmoid(x_i)), independent, and S = y_1 + ... + y_n,

        log P(S = s) = log sum_{y in {0,1}^n, |y| = s} prod_i sigmoid(x_i)^{y_i} sigmoid(-x_i)^{1 - y_i},

    exact to rounding, in time and memory linear in n. Its gradient is a posterior minus a prior:

        d log P(S = s) / d x_i = P(y_i = 1 | S = s) - sigmoid(x_i).

    Args:
        logits: (..., n) log-odds, float16, bfloat16, float32 or float64; (m,) with `offsets`. The work is done in
            float64 whatever the dtype. A logit of +inf is a certain positive, -inf a certain negative.
        counts: (...) or (b,) of any integer dtype, or one int for all bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.

    Returns:
        (...) or (b,), in the dtype of `logits`. A count that is impossible (negative, above the bag's size, or at
        odds with infinite logits) gives -inf with gradient zero; a NaN among a bag's logits gives NaN.

    Raises:
        TypeError: a tensor of the wrong kind.
        ValueError: shapes that do not fit, both `mask` and `offsets`, offsets that do not run from 0 to m.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.zeros(4, dtype=torch.float64)  # four fair coins
        >>> kofn.log_count_prob(logits, 2).exp()
        tensor(0.3750, dtype=torch.float64)
        >>> kofn.log_count_prob(torch.zeros(5), torch.tensor([2, 1]), offsets=torch.tensor([0, 4, 5])).exp()
        tensor([0.3750, 0.5000])

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023. (The quantity; their algorithm takes n s steps.)
    """
    return CountDistribution(logits, mask=mask, offsets=offsets).log_prob(counts)


def log_count_between(
    logits: Tensor,
    low: Counts,
    high: Counts,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Tensor:
    """Log-probability that the number of positives in each bag lies in an interval.

        log P(low <= S <= high) = log sum_{s = low..high} P(S = s),

    exact to rounding, in time linear in n however wide the interval is. The gradient is

        d log P(low <= S <= high) / d x_i = P(y_i = 1 | low <= S <= high) - sigmoid(x_i).

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        low: (...) or (b,) smallest allowed counts, or one int for all bags. Below 0 is as good as 0.
        high: (...) or (b,) largest allowed counts, included, or one int. Above the bag's size is as good as the size.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.

    Returns:
        (...) or (b,), in the dtype of `logits`. An empty interval gives -inf with gradient zero, an interval that
        allows every count 0 with gradient zero; a NaN among a bag's logits gives NaN.

    Raises:
        TypeError, ValueError: as for `log_count_prob`.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.zeros(4, dtype=torch.float64)
        >>> kofn.log_count_between(logits, 1, 4).exp()  # at least one of four fair coins
        tensor(0.9375, dtype=torch.float64)
    """
    return CountDistribution(logits, mask=mask, offsets=offsets).log_prob_between(low, high)


def log_count_distribution(logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
    """Log-probabilities of every number of positives in each bag.

        log P(S = s),  s = 0, ..., n,

    each right to rounding, in tails of any depth, in time O(n log^2 n) with the C++ core, O(n^1.5) without it. The
    gradient of a weighted sum of them, in time O(n^1.5) if all of them have weight, is

        d sum_s g_s log P(S = s) / d x_i = sum_s g_s (P(y_i = 1 | S = s) - sigmoid(x_i)).

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.

    Returns:
        (..., n + 1), with -inf past a bag's size; ragged: flat (m + b,), bag j from ``offsets[j] + j`` to
        ``offsets[j + 1] + j`` included. In the dtype of `logits`; a NaN among a bag's logits makes its row NaN.

    Raises:
        TypeError, ValueError: as for `log_count_prob`.

    Examples:
        >>> import torch, kofn
        >>> logits = torch.tensor([0.0, 0.0, 7.0])
        >>> mask = torch.tensor([True, True, False])
        >>> kofn.log_count_distribution(logits, mask=mask).exp()
        tensor([0.2500, 0.5000, 0.2500, 0.0000])
    """
    return CountDistribution(logits, mask=mask, offsets=offsets).log_probs()


def count_posteriors(
    logits: Tensor, counts: Counts, *, mask: Tensor | None = None, offsets: Tensor | None = None
) -> Tensor:
    """Probability of each instance to be positive, given the number of positives in its bag.

        P(y_i = 1 | S = s) = sigmoid(x_i) + d log P(S = s) / d x_i.

    They lie in [0, 1] and sum to the count. In time linear in n.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        counts: (...) or (b,) of any integer dtype, or one int for all bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.

    Returns:
        The shape and dtype of `logits`; 0 where there is no instance. An impossible count says nothing of the
        labels: the probabilities without it, sigmoid(x_i), come back. NaN in a bag with a NaN.

    Raises:
        TypeError, ValueError: as for `log_count_prob`.

    Examples:
        >>> import torch, kofn
        >>> kofn.count_posteriors(torch.tensor([3.0, 3.0, 3.0, 3.0]), 1)  # four alike, one positive
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return CountDistribution(logits, mask=mask, offsets=offsets).posteriors(counts)
