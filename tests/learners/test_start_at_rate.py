"""Networks that begin at a base rate."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import kofn
from kofn import learners


def test_a_bag_begins_at_its_share() -> None:
    network = learners.start_at_rate(learners.mlp(3), 1 - 0.7 ** (1 / 50))
    logits = network(torch.zeros(50, 3)).double()
    surprise = kofn.count_loss(logits, kofn.AtLeast(1))
    assert torch.allclose(torch.exp(-surprise), torch.tensor(0.3, dtype=torch.float64))


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, float("nan")])
def test_a_rate_is_a_probability(rate: float) -> None:
    with pytest.raises(ValueError, match="`rate` must be above 0 and below 1"):
        learners.start_at_rate(learners.mlp(3), rate)


@pytest.mark.parametrize(
    "network",
    [nn.Sequential(), nn.Sequential(nn.Linear(3, 2)), nn.Sequential(nn.Linear(3, 1, bias=False)), nn.Linear(3, 1)],
)
def test_another_last_layer_is_refused(network: nn.Sequential) -> None:
    with pytest.raises(TypeError, match="ends in a Logit"):
        learners.start_at_rate(network, 0.1)


def test_a_linear_layer_of_one_output_begins_there_too() -> None:
    network = learners.start_at_rate(nn.Sequential(nn.Linear(3, 1)), 0.02)
    assert network(torch.zeros(5, 3)).sigmoid().flatten().tolist() == pytest.approx([0.02] * 5)
