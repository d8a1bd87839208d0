"""Where a network for large bags begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import kofn
from kofn.estimators._row_labels import base_rate

HUGE = 1000


def some(bags: int = 20, size: int = HUGE) -> tuple[Any, Any, Any]:
    rows = np.random.default_rng(0).normal(size=(bags * size, 2))
    return rows, np.repeat(np.arange(bags) % 4 == 0, size), np.repeat(np.arange(bags), size)


def begun(**options: Any) -> kofn.MILClassifier:
    """Fitted without a step: the learning rate is 0."""
    rows, labels, groups = some()
    return kofn.MILClassifier(hidden=(4,), lr=0.0, epochs=1, random_state=0, **options).fit(rows, labels, groups=groups)


@given(
    st.lists(st.tuples(st.integers(1, 2000), st.booleans()), min_size=2, max_size=30).filter(
        lambda bags: len({positive for _, positive in bags}) == 2
    )
)
def test_as_many_bags_are_positive_as_there_are(bags: list[tuple[int, bool]]) -> None:
    sizes, positive = (torch.tensor(column) for column in zip(*bags, strict=True))
    rate = base_rate(sizes, positive.long())
    assert 0 < rate < 1
    expected = -torch.expm1(sizes.double() * torch.log1p(torch.tensor(-rate, dtype=torch.float64))).mean()
    assert expected.item() == pytest.approx(positive.double().mean().item(), rel=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_one_kind_of_bag_gives_a_rate_all_the_same(label: int) -> None:
    assert 0 < base_rate(torch.tensor([3, 5]), torch.full((2,), label)) < 1


def test_start_at_the_rate_of_the_bags() -> None:
    """A quarter of the bags are positive: P(S >= 1) = 1/4 in a bag of 1,000, up to what the features say at first."""
    model = begun(start="bags")
    bias = list(model.network_.parameters())[-1]
    assert torch.sigmoid(bias).item() == pytest.approx(1 - 0.75 ** (1 / HUGE), rel=1e-5)
    assert model.history_[0]["train_loss"] < 1
    assert begun().history_[0]["train_loss"] > 100  # of 1,000 instances with one half each


def test_start_at_a_number() -> None:
    assert torch.sigmoid(list(begun(start=0.01).network_.parameters())[-1]).item() == pytest.approx(0.01)


def test_held_out_bags_do_not_tell() -> None:
    sizes, labels = torch.arange(1, 21), torch.arange(20) % 2
    groups = np.arange(20).repeat(sizes)
    model = kofn.MILClassifier(start="bags", lr=0.0, epochs=1, validation_fraction=0.4, random_state=0)
    model.fit(np.zeros((len(groups), 2)), labels.numpy()[groups], groups=groups)
    kept = np.setdiff1d(np.arange(20), model.held_out_)
    rate, of_all = base_rate(sizes[kept], labels[kept]), base_rate(sizes, labels)
    assert torch.sigmoid(list(model.network_.parameters())[-1]).item() == pytest.approx(rate, rel=1e-5)
    assert rate != pytest.approx(of_all, rel=1e-2)


def test_only_a_new_network_begins() -> None:
    rows, labels, groups = some(size=3)
    model = kofn.MILClassifier(hidden=(4,), lr=0.1, epochs=2, start=0.01, warm_start=True, random_state=0)
    model.fit(rows, labels, groups=groups)
    before = [p.clone() for p in model.network_.parameters()]
    model.set_params(lr=0.0).fit(rows, labels, groups=groups)
    assert all(torch.equal(one, other) for one, other in zip(before, model.network_.parameters(), strict=True))


def test_saved_and_read_again(tmp_path: Path) -> None:
    begun(start="bags").save(tmp_path / "m")
    assert kofn.MILClassifier.load(tmp_path / "m").start == "bags"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"start": 0.0}, ValueError, "`start` must be a probability above 0 and below 1, or 'bags'; got 0.0"),
        ({"start": "half"}, ValueError, "`start` must be a probability .* got 'half'"),
        ({"start": 0.1, "loss": "max"}, ValueError, "`start` goes with loss='count', .* got loss='max'"),
        (
            {"start": 0.1, "module": nn.Linear(2, 1)},
            TypeError,
            "`module` must .* ends in a kofn.models.Logit .* Linear",
        ),
    ],
)
def test_errors(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        begun(**options)
