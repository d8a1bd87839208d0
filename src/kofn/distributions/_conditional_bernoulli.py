"""The distribution of labels given how many of them are positive, as a torch distribution."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.nn.functional import logsigmoid, pad
from torch.types import _size

from kofn.counts import CountDistribution
from kofn.distributions._instances import Instances, given, times_log


class ConditionalBernoulli(Instances):
    """The labels of n independent instances, given that exactly k of them are positive.

        P(y | S = k) = prod_i p_i^{y_i} (1 - p_i)^{1 - y_i} / P(S = k)
                     = exp(sum_i y_i x_i) / sum_{|z| = k} exp(sum_i z_i x_i)      for |y| = k, else 0.

    What is left to learn of the labels of a bag whose count is known: `mean` are the posteriors that the gradient of
    the count's log-probability is made of. With k = 1 it is `torch.distributions.OneHotCategorical` of the logits.

    Args:
        total_count: k, an int for all bags or integers that broadcast with the batch.
        probs: (..., n) probabilities in [0, 1]. Those of 0 and 1 are certain instances; their gradient is zero.
        logits: (..., n) log-odds, +-inf for certain instances. Exactly one of `probs` and `logits`.
        validate_args: whether parameters and values are checked; torch's default if None. Unchecked, labels of
            another sum or an impossible `total_count` have log-probability -inf.

    The batch shape is that of `total_count` and the (...) of the parameter, broadcast; the event shape (n,).

    Raises:
        TypeError: a parameter or `total_count` of the wrong kind.
        ValueError: neither or both of `probs` and `logits`, shapes that do not fit, a `total_count` that cannot be.

    Examples:
        >>> import torch, kofn
        >>> dist = kofn.ConditionalBernoulli(2, logits=torch.tensor([0.0, 0.0, 0.0, torch.inf]))
        >>> dist.mean  # the last is sure, the other one may be any of three
        tensor([0.3333, 0.3333, 0.3333, 1.0000])
        >>> dist.log_prob(torch.tensor([0.0, 1.0, 0.0, 1.0])).exp()
        tensor(0.3333)
        >>> dist.sample((100,)).sum(-1).unique()
        tensor([2.])

    Reference:
        Chen, Dempster, Liu. Weighted finite population sampling to maximize entropy. Biometrika 81, 1994.
    """

    arg_constraints = {  # noqa: RUF012  # as in torch.distributions
        "total_count": constraints.dependent(is_discrete=True, event_dim=0),
        **Instances.arg_constraints,
    }

    def __init__(
        self,
        total_count: Tensor | int,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        name, parameter = given(probs, logits)
        batch_shape = parameter.shape[:-1]
        if isinstance(total_count, Tensor):
            try:
                batch_shape = torch.broadcast_shapes(total_count.shape, batch_shape)
            except RuntimeError:
                raise ValueError(
                    f"`total_count` must broadcast with the bags, shape {tuple(batch_shape)}; got shape "
                    f"{tuple(total_count.shape)}. Bags are all dimensions of `{name}` but the last."
                ) from None
        bags = CountDistribution(parameter.expand(*batch_shape, -1)).instance_layout
        self.total_count = bags.whole_numbers("total_count", total_count)
        self._keep(name, parameter.expand(*batch_shape, -1))
        super().__init__(batch_shape, parameter.shape[-1:], validate_args=validate_args)
        if self._validate_args:
            self._check_total_count()

    def _check_total_count(self) -> None:
        never, surely = (0.0, 1.0) if self._name == "probs" else (-torch.inf, torch.inf)
        least = (self._param == surely).sum(-1)
        most = (self._param != never).sum(-1)
        wrong = (self.total_count < least) | (self.total_count > most)
        if bool(wrong.any()):
            bag = tuple(wrong.nonzero()[0].tolist())
            where = f"bag {bag[0] if len(bag) == 1 else bag}" if bag else "the bag"
            raise ValueError(
                f"`total_count` must be a possible number of ones: no less than the instances that are surely one, no "
                f"more than those that may be; {where} has {int(least[bag])} and {int(most[bag])}, and total_count "
                f"{int(self.total_count[bag])}. Correct the count, or the logits of +-inf (probs of 0 and 1)."
            )

    def expand(self, batch_shape: _size, _instance: Any = None) -> ConditionalBernoulli:
        """The same distribution for more bags, without copying its parameters."""
        return self._expand_as(ConditionalBernoulli, torch.Size(batch_shape), _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Vectors of zeros and ones with sum `total_count`."""
        return _BinaryWithSum(self.total_count)

    @property
    def mean(self) -> Tensor:
        """u_i = P(y_i = 1 | S = k), which sum to k."""
        return CountDistribution(self.logits).posteriors(self.total_count)

    @property
    def variance(self) -> Tensor:
        """var(y_i | S = k) = u_i (1 - u_i)."""
        u = self.mean
        return u * (1 - u)

    @property
    def mode(self) -> Tensor:
        """Ones at the k largest logits, of equal ones at the first."""
        order = self.logits.argsort(dim=-1, descending=True, stable=True)
        rank = order.argsort(dim=-1)  # the inverse permutation
        return (rank < self.total_count.unsqueeze(-1)).to(self._param.dtype)

    def sample(self, sample_shape: _size = ()) -> Tensor:
        """Labels, sample shape + batch shape + (n,), with exactly `total_count` ones."""
        # The count is split down a binary tree. Of r ones in a node, its left half has j with probability
        #     P(left = j | left + right = r) ~ P(left = j) P(right = r - j),
        # the two from the engine, right in all tails; the nodes of a level are drawn at once. Then log2(n) levels
        # lead from k to the labels. Certain negatives fill up to a power of two.
        n = self.event_shape[0]
        width = 1 << max(n - 1, 0).bit_length()
        with torch.no_grad():
            logits = pad(self.logits.double(), (0, width - n), value=-torch.inf)
            counts = self.total_count.expand(self._extended_shape(sample_shape)[:-1]).unsqueeze(-1)
            while width > 1:
                width //= 2
                log_probs = CountDistribution(
                    logits.unflatten(-1, (-1, width))
                ).log_probs()  # (..., 2 nodes, width + 1)
                left = _split(counts, log_probs[..., 0::2, :], log_probs[..., 1::2, :])
                counts = torch.stack([left, counts - left], -1).flatten(-2)
            return counts[..., :n].to(self._param.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """log P(y = value | S = k), for labels (..., n)."""
        if self._validate_args:
            self._validate_sample(value)
        logits = self.logits.double()
        # P(y) / P(S = k), not the quotient of exponentials: no large terms that cancel, right at infinite logits.
        log_joint = logsigmoid(torch.where(value == 1, logits, -logits)).sum(-1)
        log_count = self._counts.log_prob(self.total_count)
        possible = self.support.check(value) & (log_joint > -torch.inf)  # then the count is possible too
        return torch.where(possible, log_joint - log_count, -torch.inf).to(self._param.dtype)

    def entropy(self) -> Tensor:
        """H = log P(S = k) - sum_i [u_i log p_i + (1 - u_i) log(1 - p_i)], u the mean."""
        # log P(y | S = k) is affine in y on its support: its expectation is its value at the expectation of y.
        logits = self.logits.double()
        u = self._counts.posteriors(self.total_count)
        log_joint = times_log(u, logsigmoid(logits)) + times_log(1 - u, logsigmoid(-logits))
        return (self._counts.log_prob(self.total_count) - log_joint.sum(-1)).to(self._param.dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All n choose k label vectors, (n choose k,) + batch shape + (n,); batch dimensions of 1 unless `expand`."""
        n, k = self.event_shape[0], self._one_total_count()
        ones = torch.tensor(list(combinations(range(n), k)), dtype=torch.int64, device=self._param.device)
        size = math.comb(n, k)
        labels = self._param.new_zeros(size, n).scatter_(1, ones.reshape(size, k), 1.0)
        labels = labels.reshape(size, *(1 for _ in self.batch_shape), n)
        return labels.expand(size, *self.batch_shape, n) if expand else labels


class _BinaryWithSum(constraints.Constraint):
    """Vectors of zeros and ones with a given sum."""

    is_discrete = True
    event_dim = 1

    def __init__(self, total: Tensor) -> None:
        self.total = total
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """Which vectors are so."""
        return ((value == 0) | (value == 1)).all(-1) & ((value == 1).sum(-1) == self.total)

    def __repr__(self) -> str:
        return f"BinaryWithSum(total={self.total})"


def _split(counts: Tensor, log_left: Tensor, log_right: Tensor) -> Tensor:
    """Draw how many of `counts` (..., nodes) fall to the left, from log-probabilities (..., nodes, half + 1)."""
    half = log_left.shape[-1] - 1
    right = counts.unsqueeze(-1) - torch.arange(half + 1, device=counts.device)
    log_weights = log_left + log_right.expand(right.shape).gather(-1, right.clamp(0, half))
    log_weights = log_weights.masked_fill((right < 0) | (right > half), -torch.inf)
    # Inversion: the first whose cumulative weight exceeds a uniform part of the whole, never one of weight zero.
    cumulative = (log_weights - log_weights.amax(-1, keepdim=True)).exp().cumsum(-1)
    uniform = torch.rand(counts.shape, dtype=cumulative.dtype, device=counts.device).unsqueeze(-1)
    return (cumulative <= uniform * cumulative[..., -1:]).sum(-1)
