"""What both distributions are made of: independent instances, given by their probabilities or their log-odds."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property

from kofn import _require
from kofn.counts import CountDistribution

Self = TypeVar("Self", bound="Instances")


class Instances(Distribution):
    """A distribution over something of independent Bernoulli labels, one for each instance of a bag."""

    # As for torch's Bernoulli. (constraints.independent of them, one event a bag, fails on an empty batch.)
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    has_enumerate_support = True
    total_count: Tensor

    def _keep(self, name: str, parameter: Tensor) -> None:
        """Hold the parameter that was given, "probs" or "logits"; the other one is computed when it is asked for."""
        self._name = name
        setattr(self, name, parameter)

    @lazy_property
    def logits(self) -> Tensor:
        """(..., n) log-odds, +-inf for probabilities of 1 and 0."""
        return log_odds(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """(..., n) probabilities."""
        return torch.sigmoid(self.logits)

    @property
    def _counts(self) -> CountDistribution:
        """The distribution of the number of positives, which answers in float64."""
        return CountDistribution(self.logits.double())

    @property
    def _param(self) -> Tensor:
        parameter: Tensor = getattr(self, self._name)
        return parameter

    @property
    def param_shape(self) -> torch.Size:
        """Shape of `probs` and `logits`: the batch, then the instances."""
        return self._param.shape

    def _expand_as(self, kind: type[Self], batch_shape: torch.Size, instance: Any) -> Self:
        """Fill a bare instance, or the one that a subclass brings, with this one's parameters, expanded."""
        new: Self = self._get_checked_instance(kind, instance)  # type: ignore[no-untyped-call]  # torch's
        new._keep(self._name, self._param.expand(*batch_shape, -1))
        new.total_count = self.total_count.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _one_total_count(self) -> int:
        """The total count of all bags, where they share one."""
        found = self.total_count.unique()
        if len(found) > 1:
            raise NotImplementedError(
                f"`enumerate_support` needs one total count for all bags; they range from {int(found[0])} to "
                f"{int(found[-1])}. Enumerate bag by bag."
            )
        return int(found[0]) if len(found) else self.param_shape[-1]


def given(probs: Any, logits: Any) -> tuple[str, Tensor]:
    """The one parameter of the two that was given, checked, and its name."""
    if (probs is None) == (logits is None):
        raise ValueError(
            f"`probs` or `logits` must be given, and not both; got {'neither' if probs is None else 'both'}. "
            f"Prefer logits: probabilities near 1 round."
        )
    name, value = ("logits", logits) if probs is None else ("probs", probs)
    tensor = _require.tensor(name, value)
    if not tensor.is_floating_point():
        raise TypeError(f"`{name}` must be floating point; got {tensor.dtype}. Convert with {name}.float().")
    if tensor.dim() == 0:
        raise ValueError(f"`{name}` must have at least one dimension, the instances; got a scalar. Use {name}[None].")
    return name, tensor


def log_odds(probs: Tensor) -> Tensor:
    """log(p / (1 - p)), +-inf at 1 and 0 with gradient zero there: the logits of certain instances are constants."""
    # The slope 1 / (p (1 - p)) is infinite at 0 and 1, and the engine's gradient of an infinite logit is 0: their
    # product would be NaN. (torch's probs_to_logits clamps instead, and a certain instance is no longer certain.)
    certain = (probs == 0) | (probs == 1)
    infinite = torch.where(probs == 1, torch.inf, -torch.inf).to(probs)
    return torch.where(certain, infinite, torch.logit(probs.masked_fill(certain, 0.5)))


def times_log(p: Tensor, log_q: Tensor) -> Tensor:
    """p log q with 0 log 0 = 0, in value and gradient; for q = 0 only where p = 0."""
    return p * log_q.masked_fill(log_q == -torch.inf, 0.0)
