"""A perceptron with one logit, and attention pooling against its formula, bag by bag."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from kofn import learners
from kofn.learners import AttentionMIL, AttentionPooling, GatedAttentionPooling

OFFSETS = torch.tensor([0, 3, 3, 4, 9])  # four bags, the second empty
SIZES = [3, 0, 1, 5]


def count_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_a_network_ends_in_a_logit_not_in_a_probability() -> None:
    network = learners.mlp(1)
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), (3.0, 1.0), strict=True):  # weight and bias
            parameter.fill_(value)
    assert network(torch.tensor([[50.0], [-50.0]])).tolist() == [151.0, -149.0]


def test_mlp_takes_bags_too() -> None:
    network = learners.mlp(5, (7,))
    bags = torch.randn(2, 3, 5)
    logits = network(bags)
    assert logits.shape == (2, 3)
    torch.testing.assert_close(logits.flatten(), network(bags.flatten(0, 1)))


def test_mlp_without_dropout_has_no_dropout_layer() -> None:
    assert [type(layer) for layer in learners.mlp(5, (7,))] == [nn.Linear, nn.ReLU, learners.Logit]
    assert [type(layer) for layer in learners.mlp(5, (7,), dropout=0.1)] == [
        nn.Linear,
        nn.ReLU,
        nn.Dropout,
        learners.Logit,
    ]


# --- attention ---------------------------------------------------------------------------------------------------


def pooling_of(kind: type[AttentionPooling], *, features: int = 6) -> AttentionPooling:
    torch.manual_seed(1)
    return kind(features, hidden=5).double()


def loop(pooling: AttentionPooling, embeddings: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """The article's formula, one bag after the other."""
    logits, weights = [], []
    for bag in embeddings.split(SIZES):
        hidden = torch.tanh(bag @ pooling.project.weight.T)
        if isinstance(pooling, GatedAttentionPooling):
            hidden = hidden * torch.sigmoid(bag @ pooling.gate.weight.T)
        weights.append(torch.softmax(hidden @ pooling.score.weight[0], 0))
        logits.append(weights[-1] @ bag @ pooling.classify.weight[0] + pooling.classify.bias[0])
    return logits, weights


def padded(embeddings: Tensor, filler: float) -> tuple[Tensor, Tensor]:
    dense = torch.full((len(SIZES), max(SIZES), embeddings.shape[-1]), filler, dtype=embeddings.dtype)
    mask = torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]
    return dense.masked_scatter(mask[..., None], embeddings), mask


both = pytest.mark.parametrize("kind", [AttentionPooling, GatedAttentionPooling])


