"""`LLPClassifier(bag_effect=...)`: bags that differ by more than their instances explain."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import expit

import kofn
from kofn.estimators import FitWarning
from kofn.metrics import count_calibration

Array = NDArray[Any]


def boxes(seed: int, effect: float, number: int = 150) -> tuple[Array, Array, Array]:
    """Rows of bags of 30 to 50, the count of positives on each row, and the bags."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(number), rng.integers(30, 51, number))
    X = rng.normal(size=(len(groups), 2)) + rng.normal(size=(number, 2))[groups]
    logits = 0.8 * X[:, 0] - 0.5 + effect * rng.normal(size=number)[groups]
    positive = rng.random(len(groups)) < expit(logits)
    return X, np.bincount(groups, positive).astype(int)[groups], groups


@pytest.fixture(scope="module")
def shifted() -> kofn.LLPClassifier:
    X, y, groups = boxes(0, 0.8)
    return kofn.LLPClassifier("linear", label="count", bag_effect="fit", random_state=0).fit(X, y, groups=groups)


def test_it_is_found_where_it_is(shifted: kofn.LLPClassifier) -> None:
    assert shifted.bag_effect_error_ is not None
    assert 0.02 < shifted.bag_effect_error_ < 0.15
    assert abs(shifted.bag_effect_ - 0.8) < 3 * shifted.bag_effect_error_
    X, y, groups = boxes(1, 0.0)
    none = kofn.LLPClassifier("linear", label="count", bag_effect="fit", random_state=0).fit(X, y, groups=groups)
    assert none.bag_effect_ == 0.0
    alone = kofn.LLPClassifier("linear", label="count", random_state=0).fit(X, y, groups=groups)
    np.testing.assert_array_equal(none.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize("learner", [kofn.Trees(rounds=20), kofn.Network(epochs=4)])
def test_any_learner_learns_it(learner: Any) -> None:
    X, y, groups = boxes(2, 0.8)
    model = kofn.LLPClassifier(learner, label="count", bag_effect="fit", random_state=0).fit(X, y, groups=groups)
    assert 0.4 < model.bag_effect_ < 1.3
    rate = np.full(len(X), np.log(model.rate_ / (1 - model.rate_)))
    counts = torch.from_numpy(y[np.unique(groups, return_index=True)[1]])
    bags = kofn.Bags.from_ids(groups)
    alike = kofn.CountDistribution(torch.from_numpy(rate), offsets=bags.offsets, bag_effect=1.0).log_prob(counts)
    assert model.score(X, y, groups) > float(alike.mean())


def test_intervals_hold_what_they_say(shifted: kofn.LLPClassifier) -> None:
    X, y, groups = boxes(3, 0.8, number=400)
    logits, bags = shifted._bag_logits(X, groups)
    counts = bags.common(torch.from_numpy(y), name="y")
    for effect, low, high in ((shifted.bag_effect_, 0.85, 0.95), (0.0, 0.2, 0.75)):
        seen = count_calibration(logits[0], counts, offsets=bags.offsets, bag_effect=effect, levels=[0.9])
        assert low < seen.coverage[0] < high
    independent = kofn.LLPClassifier("linear", label="count", random_state=0)
    with pytest.warns(FitWarning, match="too narrow.*bag_effect='fit'"):
        independent.fit(X, y, groups=groups)
    assert shifted.score(X, y, groups) > independent.score(X, y, groups) + 0.5
    table = shifted.predict_bag_proba(X[groups < 3], groups[groups < 3])
    np.testing.assert_allclose(table.sum(1), 1, rtol=1e-8)
    assert shifted.predict_bags(X[groups < 3], groups[groups < 3]).shape == (3,)


def test_probabilities_of_rows_are_means_over_shifts(shifted: kofn.LLPClassifier) -> None:
    X = np.array([[0.5, 0.0], [-3.0, 1.0], [6.0, 0.0]])
    sigma, logits = shifted.bag_effect_, shifted.decision_function(X)
    for x, (q, p) in zip(logits, shifted.predict_proba(X), strict=True):
        mean = quad(lambda z, x=x: expit(x + sigma * z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi), -12, 12)[0]
        assert p == pytest.approx(mean, rel=1e-7)
        assert p + q == pytest.approx(1)
        assert abs(p - 0.5) < abs(expit(x) - 0.5)
    np.testing.assert_array_equal(shifted.predict(X), (shifted.predict_proba(X)[:, 1] > 0.5).astype(int))


def test_posteriors_of_rows_sum_to_the_count_whatever_the_label_says(shifted: kofn.LLPClassifier) -> None:
    X, y, groups = boxes(4, 0.8, number=5)
    found = shifted.posterior_proba(X, y, groups)[:, 1]
    np.testing.assert_allclose(np.bincount(groups, found), y[np.unique(groups, return_index=True)[1]], rtol=1e-6)
    # Of bounds: P(y_i = 1 | low <= S <= high) with the shift, as the distribution itself tells it.
    bounds = np.stack([y - 3, y + 5], 1)
    model = kofn.LLPClassifier("linear", label="interval", bag_effect=0.8, random_state=0).fit(X, bounds, groups)
    logits, bags = model._bag_logits(X, groups)
    dist = kofn.CountDistribution(logits[0], offsets=bags.offsets, bag_effect=0.8)
    low, high = bags.common(torch.from_numpy(bounds), name="y").unbind(1)
    np.testing.assert_allclose(
        model.posterior_proba(X, bounds, groups)[:, 1], dist.posteriors_between(low, high), rtol=1e-6
    )


def test_a_given_effect_is_kept_and_saved(tmp_path: Path, shifted: kofn.LLPClassifier) -> None:
    X, y, groups = boxes(5, 0.8, number=40)
    given = kofn.LLPClassifier("linear", label="count", bag_effect=0.5, random_state=0).fit(X, y, groups=groups)
    assert (given.bag_effect_, given.bag_effect_error_) == (0.5, None)
    for model in (given, shifted):
        model.save(tmp_path / "model.kofn")
        loaded = kofn.LLPClassifier.load(tmp_path / "model.kofn")
        assert (loaded.bag_effect_, loaded.bag_effect_error_) == (model.bag_effect_, model.bag_effect_error_)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.score(X, y, groups) == model.score(X, y, groups)


def test_with_a_bootstrap(shifted: kofn.LLPClassifier) -> None:
    X, y, groups = boxes(6, 0.8, number=60)
    model = kofn.LLPClassifier("linear", label="count", bag_effect="fit", bootstrap=5, random_state=0)
    model.fit(X, y, groups=groups)
    low, high = model.predict_interval(X)
    probability = model.predict_proba(X)[:, 1]
    assert bool(((low <= probability) & (probability <= high)).all())
    table = model.predict_bag_proba(X, groups)
    np.testing.assert_allclose(table.sum(1), 1, rtol=1e-7)
    (mixture,), _ = model._count_distributions(X, groups, None)
    np.testing.assert_allclose(mixture.log_prob_between(3, 10).exp(), table[:, 3:11].sum(1), rtol=1e-7)
    np.testing.assert_allclose(mixture.cdf(5), table[:, :6].sum(1), rtol=1e-7)
    ends = [end.numpy() for end in mixture.interval(0.9)]
    for j, row in enumerate(table):
        assert ends[0][j] == (row.cumsum() <= 0.05).sum()
        assert ends[1][j] == row.nonzero()[0][-1] - (row[: row.nonzero()[0][-1] + 1][::-1].cumsum() <= 0.05).sum()


@pytest.mark.parametrize("loss", ["joint", "marginal"])
def test_several_classes_have_it(loss: Any) -> None:
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(60), 20)
    X = rng.normal(size=(1200, 2)) + rng.normal(size=(60, 2))[groups]
    logits = np.stack([X[:, 0], X[:, 1], np.zeros(1200)], 1) + 0.8 * rng.normal(size=(60, 3))[groups]
    classes = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    counts = np.stack([np.bincount(groups, classes == c) for c in range(3)], 1)[groups]
    model = kofn.LLPClassifier("linear", loss=loss, label="count", bag_effect="fit", random_state=0)
    model.fit(X, counts, groups=groups)
    assert model.loss_ == loss
    assert 0.3 < model.bag_effect_ < 1.5
    assert model.predict_bag_proba(X, groups).shape == (60, 3, 21)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bag_effect": -1.0}, ValueError, "`bag_effect` must be from 0 to 1e.06; got -1.0"),
        ({"bag_effect": 1e10}, ValueError, "`bag_effect` must be from 0 to 1e.06; got 10000000000.0"),
        ({"bag_effect": "auto"}, TypeError, "`bag_effect` must be a number; got 'auto'"),
        ({"bag_effect": "fit", "loss": "proportion"}, ValueError, "goes with loss='count'"),
        ({"bag_effect": 0.5, "loss": "mutual-contamination"}, ValueError, "goes with loss='count'"),
        ({"bag_effect": "fit", "learner": kofn.Network(checkpoint="c.kofn")}, ValueError, "fits the learner again"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    X, y, groups = boxes(8, 0.0, number=4)
    with pytest.raises(error, match=words):
        kofn.LLPClassifier(**({"learner": "linear", "label": "count"} | options)).fit(X, y, groups)
