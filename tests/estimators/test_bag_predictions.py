"""Laws of counts, posteriors and scores of bags, against enumeration."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from estimator_cases import UNLEARNT, Array, bags_task, pu_task, quick
from oracles import enumerated_law, enumerated_posteriors

import kofn
from kofn.targets import Spread

TASK = bags_task(bags=20, threshold=0.5)
SIZES = [3, 1, 5, 2]
NAMES = np.repeat(["d", "a", "c", "b"], SIZES)  # the order of first appearance is not that of the alphabet
MIXED = np.random.default_rng(0).permutation(len(NAMES))
pytestmark = UNLEARNT
X, GROUPS = TASK.X[: len(NAMES)], NAMES[MIXED]
ORDER = list(dict.fromkeys(GROUPS.tolist()))

warnings.simplefilter("ignore")  # these fits are no better than none
LLP = kofn.LLPClassifier(**quick()).fit(TASK.X, TASK.y, groups=TASK.groups)
MIL = kofn.MILClassifier(**quick()).fit(TASK.X, TASK.any, groups=TASK.groups)
ATTENTION = kofn.MILClassifier(**quick(hidden=(4,), loss="attention")).fit(TASK.X, TASK.any, groups=TASK.groups)


def odds(model: Any, bag: str) -> list[Fraction]:
    return [Fraction(float(np.exp(x))) for x in model.decision_function(X)[bag == GROUPS]]


def test_llp_law_of_each_bag() -> None:
    law = LLP.predict_bag_proba(X, GROUPS)
    assert law.shape == (4, 6)
    assert np.allclose(law.sum(1), 1, rtol=1e-12)
    for row, bag in zip(law, ORDER, strict=True):
        exact = [float(p) for p in enumerated_law(odds(LLP, bag))]
        assert np.allclose(row, exact + [0.0] * (6 - len(exact)), rtol=1e-9, atol=1e-300)
    assert np.array_equal(LLP.predict_bags(X, GROUPS), law.argmax(1))


def test_pu_has_laws_of_bags_too() -> None:
    rows, _, y = pu_task(rows=100)
    law = kofn.PUClassifier(mixture=0.3, **quick()).fit(rows, y).predict_bag_proba(X, GROUPS)
    assert np.allclose(law.sum(1), 1)


def test_mil_bags_are_noisy_ors() -> None:
    p = MIL.predict_proba(X)[:, 1]
    expected = np.array([1 - np.prod(1 - p[bag == GROUPS]) for bag in ORDER])
    proba = MIL.predict_bag_proba(X, GROUPS)
    assert np.allclose(proba, np.stack([1 - expected, expected], 1), rtol=1e-9)
    assert np.allclose(MIL.bag_decision_function(X, GROUPS), np.log(expected / (1 - expected)), rtol=1e-6, atol=1e-9)
    assert np.array_equal(MIL.predict_bags(X, GROUPS), (expected > 0.5).astype(int))


def test_log_odds_of_bags_do_not_round() -> None:
    scores = MIL.bag_decision_function(np.tile([[200.0, 0.0]], (4, 1)) * [[1], [2], [3], [4]], np.arange(4))
    assert len(np.unique(scores)) == 4  # where probabilities are all 1, or all 0
    assert abs(scores).min() > 10


def test_attention_is_the_networks_own() -> None:
    bags = kofn.Bags.from_ids(GROUPS)
    with torch.no_grad():
        features = torch.from_numpy(ATTENTION.fitted_.design(X.astype(np.float32)))  # type: ignore[attr-defined]  # of a network
        own = ATTENTION.network_(features[bags.index], offsets=bags.offsets)
    proba = ATTENTION.predict_bag_proba(X, GROUPS)
    assert np.allclose(proba[:, 1], torch.sigmoid(own.double()).numpy(), rtol=1e-6)
    assert np.allclose(proba.sum(1), 1)
    alone = ATTENTION.predict_bag_proba(X, np.arange(len(X)))  # an instance is scored as a bag of one
    assert np.allclose(alone, ATTENTION.predict_proba(X), rtol=1e-5)
    p = ATTENTION.predict_proba(X)[:, 1]
    assert not np.allclose(proba[:, 1], [1 - np.prod(1 - p[bag == GROUPS]) for bag in ORDER])


def counts_of(bag: str) -> int:
    return {"a": 1, "b": 0, "c": 3, "d": 1}[bag]


COUNTS = np.array([counts_of(bag) for bag in GROUPS])
SHARES = COUNTS / np.array([(bag == GROUPS).sum() for bag in GROUPS])


def relabelled(**options: Any) -> Any:
    """The trained network, asked about other kinds of labels."""
    model = kofn.LLPClassifier(**quick(**options))
    model.__dict__ |= {name: value for name, value in LLP.__dict__.items() if name.endswith("_")}
    return model


@pytest.mark.parametrize(
    ("options", "y"),
    [
        ({}, SHARES),
        ({"label": "count"}, COUNTS),
        ({"label": "interval"}, np.stack([COUNTS, COUNTS], 1)),
        ({"rounding": "nearest"}, SHARES.round(2)),
        ({"loss": "proportion"}, SHARES),
        ({"label": "count", "noise": "discrete-laplace:0.01"}, COUNTS),  # noise that is almost surely none
    ],
    ids=str,
)
def test_llp_posteriors(options: dict[str, Any], y: Array) -> None:
    posterior = relabelled(**options).posterior_proba(X, y, groups=GROUPS)
    assert np.allclose(posterior.sum(1), 1)
    for bag in ORDER:
        inside = bag == GROUPS
        assert posterior[inside, 1].sum() == pytest.approx(counts_of(bag), abs=1e-9)
        exact = [float(p) for p in enumerated_posteriors(odds(LLP, bag), counts_of(bag))]
        assert np.allclose(posterior[inside, 1], exact, rtol=1e-7, atol=1e-9)


def test_posteriors_of_intervals_and_spreads() -> None:
    everything = np.stack([COUNTS * 0, COUNTS * 0 + 5], 1)  # says nothing
    posterior = relabelled(label="interval").posterior_proba(X, everything, groups=GROUPS)
    assert np.allclose(posterior, LLP.predict_proba(X), atol=1e-9)
    shares = np.where(GROUPS == "c", 0.5, SHARES)  # 2.5 of 5
    spread = relabelled(rounding="spread").posterior_proba(X, shares, groups=GROUPS)
    assert spread[GROUPS == "c", 1].sum() == pytest.approx(2.5)


def test_mil_posteriors() -> None:
    y = np.isin(GROUPS, ["a", "c"]).astype(int)
    posterior = MIL.posterior_proba(X, y, groups=GROUPS)
    p = MIL.predict_proba(X)[:, 1]
    assert np.array_equal(posterior[y == 0], np.tile([1.0, 0.0], ((y == 0).sum(), 1)))
    for bag in ("a", "c"):
        inside = bag == GROUPS
        some = 1 - np.prod(1 - p[inside])
        assert np.allclose(posterior[inside, 1], p[inside] / some, rtol=1e-9)
    assert posterior[GROUPS == "a", 1] == pytest.approx(1)  # a bag of one


def test_posteriors_of_bags_of_one_are_the_labels() -> None:
    assert np.allclose(LLP.posterior_proba(X, COUNTS > 0)[:, 1], COUNTS > 0)
    alone = MIL.posterior_proba(X, (COUNTS > 0).astype(int), groups=range(len(X)))
    assert np.allclose(alone[:, 1], COUNTS > 0)


def test_scores() -> None:
    truth, y = TASK.truth, TASK.y
    assert LLP.score(TASK.X, truth) == (LLP.predict(TASK.X) == truth).mean()
    law = LLP.predict_bag_proba(TASK.X, TASK.groups)
    likelihood = np.log(law[np.arange(20), TASK.counts]).mean()
    assert LLP.score(TASK.X, y, groups=TASK.groups) == pytest.approx(likelihood, rel=1e-9)
    by_count = relabelled(label="count")
    assert by_count.score(TASK.X, TASK.repeated(TASK.counts), groups=TASK.groups) == pytest.approx(likelihood, rel=1e-9)
    assert by_count.score(TASK.X, truth) == LLP.score(TASK.X, truth)  # a bag of one: its count is its class
    bounds = np.stack([TASK.repeated(TASK.counts)] * 2, 1)
    assert relabelled(label="interval").score(TASK.X, bounds, groups=TASK.groups) == pytest.approx(likelihood, rel=1e-6)
    right = MIL.predict_bags(TASK.X, TASK.groups) == (TASK.counts > 0)
    assert MIL.score(TASK.X, TASK.any, groups=TASK.groups) == right.mean()


def test_without_groups_labels_must_be_classes() -> None:
    rule = r"`y` must be the class of each row, one of \[0, 1\], where no `groups` are given; got "
    with pytest.raises(ValueError, match=rule + r"0\.25\. For labels of bags.*kofn\.model_selection\.search"):
        LLP.score(TASK.X, TASK.y)
    with pytest.raises(ValueError, match=rule + "2"):
        relabelled(label="count").score(TASK.X, TASK.repeated(TASK.counts))


def test_score_of_spread_proportions() -> None:
    shares = np.full(20, 0.3)[TASK.groups]  # 1.2 of 4
    logits = torch.tensor(LLP.decision_function(TASK.X).reshape(20, 4))
    expected = -float(kofn.count_loss(logits, Spread(torch.full((20,), 1.2))))
    assert relabelled(rounding="spread").score(TASK.X, shares, groups=TASK.groups) == pytest.approx(expected, rel=1e-6)


def test_asking_changes_nothing() -> None:
    model = kofn.LLPClassifier(**quick()).fit(TASK.X, np.array(["no", "yes"])[TASK.truth])
    kept = dict(vars(model))
    some = np.full(len(TASK.X), "yes")
    model.score(TASK.X, some)
    assert np.allclose(model.posterior_proba(TASK.X, some)[:, 1], 1)
    model.posterior_proba(TASK.X, TASK.y, groups=TASK.groups)
    assert all(vars(model)[name] is value for name, value in kept.items())
    assert model.predict(TASK.X).dtype.kind == "U"
    with pytest.raises(ValueError, match=r"`y` must be one of the classes \['no', 'yes'\]; got 'maybe'"):
        model.posterior_proba(TASK.X, np.full(len(TASK.X), "maybe"))


def test_scores_with_weights() -> None:
    weights = np.linspace(1, 3, 20)
    rows = TASK.repeated(weights)
    law = LLP.predict_bag_proba(TASK.X, TASK.groups)
    each = np.log(law[np.arange(20), TASK.counts])
    score = LLP.score(TASK.X, TASK.y, groups=TASK.groups, sample_weight=rows)
    assert score == pytest.approx(np.average(each, weights=weights), rel=1e-9)
    right = MIL.predict_bags(TASK.X, TASK.groups) == (TASK.counts > 0)
    score = MIL.score(TASK.X, TASK.any, groups=TASK.groups, sample_weight=rows)
    assert score == pytest.approx(np.average(right, weights=weights))
    right = LLP.predict(TASK.X) == TASK.truth
    assert LLP.score(TASK.X, TASK.truth, sample_weight=rows) == pytest.approx(np.average(right, weights=rows))
    for model in (LLP, MIL):
        y = TASK.any if model is MIL else TASK.y
        with pytest.raises(ValueError, match="`sample_weight` must be the same on all instances of a bag"):
            model.score(TASK.X, y, groups=TASK.groups, sample_weight=np.arange(len(rows)))
        with pytest.raises(ValueError, match="`sample_weight` must have an entry for each of the 80 rows"):
            model.score(TASK.X, y, groups=TASK.groups, sample_weight=rows[1:])
