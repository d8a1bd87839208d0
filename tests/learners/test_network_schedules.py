"""The learning rate over the steps of a fit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from training_cases import SGD, llp_data, llp_module, network, weights

from kofn.training import CountModule, fit

COSINE: Any = {"schedule": "cosine"}


class Rates(Callback):
    """Remembers the rates of each step, and can cut the run off before one."""

    def __init__(self, cut: int | None = None) -> None:
        self.rates: list[list[float]] = []
        self.cut = cut

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        if len(self.rates) == self.cut:
            raise KeyboardInterrupt
        self.rates.append([group["lr"] for group in optimizer.param_groups])


def cosine(steps: int) -> list[float]:
    return [(1 + math.cos(math.pi * (t + 0.5) / steps)) / 2 for t in range(steps)]


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_half_a_cosine_over_the_steps_of_the_fit(accumulate: int) -> None:
    """Four steps an epoch, three epochs, however many batches a step is made of."""
    seen = Rates()
    data = llp_data(batch_size=3)
    fit(llp_module(lr=0.2, **COSINE), data, epochs=3, accumulate=accumulate, trainer={"callbacks": [seen]})
    assert [rate for (rate,) in seen.rates] == pytest.approx([0.2 * share for share in cosine(12)])


def test_constant_is_the_default() -> None:
    seen = Rates()
    fit(llp_module(lr=0.2), llp_data(batch_size=3), epochs=3, trainer={"callbacks": [seen]})
    assert seen.rates == [[0.2]] * 12


def test_steps_are_as_long_as_the_rate_says() -> None:
    """Of a loss with the slope 1 gradient descent goes lr T / 2 downhill: that is the mean of half a cosine."""
    module = CountModule(network().double(), lambda x, y, o: x.mean().expand(len(y)), optimizer=SGD, **COSINE)
    bias = list(module.network.parameters())[-1]
    before = bias.item()
    fit(module, llp_data(batch_size=3), epochs=3)
    assert before - bias.item() == pytest.approx(0.3 * 12 / 2)


def test_one_cycle_goes_up_and_down() -> None:
    seen = Rates()
    fit(llp_module(lr=0.2, schedule="one-cycle"), llp_data(batch_size=1), epochs=5, trainer={"callbacks": [seen]})
    rates = [rate for (rate,) in seen.rates]  # of fifty steps, ten bags a time
    top = rates.index(max(rates))
    assert rates[:top] == pytest.approx([0.2 * (t + 0.5) / 15 for t in range(15)])
    assert rates[top:] == pytest.approx([0.2 * share for share in cosine(35)])


def test_each_group_of_an_optimizer_keeps_its_rate() -> None:
    def groups(parameters: Any) -> torch.optim.Optimizer:
        first, *others = parameters
        return torch.optim.SGD([{"params": [first], "lr": 0.1}, {"params": others, "lr": 0.01}])

    seen = Rates()
    fit(llp_module(optimizer=groups, **COSINE), llp_data(batch_size=5), epochs=2, trainer={"callbacks": [seen]})
    expected = [[0.1 * share, 0.01 * share] for share in cosine(4)]
    torch.testing.assert_close(torch.tensor(seen.rates), torch.tensor(expected))


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("schedule", ["cosine", "one-cycle"])
def test_resumed_is_uninterrupted(tmp_path: Path, accumulate: int, schedule: Any) -> None:
    def run(folder: str, *callbacks: Callback) -> CountModule:
        module = llp_module(seed=5, lr=0.05, schedule=schedule)
        options = {"callbacks": list(callbacks)}
        data = llp_data(6, batch_size=3, seed=5)
        fit(module, data, epochs=5, accumulate=accumulate, checkpoint=tmp_path / folder, trainer=options)
        return module

    whole, rest = Rates(), Rates()
    one = run("whole", whole)
    steps = len(whole.rates) // 5
    with pytest.raises(KeyboardInterrupt):
        run("cut", Rates(cut=2 * steps + 1))  # in the third epoch, which is done again
    other = run("cut", rest)
    assert rest.rates == whole.rates[2 * steps :]
    assert other.history == one.history
    assert torch.equal(weights(other), weights(one))


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="`schedule` must be one of 'constant', 'cosine', 'one-cycle'; got 'linear'"):
        llp_module(schedule="linear")
