"""Laws of class counts for any logits: the C++ core agrees with the recursion in torch, and nothing is NaN."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import kofn

values = st.one_of(st.floats(-5, 5), st.floats(-2000, 2000), st.sampled_from([0.0, 700.0, -745.0, 1e5, -1e5, -np.inf]))


@st.composite
def bags(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    n, classes = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    logits = draw(st.lists(st.lists(values, min_size=classes, max_size=classes), min_size=n, max_size=n))
    x = torch.tensor(logits, dtype=torch.float64)
    x[(x == -torch.inf).all(1)] = 0.0
    labels = torch.tensor(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))
    return x, torch.nn.functional.one_hot(labels, classes).sum(0)


@given(bags())
@settings(max_examples=80, deadline=None)
def test_engines_agree(bag: tuple[torch.Tensor, torch.Tensor]) -> None:
    logits, counts = bag
    x = logits.clone().requires_grad_()
    value = kofn.log_class_count_prob(x, counts)
    (slope,) = torch.autograd.grad(value, x)
    with kofn.counts.use("torch"):
        truth = kofn.log_class_count_prob(logits, counts)
    assert slope.isfinite().all()
    if truth == -torch.inf:
        assert value == -torch.inf
        assert (slope == 0).all()
        return
    torch.testing.assert_close(value.detach(), truth, rtol=1e-11, atol=1e-11)
    posteriors = kofn.class_count_posteriors(logits, counts)
    torch.testing.assert_close(posteriors.sum(0), counts.double(), rtol=0, atol=1e-8)
    torch.testing.assert_close(posteriors.sum(1), torch.ones(len(x), dtype=torch.float64), rtol=0, atol=1e-8)
    torch.testing.assert_close(slope, posteriors - logits.softmax(-1), rtol=0, atol=1e-10)
