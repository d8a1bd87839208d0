"""What cannot be trained on is refused before training, in words that name the argument, the rule and the cure."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import UNLEARNT, bags_task, pu_task, quick
from sklearn.exceptions import NotFittedError

import kofn
from kofn import learners
from kofn.learners import BagDataset

pytestmark = UNLEARNT
TASK = bags_task(bags=12)
X, GROUPS, Y = TASK.X, TASK.groups, TASK.y
COUNTS = TASK.repeated(TASK.counts)
BAGGED = [kofn.LLPClassifier, kofn.MILClassifier]


def changed(values: Any, row: int, to: Any, dtype: Any = None) -> Any:
    copy = np.array(values, dtype=dtype)
    copy[row] = to
    return copy


@pytest.mark.parametrize(
    ("options", "X", "y", "groups", "message"),
    [
        ({}, X, Y[:-1], GROUPS, "inconsistent numbers of samples"),
        ({}, X, Y, GROUPS[:-1], "`groups` must name the bag of each of the 48 rows; got 47 names"),
        (
            {},
            X,
            Y,
            changed(GROUPS, 5, np.nan, float),
            r"`groups` must name a bag for each instance; instance 5 has .*nan",
        ),
        ({}, X, Y, changed(GROUPS, 5, None, object), "`groups` must name a bag for each instance; instance 5 has None"),
        ({}, X, Y, np.stack([GROUPS, GROUPS], 1), r"`groups` must name one bag for each instance, shape \(n,\)"),
        ({}, changed(X, 3, np.inf), Y, GROUPS, "Input X contains infinity"),
        ({}, X, changed(Y, 3, np.nan), GROUPS, "Input y contains NaN"),
        ({}, X[:0], Y[:0], GROUPS[:0], r"Found array with 0 sample\(s\)"),
        ({}, X[:, :0], Y, GROUPS, r"0 feature\(s\)"),
        ({}, X, None, GROUPS, "requires y to be passed, but the target y is None"),
        ({}, X, changed(Y, 0, 0.9), GROUPS, "`y` must be the same on all instances of a bag; bag 0 has"),
        ({}, X, np.full(48, 1.2), GROUPS, "`y` must be proportions from 0 to 1; got 1.2. Percentages"),
        ({}, X, np.full(48, -0.2), GROUPS, "`y` must be proportions from 0 to 1; got -0.2"),
        (
            {},
            X,
            np.where(GROUPS < 3, 1, 2),
            GROUPS,
            "`y` must be proportions .* got 2. .* for counts say label='count'",
        ),
        ({}, X, COUNTS * 25, GROUPS, "`y` must be proportions from 0 to 1; got .*Percentages are divided by 100"),
        (
            {},
            X,
            [f"{25 * c} %" for c in COUNTS],
            GROUPS,
            "`y` must be numbers.* got text such as '.* %'. Of '37 %' make",
        ),
        ({}, X, np.linspace(0, 3, 48), None, "`y` must be proportions from 0 to 1, or two classes; got"),
        (
            {},
            X,
            np.full(48, 0.3),
            GROUPS,
            "`y`: a proportion times the size of its bag must be an integer: bag 0 has 4 instances and the proportion 0.3",
        ),
        ({}, X, np.full(48, 0.3), None, r"without `groups` each row is a bag of its own.*metadata routing"),
        ({}, X, np.resize(["a", "b", "c"], 48), None, "Only binary classification is supported"),
        ({}, X, np.full(48, "a"), None, "`y` must have two classes; all 48 rows have the class"),
        (
            {"label": "count"},
            X,
            COUNTS + 4,
            GROUPS,
            "`y`: a count must be an integer from 0 to the size of its bag: bag 0 has 4 instances",
        ),
        (
            {"label": "count"},
            X,
            COUNTS - 5,
            GROUPS,
            "`y`: a count must be an integer from 0 to the size of its bag",
        ),
        ({"label": "count"}, X, COUNTS + 0.5, GROUPS, "`y` must be integer counts; got .*noise="),
        ({"label": "count"}, X, np.full(48, "many"), GROUPS, "`y` must be numbers; got"),
        (
            {"label": "interval"},
            X,
            COUNTS,
            GROUPS,
            r"`y`: `bounds` must be a lower and an upper one for each bag, \(b, 2\)",
        ),
        (
            {"label": "interval"},
            X,
            np.stack([COUNTS] * 3, 1),
            GROUPS,
            r"`y`: `bounds` must be a lower and an upper one for each bag, \(b, 2\)",
        ),
        (
            {"label": "interval"},
            X,
            np.tile([3, 2], (48, 1)),
            GROUPS,
            "`y`: bounds must be integers, the lower one first.*bounds 3 and 2",
        ),
        (
            {"label": "interval"},
            X,
            np.tile([5, 7], (48, 1)),
            GROUPS,
            "that the bag can have: bag 0 has 4 instances and the bounds 5 and 7",
        ),
        ({"label": "interval"}, X, np.tile([0.5, 2], (48, 1)), GROUPS, "`y` must be integer counts; got 0.5"),
        (
            {"label": "interval", "noise": "normal:1"},
            X,
            np.tile([0, 2], (48, 1)),
            GROUPS,
            "`noise` goes with label='count'",
        ),
        (
            {"label": "interval", "loss": "proportion"},
            X,
            np.tile([0, 2], (48, 1)),
            GROUPS,
            "`loss` must be 'count' for",
        ),
        ({"label": "share"}, X, Y, GROUPS, "`label` must be one of 'proportion', 'count', 'interval'; got 'share'"),
        ({"rounding": "up"}, X, Y, GROUPS, "`rounding` must be one of 'error', 'nearest', 'spread'; got 'up'"),
        ({"loss": "mse"}, X, Y, GROUPS, "`loss` must be one of 'count', .*; got 'mse'"),
        (
            {"noise": "cauchy:1"},
            X,
            Y,
            GROUPS,
            "`noise` must be a distribution and its scale, such as .* got 'cauchy:1'",
        ),
        ({"noise": "laplace"}, X, Y, GROUPS, "`noise` must be a distribution and its scale, such as .* got 'laplace'"),
        ({"noise": "laplace:-1"}, X, Y, GROUPS, "`noise` must be a distribution and its scale"),
        ({"noise": "discrete-laplace:0"}, X, Y, GROUPS, "`noise` must be a distribution and its scale"),
        ({"noise": "normal:nan"}, X, Y, GROUPS, "`noise` must be a distribution and its scale"),
        (
            {"noise": "normal:1", "loss": "proportion"},
            X,
            Y,
            GROUPS,
            "`loss` must be 'count' for intervals and noisy counts",
        ),
    ],
)
def test_llp(options: dict[str, Any], X: Any, y: Any, groups: Any, message: str) -> None:  # noqa: N803
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        kofn.LLPClassifier(**quick(**options)).fit(X, y, groups=groups)


def test_noise_that_is_none() -> None:
    with pytest.raises(TypeError, match=r"`noise` must be a torch\.distributions distribution or a function"):
        kofn.LLPClassifier(**quick(**{"noise": 1.0})).fit(X, Y, groups=GROUPS)


@pytest.mark.parametrize(
    ("options", "y", "groups", "message"),
    [
        ({}, TASK.any, GROUPS[1:], "`groups` must name the bag of each of the 48 rows"),
        ({}, TASK.truth, GROUPS, "`y` must be the same on all instances of a bag"),
        ({}, Y, GROUPS, "Unknown label type: continuous"),
        ({}, np.resize([0, 1, 2], 48), range(48), "Only binary classification is supported"),
        ({}, np.full(48, 7), GROUPS, "`y` must have two classes; all 48 rows have the class"),
        ({"loss": "min"}, TASK.any, GROUPS, "`loss` must be one of 'count', .*'gated-attention'; got 'min'"),
        ({"positive_weight": "even"}, TASK.any, GROUPS, "`positive_weight` must be one of 'balanced'; got 'even'"),
        ({"positive_weight": -1.0}, TASK.any, GROUPS, "`positive_weight` must be finite and at least 0; got -1"),
        ({"loss": "attention", "module": torch.nn.Linear(2, 1)}, TASK.any, GROUPS, r"ends in a kofn\.learners\.Logit"),
    ],
)
def test_mil(options: dict[str, Any], y: Any, groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kofn.MILClassifier(**quick(**options)).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"prior": 0.5, "mixture": 0.5}, None, "may be given, not both; got 0.5 and 0.5"),
        ({"prior": 1.5}, None, "`prior` must lie between 0 and 1; got 1.5"),
        ({"mixture": -0.5}, None, "`mixture` must lie between 0 and 1; got -0.5"),
        ({"mixture": float("nan")}, None, "`mixture` must lie between 0 and 1; got nan"),
        (
            {"prior": 0.1},
            None,
            r"`prior` must be at least the fraction of rows that are labelled.*got 0\.1, and 0\.\d+",
        ),
        ({"prior": 0.0}, None, "`prior` must be at least the fraction of rows that are labelled"),
        ({"mixture": 0.5, "loss": "pn"}, None, "`loss` must be one of 'count', .* got 'pn'"),
        ({"mixture": 0.5, "stopping": "never"}, None, "`stopping` must be one of 'loss', .* got 'never'"),
        ({"mixture": 0.5, "batch_size": 0}, None, "`batch_size` must be at least 1; got 0"),
        ({"mixture": 0.5, "bag_size": 0}, None, "`bag_size` must be at least 1; got 0"),
        ({"mixture": 0.5, "positive_weight": -2}, None, "`positive_weight` must be finite and at least 0"),
        ({"mixture": 0.5}, 1, "there is only one class: all of the 400 rows are labelled"),
        ({"mixture": 0.5}, 0, "there is only one class: all of the 400 rows are unlabelled"),
        ({"mixture": 0.5}, -1, "`y` must have two classes"),
    ],
)
def test_pu(options: dict[str, Any], y: int | None, message: str) -> None:
    rows, _, labels = pu_task()
    with pytest.raises(ValueError, match=message):
        kofn.PUClassifier(**quick(**options)).fit(rows, labels if y is None else np.full(len(rows), y))


@pytest.mark.parametrize("kind", BAGGED, ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "`epochs` must be at least 1; got 0"),
        ({"epochs": -1}, ValueError, "`epochs` must be at least 1; got -1"),
        ({"epochs": 2.5}, TypeError, "`epochs` must be an integer"),
        ({"lr": -0.1}, ValueError, "`lr` must be from 0 to 1e"),
        (
            {"schedule": "linear"},
            ValueError,
            "`schedule` must be one of 'constant', 'cosine', 'one-cycle'; got 'linear'",
        ),
        ({"weight_decay": -1}, ValueError, "`weight_decay` must be"),
        ({"l1": float("inf")}, ValueError, "`l1` must be from 0"),
        ({"dropout": 1.5}, ValueError, "`dropout` must lie between 0 and 1"),
        ({"validation_fraction": -0.5}, ValueError, "`validation_fraction` must lie between 0 and 1"),
        ({"validation_fraction": 1.0}, ValueError, "`validation_fraction` must be below 1"),
        ({"patience": 0}, ValueError, "`patience` must be at least 1"),
        ({"accumulate": 0}, ValueError, "`accumulate` must be at least 1"),
        ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1; got 0"),
        ({"max_instances": 0}, ValueError, "`max_instances` must be at least 1; got 0"),
        (
            {"hidden": 16},
            ValueError,
            r"`hidden` must be widths of layers, such as \(128,\) or \(\), each from 1 to 2147483647; got 16",
        ),
        ({"hidden": (0,)}, ValueError, "`hidden` must be widths of layers"),
        ({"module": "resnet"}, ValueError, "`module` must be 'mlp', .* got 'resnet'"),
        ({"module": 3}, TypeError, r"`module` must be 'mlp', a torch\.nn\.Module or a function"),
        ({"module": lambda: 3}, TypeError, r"`module` must make a torch\.nn\.Module; it made a int"),
        ({"module": learners.mlp(10)}, ValueError, r"`module` must take instances of shape \(2,\)"),
        ({"module": torch.nn.Linear(2, 3)}, ValueError, r"give one logit for each instance, shape \(m,\) or \(m, 1\)"),
        ({"checkpoint": "file", "random_state": None}, ValueError, "`random_state` must be an int with `checkpoint`"),
        ({"learner": "forest"}, ValueError, r"`learner` must be 'auto', 'trees', 'linear', 'network', .* got 'forest'"),
        ({"learner": 3}, ValueError, r"`learner` must be 'auto', .* got 3"),
        ({"learner": kofn.Trees}, ValueError, r"`learner` must be 'auto', .* got <class"),
    ],
)
def test_options(kind: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    model = kind(**quick(**options))
    with pytest.raises(error, match=message):
        model.fit(X, TASK.any, groups=GROUPS)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("kind", BAGGED, ids=lambda kind: str(kind.__name__))
def test_a_pooling_network_needs_the_loss_that_pools(kind: Any) -> None:
    own = learners.AttentionMIL(learners.mlp(2, (5,))[:-1], learners.AttentionPooling(5))
    with pytest.raises(ValueError, match=r"`module` must give one logit for each instance; an AttentionMIL gives one"):
        kind(own).fit(X, TASK.any, groups=GROUPS)


def test_empty_bags() -> None:
    with pytest.raises(ValueError, match="`bags` must not be empty; bag 1 has no instance"):
        BagDataset(torch.zeros(3, 2), kofn.Bags.from_sizes([2, 0, 1]), torch.zeros(3))


@pytest.mark.parametrize("kind", [*BAGGED, kofn.PUClassifier], ids=lambda kind: str(kind.__name__))
def test_before_fit(kind: Any) -> None:
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(X)
    with pytest.raises(NotFittedError):
        kind().predict_bag_proba(X, GROUPS)
    with pytest.raises(NotFittedError):
        kind().save("nowhere")


def test_after_fit() -> None:
    llp = kofn.LLPClassifier(**quick()).fit(X, Y, groups=GROUPS)
    mil = kofn.MILClassifier(**quick()).fit(X, TASK.any, groups=GROUPS)
    for model, labels in ((llp, Y), (mil, TASK.any)):
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2 features"):
            model.predict(np.zeros((4, 3)))
        assert np.isfinite(model.decision_function(np.full((4, 2), np.nan))).all()
        with pytest.raises(ValueError, match="Input X contains infinity"):
            model.predict(np.full((4, 2), np.inf))
        for method in (model.score, model.posterior_proba):
            with pytest.raises(ValueError, match="`groups` must name the bag of each of the 48 rows; got 47"):
                method(X, labels, groups=GROUPS[1:])
            for wrong in (labels[1:], [*labels, labels[-1]]):  # a longer one would fit the bags' positions
                with pytest.raises(ValueError, match="`y` must have an entry for each of the 48 rows"):
                    method(X, wrong, groups=GROUPS)
            with pytest.raises(ValueError, match="`y` must not be NaN or None"):
                method(X, changed(labels, 0, None, object), groups=GROUPS)
            with pytest.raises(ValueError, match="`y` must not be NaN or None"):
                method(X, changed(labels, 0, np.nan, float), groups=GROUPS)
    with pytest.raises(ValueError, match=r"`y` must be one of the classes \[0, 1\]; got 2"):
        mil.score(X, TASK.any * 2, groups=GROUPS)
    with pytest.raises(ValueError, match="`y` must be proportions from 0 to 1; got 3"):
        llp.score(X, np.full(48, 3), groups=GROUPS)
    with pytest.raises(ValueError, match=r"`y` must be the class of each row, one of \[0, 1\].*; got 2"):
        llp.score(X, np.full(48, 2))


def fail(net: Any, entry: Any) -> None:
    raise RuntimeError("no disk")


def test_a_failed_fit_leaves_the_one_before() -> None:
    model = kofn.LLPClassifier(**quick()).fit(X, np.array(["a", "b"])[TASK.truth])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="a proportion times the size of its bag must be an integer"):
        model.fit(X, np.full(48, 0.3), groups=GROUPS)
    with pytest.raises(RuntimeError, match="no disk"):
        model.set_params(learner__callback=fail).fit(X, TASK.truth)
    assert np.array_equal(model.decision_function(X), before)
    assert model.classes_.tolist() == ["a", "b"]
