"""The learning rate over the steps of a fit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from learner_cases import SGD, Trained, halves, network, some_bags, train


class Rates(torch.optim.SGD):
    """Remembers the rates of each step, and can cut the run off before one."""

    seen: list[list[float]]
    cut: int | None = None

    def step(self, closure: Any = None) -> Any:
        if len(self.seen) == self.cut:
            raise KeyboardInterrupt
        self.seen.append([group["lr"] for group in self.param_groups])
        return super().step(closure)


def watched(seen: list[list[float]], *, lr: float = 0.2, cut: int | None = None) -> Any:
    def make(parameters: Any) -> Rates:
        made = Rates(parameters, lr=lr)
        made.seen, made.cut = seen, cut
        return made

    return make


def cosine(steps: int) -> list[float]:
    return [(1 + math.cos(math.pi * (t + 0.5) / steps)) / 2 for t in range(steps)]


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_half_a_cosine_over_the_steps_of_the_fit(accumulate: int) -> None:
    """Four steps an epoch, three epochs, however many batches a step is made of."""
    seen: list[list[float]] = []
    options: Any = {"schedule": "cosine", "batch_size": 3, "epochs": 3}
    train(some_bags(), optimizer=watched(seen), accumulate=accumulate, **options)
    assert [rate for (rate,) in seen] == pytest.approx([0.2 * share for share in cosine(12)])


def test_constant_is_the_default() -> None:
    seen: list[list[float]] = []
    train(some_bags(), optimizer=watched(seen), batch_size=3, epochs=3)
    assert seen == [[0.2]] * 12


def test_steps_are_as_long_as_the_rate_says() -> None:
    """Of a loss with the slope 1 gradient descent goes lr T / 2 downhill: that is the mean of half a cosine."""
    net = network().double()
    bias = list(net.parameters())[-1]
    before = bias.item()
    data = some_bags(objective=lambda x, y, o: x.mean().expand(len(y)))
    train(data, net=net, optimizer=SGD, schedule="cosine", batch_size=3, epochs=3)
    assert before - bias.item() == pytest.approx(0.3 * 12 / 2)


def test_one_cycle_goes_up_and_down() -> None:
    seen: list[list[float]] = []
    train(some_bags(), optimizer=watched(seen), schedule="one-cycle", batch_size=1, epochs=5)
    rates = [rate for (rate,) in seen]  # of fifty steps, ten bags a time
    top = rates.index(max(rates))
    assert rates[:top] == pytest.approx([0.2 * (t + 0.5) / 15 for t in range(15)])
    assert rates[top:] == pytest.approx([0.2 * share for share in cosine(35)])


def test_each_group_of_an_optimizer_keeps_its_rate() -> None:
    seen: list[list[float]] = []

    def groups(parameters: Any) -> torch.optim.Optimizer:
        first, *others = parameters
        made = Rates([{"params": [first], "lr": 0.1}, {"params": others, "lr": 0.01}])
        made.seen = seen
        return made

    train(some_bags(), optimizer=groups, schedule="cosine", batch_size=5, epochs=2)
    expected = [[0.1 * share, 0.01 * share] for share in cosine(4)]
    torch.testing.assert_close(torch.tensor(seen), torch.tensor(expected))


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("schedule", ["cosine", "one-cycle"])
def test_resumed_is_uninterrupted(tmp_path: Path, accumulate: int, schedule: Any) -> None:
    def run(file: str, seen: list[list[float]], cut: int | None = None) -> Trained:
        options: Any = {"batch_size": 3, "schedule": schedule, "accumulate": accumulate, "epochs": 5}
        data = halves(some_bags(16), 10)
        return train(*data, optimizer=watched(seen, cut=cut), checkpoint=tmp_path / file, **options)

    whole: list[list[float]] = []
    rest: list[list[float]] = []
    one = run("whole", whole)
    steps = len(whole) // 5
    with pytest.raises(KeyboardInterrupt):
        run("cut", [], cut=2 * steps + 1)  # in the third epoch, which is done again
    other = run("cut", rest)
    assert rest == whole[2 * steps :]
    assert other.history == one.history
    assert torch.equal(other.weights, one.weights)
