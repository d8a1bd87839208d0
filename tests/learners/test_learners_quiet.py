"""Nothing is printed, written, warned of or drawn that was not asked for; the same seed gives the same model."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import torch
from child_processes import finish, start
from learner_cases import FEATURES, RESUMABLE, network, resumable, some_bags, some_pu, train
from sklearn.ensemble import RandomForestClassifier
from torch import nn

import kofn
from kofn.learners import Learner

QUICK: dict[str, Callable[[], Learner]] = {
    "trees": lambda: kofn.Trees(max_rounds=12, patience=3),
    "fixed trees": lambda: kofn.Trees(rounds=8),
    "linear": lambda: kofn.Linear(penalties=(0.1, 0.01)),
    "network": lambda: kofn.Network(hidden=(4,), dropout=0.3, epochs=3, batch_size=4, patience=2),
    "em": lambda: kofn.EM(RandomForestClassifier(5, min_samples_leaf=8), rounds=3),
}
each = pytest.mark.parametrize("learner", QUICK)
each_task = pytest.mark.parametrize("task", ["llp", "pu"])


@pytest.fixture(scope="module", autouse=True)
def once() -> None:
    """The first optimizer of a process makes a folder for torch's compiler."""
    kofn.Network(epochs=1).fit(some_bags(4), seed=0)


def problem(task: str) -> Any:
    return some_bags(40, seed=3) if task == "llp" else some_pu(160, size=20)


@each
@each_task
def test_nothing_is_printed_or_written(
    learner: str, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fitted = QUICK[learner]().fit(problem(task), seed=0)
    fitted.logits(problem(task).instances)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.rglob("*")) == []


def test_a_checkpoint_is_all_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for epochs in (1, 3):
        resumable("llp", epochs=epochs, checkpoint="run")
    assert capfd.readouterr() == ("", "")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["run"]


@each
@each_task
def test_global_generators_are_left_alone(learner: str, task: str) -> None:
    before = random.getstate(), str(np.random.get_state()), torch.get_rng_state()
    QUICK[learner]().fit(problem(task), seed=0)
    assert random.getstate() == before[0]
    assert str(np.random.get_state()) == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])


class Noisy(nn.Linear):
    """Draws in evaluation too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + 0.01 * torch.randn(len(x), 1)


def test_a_network_that_always_draws_leaves_them_alone_too() -> None:
    module = Noisy(FEATURES, 1)
    before = torch.get_rng_state()
    one, two = (kofn.Network(module, epochs=2).fit(some_bags(40), seed=0) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert one.history == two.history


@each
@each_task
def test_the_same_seed_gives_the_same_model(learner: str, task: str) -> None:
    """Known mistake 10: seeds that do nothing."""
    x = problem(task).instances
    one, other = (QUICK[learner]().fit(problem(task), seed=seed) for seed in (0, 1))
    torch.rand(3)
    again = QUICK[learner]().fit(problem(task), seed=0)
    assert np.array_equal(one.logits(x), again.logits(x))
    assert one.history == again.history
    if learner == "linear":  # nothing is random but the folds
        assert one.history != other.history
    else:
        assert not np.array_equal(one.logits(x), other.logits(x))


@pytest.mark.parametrize("learner", ["network", "trees", "linear", "em"])
def test_two_fits_in_two_threads_are_two_fits_in_turn(learner: str) -> None:
    data = some_bags(40, seed=3)
    made: Any = kofn.Network(hidden=(16,), dropout=0.5, epochs=12) if learner == "network" else QUICK[learner]()
    alone = [made.fit(data, seed=seed) for seed in (0, 0, 1)]
    gate = Barrier(3)

    def fit(seed: int) -> Any:
        gate.wait()
        return made.fit(data, seed=seed)

    before = torch.get_rng_state()
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(fit, (0, 0, 1)))
    assert torch.equal(torch.get_rng_state(), before)
    for one, other in zip(alone, together, strict=True):
        assert one.history == other.history
        assert np.array_equal(one.logits(data.instances), other.logits(data.instances))


FIRST = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import kofn
from learner_cases import some_bags

sys.setswitchinterval(1e-6)
gate, data = Barrier(8), some_bags(8)
import accelerate

def fit(seed):
    gate.wait()
    return kofn.Network(epochs=1).fit(data, seed=seed)

with ThreadPoolExecutor(8) as pool:
    list(pool.map(fit, range(8)))
"""


@pytest.mark.slow
def test_the_first_fits_of_a_process_may_be_at_once() -> None:
    """Accelerate finds out about devices and processes once, which a second thread could see half done."""
    assert finish(start(FIRST)) == ""


def test_each_epoch_has_its_own_order_and_dropout() -> None:
    """Of one bag, which has no order, and with weights that do not move, losses of epochs differ by dropout alone."""
    still = train(some_bags(1), net=network(dropout=0.5, hidden=32), lr=0.0, epochs=3)
    assert len({entry["train_loss"] for entry in still.history}) == 3
    seen: list[list[float]] = []

    class Watch(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x[:, 0].tolist())
            return super().forward(x)

    train(some_bags(), net=Watch(FEATURES, 1), batch_size=10, epochs=3)
    assert seen[0] != seen[1] != seen[2]
    assert sorted(seen[0]) == sorted(seen[1]) == sorted(seen[2])


@pytest.mark.parametrize("task", RESUMABLE)
def test_weights_are_the_same_bit_for_bit(task: str) -> None:
    one, two = (resumable(task, epochs=3) for _ in range(2))
    assert torch.equal(one.weights, two.weights)
    assert one.history == two.history


@each
def test_progress_is_told(learner: str) -> None:
    told: list[Any] = []
    fitted = QUICK[learner]().fit(some_bags(40, seed=3), seed=0, progress=lambda *args: told.append(args))
    assert told
    for what, step, of, losses in told:
        assert isinstance(what, str)
        assert 1 <= step <= of
        assert losses
        assert all(isinstance(value, float) for value in losses.values())
    if learner in ("network", "em"):
        assert [losses for *_, losses in told] == fitted.history


def test_a_callback_for_each_epoch() -> None:
    seen: list[Any] = []

    def callback(net: nn.Module, entry: Any) -> None:
        assert not net.training
        seen.append(dict(entry))

    fitted = kofn.Network(epochs=4, callback=callback).fit(some_bags(40), seed=0)
    assert seen == fitted.history
    assert [set(entry) for entry in seen] == [{"epoch", "train_loss", "val_loss", "criterion"}] * 4


@each
def test_ctrl_c_is_a_keyboard_interrupt(learner: str) -> None:
    def press(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        QUICK[learner]().fit(some_bags(40), seed=0, progress=press)