def test_attention_by_hand() -> None:
    # d = 2, one hidden unit, V = (1, 0), w = 2, classifier (1, 10) and 0.5: the first feature decides the weight.
    pooling = AttentionPooling(2, hidden=1).double()
    with torch.no_grad():
        pooling.project.weight.copy_(torch.tensor([[1.0, 0.0]]))
        pooling.score.weight.fill_(2.0)
        pooling.classify.weight.copy_(torch.tensor([[1.0, 10.0]]))
        pooling.classify.bias.fill_(0.5)
    embeddings = torch.tensor([[0.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    e = math.exp(2 * math.tanh(1.0))  # scores 0 and 2 tanh(1)
    a, b = 1 / (1 + e), e / (1 + e)
    torch.testing.assert_close(pooling.attention(embeddings), torch.tensor([a, b], dtype=torch.float64))
    assert pooling(embeddings).item() == pytest.approx((b * 1.0) + 10 * (a * 1.0 + b * 3.0) + 0.5, rel=1e-14)


def test_gated_attention_by_hand() -> None:
    pooling = GatedAttentionPooling(2, hidden=1).double()
    with torch.no_grad():
        pooling.project.weight.copy_(torch.tensor([[1.0, 0.0]]))
        pooling.gate.weight.copy_(torch.tensor([[0.0, 1.0]]))
        pooling.score.weight.fill_(2.0)
        pooling.classify.weight.copy_(torch.tensor([[1.0, 10.0]]))
        pooling.classify.bias.fill_(0.5)
    embeddings = torch.tensor([[0.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    e = math.exp(2 * math.tanh(1.0) / (1 + math.exp(-3.0)))
    a, b = 1 / (1 + e), e / (1 + e)
    torch.testing.assert_close(pooling.attention(embeddings), torch.tensor([a, b], dtype=torch.float64))
    assert pooling(embeddings).item() == pytest.approx(b + 10 * (a + 3 * b) + 0.5, rel=1e-14)


def test_parameters_of_the_pooling() -> None:
    assert count_parameters(AttentionPooling(500)) == 500 * 128 + 128 + (500 + 1) == 64_629
    assert count_parameters(GatedAttentionPooling(500)) == 2 * 500 * 128 + 128 + (500 + 1) == 128_629


@both
def test_ragged_is_the_loop_is_dense_with_a_mask(kind: type[AttentionPooling]) -> None:
    pooling = pooling_of(kind)
    embeddings = torch.randn(9, 6, dtype=torch.float64)
    logits, weights = loop(pooling, embeddings)
    torch.testing.assert_close(pooling(embeddings, offsets=OFFSETS), torch.stack(logits))
    torch.testing.assert_close(pooling.attention(embeddings, offsets=OFFSETS), torch.cat(weights))
    for filler in (0.0, 1e6, torch.nan):
        dense, mask = padded(embeddings, filler)
        torch.testing.assert_close(pooling(dense, mask=mask), torch.stack(logits))
        dense_weights = pooling.attention(dense, mask=mask)
        torch.testing.assert_close(dense_weights[mask], torch.cat(weights))
        assert (dense_weights[~mask] == 0).all()


@both
def test_dense_without_a_mask_and_with_any_leading_dimensions(kind: type[AttentionPooling]) -> None:
    pooling = pooling_of(kind)
    embeddings = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    logits = pooling(embeddings)
    assert logits.shape == (2, 3)
    mask = torch.ones(4, dtype=torch.bool)  # broadcast
    torch.testing.assert_close(logits, pooling(embeddings, mask=mask))
    torch.testing.assert_close(logits[1, 2], pooling(embeddings[1, 2]))
    weights = pooling.attention(embeddings)
    assert weights.shape == (2, 3, 4)
    torch.testing.assert_close(weights, pooling.attention(embeddings, mask=mask))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, dtype=torch.float64))


@both
def test_gradients(kind: type[AttentionPooling]) -> None:
    pooling = pooling_of(kind)
    embeddings = torch.randn(9, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pooling(x, offsets=OFFSETS), embeddings)
    assert torch.autograd.gradcheck(lambda x: pooling.attention(x, offsets=OFFSETS), embeddings)
    dense, mask = padded(embeddings.detach(), torch.nan)
    dense.requires_grad_()
    (ragged,) = torch.autograd.grad(pooling(embeddings, offsets=OFFSETS).sum(), embeddings)
    pooling(dense, mask=mask).sum().backward()
    assert dense.grad is not None
    torch.testing.assert_close(dense.grad[mask], ragged)
    assert (dense.grad[~mask] == 0).all()
    assert all(p.grad is not None and bool((p.grad != 0).any()) for p in pooling.parameters())


@both
def test_order_of_instances_does_not_matter(kind: type[AttentionPooling]) -> None:
    pooling = pooling_of(kind)
    embeddings = torch.randn(9, 6, dtype=torch.float64)
    order = torch.tensor([2, 0, 1, 3, 8, 4, 6, 5, 7])  # within each bag
    before = pooling(embeddings, offsets=OFFSETS)
    torch.testing.assert_close(pooling(embeddings[order], offsets=OFFSETS), before, rtol=1e-12, atol=1e-12)


@both
def test_an_empty_bag_has_the_bias_alone_and_gradients_stay_finite(kind: type[AttentionPooling]) -> None:
    pooling = pooling_of(kind)
    embeddings = torch.randn(9, 6, dtype=torch.float64, requires_grad=True)
    logits = pooling(embeddings, offsets=OFFSETS)
    assert logits[1] == pooling.classify.bias[0]
    logits.sum().backward()
    assert embeddings.grad is not None
    assert embeddings.grad.isfinite().all()
    none = torch.zeros(2, 3, dtype=torch.bool)
    assert pooling(torch.randn(2, 3, 6, dtype=torch.float64), mask=none).tolist() == [pooling.classify.bias.item()] * 2
    assert pooling(torch.empty(0, 6, dtype=torch.float64), offsets=torch.tensor([0, 0])).shape == (1,)
    assert pooling(torch.empty(0, 6, dtype=torch.float64), offsets=torch.tensor([0])).shape == (0,)


def test_huge_scores_do_not_overflow() -> None:
    pooling = AttentionPooling(1, hidden=1)
    with torch.no_grad():
        pooling.project.weight.fill_(100.0)
        pooling.score.weight.fill_(1e4)
    weights = pooling.attention(torch.tensor([[1.0], [1.0], [-1.0], [-1.0]]), offsets=torch.tensor([0, 3, 4]))
    assert weights.tolist() == [0.5, 0.5, 0.0, 1.0]


def test_bad_shapes_are_named() -> None:
    pooling = AttentionPooling(6)
    with pytest.raises(ValueError, match=r"`embeddings` must have shape \(..., n, 6\); got \(4, 5\)"):
        pooling(torch.zeros(4, 5))
    with pytest.raises(ValueError, match=r"`embeddings` must have shape \(m, 6\) with `offsets`; got \(2, 3, 6\)"):
        pooling.attention(torch.zeros(2, 3, 6), offsets=torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="must not both be given"):
        pooling(torch.zeros(4, 6), mask=torch.ones(4, dtype=torch.bool), offsets=torch.tensor([0, 4]))
    with pytest.raises(ValueError, match="`offsets` must start at 0 and end at"):
        pooling(torch.zeros(4, 6), offsets=torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="`mask` must have the shape"):
        pooling(torch.zeros(2, 4, 6), mask=torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(TypeError, match="`mask` must be a bool tensor"):
        pooling(torch.zeros(2, 4, 6), mask=torch.ones(2, 4))
    with pytest.raises(TypeError, match=r"`embeddings` must be a torch\.Tensor"):
        pooling([[0.0] * 6])
    with pytest.raises(ValueError, match=r"`instances` must have shape \(b, n, ...\); got \(4, 6\)"):
        AttentionMIL(nn.Identity(), pooling)(torch.zeros(4, 6))


@both
def test_attention_mil_ragged_is_dense(kind: type[AttentionPooling]) -> None:
    torch.manual_seed(2)
    encoder = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(-3))
    model = AttentionMIL(encoder, kind(4 * 6 * 6))
    images = torch.randn(9, 1, 28, 28)
    logits = model(images, offsets=OFFSETS)
    assert logits.shape == (4,)
    dense = torch.full((4, 5, 1, 28, 28), torch.nan)
    mask = torch.arange(5) < torch.tensor(SIZES)[:, None]
    dense[mask] = images
    torch.testing.assert_close(model(dense, mask=mask), logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(images[4:9][None]), logits[3:], rtol=1e-4, atol=1e-5)
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@both
def test_attention_mil_learns_which_instance_matters(kind: type[AttentionPooling]) -> None:
    """Bags of eight, positive when one instance has its first feature raised."""
    torch.manual_seed(3)
    instances = torch.randn(64, 8, 4)
    labels = (torch.arange(64) % 2).float()
    instances[labels.bool(), 5, 0] += 6.0
    model = AttentionMIL(learners.mlp(4, (16,))[:-1], kind(16, hidden=8))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(120):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(instances), labels).backward()
        optimizer.step()
    model.eval()
    assert ((model(instances) > 0) == labels.bool()).float().mean() > 0.95
    weights = model.pooling.attention(model.encoder(instances[labels.bool()]))
    assert (weights.argmax(-1) == 5).float().mean() > 0.9
