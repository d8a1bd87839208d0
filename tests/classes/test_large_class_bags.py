"""Large bags, exactly: tables and, in the C++ core, the characteristic function."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multinomial
from torch import Tensor
from torch.nn.functional import one_hot

import kofn
from kofn.classes._class_tilt import solve_tilt, tilted
from kofn.classes._rows import Rows


def bag(n: int, classes: int, scale: float, *, seed: int = 0, shift: float = 0.0) -> tuple[Tensor, Tensor]:
    """Scores that know the labels somewhat, and the counts of these."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.multinomial(torch.rand(classes, generator=g) + 0.1, n, replacement=True, generator=g)
    logits = torch.randn(n, classes, generator=g, dtype=torch.float64) + scale * one_hot(labels, classes)
    logits[:, 0] += shift
    return logits, one_hot(labels, classes).sum(0)


def answers(logits: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x = logits.clone().requires_grad_()
    value = kofn.log_class_count_prob(x, counts, method="exact")
    (slope,) = torch.autograd.grad(value, x)
    return value.detach(), slope, kofn.class_count_posteriors(logits, counts, method="exact")


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_all_instances_alike_are_multinomial(classes: int) -> None:
    n, p = 300 if classes < 4 else 60, np.arange(1.0, classes + 1) / np.arange(1.0, classes + 1).sum()
    logits = torch.from_numpy(np.log(p)).expand(n, classes)
    for shares in (p, p[::-1]):
        counts = np.floor(n * shares).astype(int)
        counts[0] += n - counts.sum()
        value, slope, posteriors = answers(logits, torch.from_numpy(counts))
        assert abs(value.item() - multinomial.logpmf(counts, n, p)) < 1e-10 * max(1, -value.item())
        expected = torch.from_numpy(counts / n).expand(n, classes)
        torch.testing.assert_close(posteriors, expected, rtol=0, atol=1e-11)
        torch.testing.assert_close(slope, expected - torch.from_numpy(p), rtol=0, atol=1e-11)


@pytest.mark.parametrize(("n", "classes"), [(90, 2), (120, 3), (60, 4), (34, 5)])
@pytest.mark.parametrize(("scale", "shift"), [(0.0, 0.0), (5.0, 0.0), (1.0, 15.0), (0.0, 500.0)])
def test_the_core_equals_the_recursion(n: int, classes: int, scale: float, shift: float, backend: str) -> None:
    if backend == "torch":
        pytest.skip("the recursion itself")
    logits, counts = bag(n, classes, scale, shift=shift)
    value, slope, posteriors = answers(logits, counts)
    with kofn.counts.use("torch"):
        truth = answers(logits, counts)
    torch.testing.assert_close(value, truth[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(posteriors, truth[2], rtol=0, atol=1e-10)
    torch.testing.assert_close(slope, truth[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("n", "classes", "scale"), [(1000, 3, 0.0), (1000, 3, 4.0), (20_000, 3, 2.0), (500, 4, 1.0)])
def test_laws_of_large_bags(n: int, classes: int, scale: float, backend: str) -> None:
    if backend == "torch":
        pytest.skip("no table is so large")
    logits, counts = bag(n, classes, scale)
    value, slope, posteriors = answers(logits, counts)
    assert value < 0
    torch.testing.assert_close(posteriors.sum(0), counts.double(), rtol=1e-10, atol=1e-8)
    torch.testing.assert_close(posteriors.sum(1), torch.ones(n, dtype=torch.float64), rtol=0, atol=1e-10)
    torch.testing.assert_close(slope, posteriors - logits.softmax(-1), rtol=0, atol=1e-12)
    # A tilt by hand multiplies the probability by e^{t.k} and a constant: the same posteriors.
    tilt = torch.linspace(-3, 3, classes, dtype=torch.float64)
    other, _, given = answers(logits + tilt, counts)
    constant = (logits.logsumexp(-1) - (logits + tilt).logsumexp(-1)).sum() + tilt @ counts.double()
    torch.testing.assert_close(other, value + constant, rtol=1e-11, atol=1e-9)
    torch.testing.assert_close(given, posteriors, rtol=0, atol=1e-10)


def test_classes_that_exchange_instances() -> None:
    """K_0 + K_1 is certain, though neither is: the frequencies must not be counted in K_0 and K_1."""
    logits, _ = bag(80, 4, 0.0)
    logits[:40, 2:] = -torch.inf
    logits[40:, :2] = -torch.inf
    counts = torch.tensor([20, 20, 24, 16])
    value, _, posteriors = answers(logits, counts)
    halves = kofn.log_class_count_prob(logits[:40, :2], counts[:2]) + kofn.log_class_count_prob(
        logits[40:, 2:], counts[2:]
    )
    torch.testing.assert_close(value, halves, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(posteriors[:40, :2], kofn.class_count_posteriors(logits[:40, :2], counts[:2]))
    wrong = torch.tensor([21, 20, 23, 16])
    assert kofn.log_class_count_prob(logits, wrong, method="exact") == -torch.inf
    assert kofn.log_class_count_prob(logits, wrong, method="limit") == -torch.inf


@pytest.mark.parametrize("shift", [0.0, 30.0, 2000.0])
@pytest.mark.parametrize("scale", [1.0, 50.0, 1000.0])
def test_the_tilt_makes_the_counts_the_mean(shift: float, scale: float) -> None:
    bags = [bag(80, 4, 1.0, seed=seed, shift=shift) for seed in range(8)]
    log_p = torch.stack([(logits * scale).log_softmax(-1) for logits, _ in bags])
    rows = Rows(log_p, torch.ones(8, 80, dtype=torch.float64), torch.stack([counts for _, counts in bags]).double())
    torch.testing.assert_close(tilted(rows, solve_tilt(rows)).mean, rows.counts, rtol=0, atol=1e-6)


def test_a_table_that_no_memory_holds_is_an_error() -> None:
    """Its 11^19 states are no int64: native wrote past its memory, torch past a row."""
    logits = torch.zeros(200, 20)
    counts = torch.full((20,), 10)
    with pytest.raises(MemoryError):
        kofn.log_class_count_prob(logits, counts, method="exact")
    with pytest.raises(MemoryError):
        kofn.class_count_posteriors(logits, counts, method="exact")
    assert kofn.log_class_count_prob(logits, counts).isfinite()
