"""Fitted estimators on disk come back as they were, and what is not theirs is refused."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from estimator_cases import bags_task, pu_task, quick
from model_file_cases import contents, forge
from sklearn.exceptions import NotFittedError

import kofn
from kofn import models
from kofn._model_file import read_model
from kofn.estimators import load

TASK = bags_task(bags=12)
X, Y, GROUPS = TASK.X, TASK.y, TASK.groups
ROWS, _, LABELS = pu_task(rows=80)


def llp(**options: Any) -> Any:
    return kofn.LLPClassifier(**quick(**options)).fit(X, Y, groups=GROUPS)


def mil(**options: Any) -> Any:
    return kofn.MILClassifier(**quick(**options)).fit(X, TASK.any, groups=GROUPS)


FITTED: dict[str, Any] = {
    "llp": llp,
    "mlp": lambda: llp(hidden=(5, 3), dropout=0.1),
    "llp on three bags": lambda: kofn.LLPClassifier(**quick()).fit(X[:12], Y[:12], groups=GROUPS[:12]),
    "noisy": lambda: llp(noise="laplace:1.0"),
    "mil": mil,
    "balanced": lambda: mil(positive_weight="balanced"),
    "attention": lambda: mil(loss="attention", hidden=(4,)),
    "gated": lambda: mil(loss="gated-attention", hidden=(4,)),
    "pu": lambda: kofn.PUClassifier(prior=0.6, **quick()).fit(ROWS, LABELS),
    "bf16": lambda: llp(precision="bf16-true"),
    "images": lambda: kofn.LLPClassifier(**quick()).fit(X.reshape(-1, 1, 1, 2), Y, groups=GROUPS),
    "by name": lambda: kofn.LLPClassifier("magic_mlp", epochs=1).fit(np.tile(X, 5), Y, groups=GROUPS),
}


def facts(model: Any) -> dict[str, Any]:
    """What a fitted estimator knows besides its network."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_") and name != "network_"}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}


@pytest.mark.parametrize("name", FITTED)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = FITTED[name]()
    model.save(tmp_path / "model")
    x = np.resize(X, (9, *model.instance_shape_))
    for copy in (load(tmp_path / "model"), type(model).load(str(tmp_path / "model"))):
        assert type(copy) is type(model)
        assert np.array_equal(copy.decision_function(x), model.decision_function(x))
        assert np.array_equal(copy.predict_bag_proba(x, np.arange(9) % 2), model.predict_bag_proba(x, np.arange(9) % 2))
        assert copy.get_params() == model.get_params()
        assert facts(copy) == facts(model)
        assert copy.classes_.dtype == model.classes_.dtype
        assert not copy.network_.training


@pytest.mark.parametrize(
    "names",
    [(0, 1), (-1, 1), (0.0, 1.0), (False, True), ("nej", "ja, då")],
    ids=lambda names: str(names[0]),
)
@pytest.mark.parametrize("kind", [kofn.LLPClassifier, kofn.MILClassifier], ids=["llp", "mil"])
def test_classes_come_back(names: tuple[Any, Any], kind: Any, tmp_path: Path) -> None:
    model = kind(**quick(**{"epochs": 1})).fit(X, np.array(sorted(names))[TASK.truth])
    model.save(tmp_path / "model")
    copy = kind.load(tmp_path / "model")
    assert copy.classes_.tolist() == sorted(names)
    assert copy.predict(X).dtype == model.predict(X).dtype
    assert np.array_equal(copy.predict(X), model.predict(X))


def test_classes_of_objects_and_columns_come_back(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=["age", "height"])
    model = kofn.MILClassifier(**quick()).fit(
        table, pd.Series(["a", "b"])[TASK.any].to_numpy(dtype=object), groups=GROUPS
    )
    model.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    assert copy.classes_.dtype == object
    assert copy.feature_names_in_.tolist() == ["age", "height"]
    with pytest.raises(ValueError, match="must be in the same order"):
        copy.predict(table[["height", "age"]])


def small(features: int) -> torch.nn.Module:
    return models.mlp(features, (3,))


@pytest.mark.parametrize("module", [models.mlp(2, (3,)), small], ids=["network", "factory"])
def test_a_network_of_your_own_is_asked_for(module: Any, tmp_path: Path) -> None:
    model = llp(module=module)
    model.save(tmp_path / "model")
    for read in (load, kofn.LLPClassifier.load):
        with pytest.raises(
            ValueError, match=r"`module` must be given to load .*LLPClassifier\.load\(path, module=\.\.\.\)"
        ):
            read(tmp_path / "model")
        assert np.array_equal(read(tmp_path / "model", module=module).predict_proba(X), model.predict_proba(X))
        with pytest.raises(
            ValueError, match=r"`module` must be the network that .* was trained with; (?s:.*)size mismatch"
        ):
            read(tmp_path / "model", module=models.mlp(2, (4,)))


def test_loading_into_your_network_leaves_it_alone(tmp_path: Path) -> None:
    own = models.mlp(2, (3,))
    before = [value.clone() for value in own.parameters()]
    model = llp(module=own)
    model.save(tmp_path / "model")
    load(tmp_path / "model", module=own)
    assert all(torch.equal(a, b) for a, b in zip(own.parameters(), before, strict=True))


