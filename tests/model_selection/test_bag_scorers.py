"""Scorers of bags and of PU data: their values, where they can be used, and what they refuse."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest
from estimator_cases import UNLEARNT, bags_task, pu_task, quick
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kofn
from kofn.model_selection import BagKFold, bag_scorer
from kofn.model_selection._bag_scorers import ScorerName

TASK = bags_task(bags=40, threshold=0.6)
X, GROUPS = TASK.X, TASK.groups
PU_X, _, PU_Y = pu_task()
LINEAR = kofn.Linear(l2=0.01)
LLP = kofn.LLPClassifier(LINEAR, random_state=0).fit(X, TASK.y, groups=GROUPS)
MIL = kofn.MILClassifier(LINEAR, random_state=0).fit(X, TASK.any, groups=GROUPS)
PU = kofn.PUClassifier(LINEAR, mixture=0.3, random_state=0).fit(PU_X, PU_Y)
pytestmark = UNLEARNT


@pytest.fixture
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


def test_log_likelihood() -> None:
    scorer = bag_scorer("log_likelihood")
    by_count = LLP.predict_bag_proba(X, GROUPS)
    assert scorer(LLP, X, TASK.y, GROUPS) == pytest.approx(np.log(by_count[np.arange(40), TASK.counts]).mean())
    by_class = MIL.predict_bag_proba(X, GROUPS)[np.arange(40), (TASK.counts > 0).astype(int)]
    assert scorer(MIL, X, TASK.any, GROUPS) == pytest.approx(np.log(by_class).mean())


def test_log_likelihood_with_copies() -> None:
    copies = np.full(len(X), 2)
    expected = LLP.score(np.repeat(X, 2, 0), np.repeat(TASK.y, 2), np.repeat(GROUPS, 2))
    assert bag_scorer("log_likelihood")(LLP, X, TASK.y, groups=GROUPS, copies=copies) == pytest.approx(expected)


def test_log_likelihood_of_attention_and_of_a_bootstrap() -> None:
    models = [
        kofn.MILClassifier(**quick(loss="attention", hidden=(4,))).fit(X, TASK.any, groups=GROUPS),
        kofn.MILClassifier(LINEAR, bootstrap=3, random_state=0).fit(X, TASK.any, groups=GROUPS),
    ]
    for model in models:
        p = model.predict_bag_proba(X, GROUPS)[np.arange(40), (TASK.counts > 0).astype(int)]
        assert bag_scorer("log_likelihood")(model, X, TASK.any, GROUPS) == pytest.approx(np.log(p).mean(), rel=1e-5)


def test_auc_and_accuracy_of_bags() -> None:
    some = TASK.counts > 0
    assert bag_scorer("bag_auc")(MIL, X, TASK.any, GROUPS) == roc_auc_score(some, MIL.bag_decision_function(X, GROUPS))
    right = (MIL.predict_bags(X, GROUPS) == some).mean()
    assert bag_scorer("bag_accuracy")(MIL, X, TASK.any, GROUPS) == right


def test_scores_of_pu() -> None:
    scores = PU.decision_function(PU_X)
    assert bag_scorer("pu_auc")(PU, PU_X, PU_Y) == pytest.approx(roc_auc_score(PU_Y, scores))
    wrong = 1 / (1 + np.exp(scores))  # the sigmoid loss of a positive
    of_negatives = max((1 - wrong[PU_Y == -1]).mean() - 0.3 * (1 - wrong[PU_Y == 1]).mean(), 0)
    assert bag_scorer("pu_risk")(PU, PU_X, PU_Y) == pytest.approx(-(0.3 * wrong[PU_Y == 1].mean() + of_negatives))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", ["log_likelihood", "bag_auc", "bag_accuracy"])
def test_in_cross_validation_of_a_pipeline(name: ScorerName) -> None:
    pipe = make_pipeline(StandardScaler(), kofn.MILClassifier(LINEAR, random_state=0))
    scores = cross_val_score(pipe, X * 9, TASK.any, cv=BagKFold(2), scoring=bag_scorer(name), params={"groups": GROUPS})
    train, test = next(BagKFold(2).split(X, TASK.any, GROUPS))
    scaler = StandardScaler().fit(X[train] * 9)
    alone = clone(MIL).fit(scaler.transform(X[train] * 9), TASK.any[train], groups=GROUPS[train])
    assert scores[0] == bag_scorer(name)(alone, scaler.transform(X[test] * 9), TASK.any[test], GROUPS[test])


@pytest.mark.usefixtures("routing")
def test_in_searches_also_nested_and_with_several() -> None:
    scoring: Any = {name: bag_scorer(name) for name in ("log_likelihood", "bag_auc")}
    inner = GridSearchCV(clone(MIL), {"learner__l2": [1e3, 1e-2]}, cv=GroupKFold(3), scoring=scoring, refit="bag_auc")
    found = cross_validate(inner, X, TASK.any, cv=BagKFold(2), scoring=scoring, params={"groups": GROUPS})
    assert found["test_bag_auc"].min() > 0.8
    assert found["test_log_likelihood"].max() < 0


@pytest.mark.usefixtures("routing")
def test_a_pipeline_within_a_pipeline() -> None:
    scale = StandardScaler()
    pipe = make_pipeline(scale, make_pipeline(StandardScaler(), clone(MIL))).fit(X, TASK.any, groups=GROUPS)
    score = bag_scorer("bag_auc")(pipe, X, TASK.any, GROUPS)
    assert score == roc_auc_score(
        TASK.counts > 0, pipe[1][1].bag_decision_function(pipe[1][:1].transform(pipe[0].transform(X)), GROUPS)
    )


def test_without_routing_groups_do_not_arrive_at_the_scorer() -> None:
    with pytest.raises(
        ValueError, match=r"`groups` must name .* for the scorer 'bag_auc'; got None\..*metadata routing"
    ):
        cross_val_score(
            clone(MIL), X, TASK.any, groups=GROUPS, params={"groups": GROUPS}, cv=GroupKFold(2),
            scoring=bag_scorer("bag_auc"), error_score="raise",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "model", "cure"),
    [
        ("log_likelihood", PU, r"LLPClassifier and MILClassifier.*PUClassifier use 'pu_auc' or 'pu_risk'"),
        ("bag_auc", LLP, r"is for MILClassifier.*got LLPClassifier\. For LLPClassifier use 'log_likelihood'"),
        ("bag_accuracy", PU, r"is for MILClassifier"),
        ("pu_auc", MIL, r"For MILClassifier use 'log_likelihood', 'bag_auc' or 'bag_accuracy'"),
        (
            "pu_risk",
            LogisticRegression(),
            r"is for PUClassifier, or a pipeline that ends in one; got LogisticRegression\.$",
        ),
    ],
)
def test_estimators_that_cannot_be_scored(name: ScorerName, model: Any, cure: str) -> None:
    with pytest.raises(ValueError, match=cure):
        bag_scorer(name)(model, X, TASK.any, GROUPS)


def test_labels_that_cannot_be_scored() -> None:
    none = TASK.any == 0
    with pytest.raises(
        ValueError, match=r"bags of both classes for the scorer 'bag_auc'; all of the \d+ bags are negative"
    ):
        bag_scorer("bag_auc")(MIL, X[none], TASK.any[none], GROUPS[none])
    for name in ("pu_auc", "pu_risk"):
        with pytest.raises(
            ValueError, match=r"`y` must have two classes, labelled positives \(1\) and unlabelled rows"
        ):
            bag_scorer(name)(PU, PU_X[PU_Y == 1], PU_Y[PU_Y == 1])
    with pytest.raises(ValueError, match=r"`name` must be one of 'log_likelihood', .*; got 'roc_auc'"):
        bag_scorer("roc_auc")  # type: ignore[arg-type]


def test_scorers_can_be_copied_sent_and_compared() -> None:
    for name in get_args(ScorerName):
        scorer = bag_scorer(name)
        assert pickle.loads(pickle.dumps(scorer)) == scorer == bag_scorer(name)
        assert repr(scorer) == f"BagScorer(name={name!r})"
