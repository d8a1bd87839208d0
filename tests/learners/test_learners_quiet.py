"""Nothing is printed, written, warned of or drawn that was not asked for; the same seed gives the same network."""

from __future__ import annotations

import csv
import logging
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from training_cases import FEATURES, RESUMABLE, llp_data, llp_module, network, some_bags, some_pu, weights

import kofn
from kofn.training import CountData, fit


def llp_table() -> tuple[Any, Any, Any]:
    """Rows, the share of positives of their bag, their bag."""
    data = some_bags(12)
    shares = data.bags.mean((data.instances[:, 0] > 0).double())
    of = torch.arange(12).repeat_interleave(data.bags.sizes)
    return data.instances.numpy(), shares[of].numpy(), of.numpy()


def llp_classifier(**options: Any) -> Any:
    chosen = {"hidden": (4,), "dropout": 0.3, "epochs": 3, "batch_size": 4, "random_state": 0, "patience": 2}
    return kofn.LLPClassifier(**(chosen | options))  # type: ignore[arg-type]


def parameters(model: Any) -> torch.Tensor:
    return torch.nn.utils.parameters_to_vector(model.network_.parameters()).detach()


@pytest.mark.parametrize("task", RESUMABLE)
@pytest.mark.filterwarnings("error")
def test_nothing_is_printed_or_written(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    module, data = RESUMABLE[task]()
    fit(module, data, epochs=2, patience=2 if data.valid else None)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.rglob("*")) == []


def test_a_checkpoint_is_all_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for epochs in (1, 3):
        module, data = RESUMABLE["llp"]()
        fit(module, data, epochs=epochs, patience=2, checkpoint="run")
    assert capfd.readouterr() == ("", "")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["run", "run/last.ckpt"]


def test_estimators_are_quiet_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    llp_classifier().fit(*llp_table())
    data = some_pu()
    labels = np.where(data.labeled.numpy(), 1, -1)
    kofn.PUClassifier(mixture=0.5, epochs=2, random_state=0).fit(data.instances.numpy(), labels)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.rglob("*")) == []


def test_loggers_are_as_loud_as_before() -> None:
    names = ["lightning.pytorch", "lightning.fabric", "lightning"]
    before = [logging.getLogger(name).level for name in names]
    fit(llp_module(), llp_data(), epochs=1)
    assert [logging.getLogger(name).level for name in names] == before
    data = some_bags()
    data.instances[0] = float("nan")
    with pytest.raises(ValueError, match="training loss"):
        fit(llp_module(), CountData(data), epochs=1)
    assert [logging.getLogger(name).level for name in names] == before


def test_estimators_leave_torchs_stream_alone() -> None:
    table = llp_table()
    torch.manual_seed(3)
    wanted = torch.rand(5)
    for random_state in (0, 1):
        torch.manual_seed(3)
        llp_classifier(random_state=random_state).fit(*table)
        assert torch.equal(torch.rand(5), wanted)


def test_without_a_seed_torchs_stream_is_not_set() -> None:
    """Without dropout nothing is drawn from it at all."""
    torch.manual_seed(3)
    wanted = torch.rand(5)
    torch.manual_seed(3)
    fit(llp_module(), llp_data(4), epochs=2)
    assert torch.equal(torch.rand(5), wanted)


def test_progress_shows_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.chdir(tmp_path)
    fit(llp_module(), llp_data(4), epochs=2, progress=True)
    out, err = capfd.readouterr()
    assert "Epoch 1" in out + err
    assert "train_loss=" in out + err
    assert "tip" not in (out + err).lower()
    assert list(tmp_path.rglob("*")) == []


def test_a_csv_logger_receives_each_epoch_once(tmp_path: Path) -> None:
    module = llp_module()
    logger = CSVLogger(str(tmp_path), name="run", version=0)
    fit(module, llp_data(4, batch_size=3), epochs=3, trainer={"logger": logger})
    with (tmp_path / "run" / "version_0" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name in ("train_loss", "val_loss", "criterion"):
        told = [float(row[name]) for row in rows if row[name]]
        assert told == pytest.approx([entry[name] for entry in module.history], rel=1e-6)
    assert {row["epoch"] for row in rows} == {"0", "1", "2"}
    assert not list(tmp_path.rglob("*.ckpt"))


def test_a_tensorboard_logger_receives_each_epoch_once(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

    module = llp_module()
    logger = TensorBoardLogger(str(tmp_path), name="run", version=0)
    fit(module, llp_data(4, batch_size=3), epochs=3, trainer={"logger": logger})
    events = EventAccumulator(str(tmp_path / "run" / "version_0"))
    events.Reload()
    for name in ("train_loss", "val_loss", "criterion"):
        told = [event.value for event in events.Scalars(name)]
        assert told == pytest.approx([entry[name] for entry in module.history], rel=1e-6)


def test_options_of_the_trainer_come_in_place_of_ours() -> None:
    module = llp_module()
    machine = fit(module, llp_data(), epochs=5, trainer={"max_epochs": 2, "gradient_clip_val": 0.5})
    assert len(module.history) == 2
    assert machine.gradient_clip_val == 0.5


@pytest.mark.parametrize("task", RESUMABLE)
def test_the_same_seed_gives_the_same_network(task: str) -> None:
    """Known mistake 10, seeds that do nothing: of the order of bags and of dropout, each matters."""

    def trained(**seeds: int) -> torch.Tensor:
        module, data = RESUMABLE[task]()
        module.seed, data.seed = seeds.get("module", 5), seeds.get("data", 5)
        torch.rand(3)
        fit(module, data, epochs=3)
        return torch.tensor([entry["train_loss"] for entry in module.history])

    assert torch.equal(trained(), trained())
    assert not torch.equal(trained(), trained(module=6))
    assert not torch.equal(trained(), trained(data=6))


def test_each_epoch_has_its_own_order_and_dropout() -> None:
    """Of one bag, which has no order, and with weights that do not move, losses of epochs differ by dropout alone."""
    module = llp_module(network=network(dropout=0.5, hidden=32), lr=0.0, seed=0)
    fit(module, CountData(some_bags(1)), epochs=3)
    assert len({entry["train_loss"] for entry in module.history}) == 3
    seen: list[list[float]] = []

    class Watch(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x[:, 0].tolist())
            return super().forward(x)

    fit(llp_module(network=Watch(FEATURES, 1), seed=0), llp_data(batch_size=10), epochs=3)
    assert seen[0] != seen[1] != seen[2]
    assert sorted(seen[0]) == sorted(seen[1]) == sorted(seen[2])


def test_estimators_with_the_same_random_state_are_the_same() -> None:
    table = llp_table()
    one, same, other = (llp_classifier(random_state=seed).fit(*table) for seed in (0, 0, 1))
    assert torch.equal(parameters(one), parameters(same))
    assert one.history_ == same.history_
    assert not torch.equal(parameters(one), parameters(other))


def test_weights_are_the_same_bit_for_bit() -> None:
    made = []
    for _ in range(2):
        module, data = RESUMABLE["llp"]()
        fit(module, data, epochs=3)
        made.append(weights(module))
    assert torch.equal(*made)
