"""Which class is positive is said, or follows from numbers or from words that say it themselves; the alphabet is no reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_cases import bags_task
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

import kofn

TASK = bags_task(bags=40)
UNLABELLED = np.where(TASK.truth & (np.arange(len(TASK.truth)) % 2 == 0), 1, 0)


def mil(**options: Any) -> kofn.MILClassifier:
    return kofn.MILClassifier(kofn.Linear(l2=0.1), random_state=0, **options)


def pu(**options: Any) -> kofn.PUClassifier:
    return kofn.PUClassifier(kofn.Linear(l2=0.1), mixture=0.3, random_state=0, **options)


def words(labels: Any, negative: str, positive: str) -> Any:
    return np.array([negative, positive])[np.asarray(labels, dtype=np.int64)]


@pytest.mark.parametrize(("negative", "positive"), [("healthy", "cancer"), ("cancer", "healthy"), ("0", "1")])
def test_words_need_to_be_told(negative: str, positive: str) -> None:
    bags, rows = words(TASK.any, negative, positive), words(UNLABELLED, negative, positive)
    first, second = sorted([negative, positive])
    message = (
        f"`pos_label` must say which class .* the classes are '{first}' and '{second}'. Say pos_label='{first}' or"
    )
    with pytest.raises(ValueError, match=message):
        mil().fit(TASK.X, bags, groups=TASK.groups)
    with pytest.raises(ValueError, match=message):
        pu().fit(TASK.X, rows)

    plain = mil().fit(TASK.X, TASK.any, groups=TASK.groups)
    named = clone(mil(pos_label=positive)).fit(TASK.X, bags, groups=TASK.groups)
    assert named.classes_.tolist() == [negative, positive]
    assert np.array_equal(named.predict_proba(TASK.X), plain.predict_proba(TASK.X))
    assert np.array_equal(named.predict_bags(TASK.X, TASK.groups) == positive, plain.predict_bags(TASK.X, TASK.groups))
    assert named.score(TASK.X, bags, TASK.groups) == plain.score(TASK.X, TASK.any, TASK.groups)
    given = named.posterior_proba(TASK.X, bags, TASK.groups)
    assert np.array_equal(given, plain.posterior_proba(TASK.X, TASK.any, TASK.groups))

    known = pu(pos_label=positive).fit(TASK.X, rows)
    assert np.array_equal(known.decision_function(TASK.X), pu().fit(TASK.X, UNLABELLED).decision_function(TASK.X))
    assert known.score(TASK.X, rows) == pu().fit(TASK.X, UNLABELLED).score(TASK.X, UNLABELLED)


@pytest.mark.parametrize(
    "names", [("no", "yes"), ("False", "True"), ("negative", "positive"), (0, 1), (-1, 1), (1, 2)], ids=str
)
def test_numbers_and_words_that_say_it(names: tuple[Any, Any]) -> None:
    named = mil().fit(TASK.X, np.array(names)[TASK.any.astype(int)], groups=TASK.groups)
    assert named.classes_.tolist() == list(names)


def test_the_smaller_number_can_be_positive() -> None:
    turned = mil(pos_label=0).fit(TASK.X, 1 - TASK.any.astype(int), groups=TASK.groups)
    plain = mil().fit(TASK.X, TASK.any.astype(int), groups=TASK.groups)
    assert turned.classes_.tolist() == [1, 0]
    assert np.array_equal(turned.predict_proba(TASK.X), plain.predict_proba(TASK.X))


def test_a_label_that_is_none_of_them() -> None:
    with pytest.raises(ValueError, match=r"`pos_label` must be one of the classes \['a', 'b'\]; got 'c'"):
        mil(pos_label="c").fit(TASK.X, words(TASK.any, "a", "b"), groups=TASK.groups)


# Other input that used to be taken, or refused without the cure


@pytest.mark.parametrize(
    ("options", "losses"),
    [
        ({"warm_up": 3}, "'cvir'"),
        ({"warm_up": 3, "loss": "nnpu"}, "'cvir'"),
        ({"ranking": "batch"}, "'cvir'"),
        ({"surrogate": "logistic"}, "'upu' or 'nnpu'"),
        ({"positive_weight": 2.0, "loss": "upu"}, "'count' or 'expectation'"),
    ],
    ids=str,
)
def test_options_that_the_loss_does_not_have(options: dict[str, Any], losses: str) -> None:
    with pytest.raises(ValueError, match=f"goes with `loss` {losses}; .* would do nothing"):
        pu(**options).fit(TASK.X, UNLABELLED)


@pytest.mark.parametrize("options", [{"hidden": (8,)}, {"dropout": 0.5}], ids=str)
def test_options_of_another_network(options: dict[str, Any]) -> None:
    import torch

    network = kofn.Network(torch.nn.Linear(TASK.X.shape[1], 1), **options)
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` belongs to the network 'mlp'"):
        kofn.LLPClassifier(network).fit(TASK.X, TASK.y, groups=TASK.groups)


def test_three_classes_of_rows() -> None:
    y = np.arange(len(TASK.X)) % 3
    with pytest.raises(ValueError, match=r"a column for each, \(n, C\).* numpy.eye\(C\)\[y\]"):
        kofn.LLPClassifier("linear").fit(TASK.X, y)
    with pytest.raises(ValueError, match=r"a column for each, \(n, C\)"):
        kofn.LLPClassifier("linear").fit(TASK.X, y, groups=TASK.groups)
    assert kofn.LLPClassifier(kofn.Linear(l2=0.1)).fit(TASK.X, np.eye(3)[y]).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("learner", [RandomForestClassifier(), GaussianNB()], ids=["forest", "bayes"])
def test_a_classifier_of_scikit_learn_as_a_learner(learner: Any) -> None:
    with pytest.raises(ValueError, match=rf"kofn.EM\({type(learner).__name__}\(\.\.\.\)\)"):
        kofn.LLPClassifier(learner).fit(TASK.X, TASK.y, groups=TASK.groups)
