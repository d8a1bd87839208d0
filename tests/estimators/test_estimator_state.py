"""Seeds, warm starts, copies, pickles, and fits that are cut off and go on."""

from __future__ import annotations

import pickle
import signal
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from estimator_cases import QUICK, bags_task, pu_task
from lightning.pytorch import Callback
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kofn
from kofn import models

TASK = bags_task(bags=24)
PU = pu_task(rows=120)
DROPS = QUICK | {"hidden": (6,), "dropout": 0.3}

FITS: dict[str, Any] = {
    "llp": lambda **o: kofn.LLPClassifier(**(DROPS | o)).fit(TASK.X, TASK.y, groups=TASK.groups),
    "mil": lambda **o: kofn.MILClassifier(**(DROPS | o)).fit(TASK.X, TASK.any, groups=TASK.groups),
    "attention": lambda **o: kofn.MILClassifier(**(DROPS | {"loss": "attention"} | o)).fit(
        TASK.X, TASK.any, groups=TASK.groups
    ),
    "pu": lambda **o: kofn.PUClassifier(mixture=0.3, **(DROPS | o)).fit(PU[0], PU[2]),
}
each = pytest.mark.parametrize("name", FITS)


def same(a: Any, b: Any) -> bool:
    return a.history_ == b.history_ and np.array_equal(a.decision_function(TASK.X), b.decision_function(TASK.X))


@each
def test_a_seed_makes_two_fits_identical(name: str) -> None:
    first = FITS[name]()
    torch.rand(3)
    np.random.rand(3)
    assert same(first, FITS[name]())
    assert same(first, FITS[name](random_state=np.int64(0)))
    assert not same(first, FITS[name](random_state=1))


@each
def test_no_seed_makes_them_differ(name: str) -> None:
    assert not same(FITS[name](random_state=None), FITS[name](random_state=None))


def test_without_a_seed_numpy_has_it_as_in_scikit_learn() -> None:
    fits = []
    for _ in range(2):
        np.random.seed(5)
        fits.append(FITS["llp"](random_state=None))
    assert same(*fits)
    state = np.random.RandomState(3)
    first, second = FITS["llp"](random_state=state), FITS["llp"](random_state=state)
    assert not same(first, second)  # it moves on
    assert same(first, FITS["llp"](random_state=np.random.RandomState(3)))


@each
def test_global_streams_are_left_alone(name: str) -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    expected = torch.rand(2), np.random.rand(2)
    torch.manual_seed(1)
    np.random.seed(1)
    model = FITS[name]()
    model.predict(TASK.X)
    assert torch.equal(torch.rand(2), expected[0])
    assert np.array_equal(np.random.rand(2), expected[1])


@each
def test_warm_start_goes_on(name: str) -> None:
    cold = FITS[name](dropout=0.0)
    first = cold.history_[0]["train_loss"]
    again = cold.set_params(warm_start=True)
    again.fit(*((PU[0], PU[2]) if name == "pu" else (TASK.X, TASK.y if name == "llp" else TASK.any, TASK.groups)))
    assert again.history_[0]["train_loss"] < first
    assert len(again.history_) == 4


def test_a_cold_start_starts_anew() -> None:
    model = FITS["llp"]()
    before = model.history_
    assert model.fit(TASK.X, TASK.y, groups=TASK.groups).history_ == before


def test_warm_start_trains_with_dropout() -> None:
    model = kofn.LLPClassifier(**(QUICK | {"hidden": (6,), "dropout": 0.9, "warm_start": True, "lr": 0.0}))
    losses = [
        model.fit(TASK.X, TASK.y, groups=TASK.groups).history_[-1]["train_loss"] for _ in range(2)
    ]  # lr 0: the same weights, so dropout alone makes epochs differ
    assert losses[0] == losses[1]
    assert len({entry["train_loss"] for entry in model.history_}) == 4
    assert not model.network_.training


def test_warm_start_with_other_shapes_starts_anew() -> None:
    model = FITS["llp"](warm_start=True, hidden=())
    wide = np.hstack([TASK.X, TASK.X])
    fresh = kofn.LLPClassifier(**(DROPS | {"hidden": ()})).fit(wide, TASK.y, groups=TASK.groups)
    assert np.array_equal(
        model.fit(wide, TASK.y, groups=TASK.groups).decision_function(wide), fresh.decision_function(wide)
    )
    assert model.set_params(hidden=(3,)).fit(TASK.X, TASK.y, groups=TASK.groups).network_[0].out_features == 3
    mil = FITS["mil"](warm_start=True).set_params(loss="attention")
    assert isinstance(mil.fit(TASK.X, TASK.any, groups=TASK.groups).network_, models.AttentionMIL)


