"""MILClassifier learns instances and bags from whether a bag has a positive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_cases import UNLEARNT, bags_task, learns, quick
from sklearn.metrics import roc_auc_score

import kofn
from kofn import learners
from kofn.estimators._mil_classifier import ATTENTION

pytestmark = UNLEARNT
TASK = bags_task(threshold=0.8)


@pytest.mark.parametrize("loss", kofn.MILClassifier.LOSSES)
def test_every_loss_learns(loss: Any) -> None:
    more: Any = {"hidden": (8,), "epochs": 40, "batch_size": 4} if loss in ATTENTION else {}
    model = kofn.MILClassifier(**learns(loss=loss, **more)).fit(TASK.X, TASK.any, groups=TASK.groups)
    assert roc_auc_score(TASK.truth, model.decision_function(TASK.X)) > 0.9
    assert roc_auc_score(TASK.counts > 0, model.bag_decision_function(TASK.X, TASK.groups)) > 0.9
    assert isinstance(model.network_, learners.AttentionMIL) == (loss in ATTENTION)


def test_gated_attention_is_gated() -> None:
    def pooling(loss: Any) -> type[Any]:
        model = kofn.MILClassifier(**quick(**{"loss": loss, "epochs": 1})).fit(TASK.X, TASK.any, groups=TASK.groups)
        return type(model.network_.pooling)

    assert pooling("attention") is learners.AttentionPooling
    assert pooling("gated-attention") is learners.GatedAttentionPooling


def test_attention_of_your_own() -> None:
    own = learners.AttentionMIL(learners.mlp(2, (5,))[:-1], learners.AttentionPooling(5, hidden=3))
    model: Any = kofn.MILClassifier(kofn.Network(own, epochs=1), loss="attention").fit(
        TASK.X, TASK.any, groups=TASK.groups
    )
    assert model.network_.pooling.project.out_features == 3


def test_rows_that_are_bags_of_their_own_are_ordinary_classification() -> None:
    rows = range(len(TASK.X))
    by_mil = kofn.MILClassifier(**quick()).fit(TASK.X, TASK.truth, groups=rows)
    assert by_mil.score(TASK.X, TASK.truth, groups=rows) == (by_mil.predict(TASK.X) == TASK.truth).mean() > 0.9


def test_labels_of_bags_are_never_taken_for_those_of_rows() -> None:
    model = kofn.MILClassifier(**quick())
    rule = r"`groups` must name the bag of each row, because `y` has the labels of bags; got None\. Pass "
    with pytest.raises(
        ValueError, match=rule + r"fit\(X, y, groups=\.\.\.\).*kofn\.model_selection\.search.*range\(len\(X\)\)"
    ):
        model.fit(TASK.X, TASK.any)
    model.fit(TASK.X, TASK.any, groups=TASK.groups)
    with pytest.raises(
        ValueError, match=rule + r"score.*metadata routing.*accuracy_score\(truth, model\.predict\(X\)\)"
    ):
        model.score(TASK.X, TASK.truth)
    with pytest.raises(ValueError, match=rule + "posterior_proba"):
        model.posterior_proba(TASK.X, TASK.any)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("dtype", ["int64", "float64", "bool"])
def test_bags_of_one_kind(label: int, dtype: str) -> None:
    model = kofn.MILClassifier(**quick()).fit(TASK.X, np.full(len(TASK.X), label, dtype=dtype), groups=TASK.groups)
    assert model.classes_.tolist() == [0, 1]
    assert model.classes_.dtype == dtype


def test_positive_weight() -> None:
    def mean_score(weight: Any) -> float:
        model = kofn.MILClassifier(**quick(**{"positive_weight": weight, "validation_fraction": 0.0}))
        return float(model.fit(TASK.X, TASK.any, groups=TASK.groups).decision_function(TASK.X).mean())

    assert mean_score(10.0) > mean_score(1.0) > mean_score(0.1)
    positive = int((TASK.counts > 0).sum())
    assert mean_score("balanced") == mean_score((48 - positive) / positive)
