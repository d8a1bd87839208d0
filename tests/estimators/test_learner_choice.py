"""What `learner` may be, and which one "auto" is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_cases import UNLEARNT, bags_task, pu_task
from torch import nn

import kofn
from kofn import learners

pytestmark = pytest.mark.slow  # every learner with its defaults, which train for long

TASK = bags_task(bags=4)  # of so few bags none is held out
IMAGES = TASK.X.reshape(-1, 1, 1, 2)
ROWS, _, LABELS = pu_task(rows=40)
FRAME = pd.DataFrame({"size": TASK.X[:, 0], "colour": np.resize(["red", "green"], len(TASK.X))})


def fitted(kind: Any, x: Any, learner: Any = "auto", **options: Any) -> Any:
    y = TASK.y if kind is kofn.LLPClassifier else TASK.any
    return kind(learner, random_state=0, **options).fit(x, y, groups=TASK.groups)


@pytest.mark.parametrize("kind", [kofn.LLPClassifier, kofn.MILClassifier], ids=["llp", "mil"])
@pytest.mark.parametrize(
    ("x", "learner"),
    [
        (TASK.X, kofn.Trees),
        (TASK.X.tolist(), kofn.Trees),
        (FRAME, kofn.Trees),
        (FRAME[["size"]], kofn.Trees),
        (IMAGES, kofn.Network),
    ],
    ids=["array", "lists", "frame", "frame of numbers", "images"],
)
def test_auto_is_trees_for_tables_and_a_network_for_images(kind: Any, x: Any, learner: Any) -> None:
    model = fitted(kind, x)
    assert type(model.fitted_learner_) is learner
    assert model.fitted_learner_.get_params() == learner().get_params()
    assert model.learner == "auto"


@UNLEARNT
def test_auto_of_positives_and_unlabelled() -> None:
    model = kofn.PUClassifier(prior=0.5, random_state=0).fit(ROWS, LABELS)
    assert isinstance(model.fitted_learner_, kofn.Trees)


@pytest.mark.parametrize("loss", ["attention", "gated-attention"])
def test_auto_is_a_network_for_attention(loss: str) -> None:
    model = fitted(kofn.MILClassifier, TASK.X, loss=loss)
    assert isinstance(model.network_, learners.AttentionMIL)


@pytest.mark.parametrize(
    ("word", "learner"), [("trees", kofn.Trees), ("linear", kofn.Linear), ("network", kofn.Network)]
)
def test_a_word_is_the_learner_with_its_defaults(word: str, learner: Any) -> None:
    by_word, by_object = fitted(kofn.LLPClassifier, TASK.X, word), fitted(kofn.LLPClassifier, TASK.X, learner())
    assert type(by_word.fitted_learner_) is learner
    assert np.array_equal(by_word.decision_function(TASK.X), by_object.decision_function(TASK.X))


def test_a_module_is_a_network() -> None:
    own = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), learners.Logit(3))
    model = fitted(kofn.LLPClassifier, TASK.X, own)
    assert type(model.network_[1]) is nn.Tanh
    assert model.network_ is not own
    same = fitted(kofn.LLPClassifier, TASK.X, kofn.Network(own))
    assert np.array_equal(model.decision_function(TASK.X), same.decision_function(TASK.X))


@pytest.mark.parametrize("learner", ["forest", None, 3, nn.Linear, kofn.Trees], ids=str)
def test_what_is_no_learner(learner: Any) -> None:
    with pytest.raises(ValueError, match="`learner` must be 'auto', 'trees', 'linear', 'network', a learner such as"):
        fitted(kofn.LLPClassifier, TASK.X, learner)


@pytest.mark.parametrize("word", ["trees", "linear"])
def test_images_and_attention_need_a_network(word: str) -> None:
    with pytest.raises(ValueError, match="`learner` must be a network for instances of shape"):
        fitted(kofn.LLPClassifier, IMAGES, word)
    with pytest.raises(ValueError, match="`loss` must be a loss of instances"):
        fitted(kofn.MILClassifier, TASK.X, word, loss="attention")


def test_what_only_some_learners_have() -> None:
    trees, linear = (fitted(kofn.LLPClassifier, TASK.X, word) for word in ("trees", "linear"))
    assert trees.feature_importances_.shape == (2,)
    for model, name in ((linear, "feature_importances_"), (linear, "network_"), (trees, "network_")):
        assert not hasattr(model, name)
