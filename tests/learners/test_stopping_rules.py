"""Rules of what is best and when to stop, judged on validation bags alone."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learner_cases import Scripted, Trained, halves, some_bags, some_pu, train
from torch import Tensor

from kofn.learners import ByLabelAccuracy, ByLoss, ByLossAndError, ByPredictedShare, PUProblem

LOSSES = st.floats(-1e4, 1e4)


@given(loss=LOSSES)
def test_by_loss_is_the_loss(loss: float) -> None:
    sums = ByLoss().measure(torch.zeros(3), torch.zeros(2), torch.tensor([0, 1, 3]))
    assert sums.shape == (0,)
    assert ByLoss().criterion(loss, sums) == loss


def test_by_loss_and_error_adds_the_share_of_wrong_bags() -> None:
    rule, offsets = ByLossAndError(), torch.arange(4)
    first = rule.measure(torch.tensor([1.0, -1.0, 2.0]), torch.tensor([1, 1, 1]), offsets)
    second = rule.measure(torch.tensor([3.0]), torch.tensor([0]), torch.tensor([0, 1]))
    assert first.tolist() == [1, 3]
    assert rule.criterion(0.25, first + second) == 0.25 + 2 / 4


def test_by_predicted_share_counts_unlabelled_instances_only() -> None:
    x = torch.tensor([9.0, 9.0, 1.0, -1.0, -9.0, 2.0, 3.0, -1.0])  # bags of 5 and 3
    sums = ByPredictedShare(0.5).measure(x, torch.tensor([2, 1]), torch.tensor([0, 5, 8]))
    assert sums.tolist() == [2, 5]  # 1.0 and 3.0 of three and two


def test_by_label_accuracy_is_the_distance_of_the_accuracy() -> None:
    x = torch.tensor([9.0, -9.0, 1.0, -1.0, -9.0, 2.0, 3.0, -1.0])  # bags of 5 and 3
    labels, offsets = torch.tensor([2, 1]), torch.tensor([0, 5, 8])
    given_labels = torch.tensor([1, 1, 0, 0, 0, 1, 0, 0])
    for mixture in (0.2, 0.5, 0.9):
        rule = ByLabelAccuracy(mixture, labeled_per_unlabeled=3 / 5)
        wanted = 1 - mixture * 5 / 8
        apart = abs(float(((x > 0) == (given_labels == 1)).double().mean()) - wanted) * 8
        assert rule.criterion(0.0, rule.measure(x, labels, offsets)) == math.floor(apart + 0.5) + 0.5


def test_by_label_accuracy_counts_a_positive_once_however_often_it_is_dealt() -> None:
    rule = ByLabelAccuracy(0.5, labeled_per_unlabeled=0.25)  # one labelled, four unlabelled, in two bags
    x = torch.tensor([-1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    sums = rule.measure(x, torch.tensor([1, 1]), torch.tensor([0, 3, 6]))
    assert rule.criterion(0.0, sums) == 1.5  # one missed, two of two found


def test_the_labelled_count_in_the_accuracy_alone() -> None:
    """One of two unlabelled is found, as the mixture says, and one of two labelled is missed."""
    offsets, labels = torch.tensor([0, 4]), torch.tensor([2])
    x = torch.tensor([1.0, -1.0, 1.0, -1.0])
    share, accuracy = ByPredictedShare(0.5), ByLabelAccuracy(0.5, labeled_per_unlabeled=1.0)
    assert share.criterion(0.0, share.measure(x, labels, offsets)) == 0.5
    assert accuracy.criterion(0.0, accuracy.measure(x, labels, offsets)) == 1.5


@given(
    unlabelled=st.integers(1, 20_000),
    mixture=st.floats(0, 1),
    one=st.tuples(st.floats(0, 1), LOSSES),
    other=st.tuples(st.floats(0, 1), LOSSES),
    step=st.integers(-3, 3),
)
def test_by_predicted_share_is_lexicographic(
    unlabelled: int, mixture: float, one: tuple[float, float], other: tuple[float, float], step: int
) -> None:
    """First the distance in whole instances, then the loss."""
    rule = ByPredictedShare(mixture)
    first = round(one[0] * unlabelled)
    second = min(max(first + step, 0), unlabelled) if step else round(other[0] * unlabelled)

    def judged(positives: int, loss: float) -> tuple[int, float, float]:
        apart = abs(positives - mixture * unlabelled)
        value = rule.criterion(loss, torch.tensor([positives, unlabelled], dtype=torch.float64))
        return int(apart + 0.5), loss, value

    a, b = sorted([judged(first, one[1]), judged(second, other[1])])
    if a[0] < b[0] or b[1] - a[1] > 1e-3:
        assert a[2] < b[2]
    elif a[:2] == b[:2]:
        assert a[2] == b[2]


@pytest.mark.parametrize("loss", [-1e300, -1e3, 0.0, 40.0, 1e6])
def test_by_predicted_share_stays_within_its_instance(loss: float) -> None:
    sums = torch.tensor([7.0, 10.0], dtype=torch.float64)
    assert 2.0 <= ByPredictedShare(0.5).criterion(loss, sums) <= 3.0


def test_by_predicted_share_tells_half_instances_apart() -> None:
    criteria = [ByPredictedShare(0.5).criterion(0.0, torch.tensor([k, 5.0], dtype=torch.float64)) for k in (3, 4, 5)]
    assert criteria == [1.5, 2.5, 3.5]  # 0.5, 1.5 and 2.5 apart


def scripted(criteria: list[float], **options: Any) -> Trained:
    data, valid = halves(some_bags(14, rule=Scripted(criteria)), 10)
    return train(data, valid, **({"epochs": len(criteria)} | options))


def test_large_counts_and_close_losses_are_told_apart_in_training() -> None:
    """Float32 knows no difference between these."""
    found = scripted([20_000.5, 20_000.4999, 20_000.4998], patience=1)
    assert [entry["criterion"] for entry in found.history] == [20_000.5, 20_000.4999, 20_000.4998]
    assert found.best == 2


@pytest.mark.parametrize(
    ("criteria", "patience", "epochs", "best"),
    [
        ([3, 2, 1, 4, 5, 0], 2, 5, 2),
        ([3, 4, 2, 4, 1, 5, 6, 0], 2, 7, 4),  # the best is updated: known mistake 11
        ([1, 1, 0], 1, 2, 0),  # equal is not better
        ([1, 2, 0, 3, 4, 5], 3, 6, 2),
        ([1, 2, 3, 4], None, 4, 0),
    ],
)
def test_patience_stops_at_the_right_epoch(criteria: list[float], patience: int | None, epochs: int, best: int) -> None:
    found = scripted(criteria, patience=patience)
    assert len(found.history) == epochs
    assert found.best == best


@pytest.mark.parametrize(
    ("criteria", "epochs", "best"),
    [
        ([1, 2, 3, 4, 5, 6, 0, 8, 9, 9], 5, 0),  # three epochs of ten are warm-up, and two of patience follow
        ([1, 2, 3, 4, 0, 6, 7, 8, 9, 9], 7, 4),  # after it, as with any schedule
    ],
)
def test_patience_begins_when_the_rate_has_risen(criteria: list[float], epochs: int, best: int) -> None:
    found = scripted(criteria, patience=2, schedule="one-cycle")
    assert len(found.history) == epochs
    assert found.best == best


@pytest.mark.parametrize("patience", [1, 2])
def test_a_run_that_had_stopped_does_not_train_on(tmp_path: Path, patience: int) -> None:
    options: Any = {"patience": patience, "checkpoint": tmp_path / "c"}
    stopped = scripted([2.0, 1.0, 3.0, 4.0, 0.0], **options)
    assert len(stopped.history) == 2 + patience
    again = scripted([], epochs=9, **options)  # would fail if it were asked
    assert again.history == stopped.history
    assert again.best == 1
    assert torch.equal(again.weights, stopped.weights)


def test_a_run_that_had_stopped_goes_on_with_more_patience(tmp_path: Path) -> None:
    criteria = [1.0, 2.0, 3.0, 0.5, 4.0, 5.0, 6.0]
    scripted(criteria, patience=2, checkpoint=tmp_path / "c")
    found = scripted(criteria[3:], epochs=7, patience=3, checkpoint=tmp_path / "c")
    assert [entry["criterion"] for entry in found.history] == criteria
    assert found.best == 3


def test_stopping_sees_validation_data_only() -> None:
    """The training loss falls; it is not looked at."""
    seen: list[list[int]] = []

    class Watch(ByLoss):
        def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
            seen.append(labels.tolist())
            return super().measure(logits, labels, offsets)

    data, valid = halves(some_bags(14, rule=Watch()), 10)
    found = train(data, valid, lr=0.05, epochs=3, patience=2, batch_size=10)
    assert seen == [valid.labels.tolist()] * 3
    assert [entry["criterion"] for entry in found.history] == [entry["val_loss"] for entry in found.history]
    assert found.history[-1]["train_loss"] < found.history[0]["train_loss"]


def test_what_is_held_out_does_not_change_the_steps() -> None:
    """With other validation labels the weights after each epoch are the same; only which is kept may differ."""

    def seen(**changes: Any) -> list[Tensor]:
        data, valid = halves(some_bags(14), 10)
        found: list[Tensor] = []
        options: Any = {"callback": lambda net, entry: found.append(torch.cat([p.flatten() for p in net.parameters()]))}
        train(data, replace(valid, **changes), epochs=3, **options)
        return [each.detach().clone() for each in found]

    assert all(map(torch.equal, seen(), seen(labels=torch.zeros(4, dtype=torch.int64))))


def test_by_predicted_share_in_training_counts_every_unlabelled_once() -> None:
    class Watch(ByPredictedShare):
        def criterion(self, loss: float, sums: Tensor) -> float:
            totals.append(sums.tolist())
            return super().criterion(loss, sums)

    totals: list[list[float]] = []
    data, valid = halves(some_pu(64, size=7, rule=Watch(0.5)), 40)  # 18 unlabelled in three bags
    found = train(data, valid, epochs=2)
    with torch.no_grad():
        x = found.network(torch.from_numpy(data.instances)).flatten()
    assert [total[1] for total in totals] == [18, 18]
    assert found.best is not None
    rows = torch.arange(40, 64)
    assert isinstance(data, PUProblem)
    assert totals[found.best][0] == int((x[rows][~data.labeled[rows]] > 0).sum())