def test_noise_of_your_own_is_asked_for(tmp_path: Path) -> None:
    law = torch.distributions.Laplace(0.0, 2.0)
    model = kofn.LLPClassifier(**quick(**{"noise": law, "label": "count"}))
    y = TASK.repeated(TASK.counts)
    model.fit(X, y, groups=GROUPS).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"`noise` must be given to load .*LLPClassifier\.load\(path, noise=\.\.\.\)"):
        load(tmp_path / "model")
    copy: Any = load(tmp_path / "model", noise=law)
    assert copy.score(X, y, groups=GROUPS) == model.score(X, y, groups=GROUPS)
    with pytest.raises(ValueError, match=r"must have parameters of LLPClassifier; .*'depth'"):
        load(tmp_path / "model", noise=law, depth=3)


def test_what_is_of_the_machine_is_not_saved(tmp_path: Path) -> None:
    options = {"checkpoint": tmp_path / "c", "trainer": {"log_every_n_steps": 2}, "progress": False, "device": "cpu"}
    llp(**options).save(tmp_path / "model")
    copy = load(tmp_path / "model")
    assert (copy.checkpoint, copy.trainer, copy.random_state) == (None, None, 0)
    llp(random_state=np.random.RandomState(0)).save(tmp_path / "model")
    assert load(tmp_path / "model").random_state is None


def test_a_loaded_one_is_trained_further(tmp_path: Path) -> None:
    model = llp(warm_start=True)
    model.save(tmp_path / "model")
    copy: Any = load(tmp_path / "model")
    copy.fit(X, Y, groups=GROUPS)
    model.fit(X, Y, groups=GROUPS)
    assert copy.history_ == model.history_
    assert np.array_equal(copy.decision_function(X), model.decision_function(X))


def test_saving_what_is_not_fitted(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        kofn.LLPClassifier().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_saving_over_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    for path, what in ((tmp_path, "is a folder"), (tmp_path / "thesis.tex", "is another file")):
        with pytest.raises(ValueError, match=f"`path` must be free or a kofn model; .* {what}"):
            llp().save(path)
    assert contents(tmp_path) == {"thesis.tex": b"x"}


def test_saving_over_an_older_one(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    mil().save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model"), kofn.MILClassifier)


def test_another_class(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    with pytest.raises(
        ValueError, match=r"must hold a model of kind 'MILClassifier'; .* holds one of kind 'LLPClassifier'"
    ):
        kofn.MILClassifier.load(tmp_path / "model")
    forge(tmp_path / "model", kind="SVC")
    with pytest.raises(
        ValueError, match="must hold a model of kind 'LLPClassifier' or 'MILClassifier' or 'PUClassifier'"
    ):
        load(tmp_path / "model")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="`path` must be a file that kofn wrote a model to"):
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


def test_parameters_from_the_future(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    known = read_model(tmp_path / "model").facts
    forge(tmp_path / "model", facts=known | {"parameters": {"module": "mlp", "temperature": 2}}, kofn="1.9")
    with pytest.raises(ValueError, match=r"must have parameters of LLPClassifier; .*'temperature'.*kofn 1\.9"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"hidden": [1 << 40]}}, "must be the network that .* was trained with; .*"),  # terabytes
        ({"parameters": {"hidden": [1 << 80]}}, "must hold what kofn saves of a LLPClassifier"),
        ({"instance_shape": [1 << 40]}, "must be the network that .* was trained with"),
        (
            {"classes_dtype": "<U100000000"},
            "must have classes of at most 65536 bytes each; their dtype is <U100000000",
        ),
        ({"classes_dtype": "no such"}, "must hold what kofn saves of a LLPClassifier"),
        ({"instance_shape": None}, "must hold what kofn saves of a LLPClassifier"),
        ({"held_out": [1 << 80]}, "must hold what kofn saves of a LLPClassifier"),
        ({"parameters": []}, "must hold what kofn saves of a LLPClassifier"),
        ({"not_saved": ...}, "must hold what kofn saves of a LLPClassifier; KeyError.*not_saved.*Written by kofn"),
    ],
    ids=str,
)
def test_a_forged_file_asks_for_no_memory(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    known = read_model(tmp_path / "model").facts | changes
    forge(tmp_path / "model", facts={name: value for name, value in known.items() if value is not ...})
    with pytest.raises(ValueError, match=message) as raised:
        load(tmp_path / "model")
    assert "alloc" not in str(raised.value)


class Bomb:
    def __reduce__(self) -> Any:
        return (sys.exit, ("a pickle was executed",))


def test_loading_executes_nothing(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    (tmp_path / "model").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="is none, or its first bytes"):
        load(tmp_path / "model")
    llp().save(tmp_path / "other")
    known = read_model(tmp_path / "other").facts
    for module in ("os.system", "builtins:exec", "kofn.models.mlp"):  # names of networks, and of nothing else
        forge(tmp_path / "other", facts=known | {"parameters": {"module": module}})
        with pytest.raises(ValueError, match="`module` must be one of 'mlp'"):
            load(tmp_path / "other")


def test_loading_leaves_the_stream_alone(tmp_path: Path) -> None:
    llp().save(tmp_path / "model")
    state = torch.get_rng_state()
    load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), state)
