"""Divergences."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from distribution_cases import INF, close, normal
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, kl_divergence

from kofn import PoissonBinomial


def divergence(p: Any, q: Any) -> Tensor:
    """sum_s p(s) log(p(s) / q(s)) by the definition, for laws that do not underflow."""
    values = torch.arange(int(p.total_count.max()) + 1, dtype=torch.float64)
    values = values.reshape(-1, *(1 for _ in p.batch_shape))
    log_p, log_q = p.log_prob(values), q.log_prob(values)
    total: Tensor = (log_p.exp() * (log_p - log_q)).sum(0)
    return total


def test_divergences_are_sums_over_counts() -> None:
    p, q = PoissonBinomial(logits=normal(3, 6, seed=1)), PoissonBinomial(normal(3, 6, seed=2).sigmoid())
    for binomial in (Binomial(6, logits=normal(3)), Binomial(6, normal(3).sigmoid())):
        close(kl_divergence(p, binomial), divergence(p, binomial))
        close(kl_divergence(binomial, p), divergence(binomial, p))
    close(kl_divergence(p, q), divergence(p, q))
    close(kl_divergence(p, p), 0.0, 1e-14)
    shared = Binomial(6, torch.tensor(0.3, dtype=torch.float64))
    assert kl_divergence(p, shared).shape == (3,)
    assert kl_divergence(PoissonBinomial(logits=torch.zeros(6)), shared).dtype == torch.float64
    assert kl_divergence(PoissonBinomial(logits=torch.zeros(6)), Binomial(6, torch.tensor(0.5))).dtype == torch.float32


@pytest.mark.parametrize("n", [1, 12, 5000])
@pytest.mark.parametrize("name", ["probs", "logits"])
def test_equal_probabilities_have_the_divergences_of_binomials(n: int, name: str) -> None:
    # n KL(Bernoulli || Bernoulli), however far the pmf underflows
    a, b = torch.tensor([0.5, 0.9], dtype=torch.float64), torch.tensor([0.01, 0.6], dtype=torch.float64)
    p, q = PoissonBinomial(a[:, None].expand(2, n)), PoissonBinomial(b[:, None].expand(2, n))
    binomial_p, binomial_q = (Binomial(n, x) if name == "probs" else Binomial(n, logits=x.logit()) for x in (a, b))
    expected = n * kl_divergence(Bernoulli(a), Bernoulli(b))
    close(expected, kl_divergence(binomial_p, binomial_q), 1e-9)
    for left, right in ((p, q), (p, binomial_q), (binomial_p, q)):
        close(kl_divergence(left, right), expected, 1e-9)


def test_divergence_at_certain_instances() -> None:
    half = torch.full((3,), 0.5, dtype=torch.float64)
    sure = PoissonBinomial(torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True))
    free = PoissonBinomial(half.requires_grad_())
    close(kl_divergence(sure, free), -math.log(3 / 8))
    assert kl_divergence(free, sure) == INF
    close(kl_divergence(sure, sure), 0.0)
    none = Binomial(3, torch.tensor(0.0, dtype=torch.float64))
    assert kl_divergence(free, none) == INF
    close(kl_divergence(none, free), 3 * math.log(2))
    for p, q in ((sure, free), (free, sure), (free, none), (none, free)):
        gradients = torch.autograd.grad(
            kl_divergence(p, q), [free.probs, sure.probs], allow_unused=True, retain_graph=True
        )
        assert all(gradient is None or bool(gradient.isfinite().all()) for gradient in gradients)


def test_divergence_of_masked_bags() -> None:
    mask = torch.tensor([[True, False, True, True], [True, False, False, True]])
    p = PoissonBinomial(logits=normal(2, 4), mask=mask)
    sizes = torch.tensor([3, 2])
    binomial = Binomial(sizes, logits=normal(2, seed=5))
    short = PoissonBinomial(logits=normal(2, 3), mask=torch.tensor([[True, True, True], [True, True, False]]))
    for bag in range(2):
        alone = PoissonBinomial(logits=p.logits[bag][mask[bag]])
        n = int(sizes[bag])
        close(kl_divergence(p, binomial)[bag], kl_divergence(alone, Binomial(n, logits=binomial.logits[bag])))
        close(kl_divergence(binomial, p)[bag], kl_divergence(Binomial(n, logits=binomial.logits[bag]), alone))
        close(kl_divergence(p, short)[bag], kl_divergence(alone, PoissonBinomial(logits=short.logits[bag, :n])))
    with pytest.raises(ValueError, match=r"same total count in a Kullback-Leibler divergence; got 2 and 3"):
        kl_divergence(p, Binomial(3, torch.tensor([0.5, 0.5])))
    with pytest.raises(ValueError, match="got 4 and 3"):
        kl_divergence(Binomial(4, torch.tensor(0.5)), p)


def test_divergences_have_gradients() -> None:
    x, y = normal(2, 4, seed=1).requires_grad_(), normal(2, seed=2).requires_grad_()
    z = normal(2, 4, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a, b: kl_divergence(PoissonBinomial(logits=a), Binomial(4, logits=b)), (x, y)
    )
    assert torch.autograd.gradcheck(
        lambda a, b: kl_divergence(Binomial(4, logits=b), PoissonBinomial(logits=a)), (x, y)
    )
    assert torch.autograd.gradcheck(
        lambda a, b: kl_divergence(PoissonBinomial(logits=a), PoissonBinomial(logits=b)), (x, z)
    )
