"""Rules of what is best and when to stop, judged on validation bags alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from training_cases import Scripted, llp_data, llp_module, pu_data, pu_module, weights

from kofn.batches import PUDataset
from kofn.training import ByLoss, ByLossAndError, ByPrior, CountModule, fit

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


def test_by_prior_counts_unlabelled_instances_only() -> None:
    x = torch.tensor([9.0, 9.0, 1.0, -1.0, -9.0, 2.0, 3.0, -1.0])  # bags of 5 and 3
    sums = ByPrior(0.5).measure(x, torch.tensor([2, 1]), torch.tensor([0, 5, 8]))
    assert sums.tolist() == [2, 5]  # 1.0 and 3.0 of three and two


@given(
    unlabelled=st.integers(1, 20_000),
    mixture=st.floats(0, 1),
    one=st.tuples(st.floats(0, 1), LOSSES),
    other=st.tuples(st.floats(0, 1), LOSSES),
    step=st.integers(-3, 3),
)
def test_by_prior_is_lexicographic(
    unlabelled: int, mixture: float, one: tuple[float, float], other: tuple[float, float], step: int
) -> None:
    """First the distance in whole instances, then the loss."""
    rule = ByPrior(mixture)
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
def test_by_prior_stays_within_its_instance(loss: float) -> None:
    sums = torch.tensor([7.0, 10.0], dtype=torch.float64)
    assert 2.0 <= ByPrior(0.5).criterion(loss, sums) <= 3.0


def test_by_prior_tells_half_instances_apart() -> None:
    criteria = [ByPrior(0.5).criterion(0.0, torch.tensor([k, 5.0], dtype=torch.float64)) for k in (3, 4, 5)]
    assert criteria == [1.5, 2.5, 3.5]  # 0.5, 1.5 and 2.5 apart


def test_large_counts_and_close_losses_are_told_apart_in_training() -> None:
    """Float32, which Lightning would log, knows no difference between these."""
    module = llp_module(rule=Scripted([20_000.5, 20_000.4999, 20_000.4998]))
    machine = fit(module, llp_data(4), epochs=3, patience=1)
    assert [entry["criterion"] for entry in module.history] == [20_000.5, 20_000.4999, 20_000.4998]
    assert module.best_epoch == 2
    assert machine.callback_metrics["criterion"].item() == 20_000.4998


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
    module = llp_module(rule=Scripted(criteria))
    fit(module, llp_data(4), epochs=len(criteria), patience=patience)
    assert len(module.history) == epochs
    assert module.best_epoch == best


@pytest.mark.parametrize("patience", [1, 2])
def test_a_run_that_had_stopped_does_not_train_on(tmp_path: Any, patience: int) -> None:
    criteria = [2.0, 1.0, 3.0, 4.0, 0.0]
    stopped = llp_module(rule=Scripted(criteria))
    fit(stopped, llp_data(4), epochs=5, patience=patience, checkpoint=tmp_path)
    assert len(stopped.history) == 2 + patience
    again = llp_module(rule=Scripted([]))  # would fail if it were asked
    fit(again, llp_data(4), epochs=9, patience=patience, checkpoint=tmp_path)
    assert again.history == stopped.history
    assert again.best_epoch == 1
    assert torch.equal(weights(again), weights(stopped))


def test_a_run_that_had_stopped_goes_on_with_more_patience(tmp_path: Any) -> None:
    criteria = [1.0, 2.0, 3.0, 0.5, 4.0, 5.0, 6.0]
    fit(llp_module(rule=Scripted(criteria)), llp_data(4), epochs=7, patience=2, checkpoint=tmp_path)
    module = llp_module(rule=Scripted(criteria[3:]))
    fit(module, llp_data(4), epochs=7, patience=3, checkpoint=tmp_path)
    assert [entry["criterion"] for entry in module.history] == criteria
    assert module.best_epoch == 3


def test_patience_counts_validations_not_epochs() -> None:
    module = llp_module(rule=Scripted([2.0, 1.0, 3.0, 4.0]))
    fit(module, llp_data(4), epochs=8, patience=2, trainer={"check_val_every_n_epoch": 2})
    assert len(module.history) == 8
    assert [entry["epoch"] for entry in module.history if "criterion" in entry] == [1, 3, 5, 7]
    assert module.best_epoch == 3


def test_stopping_sees_validation_data_only() -> None:
    """The same validation losses from a run whose training loss falls to nothing: it is not looked at."""
    seen: list[int] = []

    class Watch(ByLoss):
        def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
            seen.append(len(labels))
            return super().measure(logits, labels, offsets)

    data = llp_data(4)
    module = llp_module(rule=Watch(), lr=0.05)
    fit(module, data, epochs=3, patience=2)
    assert seen == [4, 4, 4]
    assert [entry["criterion"] for entry in module.history] == [entry["val_loss"] for entry in module.history]
    assert module.history[-1]["train_loss"] < module.history[0]["train_loss"]


def test_by_prior_in_training_counts_every_unlabelled_once() -> None:
    class Watch(ByPrior):
        def criterion(self, loss: float, sums: Tensor) -> float:
            totals.append(sums.tolist())
            return super().criterion(loss, sums)

    totals: list[list[float]] = []
    data = pu_data(24, batch_size=7)  # 18 unlabelled in three bags
    module: CountModule = pu_module(rule=Watch(0.5))
    fit(module, data, epochs=2)
    assert isinstance(data.valid, PUDataset)
    module.eval()
    with torch.no_grad():
        x = module.network(data.valid.instances).flatten()
    # The last epoch's weights need not be the kept ones: compare only if they are.
    assert [total[1] for total in totals] == [18, 18]
    assert module.best_epoch is not None
    assert totals[module.best_epoch][0] == int((x[~data.valid.labeled] > 0).sum())


@pytest.mark.parametrize("patience", [0, -1, 1.5])
def test_patience_must_be_a_number_of_epochs(patience: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"`patience` must be (at least 1|a whole number); got"):
        fit(llp_module(), llp_data(4), epochs=2, patience=patience)


def test_patience_needs_validation_data() -> None:
    with pytest.raises(ValueError, match=r"`patience` needs validation bags"):
        fit(llp_module(), llp_data(), epochs=2, patience=2)
