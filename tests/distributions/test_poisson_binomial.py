"""The law of the count."""

from __future__ import annotations

import math

import pytest
import torch
from bag_strategies import bags
from distribution_cases import close, fits, normal
from hypothesis import given
from scipy import stats
from torch import Tensor

import kofn
from kofn import ConditionalBernoulli, PoissonBinomial


@given(bags(max_size=30))
def test_log_prob_and_cdf_are_the_engines(logits: Tensor) -> None:
    law = PoissonBinomial(logits=logits)
    counts = law.enumerate_support()
    expected = kofn.log_count_distribution(logits)
    close(law.log_prob(counts), expected)
    for value, log_prob in zip(counts, expected, strict=True):  # one by one it goes another way
        close(law.log_prob(value), log_prob)
    close(law.cdf(counts), expected.exp().cumsum(0))
    close(torch.stack([law.cdf(value) for value in counts]), expected.exp().cumsum(0))
    close(law.log_prob(law.mode), expected.max())


@pytest.mark.parametrize("n", [1, 7, 5000])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_equal_probabilities_are_the_binomial(n: int, p: float) -> None:
    law = PoissonBinomial(torch.full((n,), p, dtype=torch.float64))
    oracle = stats.binom(n, p)
    counts = law.enumerate_support()
    close(law.log_prob(counts).exp(), torch.from_numpy(oracle.pmf(counts.numpy())), 1e-10)
    close(law.cdf(counts), torch.from_numpy(oracle.cdf(counts.numpy())), 1e-10)
    assert law.mean.item() == pytest.approx(oracle.mean())
    assert law.variance.item() == pytest.approx(oracle.var())
    assert law.entropy().item() == pytest.approx(float(oracle.entropy()), abs=1e-9)
    assert abs(law.mode.item() - n * p) < 1


@pytest.mark.parametrize(("mean", "mode"), [(2.7, 2), (2.1, 2), (4997.3, 4998), (4997.9, 4998), (2500.0, 2500)])
def test_mode_is_on_either_side_of_the_mean(mean: float, mode: int) -> None:
    n = 5000
    assert int((n + 1) * mean / n) == mode  # the binomial's
    assert PoissonBinomial(torch.full((2, n), mean / n, dtype=torch.float64)).mode.tolist() == [mode, mode]


def test_a_masked_instance_is_an_absent_one() -> None:
    logits = normal(2, 5)
    logits[:, 3] = math.nan
    mask = torch.tensor([[True, True, True, False, False], [True, False, True, False, True]])
    law = PoissonBinomial(logits=logits, mask=mask)
    assert law.total_count.tolist() == [3, 3]
    assert law.enumerate_support().shape == (4, 2)
    for bag in range(2):
        alone = PoissonBinomial(logits=logits[bag][mask[bag]])
        close(law.mean[bag], alone.mean)
        close(law.entropy()[bag], alone.entropy())
        close(law.log_prob(law.enumerate_support())[:, bag], alone.log_prob(torch.arange(4)))
    by_probs = PoissonBinomial(logits.sigmoid(), mask=mask)
    close(by_probs.variance, law.variance)
    with pytest.raises(ValueError, match="within the support"):
        law.log_prob(torch.tensor([4, 1]))


def test_samples_follow_the_law() -> None:
    torch.manual_seed(1)
    law = PoissonBinomial(torch.tensor([[0, 0.2, 0.5, 0.9, 1, 0.7], [0.01, 0.5, 0.5, 0.5, 0.5, 0.99]]).double())
    draws = 20_000
    value = law.sample((draws,))
    expected = law.log_prob(law.enumerate_support()).exp() * draws
    for bag in range(2):
        found = torch.bincount(value[:, bag].long(), minlength=7)
        enough = expected[:, bag] > 5
        assert found[expected[:, bag] == 0].sum() == 0
        assert fits(found[enough], expected[enough, bag])
    close(value.mean(0), law.mean, 0.05)
    close(value.var(0), law.variance, 0.05)


def test_gradients_of_the_count() -> None:
    logits = normal(2, 5, seed=3).requires_grad_()
    few, many = torch.tensor([1.0, 4.0]), torch.arange(6.0)[:, None]
    for value in (few, many):
        assert torch.autograd.gradcheck(lambda x, v=value: PoissonBinomial(logits=x).log_prob(v), logits)
        assert torch.autograd.gradgradcheck(lambda x, v=value: PoissonBinomial(logits=x).log_prob(v), logits)
        assert torch.autograd.gradcheck(lambda x, v=value: PoissonBinomial(logits=x).cdf(v), logits)
    assert torch.autograd.gradcheck(lambda x: PoissonBinomial(x.sigmoid()).log_prob(few), logits)
    assert torch.autograd.gradcheck(lambda x: PoissonBinomial(logits=x).entropy(), logits)
    (gradient,) = torch.autograd.grad(PoissonBinomial(logits=logits).log_prob(few).sum(), logits)
    close(gradient, kofn.count_posteriors(logits, few.long()) - logits.sigmoid())


def test_certain_instances_have_finite_gradients() -> None:
    probs = torch.tensor([0.0, 0.3, 1.0, 0.6], dtype=torch.float64, requires_grad=True)
    law = PoissonBinomial(probs)
    results = [law.log_prob(torch.arange(5)).clamp(min=-100).sum(), law.entropy(), law.cdf(torch.tensor(2.0))]
    given_two = ConditionalBernoulli(2, probs)
    results += [given_two.entropy(), given_two.log_prob(torch.tensor([0.0, 0.0, 1.0, 1.0])), given_two.mean[1]]
    for result in results:
        (gradient,) = torch.autograd.grad(result, probs, retain_graph=True)
        assert bool(gradient.isfinite().all())
        assert gradient[[0, 2]].tolist() == [0.0, 0.0]
    assert torch.autograd.grad(law.mean, probs)[0].tolist() == [1.0] * 4


@pytest.mark.parametrize("n", [40, 5000])
def test_confidently_wrong_counts_keep_their_gradient(n: int) -> None:
    logits = torch.full((n,), 200.0, dtype=torch.float64, requires_grad=True)
    log_prob = PoissonBinomial(logits=logits).log_prob(torch.tensor(0))
    close(log_prob, -200.0 * n)
    (gradient,) = torch.autograd.grad(log_prob, logits)
    close(gradient, -1.0)
