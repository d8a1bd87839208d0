"""Counts that were published with noise, as for privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from kofn.counts import CountDistribution
from kofn.targets._target import Target


@dataclass(frozen=True, eq=False)
class Noisy(Target):
    """The count was published with noise added, as for privacy: observed = S + noise. In time n^1.5.

    The loss is the exact negative log-likelihood of what was observed, every count taken into account:

        -log sum_s P(S = s) P(noise = observed - s).

    Args:
        observed: (...) or (b,) published numbers, integers or not, or one number for all bags.
        noise: a distribution of `torch.distributions` on the real line (Normal, Laplace, ...), with a batch shape of
            one entry for each bag if scales differ; or any elementwise function from differences observed - s
            (float64) to log-probabilities, such as `kofn.targets.DiscreteLaplace`. Gradients reach its parameters,
            whose dtype is the precision of a torch distribution. With a density, the loss may
            be negative.

    Examples:
        >>> import torch, kofn
        >>> released = kofn.Noisy(2.6, torch.distributions.Laplace(0.0, 0.5))  # two fair coins: 0, 1 or 2 positives
        >>> density = (0.25 * torch.exp(torch.tensor(-5.2)) + 0.5 * torch.exp(torch.tensor(-3.2))
        ...            + 0.25 * torch.exp(torch.tensor(-1.2)))
        >>> torch.allclose(kofn.count_loss(torch.zeros(2), released), -density.log())
        True
    """

    observed: Tensor | float
    noise: Distribution | Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        _require_noise(self.noise)

    def loss(self, dist: CountDistribution) -> Tensor:
        counts, observed = dist.count_layout, dist.instance_layout.numbers("observed", self.observed)
        log_noise = self.noise.log_prob if isinstance(self.noise, Distribution) else self.noise
        if counts.offsets is not None and not getattr(self.noise, "batch_shape", ()):
            error = log_noise(counts.spread(observed) - counts.place())
        else:  # counts first, so that a noise with one scale for each bag broadcasts
            every = torch.arange(counts.longest, device=dist.logits.device)
            errors = log_noise(observed - every.reshape(-1, *(1 for _ in dist.shape)))
            error = counts.from_rows(errors.movedim(0, -1))
        return -counts.logsumexp(dist.double().log_probs() + error).to(dist.logits.dtype)


def _require_noise(value: object) -> None:
    """Require a distribution on the real line or a callable."""
    if isinstance(value, Distribution):
        if value.event_shape:
            raise ValueError(
                f"`noise` must be a distribution of one number; its event shape is {tuple(value.event_shape)}. "
                f"A noise scale for each bag is a batch shape: Normal(0.0, scales)."
            )
        if value.support is not constraints.real:
            raise ValueError(
                f"`noise` must be a distribution on all real numbers, because observed - s may be any of them; "
                f"{type(value).__name__} is not. Pass its log-pmf as a function that is -inf outside its support."
            )
    elif not callable(value):
        raise TypeError(
            f"`noise` must be a torch.distributions distribution or a function from differences to log-probabilities; "
            f"got {type(value).__name__}. For instance torch.distributions.Laplace(0.0, scale)."
        )
