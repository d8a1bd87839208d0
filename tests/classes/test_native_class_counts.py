"""What only the C++ core of class counts has: instruction sets, threads, bags side by side."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

import kofn
from kofn.counts import _native

pytestmark = pytest.mark.skipif(not _native.available, reason="the C++ core is not built")


@pytest.fixture(autouse=True)
def native_only(backend: str) -> None:
    if backend != "native":
        pytest.skip("of the C++ core only")


def mixed() -> tuple[Tensor, Tensor, Tensor]:
    """Many bags of few kinds, so that several share a vector register, some far in a tail, one large."""
    g = torch.Generator().manual_seed(0)
    sizes = torch.cat([torch.randint(0, 9, (150,), generator=g), torch.tensor([150])])
    offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    logits = torch.randn(int(offsets[-1]), 3, generator=g, dtype=torch.float64)
    logits[::7] *= 400
    labels = one_hot(torch.randint(0, 3, (len(logits),), generator=g), 3)
    owner = torch.arange(len(sizes)).repeat_interleave(sizes)
    return logits, offsets, torch.zeros(len(sizes), 3, dtype=torch.long).index_add(0, owner, labels)


def answers() -> tuple[Tensor, Tensor]:
    logits, offsets, counts = mixed()
    x = logits.requires_grad_()
    value = kofn.log_class_count_prob(x, counts, offsets=offsets)
    (slope,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), slope


def test_every_instruction_set_agrees_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    with kofn.counts.use("torch"):
        truth = answers()
    for level in [0, *_native.levels()]:
        monkeypatch.setattr(_native, "level", level)
        value, slope = answers()
        torch.testing.assert_close(value, truth[0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(slope, truth[1], rtol=0, atol=1e-11)


def test_threads_change_nothing() -> None:
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 40, 4, generator=g)
    counts = one_hot(torch.randint(0, 4, (200, 40), generator=g), 4).sum(1)
    one = kofn.log_class_count_prob(logits, counts)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert torch.equal(kofn.log_class_count_prob(logits, counts), one)
    finally:
        torch.set_num_threads(before)


def test_a_large_impossible_bag_needs_no_table() -> None:
    logits = torch.zeros(2000, 3, dtype=torch.float64)
    logits[:1000, 2] = -torch.inf
    logits[1000:, :2] = -torch.inf
    assert kofn.log_class_count_prob(logits, torch.tensor([501, 500, 999])) == -torch.inf
    exact = kofn.log_class_count_prob(logits, torch.tensor([500, 500, 1000]))
    binomial = torch.distributions.Binomial(1000, torch.tensor(0.5).double()).log_prob(torch.tensor(500.0).double())
    torch.testing.assert_close(exact, binomial, rtol=1e-12, atol=0)


def test_layouts_in_memory() -> None:
    logits, offsets, counts = mixed()
    truth = kofn.log_class_count_prob(logits, counts, offsets=offsets)
    turned = logits.T.contiguous().T  # not contiguous
    assert torch.equal(kofn.log_class_count_prob(turned, counts.int(), offsets=offsets), truth)
