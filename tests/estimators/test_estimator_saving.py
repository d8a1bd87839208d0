"""Fitted estimators on disk come back as they were, and what is not theirs is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from estimator_cases import LEARNERS, UNLEARNT, bags_task, pu_task
from estimator_cases import short_network as network
from model_file_cases import contents
from sklearn.linear_model import LogisticRegression

import kofn
from kofn import learners
from kofn.estimators import load

TASK = bags_task(bags=12)
X, Y, GROUPS = TASK.X, TASK.y, TASK.groups
ROWS, _, LABELS = pu_task(rows=80)
GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
TABLE = pd.DataFrame({"age": GAPS[:, 0], "height": X[:, 1], "sex": np.resize(["f", "m", None], len(X))})


def llp(learner: Any = None, **options: Any) -> Any:
    return kofn.LLPClassifier(learner or network(), random_state=0, **options).fit(X, Y, groups=GROUPS)


def mil(learner: Any = None, **options: Any) -> Any:
    return kofn.MILClassifier(learner or network(), random_state=0, **options).fit(X, TASK.any, groups=GROUPS)


def pu(learner: Any) -> Any:
    return kofn.PUClassifier(learner, prior=0.6, random_state=0).fit(ROWS, LABELS)


def of_table(learner: Any) -> Any:
    return kofn.LLPClassifier(learner, random_state=0).fit(TABLE, Y, groups=GROUPS)


QUICK: dict[str, Any] = {
    "trees": lambda: kofn.Trees(rounds=5),
    "linear": lambda: kofn.Linear(l2=0.1),
    "network": network,
}
FITTED: dict[str, Any] = {
    **{f"{name}, llp": lambda make=make: llp(make()) for name, make in QUICK.items()},
    **{f"{name}, mil": lambda make=make: mil(make()) for name, make in QUICK.items()},
    **{f"{name}, pu": lambda make=make: pu(make()) for name, make in QUICK.items()},
    **{f"{name}, table": lambda make=make: of_table(make()) for name, make in QUICK.items()},
    "trees without a split": lambda: kofn.LLPClassifier(kofn.Trees(rounds=5)).fit(0 * X, Y, groups=GROUPS),
    **{f"{name}, bootstrap": lambda make=make: llp(make(), bootstrap=3) for name, make in QUICK.items()},
    "mlp": lambda: llp(network(hidden=(5, 3), dropout=0.1)),
    "as it is": lambda: llp(network(standardise=False)),
    "llp on three bags": lambda: kofn.LLPClassifier(network()).fit(X[:12], Y[:12], groups=GROUPS[:12]),
    "noisy": lambda: llp(noise="laplace:1.0"),
    "balanced": lambda: mil(positive_weight="balanced"),
    "attention": lambda: mil(network(hidden=(4,)), loss="attention"),
    "gated": lambda: mil(network(hidden=(4,)), loss="gated-attention"),
    "bf16": lambda: llp(network(precision="bfloat16")),
    "images": lambda: kofn.LLPClassifier(network()).fit(X.reshape(-1, 1, 1, 2), Y, groups=GROUPS),
}


def facts(model: Any) -> dict[str, Any]:
    """What a fitted estimator knows besides what the learner made."""
    found = {name: getattr(model, name) for name in vars(model) if name.endswith("_")}
    found["fitted_learner_"] = (type(model.fitted_learner_), model.fitted_learner_.get_params())
    found["columns_"] = model.columns_ and model.columns_.to_facts()
    found["fingerprint_"] = model.fingerprint_.to_facts()
    means = model.bag_means_
    found["bag_means_"] = means and {"facts": means.to_model()[0], "weights": means.weights.tolist()}
    for name in ("held_out_logits_", "held_out_bag_means_"):  # in float32; NaN is equal to nothing
        held_out = found[name]
        found[name] = None if held_out is None else np.nan_to_num(held_out.astype(np.float32), nan=-1e9)
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}
    return {name: value for name, value in plain.items() if name not in ("fitted_", "members_")}


def parameters(model: Any) -> dict[str, Any]:
    """Those of the estimator, without the learner."""
    return {name: value for name, value in model.get_params(deep=False).items() if name != "learner"}


def instances(model: Any) -> Any:
    return np.resize(X, (9, *model.instance_shape_)) if model.columns_ is None else TABLE[:9]


@pytest.mark.parametrize("name", FITTED)
def test_round_trip(name: str, tmp_path: Path) -> None:
    require_the_same_back(FITTED[name](), tmp_path / "model")


@UNLEARNT
@pytest.mark.parametrize("name", QUICK)
def test_what_was_held_out_comes_back(name: str, tmp_path: Path) -> None:
    task = bags_task(bags=24)
    model = kofn.LLPClassifier(LEARNERS[name](), random_state=0).fit(task.X, task.y, groups=task.groups)
    assert len(model.held_out_)
    assert len(model.history_)
    require_the_same_back(model, tmp_path / "model")


def require_the_same_back(model: Any, path: Path) -> None:
    model.save(path)
    x, groups = instances(model), np.arange(9) % 2
    for copy in (load(path), type(model).load(str(path))):
        assert type(copy) is type(model)
        assert np.array_equal(copy.decision_function(x), model.decision_function(x))
        assert np.array_equal(copy.predict_bag_proba(x, groups), model.predict_bag_proba(x, groups))
        assert len(copy.members_) == len(model.members_)
        assert parameters(copy) == parameters(model)
        assert copy.learner.get_params() == model.fitted_learner_.get_params()
        assert facts(copy) == facts(model)
        assert copy.classes_.dtype == model.classes_.dtype
        if isinstance(model.learner, kofn.Network):
            assert not copy.network_.training


@pytest.mark.parametrize("name", QUICK)
def test_a_learner_by_its_name_comes_back_with_its_options(name: str, tmp_path: Path) -> None:
    few = np.arange(12)  # three bags, of which none is held out
    model = kofn.LLPClassifier(name, random_state=0).fit(X[few], Y[few], groups=GROUPS[few])
    model.save(tmp_path / "model")
    copy: Any = load(tmp_path / "model")
    assert type(copy.learner) is type(QUICK[name]())
    assert copy.learner.get_params() == type(QUICK[name]())().get_params()
    assert np.array_equal(copy.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "later",
    [{"learner": kofn.Linear()}, {"learner": "trees"}, {"learner__hidden": (7,)}],
    ids=["other", "word", "option"],
)
def test_parameters_set_after_the_fit_are_not_those_of_the_model(later: dict[str, Any], tmp_path: Path) -> None:
    model = llp(network(hidden=(3,)))
    expected = model.decision_function(X)
    model.set_params(**later).save(tmp_path / "model")
    copy: Any = load(tmp_path / "model")
    assert copy.learner.hidden == (3,)
    assert np.array_equal(copy.decision_function(X), expected)


def test_em_is_not_saved(tmp_path: Path) -> None:
    model = llp(kofn.EM(LogisticRegression(), rounds=2, validation_fraction=0.0))
    with pytest.raises(ValueError, match="a model of EM cannot be saved: its classifier is code"):
        model.save(tmp_path / "model")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    "names",
    [(0, 1), (-1, 1), (0.0, 1.0), (False, True), ("nej", "ja, då")],
    ids=lambda names: str(names[0]),
)
@pytest.mark.parametrize("kind", [kofn.LLPClassifier, kofn.MILClassifier], ids=["llp", "mil"])
def test_classes_come_back(names: tuple[Any, Any], kind: Any, tmp_path: Path) -> None:
    words = {"pos_label": names[1]} if isinstance(names[0], str) and kind is kofn.MILClassifier else {}
    model = kind(network(), **words).fit(X, np.array(sorted(names))[TASK.truth], groups=range(len(X)))
    model.save(tmp_path / "model")
    copy = kind.load(tmp_path / "model")
    assert copy.classes_.tolist() == (list(names) if words else sorted(names))
    assert copy.predict(X).dtype == model.predict(X).dtype
    assert np.array_equal(copy.predict(X), model.predict(X))


def test_classes_of_objects_and_columns_come_back(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=["age", "height"])
    model = kofn.MILClassifier(network(), pos_label="b").fit(
        table, pd.Series(["a", "b"])[TASK.any].to_numpy(dtype=object), groups=GROUPS
    )
    model.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    assert copy.classes_.dtype == object
    assert copy.feature_names_in_.tolist() == ["age", "height"]
    assert np.array_equal(copy.predict_proba(table[["height", "age"]]), copy.predict_proba(table))


def small(features: int) -> torch.nn.Module:
    return learners.mlp(features, (3,))


@pytest.mark.parametrize("module", [learners.mlp(2, (3,)), small], ids=["network", "factory"])
def test_a_network_of_your_own_is_asked_for(module: Any, tmp_path: Path) -> None:
    model = llp(network(module))
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
            read(tmp_path / "model", module=learners.mlp(2, (4,)))


def test_loading_into_your_network_leaves_it_alone(tmp_path: Path) -> None:
    own = learners.mlp(2, (3,))
    before = [value.clone() for value in own.parameters()]
    model = llp(network(own))
    model.save(tmp_path / "model")
    load(tmp_path / "model", module=own)
    assert all(torch.equal(a, b) for a, b in zip(own.parameters(), before, strict=True))


def test_noise_of_your_own_is_asked_for(tmp_path: Path) -> None:
    law = torch.distributions.Laplace(0.0, 2.0)
    model = kofn.LLPClassifier(network(), noise=law, label="count")
    y = TASK.repeated(TASK.counts)
    model.fit(X, y, groups=GROUPS).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"`noise` must be given to load .*LLPClassifier\.load\(path, noise=\.\.\.\)"):
        load(tmp_path / "model")
    copy: Any = load(tmp_path / "model", noise=law)
    assert copy.score(X, y, groups=GROUPS) == model.score(X, y, groups=GROUPS)
    with pytest.raises(ValueError, match="`depth` must be a parameter of LLPClassifier or of Network"):
        load(tmp_path / "model", noise=law, depth=3)


def test_a_module_as_the_learner_is_asked_for(tmp_path: Path) -> None:
    own = learners.mlp(2, (3,))
    few = np.arange(12)
    model = kofn.LLPClassifier(own, random_state=0).fit(X[few], Y[few], groups=GROUPS[few])
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="`module` must be given to load"):
        load(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model", module=own).predict_proba(X), model.predict_proba(X))


def test_what_is_of_the_machine_is_not_saved(tmp_path: Path) -> None:
    def ignore(*_: Any) -> None: ...

    llp(network(checkpoint=tmp_path / "c", callback=ignore, device="auto"), progress=ignore).save(tmp_path / "model")
    copy: Any = load(tmp_path / "model")
    assert (copy.learner.checkpoint, copy.learner.callback, copy.learner.device) == (None, None, "cpu")
    assert (copy.progress, copy.random_state) == (None, 0)
    llp(kofn.Trees(rounds=2, threads=2)).save(tmp_path / "model")
    copy = load(tmp_path / "model")
    assert copy.learner.threads is None
    kofn.LLPClassifier(network(), random_state=np.random.RandomState(0)).fit(X, Y, groups=GROUPS).save(
        tmp_path / "model"
    )
    assert load(tmp_path / "model").random_state is None


@pytest.mark.parametrize("name", QUICK)
def test_a_loaded_one_fits_as_the_first_did(name: str, tmp_path: Path) -> None:
    model = llp(QUICK[name]())
    model.save(tmp_path / "model")
    copy: Any = load(tmp_path / "model")
    copy.fit(X, Y, groups=GROUPS)
    assert np.array_equal(copy.decision_function(X), model.decision_function(X))
