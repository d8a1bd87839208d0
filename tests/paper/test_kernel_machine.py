"""The kernel machine of LMMCM: an optimum of its objective, a penalty chosen on held-out pairs, a classifier."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from kofn import losses
from paper.kernel_machine import MutualContaminationKernelMachine as Machine

rbf_kernel = pytest.importorskip("sklearn.metrics.pairwise").rbf_kernel


def two_clouds(bags: int = 24, size: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, proportions, offsets and labels of bags whose proportions are 0 to 1."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, size + 1, bags)
    y = np.concatenate([np.arange(size) < k for k in counts]).astype(int)
    x = rng.normal(size=(bags * size, 2)) + 1.5 * np.where(y, 1, -1)[:, None]
    return x, counts / size, np.arange(bags + 1) * size, y


def test_optimum() -> None:
    x, proportions, offsets, _ = two_clouds(6, 5)
    machine = Machine(penalties=(0.05,)).fit(x, proportions, offsets)
    assert machine.penalty_ == 0.05
    rows = torch.from_numpy(rbf_kernel(x, gamma=1 / (2 * x.var())))
    pairs = losses.pair_bags(torch.from_numpy(proportions))

    def objective(f: torch.Tensor) -> torch.Tensor:
        loss = losses.mutual_contamination_loss(
            f, torch.from_numpy(proportions), pairs=pairs, offsets=torch.from_numpy(offsets)
        )
        norm: torch.Tensor = f @ torch.linalg.solve(rows + 1e-8 * torch.eye(len(f)), f)
        return loss + 0.05 * norm

    f = torch.from_numpy(machine.decision_function(x))
    best = objective(f)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        step = 1e-2 * rows @ torch.randn(len(f), dtype=torch.float64, generator=generator)
        assert objective(f + step) > best - 1e-7


def test_classifies_and_chooses() -> None:
    x, proportions, offsets, y = two_clouds()
    machine = Machine().fit(x, proportions, offsets)
    assert set(machine.scores_) == {1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5}
    assert machine.penalty_ == min(machine.scores_, key=machine.scores_.__getitem__)
    assert (machine.predict(x) == y).mean() > 0.93
    again = Machine().fit(x, proportions, offsets)
    assert again.scores_ == machine.scores_


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros((4, 1))
    with pytest.raises(ValueError, match="`penalties` are chosen by cross-validation, which needs two pairs"):
        Machine().fit(x, [0.0, 1.0], [0, 2, 4])
    with pytest.raises(ValueError, match="at least one pair of bags with different proportions"):
        Machine().fit(x, [0.5, 0.5], [0, 2, 4])
    monkeypatch.setitem(sys.modules, "sklearn.metrics.pairwise", None)
    with pytest.raises(ImportError, match=r"scikit-learn, which is not installed: pip install kofn\[train\]"):
        Machine().fit(x, [0.0, 1.0], [0, 2, 4])


def test_landmarks() -> None:
    """All instances as landmarks are the exact machine; a part of them comes close, and is the same twice."""
    x, proportions, offsets, y = two_clouds()
    one: dict[str, Any] = {"penalties": (0.01,)}  # choosing is noisy, and tested above
    exact = Machine(**one).fit(x, proportions, offsets)
    every = Machine(**one, landmarks=len(x)).fit(x, proportions, offsets)
    np.testing.assert_array_equal(every.decision_function(x), exact.decision_function(x))
    part, again = (Machine(**one, landmarks=60, random_state=3).fit(x, proportions, offsets) for _ in range(2))
    np.testing.assert_array_equal(part.decision_function(x), again.decision_function(x))
    assert (part.predict(x) == y).mean() > 0.93
    assert np.corrcoef(part.decision_function(x), exact.decision_function(x))[0, 1] > 0.99


def test_landmarks_are_an_optimum_of_their_span() -> None:
    """No step within the span of the landmarks' kernels makes loss plus penalty smaller."""
    x, proportions, offsets, _ = two_clouds(6, 5)
    machine = Machine(penalties=(0.05,), landmarks=12).fit(x, proportions, offsets)
    p, ends = torch.from_numpy(proportions), torch.from_numpy(offsets)
    pairs = losses.pair_bags(p)
    cross = torch.from_numpy(rbf_kernel(x, machine._x, gamma=machine._gamma))
    square = torch.from_numpy(rbf_kernel(machine._x, gamma=machine._gamma)) + 1e-8 * torch.eye(len(machine._x))

    def objective(a: torch.Tensor) -> torch.Tensor:
        loss = losses.mutual_contamination_loss(cross @ a, p, pairs=pairs, offsets=ends)
        return loss + 0.05 * (a @ square @ a)

    a = torch.from_numpy(machine._weights)
    best = objective(a)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        step = 1e-2 * torch.randn(len(a), dtype=torch.float64, generator=generator)
        assert objective(a + step) > best - 1e-7


def test_landmarks_must_be_some() -> None:
    x, proportions, offsets, _ = two_clouds(6, 5)
    with pytest.raises(ValueError, match="`landmarks`"):
        Machine(landmarks=0).fit(x, proportions, offsets)
