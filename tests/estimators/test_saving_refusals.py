"""Places that no model is written to, and files that are no model."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from estimator_cases import bags_task, short_network
from model_file_cases import contents, forge
from sklearn.exceptions import NotFittedError

import kofn
from kofn.estimators import load

TASK = bags_task(bags=12)


def llp() -> Any:
    return kofn.LLPClassifier(short_network()).fit(TASK.X, TASK.y, groups=TASK.groups)


def mil() -> Any:
    return kofn.MILClassifier(short_network()).fit(TASK.X, TASK.any, groups=TASK.groups)


def test_saving_what_is_not_fitted(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        kofn.LLPClassifier().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_saving_over_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    for path, what in ((tmp_path, "is a folder"), (tmp_path / "thesis.tex", "is another file")):
        with pytest.raises(ValueError, match=f"must be free or a kofn model; it {what}"):
            llp().save(path)
    assert contents(tmp_path) == {"thesis.tex": b"x"}


def test_saving_over_an_older_one(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    mil().save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model"), kofn.MILClassifier)


def test_another_class(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    with pytest.raises(
        ValueError, match=r"must hold a model of kind 'MILClassifier'; it holds one of kind 'LLPClassifier'"
    ):
        kofn.MILClassifier.load(tmp_path / "model")
    forge(tmp_path / "model", kind="SVC")
    with pytest.raises(
        ValueError, match="must hold a model of kind 'LLPClassifier' or 'MILClassifier' or 'PUClassifier'"
    ):
        load(tmp_path / "model")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must be a file that kofn wrote a model to; there is none"):
        load(tmp_path / "model")


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "model"
    llp().save(path)
    whole = path.read_bytes()
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:-3]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="altered"):
            load(path)


def test_a_file_from_the_future(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    forge(tmp_path / "model", version=3, kofn="9.0")
    with pytest.raises(
        ValueError, match=r"written by kofn 9\.0, format version 3; this kofn reads up to 2: upgrade kofn"
    ):
        load(tmp_path / "model")


class Bomb:
    def __reduce__(self) -> Any:
        return (sys.exit, ("a pickle was executed",))


def test_loading_executes_nothing(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    (tmp_path / "model").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="is none, or its first bytes"):
        load(tmp_path / "model")


def test_loading_leaves_the_stream_alone(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    state = torch.get_rng_state()
    load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), state)
