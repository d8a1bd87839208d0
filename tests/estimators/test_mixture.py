"""estimate_mixture recovers the share of positives where it can be known, and says how well it knows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import kofn

Array = np.ndarray[Any, np.dtype[np.float64]]


def normal_scores(mixture: float, *, seed: int, labeled: int = 1000, unlabeled: int = 4000) -> tuple[Array, Array]:
    """Normal scores of one variance: P(positive | score) is a sigmoid of the score, and the model is right."""
    rng = np.random.default_rng(seed)
    truth = rng.random(unlabeled) < mixture
    return rng.normal(1.5, size=labeled), rng.normal(np.where(truth, 1.5, -1.5))


@pytest.mark.parametrize("mixture", [0.1, 0.5, 0.9])
def test_the_mixture_is_found(mixture: float) -> None:
    found = kofn.estimate_mixture(*normal_scores(mixture, seed=1))
    assert found.mixture == pytest.approx(mixture, abs=0.05)
    assert found.interval[0] < mixture < found.interval[1]
    assert found.interval[1] - found.interval[0] < 0.2


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = []
    for seed in range(60):
        low, high = kofn.estimate_mixture(*normal_scores(0.4, seed=seed, labeled=300, unlabeled=900)).interval
        held.append(low <= 0.4 <= high)
    assert 0.78 <= np.mean(held) <= 0.99  # 0.9, and more than three standard errors to both sides


def test_more_scores_and_lower_levels_narrow_the_interval() -> None:
    def width(scores: int, level: float) -> float:
        low, high = kofn.estimate_mixture(
            *normal_scores(0.4, seed=0, labeled=scores, unlabeled=3 * scores), level=level
        ).interval
        return high - low

    assert width(1600, 0.9) < 0.7 * width(400, 0.9)
    assert width(400, 0.5) < width(400, 0.9) < width(400, 0.99)


def test_scale_and_origin_of_the_scores_do_not_matter() -> None:
    positive, unlabeled = normal_scores(0.3, seed=2)
    plain = kofn.estimate_mixture(positive, unlabeled)
    for scale, origin in [(1e-6, 5.0), (1e6, -3.0)]:
        moved = kofn.estimate_mixture(scale * positive + origin, scale * unlabeled + origin)
        assert moved.mixture == pytest.approx(plain.mixture, abs=1e-3)
        assert moved.interval == pytest.approx(plain.interval, abs=1e-3)


def test_the_order_of_the_scores_does_not_matter() -> None:
    positive, unlabeled = normal_scores(0.3, seed=2)
    plain = kofn.estimate_mixture(positive, unlabeled)
    turned = kofn.estimate_mixture(torch.from_numpy(positive.copy()).flip(0), unlabeled[::-1].tolist())
    assert turned.mixture == pytest.approx(plain.mixture, abs=1e-4)


def test_separated_classes_are_counted() -> None:
    rng = np.random.default_rng(0)
    unlabeled = np.concatenate([rng.normal(50.0, size=250), rng.normal(-50.0, size=750)])
    found = kofn.estimate_mixture(rng.normal(50.0, size=100), unlabeled)
    assert found.mixture == pytest.approx(0.25, abs=0.01)


def test_scores_that_say_nothing_give_an_interval_that_says_so() -> None:
    rng = np.random.default_rng(0)
    for positive, unlabeled in [(rng.normal(size=500), rng.normal(size=1500)), (np.zeros(20), np.zeros(20))]:
        low, high = kofn.estimate_mixture(positive, unlabeled).interval
        assert high - low > 0.9


def test_without_any_positive_the_mixture_is_near_zero() -> None:
    rng = np.random.default_rng(0)
    found = kofn.estimate_mixture(rng.normal(4.0, size=500), rng.normal(-4.0, size=2000))
    assert found.mixture < 0.01
    assert found.interval[0] <= found.mixture <= found.interval[1] < 0.02


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [1e-9, 0.5, 0.999])
def test_the_interval_holds_the_estimate(seed: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    found = kofn.estimate_mixture(rng.standard_cauchy(30) + 1, rng.standard_cauchy(50), level=level)
    assert 0 <= found.interval[0] <= found.mixture <= found.interval[1] <= 1
    assert found.level == level


@pytest.mark.parametrize(
    ("positive", "unlabeled", "level", "message"),
    [
        (np.zeros(9), np.zeros(20), 0.9, r"`positive_scores` must be the scores of at least 10 .* got shape \(9,\)"),
        (np.zeros(20), np.zeros((20, 2)), 0.9, r"`unlabeled_scores` must be .* shape \(n,\); got shape \(20, 2\)"),
        (np.zeros(20), np.full(20, -np.inf), 0.9, "`unlabeled_scores` must be finite"),
        (np.full(20, np.nan), np.zeros(20), 0.9, "`positive_scores` must be finite"),
        (np.zeros(20), np.zeros(20), 1.0, "`level` must lie between 0 and 1, such as 0.9; got 1.0"),
        (np.zeros(20), np.zeros(20), 90, "`level` must lie between 0 and 1; got 90. Percentages"),
    ],
)
def test_errors(positive: Any, unlabeled: Any, level: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kofn.estimate_mixture(positive, unlabeled, level=level)
