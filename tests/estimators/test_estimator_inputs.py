"""Tables, arrays, lists, tensors and images go in; networks come by name, as they are, or from a factory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from estimator_cases import bags_task, short_network
from torch import nn

import kofn
from kofn import learners


def network(module: Any = "mlp", **options: Any) -> kofn.Network:
    return short_network(module, **({"epochs": 4, "lr": 0.1, "batch_size": 16} | options))


def llp(learner: Any = None) -> kofn.LLPClassifier:
    return kofn.LLPClassifier(network() if learner is None else learner, random_state=0)


TASK = bags_task(bags=12)
X, Y, GROUPS = TASK.X, TASK.y, TASK.groups
LEARNERS: dict[str, Any] = {"trees": kofn.Trees(rounds=5), "linear": kofn.Linear(l2=0.1), "network": network()}
EXPECTED = {name: llp(learner).fit(X, Y, groups=GROUPS).decision_function(X) for name, learner in LEARNERS.items()}
IMAGES = np.random.default_rng(0).normal(size=(48, 1, 8, 8))
TABLE = pd.DataFrame(X, columns=["age", "height"], index=np.arange(100, 148)[::-1])
NAMES = np.array([f"county {group}" for group in GROUPS])


@pytest.mark.parametrize(
    ("x", "y", "groups"),
    [
        (X.tolist(), Y.tolist(), GROUPS.tolist()),
        (torch.tensor(X), torch.tensor(Y), torch.tensor(GROUPS)),
        (torch.tensor(X, requires_grad=True), torch.tensor(Y, requires_grad=True), torch.tensor(GROUPS)),
        (X.astype(np.float32), Y, GROUPS.astype(np.int8)),
        (np.asfortranarray(X), Y, GROUPS.astype(float)),
        (X, pd.Series(Y, index=TABLE.index), pd.Series(NAMES, index=TABLE.index)),
        (X, Y, pd.Categorical(NAMES)),
        (X, Y, list(zip(NAMES, GROUPS, strict=True))),
        (X, Y, pd.Series(NAMES, dtype="string")),
    ],
    ids=[
        "lists",
        "tensors",
        "tensors that need gradients",
        "float32",
        "float groups",
        "series",
        "categories",
        "tuples",
        "strings",
    ],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_kinds_of_input_are_the_same(name: str, x: Any, y: Any, groups: Any) -> None:
    model = llp(LEARNERS[name]).fit(x, y, groups=groups)
    assert np.allclose(model.decision_function(x), EXPECTED[name], atol=1e-5)
    assert model.score(x, y, groups=groups) == pytest.approx(model.score(X, Y, groups=GROUPS), abs=1e-5)
    assert model.posterior_proba(x, y, groups=groups).shape == (48, 2)


def test_tables_keep_their_columns() -> None:
    model = llp().fit(TABLE, Y, groups=GROUPS)
    assert model.feature_names_in_.tolist() == ["age", "height"]
    assert model.n_features_in_ == 2
    assert np.array_equal(model.decision_function(TABLE), EXPECTED["network"])
    assert np.array_equal(model.decision_function(TABLE[["height", "age"]]), EXPECTED["network"])
    with pytest.raises(ValueError, match="column 'age' is missing, which the model was trained with"):
        model.predict(TABLE.rename(columns={"age": "years"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


def conv(channels: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, 2, 3), nn.ReLU(), nn.Flatten(), learners.Logit(72))


@pytest.mark.parametrize("module", ["mlp", conv, conv(1)], ids=["mlp", "factory", "network"])
def test_images(module: Any) -> None:
    model = llp(network(module)).fit(IMAGES, Y, groups=GROUPS)
    assert model.predict_proba(IMAGES).shape == (48, 2)
    with pytest.raises(
        ValueError, match=r"instances of shape \(1, 9, 9\), but LLPClassifier is expecting .* \(1, 8, 8\)"
    ):
        model.predict(np.zeros((3, 1, 9, 9)))


def test_mlp_of_images_flattens_them() -> None:
    of_images = llp().fit(IMAGES, Y, groups=GROUPS)
    flat = llp(network(standardise=False)).fit(IMAGES.reshape(48, 64), Y, groups=GROUPS)
    assert np.array_equal(of_images.decision_function(IMAGES), flat.decision_function(IMAGES.reshape(48, 64)))


def test_attention_over_images() -> None:
    model = kofn.MILClassifier(network(conv), loss="attention").fit(IMAGES, TASK.any, groups=GROUPS)
    assert model.predict_bag_proba(IMAGES, GROUPS).shape == (12, 2)
    assert model.predict_proba(IMAGES).shape == (48, 2)


def test_a_network_is_copied() -> None:
    own = learners.mlp(2, (3,))
    before = {name: value.clone() for name, value in own.state_dict().items()}
    model = llp(network(own)).fit(X, Y, groups=GROUPS)
    assert model.network_ is not own
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())
    assert any(not torch.equal(value, before[name]) for name, value in model.network_.state_dict().items())
    assert own.training


@pytest.mark.parametrize(
    "factory",
    [
        lambda: learners.mlp(2),
        lambda features: learners.mlp(features),
        lambda features, /: learners.mlp(features),
        lambda width=2: learners.mlp(width),
        learners.mlp,
        partial(learners.mlp, hidden=()),
        learners.Logit,
        lambda: nn.Linear(2, 1),  # (m, 1)
        lambda: nn.LazyLinear(1),  # knows its shape after the first instances
    ],
    ids=["none", "one", "positional", "default", "function", "partial", "class", "column", "lazy"],
)
@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning")
def test_factories(factory: Any) -> None:
    model = llp(network(factory)).fit(X, Y, groups=GROUPS)
    scores = model.decision_function(X)
    assert scores.shape == (48,)
    assert np.corrcoef(scores, EXPECTED["network"])[0, 1] > 0.5


def test_frozen_parts_stay_frozen() -> None:
    own = nn.Sequential(nn.BatchNorm1d(2), learners.Logit(2))
    own[0].eval()
    model: Any = llp(network(own, standardise=False)).fit(X, Y, groups=GROUPS)
    assert torch.equal(model.network_[0].running_mean, torch.zeros(2))
    thawed: Any = llp(network(nn.Sequential(nn.BatchNorm1d(2), learners.Logit(2)), standardise=False))
    assert not torch.equal(thawed.fit(X, Y, groups=GROUPS).network_[0].running_mean, torch.zeros(2))


def test_bfloat16_is_close() -> None:
    scores = llp(network(precision="bfloat16")).fit(X, Y, groups=GROUPS).decision_function(X)
    assert np.allclose(scores, EXPECTED["network"], atol=0.1)
    assert scores.dtype == np.float64


def test_many_instances_are_scored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = llp().fit(X, Y, groups=GROUPS)
    monkeypatch.setattr("kofn.learners._network.CHUNK", 7)
    assert np.allclose(model.decision_function(X), EXPECTED["network"], atol=1e-6)
