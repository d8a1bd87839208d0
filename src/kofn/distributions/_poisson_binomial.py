"""The distribution of a count as a torch distribution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.nn.functional import pad
from torch.types import _size

from kofn.counts import CountDistribution
from kofn.distributions._instances import Instances, given, times_log


class PoissonBinomial(Instances):
    """The number of positives among n independent instances that differ in their probabilities.

        S = y_1 + ... + y_n,  y_i ~ Bernoulli(p_i) independent,  p_i = sigmoid(x_i).

    With equal probabilities it is `torch.distributions.Binomial`. Exact to rounding in every tail; differentiable.
    Kullback-Leibler divergences to and from another `PoissonBinomial` and `Binomial` of the same total count are
    registered with `torch.distributions.kl_divergence`.

    Args:
        probs: (..., n) probabilities in [0, 1]. Those of 0 and 1 are certain instances; their gradient is zero in all
            that needs log-odds.
        logits: (..., n) log-odds, +-inf for certain instances. Exactly one of `probs` and `logits`.
        mask: (..., n) bool, True where an instance exists; `total_count` counts these. A masked instance reads as a
            certain negative in `probs` and `logits`.
        validate_args: whether parameters and values are checked; torch's default if None.

    The batch shape is (...), the event shape (). Counts come, as from torch's distributions, in the dtype of the
    parameter (float16 holds integers up to 2,048 only, bfloat16 up to 256).

    Raises:
        TypeError: a parameter or mask of the wrong kind.
        ValueError: neither or both of `probs` and `logits`, a shape that does not fit, a value out of its range.

    Examples:
        >>> import torch, kofn
        >>> dist = kofn.PoissonBinomial(probs=torch.tensor([0.5, 0.5, 1.0]))
        >>> dist.log_prob(torch.arange(4)).exp()
        tensor([0.0000, 0.2500, 0.5000, 0.2500])
        >>> dist.mean, dist.variance, dist.mode, dist.cdf(torch.tensor(2.0))
        (tensor(2.), tensor(0.5000), tensor(2.), tensor(0.7500))
        >>> torch.distributions.kl_divergence(dist, torch.distributions.Binomial(3, torch.tensor(0.5)))
        tensor(0.2158)
    """

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, parameter = given(probs, logits)
        layout = CountDistribution(parameter, mask=mask).instance_layout
        self.total_count = layout.sizes
        self._keep(name, layout.present(parameter, 0.0 if name == "probs" else -torch.inf))
        super().__init__(parameter.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: _size, _instance: Any = None) -> PoissonBinomial:
        """The same distribution for more bags, without copying its parameters."""
        return self._expand_as(PoissonBinomial, torch.Size(batch_shape), _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Integers from 0 to the number of instances."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """E S = sum_i p_i."""
        return self.probs.sum(-1)

    @property
    def variance(self) -> Tensor:
        """var S = sum_i p_i (1 - p_i)."""
        return (self.probs * (1 - self.probs)).sum(-1)

    @property
    def mode(self) -> Tensor:
        """The most probable count; of two that are equal up to rounding the larger."""
        return self._counts.mode.to(self._param.dtype)

    def sample(self, sample_shape: _size = ()) -> Tensor:
        """Counts, sample shape + batch shape: labels are drawn and added up."""
        return self._counts.sample(sample_shape).to(self._param.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """log P(S = value); without validation -inf for what is no possible count."""
        if self._validate_args:
            self._validate_sample(value)
        counts = self._whole(value)
        if self._many(counts):
            result = self._pick(self._log_probs(), counts)
        else:
            result = CountDistribution(self.logits.expand(*counts.shape, -1)).log_prob(counts)
        return result.masked_fill(value != value.floor(), -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """P(S <= value); without validation for any real number."""
        if self._validate_args:
            self._validate_sample(value)
        counts = self._whole(value)
        if self._many(counts):
            return self._pick(self._log_probs().exp().cumsum(-1), counts)
        return CountDistribution(self.logits.expand(*counts.shape, -1)).cdf(counts)

    def entropy(self) -> Tensor:
        """-sum_s P(S = s) log P(S = s)."""
        log_probs = self._log_probs()
        return -times_log(log_probs.exp(), log_probs).sum(-1).to(self._param.dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All counts, (n + 1,) + batch shape; (n + 1, 1, ..., 1) unless `expand`."""
        counts = torch.arange(self._one_total_count() + 1, dtype=self._param.dtype, device=self._param.device)
        counts = counts.reshape(-1, *(1 for _ in self.batch_shape))
        return counts.expand(-1, *self.batch_shape) if expand else counts

    def _log_probs(self) -> Tensor:
        """log P(S = s) for s = -1, ..., n + 1, impossible ends included, in float64: batch shape + (n + 3,)."""
        return pad(self._counts.log_probs(), (1, 1), value=-torch.inf)

    def _whole(self, value: Tensor) -> Tensor:
        """Integers for the engine, one for each bag and sample, those out of the support just out of it."""
        counts = value.floor().nan_to_num(nan=-1.0).clamp(-1, self.param_shape[-1] + 1).long()
        return counts.expand(torch.broadcast_shapes(value.shape, self.batch_shape))

    def _many(self, counts: Tensor) -> bool:
        """Whether all counts, at the cost of about sqrt(n) counts of each bag, are cheaper than each count alone."""
        return counts.numel() ** 2 > self.param_shape[-1] * self.batch_shape.numel() ** 2

    def _pick(self, table: Tensor, counts: Tensor) -> Tensor:
        """Entries of a table over -1, ..., n + 1 for each bag, batch shape + (n + 3,), at so many counts of each."""
        # By one flat index, not by gather on an expanded table: its gradient would be a table for each count.
        bags = torch.arange(self.batch_shape.numel(), device=counts.device).reshape(self.batch_shape)
        return table.flatten()[bags * table.shape[-1] + counts + 1].to(self._param.dtype)
