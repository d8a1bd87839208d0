"""Where a network for large bags begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import UNLEARNT
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import kofn
from kofn.learners import BagObjective, PooledObjective
from kofn.learners._best_rate import best_rate

HUGE = 1000
pytestmark = UNLEARNT


def some(bags: int = 20, size: int = HUGE) -> tuple[Any, Any, Any]:
    rows = np.random.default_rng(0).normal(size=(bags * size, 2))
    return rows, np.repeat(np.arange(bags) % 4 == 0, size), np.repeat(np.arange(bags), size)


def begun(**options: Any) -> kofn.MILClassifier:
    """Fitted without a step: the learning rate is 0."""
    rows, labels, groups = some()
    loss = options.pop("loss", "count")
    chosen: dict[str, Any] = {"lr": 0.0, "epochs": 1, "standardise": False} | options
    if "module" not in options:
        chosen = {"hidden": (4,)} | chosen
    network = kofn.Network(**chosen)
    return kofn.MILClassifier(network, loss=loss, random_state=0).fit(rows, labels, groups=groups)


@given(
    st.lists(st.tuples(st.integers(1, 2000), st.booleans()), min_size=2, max_size=30).filter(
        lambda bags: len({positive for _, positive in bags}) == 2
    )
)
def test_the_rate_is_that_of_the_largest_likelihood(bags: list[tuple[int, bool]]) -> None:
    sizes, positive = (torch.tensor(column) for column in zip(*bags, strict=True))
    rate = best_rate(BagObjective(), positive.long(), sizes, None)
    assert 0 < rate < 1

    def log_likelihood(rate: float) -> float:
        none = sizes.double() * np.log1p(-rate)  # log P(S = 0)
        return float(torch.where(positive, torch.log(-torch.expm1(none)), none).sum())

    best = log_likelihood(rate)
    assert all(best >= log_likelihood(rate * factor) - 1e-9 for factor in (0.5, 0.99, 1.01) if rate * factor < 1)
    if len(set(sizes.tolist())) == 1:
        expected = -torch.expm1(sizes.double() * np.log1p(-rate)).mean()
        assert expected.item() == pytest.approx(positive.double().mean().item(), rel=1e-6)


def test_a_weight_is_so_many_bags() -> None:
    sizes, times, labels = torch.tensor([3, 5, 9, 2]), torch.tensor([1.0, 0.0, 2.0, 1.0]), torch.tensor([0, 1, 1, 0])
    repeated = best_rate(BagObjective(), torch.tensor([0, 1, 1, 0]), torch.tensor([3, 9, 9, 2]), None)
    assert best_rate(BagObjective(), labels, sizes, times) == pytest.approx(repeated)


def test_a_pooled_prediction_is_the_bags_own() -> None:
    labels, ones = torch.arange(40) % 4 > 0, torch.ones(40, dtype=torch.int64)
    assert best_rate(PooledObjective(), labels.long(), ones, None) == pytest.approx(0.75)
    assert best_rate(PooledObjective(3.0), labels.long(), ones, None) == pytest.approx(0.9)


@pytest.mark.parametrize("label", [0, 1])
def test_one_kind_of_bag_gives_a_rate_all_the_same(label: int) -> None:
    rows, _, groups = some(size=3)
    model = kofn.MILClassifier(kofn.Network(lr=0.0, epochs=1)).fit(rows, np.full(len(rows), label), groups=groups)
    assert np.isfinite(model.decision_function(rows)).all()


def test_start_at_the_rate_of_the_bags() -> None:
    """A quarter of the bags are positive: P(S >= 1) = 1/4 in a bag of 1,000, up to what the features say at first."""
    model = begun()
    bias = list(model.network_.parameters())[-1]
    assert torch.sigmoid(bias).item() == pytest.approx(1 - 0.75 ** (1 / HUGE), rel=1e-5)
    assert model.history_[0]["train_loss"] < 1
    assert begun(start=None).history_[0]["train_loss"] > 100  # of 1,000 instances with one half each


def test_start_at_a_number() -> None:
    assert torch.sigmoid(list(begun(start=0.01).network_.parameters())[-1]).item() == pytest.approx(0.01)


def test_every_learner_starts_there() -> None:
    """Trees that may not split say the rate that makes an average bag right."""
    rows, labels, groups = some()
    trees = kofn.Trees(rounds=1, learning_rate=1e-9)
    model = kofn.MILClassifier(trees, random_state=0).fit(rows, labels, groups=groups)
    assert model.predict_proba(rows)[:, 1] == pytest.approx(1 - 0.75 ** (1 / HUGE), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"start": 0.0}, ValueError, "`start` must be 'rate', None, or a probability .* got 0.0"),
        ({"start": "half"}, ValueError, "`start` must be 'rate', None, or a probability .* got 'half'"),
        (
            {"start": 0.1, "module": nn.Linear(2, 1)},
            TypeError,
            "`module` must .* ends in a kofn.learners.Logit .* Linear",
        ),
    ],
)
def test_errors(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        begun(**options)
