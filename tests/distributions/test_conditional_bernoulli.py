"""Labels given their count."""

from __future__ import annotations

import math

import pytest
import torch
from bag_strategies import bags
from distribution_cases import CERTAIN, INF, close, enumerated, fits, normal
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import OneHotCategorical

from kofn import ConditionalBernoulli, PoissonBinomial


@given(bags(max_size=8, max_scale=15.0), st.data())
def test_conditional_law_by_enumeration(logits: Tensor, data: st.DataObject) -> None:
    n = len(logits)
    k = data.draw(st.integers(0, n))
    law = ConditionalBernoulli(k, logits=logits)
    labels, expected = enumerated(logits, k)
    close(law.log_prob(labels), expected, 1e-9)
    assert {tuple(row) for row in law.enumerate_support().tolist()} == {tuple(row) for row in labels.tolist()}
    mean = (expected.exp()[:, None] * labels).sum(0)
    close(law.mean, mean, 1e-9)
    close(law.variance, mean * (1 - mean), 1e-9)
    close(law.entropy(), -(expected.exp() * expected).sum(), 1e-9)
    assert law.mode.sum() == k
    close(law.log_prob(law.mode), expected.max(), 1e-9)


def test_one_of_n_is_the_categorical() -> None:
    logits = normal(3, 6)
    law, oracle = ConditionalBernoulli(1, logits=logits), OneHotCategorical(logits=logits)
    close(law.mean, oracle.mean)
    close(law.entropy(), oracle.entropy())
    close(law.log_prob(torch.eye(6)[:, None]), oracle.log_prob(torch.eye(6, dtype=torch.float64)[:, None]))


def test_only_differences_of_logits_matter() -> None:
    logits, k = normal(4, 200), torch.tensor([0, 3, 100, 200])
    law = ConditionalBernoulli(k, logits=logits)
    labels = law.mode
    for shift in (-300.0, 300.0):
        moved = ConditionalBernoulli(k, logits=logits + shift)
        close(moved.log_prob(labels), law.log_prob(labels), 1e-9)
        close(moved.entropy(), law.entropy(), 1e-9)
        close(moved.mean, law.mean, 1e-9)
    single = ConditionalBernoulli(k, logits=(logits + 300).float())  # float32 in and out, float64 between
    close(single.entropy().double(), law.entropy(), 1e-4)


