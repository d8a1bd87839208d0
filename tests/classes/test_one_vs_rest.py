"""Log-odds of each class against the rest."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

import kofn


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0, 1e5])
def test_fifty_digits(scale: float) -> None:
    x = np.random.default_rng(0).normal(size=(6, 5)) * scale
    found = kofn.one_vs_rest(torch.from_numpy(x))
    assert found.shape == (5, 6)
    with mpmath.workdps(50):
        for i, row in enumerate(x):
            e = [mpmath.exp(mpmath.mpf(float(v))) for v in row]
            for c in range(5):
                truth = float(mpmath.log(e[c] / (mpmath.fsum(e[:c]) + mpmath.fsum(e[c + 1 :]))))
                assert abs(found[c, i].item() - truth) <= 1e-14 * max(1, abs(truth))


def test_infinite_logits_and_their_gradient() -> None:
    x = torch.tensor([[torch.inf, 0.0, 1.0], [-torch.inf, 0.0, 0.0], [-torch.inf, -torch.inf, 5.0]], requires_grad=True)
    y = kofn.one_vs_rest(x)
    inf = torch.inf
    assert y.T.tolist() == [[inf, -inf, -inf], [-inf, 0, 0], [-inf, -inf, inf]]
    y[y.isfinite()].sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_gradients_and_shapes() -> None:
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert kofn.one_vs_rest(x).shape == (2, 4, 3)
    assert torch.autograd.gradcheck(kofn.one_vs_rest, x)
    assert torch.autograd.gradgradcheck(kofn.one_vs_rest, x)
    torch.testing.assert_close(kofn.one_vs_rest(x).sigmoid(), x.softmax(-1).transpose(-1, -2))
    assert kofn.one_vs_rest(torch.zeros(3, 1)).tolist() == [[torch.inf] * 3]
