"""A fit that was cut off goes on bit for bit as if nothing had happened, and only if it is the same fit."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from child_processes import finish, start
from learner_cases import RESUMABLE, Scripted, halves, network, resumable, some_bags, train
from torch import nn

import kofn
from kofn._io.model_file import read_model, write_model


class CutError(Exception):
    """What a run ends with in these tests."""


class CutOff(nn.Module):
    """Raises in the middle of an epoch, which it tells by the number of batches it has seen in training."""

    def __init__(self, after: int, error: BaseException) -> None:
        super().__init__()
        self.inside, self.left, self.error = network(dropout=0.4, hidden=8), after, error

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.left -= self.training
        if self.left < 0:
            raise self.error
        logits: torch.Tensor = self.inside(x)
        return logits


def cut_off(task: str, after: int, error: BaseException, **options: Any) -> None:
    on, valid, chosen = RESUMABLE[task]()
    train(on, valid, net=CutOff(after, error), seed=5, **(chosen | options))


def uncut(task: str, **options: Any) -> Any:
    on, valid, chosen = RESUMABLE[task]()
    return train(on, valid, net=CutOff(10**6, CutError()), seed=5, **(chosen | options))


@pytest.mark.parametrize("task", RESUMABLE)
@pytest.mark.parametrize("how", ["fewer epochs", "an exception"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_resumed_is_uninterrupted(tmp_path: Path, task: str, how: str, accumulate: int) -> None:
    options: Any = {"accumulate": accumulate, "epochs": 6}
    whole = uncut(task, checkpoint=tmp_path / "whole", **options)
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1

    if how == "fewer epochs":
        uncut(task, checkpoint=tmp_path / "cut", accumulate=accumulate, epochs=3)
    else:
        on, valid, chosen = RESUMABLE[task]()
        net = CutOff(10**6, CutError())
        batches: list[int] = []
        chosen |= {"accumulate": accumulate, "callback": lambda *_: batches.append(10**6 - net.left)}
        train(on, valid, net=net, seed=5, epochs=1, **chosen)
        with pytest.raises(CutError):
            cut_off(task, 3 * batches[0] + 1, CutError(), checkpoint=tmp_path / "cut", **options)
    assert [entry["epoch"] for entry in read_model(tmp_path / "cut").facts["history"]] == [1, 2, 3]
    torch.rand(7)  # what else draws from torch's stream does not matter
    second = uncut(task, checkpoint=tmp_path / "cut", callback=count, **options)
    assert seen == 3
    assert second.history == whole.history
    assert second.best == whole.best
    assert torch.equal(second.weights, whole.weights)
    one, other = (read_model(tmp_path / run) for run in ("whole", "cut"))
    assert one.facts == other.facts
    assert set(one.tensors) == set(other.tensors)
    assert all(torch.equal(value, other.tensors[name]) for name, value in one.tensors.items())  # the optimizer's too


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    first = resumable("llp", epochs=4, checkpoint=tmp_path / "c")
    written = (tmp_path / "c").stat().st_mtime_ns
    again = resumable("llp", epochs=4, checkpoint=str(tmp_path / "c"))
    assert again.history == first.history
    assert torch.equal(again.weights, first.weights)
    assert (tmp_path / "c").stat().st_mtime_ns == written


def test_the_best_of_before_is_kept(tmp_path: Path) -> None:
    """The best epoch lies before the cut: its weights come from the checkpoint."""
    criteria = [3.0, 1.0, 2.0, 4.0, 5.0]
    found = []
    for epochs, rest in ((3, criteria), (5, criteria[3:])):
        data = halves(some_bags(14, rule=Scripted(rest)), 10)
        found.append(train(*data, epochs=epochs, checkpoint=tmp_path / "c"))
    assert found[1].best == 1
    assert torch.equal(found[1].weights, found[0].weights)


def test_one_file_that_may_be_moved(tmp_path: Path) -> None:
    whole = resumable("llp", epochs=4)
    resumable("llp", epochs=2, checkpoint=tmp_path / "a" / "run")
    shutil.move(tmp_path / "a" / "run", tmp_path / "b")
    assert torch.equal(resumable("llp", epochs=4, checkpoint=tmp_path / "b").weights, whole.weights)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b"]


def test_a_failed_write_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c"
    resumable("llp", epochs=2, checkpoint=path)
    before = path.read_bytes()

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="no space left"):
        resumable("llp", epochs=4, checkpoint=path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize("part", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_checkpoint_is_named_with_its_cure(tmp_path: Path, part: float) -> None:
    path = tmp_path / "c"
    resumable("llp", checkpoint=path)
    data = path.read_bytes()
    cut = data[: int(part * len(data)) if isinstance(part, float) else part]
    path.write_bytes(cut)
    with pytest.raises(ValueError, match=rf"`checkpoint` must be a whole checkpoint; .*Delete {path} to start again"):
        resumable("llp", epochs=2, checkpoint=path)
    assert path.read_bytes() == cut


def test_an_altered_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    resumable("llp", checkpoint=path)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ValueError, match=r"`checkpoint` must be a whole checkpoint; .*altered"):
        resumable("llp", epochs=2, checkpoint=path)


def test_other_files_are_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "c"
    torch.save(torch.zeros(3), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"`checkpoint` must be a whole checkpoint; .* is none"):
        resumable("llp", checkpoint=path)
    assert path.read_bytes() == before
    path.unlink()
    kofn.LLPClassifier("linear").fit([[0.0], [1.0]], [0, 1]).save(path)
    with pytest.raises(ValueError, match=r"`checkpoint` must be .* of kind 'checkpoint'; .* 'LLPClassifier'"):
        resumable("llp", checkpoint=path)
    with pytest.raises(ValueError, match=r"`checkpoint` must be .*a folder"):
        resumable("llp", checkpoint=tmp_path)


@pytest.mark.parametrize("facts", [{}, {"identity": 3}, {"identity": {}, "history": 3}])
def test_a_forged_checkpoint_is_refused(tmp_path: Path, facts: dict[str, Any]) -> None:
    write_model(tmp_path / "c", kind="checkpoint", facts=facts, tensors={})
    with pytest.raises(ValueError, match="`checkpoint` must be"):
        resumable("llp", checkpoint=tmp_path / "c")


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_loading_executes_nothing(tmp_path: Path) -> None:
    path, traces = tmp_path / "c", tmp_path / "traces"
    path.write_bytes(pickle.dumps(Bomb(traces)))
    with pytest.raises(ValueError, match=r"`checkpoint` must be a whole checkpoint"):
        resumable("llp", checkpoint=path)
    assert not traces.exists()
    pickle.loads(path.read_bytes())
    assert traces.exists()  # so it was dangerous


def test_ctrl_c_is_a_keyboard_interrupt(tmp_path: Path) -> None:
    def press(net: nn.Module, entry: Any) -> None:
        if entry["epoch"] == 2:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        resumable("llp", epochs=4, checkpoint=tmp_path / "c", callback=press)
    assert signal.getsignal(signal.SIGINT) is before
    again = resumable("llp", epochs=4, checkpoint=tmp_path / "c")
    assert torch.equal(again.weights, resumable("llp", epochs=4).weights)


KILLED = """
import time
from learner_cases import resumable