@pytest.mark.parametrize("n", [5, 6, 8])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_samples_follow_the_conditional_law(n: int, scale: float) -> None:
    torch.manual_seed(n)
    logits = normal(3, n, seed=n, scale=scale)
    logits[1] += 500.0  # no count below n is likely, given any all are
    logits[2, 0] = INF
    logits[2, n - 1] = -INF
    k = torch.tensor([2, n // 2, 3])
    draws = 20_000
    value = ConditionalBernoulli(k, logits=logits).sample((draws // 100, 100)).reshape(draws, 3, n)
    assert bool((value.sum(-1) == k).all())
    code = (value.long() << torch.arange(n)).sum(-1)
    for bag in range(3):
        # The labels of the oracle's definition underflow at +500: the law is the same without.
        labels, log_probs = enumerated(logits[bag] - (500.0 if bag == 1 else 0.0), int(k[bag]))
        expected = log_probs.exp() * draws
        codes = (labels.long() << torch.arange(n)).sum(-1)
        found = torch.bincount(code[:, bag], minlength=2**n)[codes]
        assert found.sum() == draws
        assert found[expected == 0].sum() == 0
        enough = expected > 5
        rest = expected[~enough].sum()
        observed = torch.cat([found[enough], found[~enough].sum()[None]]) if rest > 5 else found[enough]
        wanted = torch.cat([expected[enough], rest[None]]) if rest > 5 else expected[enough]
        if len(wanted) > 1:
            assert fits(observed, wanted)


def test_samples_of_large_bags_have_the_posteriors_as_means() -> None:
    torch.manual_seed(4)
    logits, k = normal(3, 300, scale=3.0), torch.tensor([1, 150, 299])
    law = ConditionalBernoulli(k, logits=logits)
    draws = 2000
    value = law.sample((draws,))
    assert bool((value.sum(-1) == k).all())
    deviation = (value.mean(0) - law.mean) / (law.variance / draws + 1e-6).sqrt()
    assert deviation.abs().max() < 5.5
    # Second moments too: neighbours are drawn in one node, the ends of the bag in different halves.
    for i, j in ((0, 1), (0, 299), (149, 150)):
        other = logits[1].clone()
        other[i] = INF
        joint = law.mean[1, i] * ConditionalBernoulli(150, logits=other).mean[j]  # P(y_i = 1) P(y_j = 1 | y_i = 1)
        found = (value[:, 1, i] * value[:, 1, j]).mean()
        assert abs(found - joint) < 5.5 * (joint * (1 - joint) / draws + 1e-6).sqrt()


@pytest.mark.parametrize("k", [0, 1, 17, 2500, 4999, 5000])
def test_large_bags_at_extreme_logits(k: int) -> None:
    torch.manual_seed(5)
    for logits in (normal(5000, scale=300.0), torch.full((5000,), 700.0, dtype=torch.float64), normal(5000) - 900.0):
        law = ConditionalBernoulli(k, logits=logits)
        value = law.sample((2,))
        assert value.sum(-1).tolist() == [k, k]
        assert bool(law.log_prob(value).isfinite().all())
        assert law.log_prob(law.mode) >= law.log_prob(value).max()
        entropy = law.entropy()
        assert entropy.isfinite()
        assert -1e-6 < entropy < math.lgamma(5001) - math.lgamma(k + 1) - math.lgamma(5001 - k) + 1e-5


def test_certain_instances_are_given() -> None:
    torch.manual_seed(6)
    law = ConditionalBernoulli(torch.tensor([1, 2, 4]), logits=CERTAIN)
    value = law.sample((50,))
    assert bool((value[..., 1] == 1).all())
    assert bool((value[..., 3] == 0).all())
    assert law.mean[:, [1, 3]].tolist() == [[1.0, 0.0]] * 3
    rest = ConditionalBernoulli(torch.tensor([0, 1, 3]), logits=CERTAIN[[0, 2, 4]])
    close(law.entropy(), rest.entropy())
    close(law.log_prob(value), rest.log_prob(value[..., [0, 2, 4]]))
    labels = torch.tensor([[1.0, 0, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 1, 0, 1]])
    close(law.log_prob(labels), torch.tensor([-INF, -INF, 0.0]))


def test_gradients_of_the_conditional_law() -> None:
    logits, k = normal(2, 5, seed=7).requires_grad_(), torch.tensor([2, 4])
    labels = torch.tensor([[1.0, 0, 0, 1, 0], [1, 1, 0, 1, 1]])
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, logits=x).log_prob(labels), logits)
    assert torch.autograd.gradgradcheck(lambda x: ConditionalBernoulli(k, logits=x).log_prob(labels), logits)
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, x.sigmoid()).log_prob(labels), logits)
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, logits=x).mean, logits)
    assert torch.autograd.gradcheck(lambda x: ConditionalBernoulli(k, logits=x).entropy(), logits)
    law = ConditionalBernoulli(k, logits=logits)
    (gradient,) = torch.autograd.grad(law.log_prob(labels).sum(), logits)
    close(gradient, labels - law.mean.detach())


def test_mode_takes_the_first_of_equal_logits() -> None:
    law = ConditionalBernoulli(torch.tensor([0, 1, 2, 3]), logits=torch.tensor([0.0, 1.0, 0.0]))
    assert law.mode.tolist() == [[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]]


def test_fixed_seeds_fix_samples() -> None:
    for law in (PoissonBinomial(logits=normal(3, 50)), ConditionalBernoulli(20, logits=normal(3, 50))):
        torch.manual_seed(8)
        first = law.sample((4,))
        torch.manual_seed(8)
        assert torch.equal(first, law.sample((4,)))
        assert not torch.equal(first, law.sample((4,)))