@each
def test_clones_are_unfitted_and_equal(name: str) -> None:
    model = FITS[name]()
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(TASK.X)
    assert type(clone(kofn.LLPClassifier(models.mlp(2))).module) is torch.nn.Sequential


@each
def test_parameters(name: str) -> None:
    model = FITS[name]()
    assert model.set_params(lr=0.5, hidden=(2, 3)) is model
    assert model.get_params()["lr"] == 0.5
    assert model.get_params()["hidden"] == (2, 3)
    with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator"):
        model.set_params(depth=3)


@each
def test_pickles(name: str, tmp_path: Path) -> None:
    model = FITS[name]()
    joblib.dump(model, tmp_path / "model")
    for copy in (joblib.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert same(copy, model)
        assert copy.get_params() == model.get_params()
        assert copy.classes_.tolist() == model.classes_.tolist()


class Interrupt(Callback):
    """Ctrl-C in the third epoch."""

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.current_epoch == 2:
            raise KeyboardInterrupt


@each
def test_a_fit_that_was_cut_off_goes_on(name: str, tmp_path: Path) -> None:
    whole = FITS[name](epochs=5)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        FITS[name](epochs=5, checkpoint=tmp_path, trainer={"callbacks": [Interrupt()]})
    assert signal.getsignal(signal.SIGINT) is handler
    assert [file.name for file in tmp_path.iterdir()] == ["last.ckpt"]
    resumed = FITS[name](epochs=5, checkpoint=tmp_path)
    assert same(resumed, whole)
    assert same(FITS[name](epochs=5, checkpoint=tmp_path), whole)  # nothing left to do
    assert same(FITS[name](epochs=7, checkpoint=tmp_path), FITS[name](epochs=7))  # more epochs are welcome


def test_an_interrupted_fit_is_none() -> None:
    model = kofn.LLPClassifier(**(QUICK | {"trainer": {"callbacks": [Interrupt()]}}))
    with pytest.raises(KeyboardInterrupt):
        model.fit(TASK.X, TASK.y, groups=TASK.groups)
    with pytest.raises(NotFittedError):
        model.predict(TASK.X)


class Leave(Callback):
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        raise SystemExit(3)


def test_leaving_on_purpose_is_left_alone() -> None:
    with pytest.raises(SystemExit, match="3"):
        FITS["llp"](trainer={"callbacks": [Leave()]})


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    def fit(X: Any = TASK.X, **options: Any) -> Any:  # noqa: N803
        model = kofn.LLPClassifier(**(QUICK | {"checkpoint": tmp_path} | options))
        return model.fit(X, TASK.y, groups=TASK.groups)

    fit()
    for options, message in (
        ({"lr": 0.2}, "lr was 0.1 and is 0.2"),
        ({"hidden": (4,)}, r"hidden was \(\) and is \(4,\)"),
        ({"random_state": 1}, "seed was .* and is"),
        ({"X": TASK.X + 1e-3}, "data was .* and is"),
    ):
        with pytest.raises(ValueError, match=rf"`checkpoint` must be of the same fit; it is of another: .*{message}"):
            fit(**options)


def test_a_checkpoint_knows_factories_by_name(tmp_path: Path) -> None:
    def factory() -> Any:  # made anew each time: another address, the same name
        def network(features: int) -> torch.nn.Module:
            return models.mlp(features)

        return network

    options: dict[str, Any] = {"checkpoint": tmp_path, "label": "count"}
    for _ in range(2):
        law = lambda difference: -difference.abs()  # noqa: E731
        model = kofn.LLPClassifier(**(QUICK | options | {"module": factory(), "noise": law}))
        model.fit(TASK.X, TASK.repeated(TASK.counts), groups=TASK.groups)
    with pytest.raises(ValueError, match=r"module was .*factory\.<locals>\.network and is mlp"):
        model.set_params(module="mlp").fit(TASK.X, TASK.repeated(TASK.counts), groups=TASK.groups)


def test_nothing_is_written_or_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for fit in FITS.values():
        fit()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