task, folder, pause = sys.argv[1:]
found = resumable(task, epochs=8, checkpoint=folder + "/c", callback=lambda *_: time.sleep(float(pause)))
torch.save({"weights": found.weights, "history": found.history, "best": found.best}, folder + "/result.pt")
"""


def wait_for_two_checkpoints(process: subprocess.Popen[bytes], file: Path) -> None:
    versions: set[int] = set()
    deadline = time.monotonic() + 120
    while len(versions) < 2:
        assert process.poll() is None, process.communicate()[0].decode()
        assert time.monotonic() < deadline
        if file.exists():
            versions.add(file.stat().st_mtime_ns)
        time.sleep(0.005)


def stop(process: subprocess.Popen[bytes], how: signal.Signals, file: Path) -> None:
    wait_for_two_checkpoints(process, file)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == -how  # which is not 0
    assert 1 < len(read_model(file).facts["history"]) < 8


@pytest.mark.slow
def test_kill_in_the_middle_and_start_again(tmp_path: Path) -> None:
    """SIGKILL, which nothing can prepare for, after the second checkpoint."""
    stop(start(KILLED, "llp", tmp_path, 0.4), signal.SIGKILL, tmp_path / "c")
    assert not (tmp_path / "result.pt").exists()
    assert finish(start(KILLED, "llp", tmp_path, 0.0)) == ""
    resumed = torch.load(tmp_path / "result.pt", weights_only=True)
    whole = resumable("llp", epochs=8)  # uninterrupted, in a process that does much else
    assert resumed["history"] == whole.history
    assert resumed["best"] == whole.best
    assert torch.equal(resumed["weights"], whole.weights)


@pytest.mark.slow
def test_sigterm_is_no_success(tmp_path: Path) -> None:
    stop(start(KILLED, "llp", tmp_path, 0.4), signal.SIGTERM, tmp_path / "c")
