"""Seeds, copies, pickles, and fits that are cut off and go on."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from estimator_cases import UNLEARNT, bags_task, pu_task, quick
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kofn
from kofn import learners

TASK = bags_task(bags=24)
PU = pu_task(rows=120)
pytestmark = UNLEARNT


def drops(**options: Any) -> dict[str, Any]:
    return quick(**({"hidden": (6,), "dropout": 0.3} | options))


FITS: dict[str, Any] = {
    "llp": lambda **o: kofn.LLPClassifier(**drops(**o)).fit(TASK.X, TASK.y, groups=TASK.groups),
    "mil": lambda **o: kofn.MILClassifier(**drops(**o)).fit(TASK.X, TASK.any, groups=TASK.groups),
    "attention": lambda **o: kofn.MILClassifier(**drops(loss="attention", **o)).fit(
        TASK.X, TASK.any, groups=TASK.groups
    ),
    "pu": lambda **o: kofn.PUClassifier(mixture=0.3, **drops(**o)).fit(PU[0], PU[2]),
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
def test_clones_are_unfitted_and_equal(name: str) -> None:
    model = FITS[name]()
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copy.learner.get_params() == model.learner.get_params()
    assert copy.learner is not model.learner
    with pytest.raises(NotFittedError):
        copy.predict(TASK.X)
    assert type(clone(kofn.LLPClassifier(learners.mlp(2))).learner) is torch.nn.Sequential


@each
def test_parameters(name: str) -> None:
    model = FITS[name]()
    assert model.set_params(learner__lr=0.5, learner__hidden=(2, 3)) is model
    assert model.get_params()["learner__lr"] == model.learner.lr == 0.5
    assert model.get_params()["learner__hidden"] == (2, 3)
    with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator"):
        model.set_params(depth=3)


@each
def test_pickles(name: str, tmp_path: Path) -> None:
    model = FITS[name]()
    joblib.dump(model, tmp_path / "model")
    for copy in (joblib.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert same(copy, model)
        assert copy.learner.get_params() == model.learner.get_params()
        assert copy.classes_.tolist() == model.classes_.tolist()


def cut_after(epoch: int) -> Any:
    """Ctrl-C after an epoch."""

    def press(net: Any, entry: Any) -> None:
        if entry["epoch"] == epoch:
            raise KeyboardInterrupt

    return press


@each
def test_a_fit_that_was_cut_off_goes_on(name: str, tmp_path: Path) -> None:
    whole = FITS[name](epochs=5)
    with pytest.raises(KeyboardInterrupt):
        FITS[name](epochs=5, checkpoint=tmp_path / "c", callback=cut_after(2))
    assert [file.name for file in tmp_path.iterdir()] == ["c"]
    assert same(FITS[name](epochs=5, checkpoint=tmp_path / "c"), whole)
    assert same(FITS[name](epochs=5, checkpoint=tmp_path / "c"), whole)  # nothing left to do
    assert same(FITS[name](epochs=7, checkpoint=tmp_path / "c"), FITS[name](epochs=7))  # more epochs are welcome


def test_an_interrupted_fit_is_none() -> None:
    model = kofn.LLPClassifier(**quick(callback=cut_after(1)))
    with pytest.raises(KeyboardInterrupt):
        model.fit(TASK.X, TASK.y, groups=TASK.groups)
    with pytest.raises(NotFittedError):
        model.predict(TASK.X)


def test_a_learner_is_not_changed_by_a_fit() -> None:
    learner = kofn.Trees(max_rounds=5)
    before = dict(vars(learner))
    kofn.LLPClassifier(learner, random_state=0).fit(TASK.X, TASK.y, groups=TASK.groups)
    assert vars(learner) == before


def test_progress_is_handed_on() -> None:
    told: list[Any] = []
    FITS["llp"](progress=lambda *args: told.append(args))
    assert [(what, step, of) for what, step, of, _ in told] == [("training", step, 4) for step in range(1, 5)]


def test_nothing_is_written_or_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for fit in FITS.values():
        fit()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
