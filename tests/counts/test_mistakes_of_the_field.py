"""One test for each mistake that public code of this field has made and that concerns the engine (DESIGN, 5)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from oracles import mpmath_log_prob
from scipy.stats import poisson_binom

import kofn


def test_1_exactly_k_is_not_at_most_k() -> None:
    # A log-space table initialised with zeros instead of -inf gives log P(S <= k).
    logits = torch.tensor([0.3, -0.2, 1.0, 0.5], dtype=torch.float64)
    exactly, at_most = kofn.log_count_prob(logits, 2), kofn.log_count_between(logits, 0, 2)
    assert exactly < at_most - 0.1
    assert kofn.log_count_distribution(logits).exp().sum().item() == pytest.approx(1)


@pytest.mark.parametrize("n", [1, 4, 200])
def test_2_a_confidently_wrong_instance_has_a_gradient(n: int) -> None:
    # log_sigmoid(x).clamp(max=-eps) has gradient 0 past x = 16.
    x = torch.full((n,), 20.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(kofn.log_count_prob(x, 0), x)
    torch.testing.assert_close(gradient, torch.full((n,), -1.0))


@pytest.mark.parametrize("x", [18.0, 40.0, 750.0, -18.0, -40.0, -750.0])
@pytest.mark.parametrize("n", [2, 5, 200])
def test_3_no_nan_from_dead_branches(x: float, n: int) -> None:
    # log1mexp behind torch.where is NaN past 18; logaddexp is NaN at -inf.
    logits = torch.full((n,), x, requires_grad=True)
    for count in range(0, n + 1, max(1, n // 5)):
        value = kofn.log_count_prob(logits, count)
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.isfinite()
        assert gradient.isfinite().all()
    (gradient,) = torch.autograd.grad(kofn.log_count_distribution(logits).sum(), logits)
    assert gradient.isfinite().all()


def test_4_the_law_does_not_underflow_at_large_n() -> None:
    # A binomial pmf in linear space is 0 in its tails past n = 1000.
    law = kofn.log_count_distribution(torch.zeros(2000, dtype=torch.float64))
    assert law.isfinite().all()
    assert law[0].item() == pytest.approx(-2000 * math.log(2), rel=1e-14)
    assert law[1].item() == pytest.approx(math.log(2000) - 2000 * math.log(2), rel=1e-13)


def test_9_probabilities_are_summed_not_log_probabilities() -> None:
    # P(S = 1) of two different coins is a sum over label vectors, not a mean of logs.
    p = torch.tensor([0.9, 0.2], dtype=torch.float64)
    value = kofn.log_count_prob(torch.logit(p), 1).exp()
    assert value.item() == pytest.approx(0.9 * 0.8 + 0.1 * 0.2)


@pytest.mark.parametrize("n", [1, 2, 7, 128, 129, 300])
def test_12_count_n_is_there(n: int) -> None:
    logits = torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    law = kofn.log_count_distribution(logits)
    assert law.shape == (n + 1,)
    every = torch.nn.functional.logsigmoid(logits).sum().item()
    assert law[n].item() == pytest.approx(every, rel=1e-13)
    assert kofn.log_count_prob(logits, n).item() == pytest.approx(every, rel=1e-13)
    assert kofn.log_count_between(logits, n, n).item() == pytest.approx(every, rel=1e-13)


def test_13_right_where_scipy_has_minus_infinity() -> None:
    logits = torch.full((100,), -12.0, dtype=torch.float64)
    logits[0] = -12.5
    ours = kofn.log_count_prob(logits, 90).item()
    with np.errstate(divide="ignore"):
        theirs = float(poisson_binom(torch.sigmoid(logits).numpy()).logpmf(90))
    assert abs(theirs - ours) > 100  # -inf, or rounding noise of its FFT
    assert ours == pytest.approx(mpmath_log_prob(logits.tolist(), 90), rel=1e-13)
    assert ours < -708
