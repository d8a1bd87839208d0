"""What the tests of the two distributions share: data, enumeration, comparisons."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from kofn import CountDistribution

INF = math.inf
CERTAIN = torch.tensor([0.0, INF, -0.5, -INF, 2.0], dtype=torch.float64)
WRONG: Any = [0.5]


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


def all_labels(n: int) -> Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=n)), dtype=torch.float64).reshape(2**n, n)


def enumerated(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """All labels with k ones (c, n) and their log-probabilities given the count, by the definition."""
    labels = all_labels(len(logits))
    labels = labels[labels.sum(-1) == k]
    joint = torch.where(labels == 1, logits, -logits).sigmoid().log().sum(-1)
    return labels, joint - joint.logsumexp(0)


def fits(found: Tensor, expected: Tensor) -> bool:
    """Pearson's test that frequencies are as expected, at a level that a right sampler fails once in 10,000 seeds."""
    return bool(stats.chisquare(found.double(), expected / expected.sum() * found.sum()).pvalue > 1e-4)


def close(actual: Tensor, expected: Tensor | float, tolerance: float = 1e-11) -> None:
    expected = torch.as_tensor(expected, dtype=actual.dtype).expand(actual.shape)
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def log_prob_and_gradient(dist: CountDistribution, counts: Any) -> tuple[Tensor, Tensor]:
    """log P(S = count) of each bag and the gradient of their sum by the logits."""
    x = dist.logits.detach().requires_grad_()
    value = dist.with_logits(x).log_prob(counts)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient
