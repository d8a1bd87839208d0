"""A run that was cut off goes on bit for bit as if nothing had happened, and only if it is the same run."""

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
from lightning.pytorch import Callback
from training_cases import RESUMABLE, Scripted, llp_data, llp_module, weights

from kofn.training import fit
from kofn.training._checkpoints import AtomicCheckpointIO


class CutError(Exception):
    """What a run ends with in these tests."""


class CutOff(Callback):
    """Raises in the middle of an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if trainer.current_epoch == self.epoch and batch_idx == 1:
            raise CutError


@pytest.mark.parametrize("task", RESUMABLE)
@pytest.mark.parametrize("how", ["fewer epochs", "an exception"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_resumed_is_uninterrupted(tmp_path: Path, task: str, how: str, accumulate: int) -> None:
    whole, data = RESUMABLE[task]()
    fit(whole, data, epochs=6, accumulate=accumulate, checkpoint=tmp_path / "whole")
    first, data = RESUMABLE[task]()
    if how == "fewer epochs":
        fit(first, data, epochs=3, accumulate=accumulate, checkpoint=tmp_path / "cut")
    else:
        options: Any = {"callbacks": [CutOff(3)]}
        with pytest.raises(CutError):
            fit(first, data, epochs=6, accumulate=accumulate, checkpoint=tmp_path / "cut", trainer=options)
    assert [entry["epoch"] for entry in first.history] == [0, 1, 2]
    torch.rand(7)  # what else draws from torch's stream does not matter
    second, data = RESUMABLE[task]()
    fit(second, data, epochs=6, accumulate=accumulate, checkpoint=tmp_path / "cut")
    assert second.history == whole.history
    assert second.best_epoch == whole.best_epoch
    assert torch.equal(weights(second), weights(whole))
    one, other = (torch.load(tmp_path / run / "last.ckpt", weights_only=True) for run in ("whole", "cut"))
    for name, value in one["state_dict"].items():  # the last, not the best
        assert name == "_extra_state" or torch.equal(other["state_dict"][name], value)
    torch.testing.assert_close(other["optimizer_states"], one["optimizer_states"], rtol=0, atol=0)


def test_the_history_travels_with_the_weights() -> None:
    """As strategies that start processes of their own bring a module back."""
    module, data = RESUMABLE["llp"]()
    fit(module, data, epochs=2)
    other, _ = RESUMABLE["llp"]()
    other.load_state_dict(module.state_dict())
    assert other.history == module.history != []
    assert other.best_epoch == module.best_epoch


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    first, data = RESUMABLE["llp"]()
    fit(first, data, epochs=4, checkpoint=tmp_path)
    written = (tmp_path / "last.ckpt").stat().st_mtime_ns
    again, data = RESUMABLE["llp"]()
    fit(again, data, epochs=4, checkpoint=tmp_path)
    assert again.history == first.history
    assert torch.equal(weights(again), weights(first))
    assert (tmp_path / "last.ckpt").stat().st_mtime_ns == written


def test_the_best_of_before_is_kept(tmp_path: Path) -> None:
    """The best epoch lies before the cut: its weights come from the checkpoint."""
    criteria = [3.0, 1.0, 2.0, 4.0, 5.0]
    first = llp_module(rule=Scripted(criteria), seed=0)
    fit(first, llp_data(4), epochs=3, checkpoint=tmp_path)
    second = llp_module(rule=Scripted(criteria[3:]), seed=0)
    fit(second, llp_data(4), epochs=5, checkpoint=tmp_path)
    assert second.best_epoch == 1
    assert torch.equal(weights(second), weights(first))


def test_one_checkpoint_a_moved_folder(tmp_path: Path) -> None:
    whole, data = RESUMABLE["llp"]()
    fit(whole, data, epochs=4)
    module, data = RESUMABLE["llp"]()
    fit(module, data, epochs=2, checkpoint=tmp_path / "a")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["last.ckpt"]
    shutil.move(tmp_path / "a", tmp_path / "b")
    module, data = RESUMABLE["llp"]()
    fit(module, data, epochs=4, checkpoint=str(tmp_path / "b"))
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["last.ckpt"]
    assert torch.equal(weights(module), weights(whole))


def test_a_failed_write_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written aside in the same folder: a rename there is all or nothing, on every file system."""
    target = tmp_path / "last.ckpt"
    files = AtomicCheckpointIO()
    files.save_checkpoint({"state_dict": {}, "epoch": 1}, target)
    seen = []

    def fails(what: Any, to: Path) -> None:
        seen.append(Path(to).parent)
        Path(to).write_bytes(b"half")
        raise CutError

    monkeypatch.setattr(torch, "save", fails)
    with pytest.raises(CutError):
        files.save_checkpoint({"state_dict": {}, "epoch": 2}, target)
    assert seen == [tmp_path]
    assert files.load_checkpoint(target)["epoch"] == 1


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    module = llp_module(identity={"lr": "0.1", "hidden": "4", "seed": "1"})
    fit(module, llp_data(), epochs=1, checkpoint=tmp_path)
    other = llp_module(identity={"lr": "0.2", "hidden": "4", "seed": "2", "loss": "count"})
    before = weights(other)
    with pytest.raises(ValueError, match=r"of another: lr was 0\.1 and is 0\.2, seed was 1 and is 2, loss was None"):
        fit(other, llp_data(), epochs=2, checkpoint=tmp_path)
    assert torch.equal(weights(other), before)
    assert other.history == []
    same = llp_module(identity={"lr": "0.1", "hidden": "4", "seed": "1"})
    fit(same, llp_data(), epochs=2, checkpoint=tmp_path)
    assert len(same.history) == 2


def test_a_checkpoint_of_another_module_is_refused(tmp_path: Path) -> None:
    fit(llp_module(), llp_data(), epochs=1, checkpoint=tmp_path)
    path = tmp_path / "last.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    del checkpoint["kofn"]
    torch.save(checkpoint, path)
    with pytest.raises(ValueError, match=r"`checkpoint` must be of a CountModule"):
        fit(llp_module(), llp_data(), epochs=2, checkpoint=tmp_path)


@pytest.mark.parametrize("part", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_checkpoint_is_named_with_its_cure(tmp_path: Path, part: float) -> None:
    fit(llp_module(), llp_data(), epochs=1, checkpoint=tmp_path)
    path = tmp_path / "last.ckpt"
    data = path.read_bytes()
    cut = data[: int(part * len(data)) if isinstance(part, float) else part]
    path.write_bytes(cut)
    with pytest.raises(ValueError, match=rf"{path} cannot be read .* Delete it to start anew"):
        fit(llp_module(), llp_data(), epochs=2, checkpoint=tmp_path)
    assert path.read_bytes() == cut


def test_another_file_of_torch_is_no_checkpoint(tmp_path: Path) -> None:
    torch.save(torch.zeros(3), tmp_path / "last.ckpt")
    with pytest.raises(ValueError, match=r"last\.ckpt is none\. Delete it"):
        fit(llp_module(), llp_data(), epochs=2, checkpoint=tmp_path)


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("how", ["pickle", "torch", "inside"])
def test_loading_executes_nothing(tmp_path: Path, how: str) -> None:
    folder, traces = tmp_path / "run", tmp_path / "traces"
    fit(llp_module(), llp_data(), epochs=1, checkpoint=folder)
    path = folder / "last.ckpt"
    if how == "pickle":
        path.write_bytes(pickle.dumps(Bomb(traces)))
    elif how == "torch":
        torch.save(Bomb(traces), path)
    else:
        torch.save(torch.load(path, weights_only=True) | {"callbacks": {"x": Bomb(traces)}}, path)
    with pytest.raises(ValueError, match=r"holds more than tensors and plain values"):
        fit(llp_module(), llp_data(), epochs=2, checkpoint=folder)
    assert not traces.exists()
    torch.load(path, weights_only=False) if how != "pickle" else pickle.loads(path.read_bytes())
    assert traces.exists()  # so it was dangerous


def test_ctrl_c_is_a_keyboard_interrupt(tmp_path: Path) -> None:
    """Lightning alone would exit Python and leave the signal ignored."""

    class Press(Callback):
        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            if trainer.current_epoch == 2:
                signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    module, data = RESUMABLE["llp"]()
    with pytest.raises(KeyboardInterrupt):
        fit(module, data, epochs=4, checkpoint=tmp_path, trainer={"callbacks": [Press()]})
    assert signal.getsignal(signal.SIGINT) is before
    again, data = RESUMABLE["llp"]()
    fit(again, data, epochs=4, checkpoint=tmp_path)
    whole, data = RESUMABLE["llp"]()
    fit(whole, data, epochs=4)
    assert torch.equal(weights(again), weights(whole))


KILLED = """
import time
from lightning.pytorch import Callback
from kofn.training import fit
from training_cases import RESUMABLE, weights

class Slow(Callback):  # so that the kill comes in the middle
    def on_train_batch_end(self, *_):
        time.sleep(float(sys.argv[3]))

task, out, _ = sys.argv[1:]
module, data = RESUMABLE[task]()
fit(module, data, epochs=8, patience=8, checkpoint=out, trainer={"callbacks": [Slow()]})
torch.save({"weights": weights(module), "history": module.history, "best": module.best_epoch}, out + "/result.pt")
"""


def kill_after_two_checkpoints(process: subprocess.Popen[bytes], file: Path) -> None:
    versions: set[int] = set()
    deadline = time.monotonic() + 120
    while len(versions) < 2:
        assert process.poll() is None, process.communicate()[0].decode()
        assert time.monotonic() < deadline
        if file.exists():
            versions.add(file.stat().st_mtime_ns)
        time.sleep(0.005)
    time.sleep(0.12)  # into the next epoch
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_kill_in_the_middle_and_start_again(tmp_path: Path) -> None:
    """SIGKILL, which nothing can prepare for, after the second checkpoint."""
    kill_after_two_checkpoints(start(KILLED, "llp", tmp_path, 0.1), tmp_path / "last.ckpt")
    assert not (tmp_path / "result.pt").exists()
    kept = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert 1 < len(kept["state_dict"]["_extra_state"]["history"]) < 8
    assert finish(start(KILLED, "llp", tmp_path, 0.0)) == ""
    resumed = torch.load(tmp_path / "result.pt", weights_only=True)
    whole, data = RESUMABLE["llp"]()  # uninterrupted, in a process that does much else
    fit(whole, data, epochs=8, patience=8)
    assert resumed["history"] == whole.history
    assert resumed["best"] == whole.best_epoch
    assert torch.equal(resumed["weights"], weights(whole))
