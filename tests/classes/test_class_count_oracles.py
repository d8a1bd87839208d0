"""The joint distribution of class counts against the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from class_count_oracles import enumerate_counts, precise_law

import kofn


@pytest.mark.parametrize("seed", range(40))
def test_enumeration_in_exact_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(0, 8)), int(rng.integers(1, 5))
    if classes == 4:
        n = min(n, 6)
    weights = rng.integers(0 if seed % 2 else 1, 10, (n, classes))
    weights[weights.sum(1) == 0] = 1
    counts = np.bincount(rng.integers(0, classes, n), minlength=classes)
    total, posteriors = enumerate_counts(weights.tolist(), counts.tolist())
    logits = torch.from_numpy(weights).double().log().requires_grad_()
    value = kofn.log_class_count_prob(logits, torch.from_numpy(counts))
    (slope,) = torch.autograd.grad(value, logits)
    prior = logits.detach().softmax(-1)
    if total == 0:
        assert value == -torch.inf
        assert torch.equal(slope, torch.zeros_like(slope))
        assert torch.allclose(kofn.class_count_posteriors(logits.detach(), torch.from_numpy(counts)), prior)
        return
    truth = torch.tensor([[float(p) for p in row] for row in posteriors], dtype=torch.float64).reshape(n, classes)
    assert abs(value.exp().item() / float(total) - 1) < 1e-13
    torch.testing.assert_close(slope, truth - prior, rtol=0, atol=1e-14)
    found = kofn.class_count_posteriors(logits.detach(), torch.from_numpy(counts))
    torch.testing.assert_close(found, truth, rtol=0, atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_fifty_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = 3 if seed % 2 else 4
    n = int(rng.integers(2, 41 if classes == 3 else 21))
    x = rng.normal(size=(n, classes)) * rng.choice([1, 5, 50, 1000])
    counts = np.bincount(rng.choice(classes, n, p=rng.dirichlet(np.ones(classes))), minlength=classes)
    value, slope, posteriors = precise_law(x, counts.tolist())
    logits = torch.from_numpy(x).requires_grad_()
    found = kofn.log_class_count_prob(logits, torch.from_numpy(counts))
    (by_logits,) = torch.autograd.grad(found, logits)
    assert abs(found.item() - float(value)) <= 1e-10 * max(1, abs(float(value)))
    np.testing.assert_allclose(by_logits.numpy(), slope, rtol=0, atol=1e-10)
    given = kofn.class_count_posteriors(logits.detach(), torch.from_numpy(counts))
    np.testing.assert_allclose(given.numpy(), posteriors, rtol=0, atol=1e-10)


def test_the_size_of_a_table() -> None:
    counts = torch.tensor([[4, 1, 1, 2], [8, 0, 0, 0]])
    assert kofn.classes.joint_cells(counts).tolist() == [8 * 2 * 2 * 3, 8]
    assert kofn.classes.BUDGET == 10**6
