"""The rules that make verdicts, at their borders."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student_t

from kofn.estimators._verdicts import (
    FEWEST,
    Estimate,
    Source,
    auc_gain,
    mark_of_coverage,
    mark_of_gains,
    mark_of_gap,
    mark_of_rows,
    mean_of,
    share_of,
)
from kofn.metrics import auc


def gain(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high)


def test_the_mean_and_its_interval_are_those_of_a_t_test() -> None:
    values = np.random.default_rng(0).normal(0.3, 1, 25)
    found = mean_of(values)
    low, high = student_t.interval(0.9, 24, values.mean(), values.std(ddof=1) / 5)
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), low, high))
    assert mean_of(np.array([1.0])).low == -np.inf
    assert mean_of(np.array([1.0, -np.inf])).high == -np.inf


def test_mean_of_holds_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    found = [mean_of(rng.normal(size=8)) for _ in range(2000)]
    assert np.mean([one.low <= 0 <= one.high for one in found]) == pytest.approx(0.9, abs=0.03)


def test_wilson_interval_holds_a_share_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    found = [share_of(hits / 60, 60) for hits in rng.binomial(60, 0.9, 4000)]
    assert np.mean([one.low <= 0.9 <= one.high for one in found]) == pytest.approx(0.9, abs=0.06)
    assert share_of(1.0, 10).high == pytest.approx(1)
    assert 0 < share_of(1.0, 10).low < 1
    assert (share_of(0.5, 0).low, share_of(0.5, 0).high) == (0, 1)


@pytest.mark.parametrize(
    ("gains", "mark"),
    [
        ([gain(0.001, 1)], "good"),
        ([gain(0.0, 1)], "doubtful"),
        ([gain(-1, 0.0)], "doubtful"),
        ([gain(-1, -0.001)], "bad"),
        ([gain(0.1, 1), gain(-0.1, 1)], "doubtful"),
        ([gain(0.1, 1), gain(-1, -0.1)], "bad"),
    ],
)
def test_gains(gains: list[Estimate], mark: str) -> None:
    assert mark_of_gains(gains, 100, "held-out") == mark
    assert mark_of_gains(gains, 100, "new") == mark
    assert mark_of_gains(gains, 100, "training") == "unknown"
    assert mark_of_gains(gains, FEWEST, "new") == mark
    assert mark_of_gains(gains, FEWEST - 1, "new") == "unknown"


def test_fewest_is_the_first_number_of_bags_that_chance_does_not_make_unanimous() -> None:
    assert 0.5**FEWEST < 0.05 < 0.5 ** (FEWEST - 1)


@pytest.mark.parametrize(
    ("held", "bags", "mark"),
    [
        (0.9, 43, "unknown"),
        (0.9, 44, "good"),
        (0.7, 20, "doubtful or worse"),
        (0.4, 20, "bad"),
        (0.85, 10_000, "good"),
        (0.8499, 10_000, "doubtful"),
        (0.84, 10_000, "bad"),
        (0.95, 10_000, "good"),
        (0.96, 10_000, "doubtful"),
        (0.86, 60, "doubtful"),
        (1.0, 60, "doubtful"),
    ],
)
def test_coverage(held: float, bags: int, mark: str) -> None:
    found = mark_of_coverage(held, 0.9, bags, "held-out")
    assert found == mark or (mark == "doubtful or worse" and found in ("unknown", "bad"))
    assert mark_of_coverage(held, 0.9, bags, "training") == "unknown"


def test_forty_bags_give_no_verdict_that_they_cannot_give() -> None:
    assert {mark_of_coverage(hits / 40, 0.9, 40, "new") for hits in range(33, 41)} == {"unknown"}
    assert mark_of_coverage(0.6, 0.9, 40, "new") == "bad"
    assert mark_of_coverage(0.9, 0.9, 0, "new") == "unknown"


def test_a_calibrated_model_is_seldom_called_bad() -> None:
    hits = np.random.default_rng(3).binomial(100, 0.9, 3000)
    marks = [mark_of_coverage(number / 100, 0.9, 100, "new") for number in hits]
    assert marks.count("bad") / 3000 < 0.01
    assert marks.count("good") / 3000 > 0.7


@pytest.mark.parametrize(
    ("rank", "of_gain", "mark"),
    [
        (gain(0.57, 0.64), gain(0.01, 1), "good"),
        (gain(0.51, 0.6), gain(0.01, 1), "doubtful"),  # above chance, and not surely
        (gain(0.5, 0.6), gain(0.01, 1), "doubtful"),
        (gain(0.51, 0.6), gain(0.0, 1), "doubtful"),
        (gain(0.51, 0.6), gain(-1, -0.5), "doubtful"),
        (gain(0.4, 0.5), gain(0.01, 1), "bad"),
    ],
)
def test_rows(rank: Estimate, of_gain: Estimate, mark: str) -> None:
    for source in ("held-out", "new"):
        assert mark_of_rows(rank, 0.5, of_gain, source) == mark
    assert mark_of_rows(rank, 0.5, of_gain, "training") == ("doubtful" if mark == "good" else mark)


@pytest.mark.parametrize(("low", "high", "mark"), [(-0.05, 0.05, "good"), (-0.04, 0.06, "doubtful"), (0.051, 1, "bad")])
def test_gap(low: float, high: float, mark: str) -> None:
    sources: list[Source] = ["held-out", "new"]
    half = gain(0.48, 0.52)
    assert {mark_of_gap(gain(low, high), half, source) for source in sources} == {mark}
    assert {mark_of_gap(gain(-high, -low), half, source) for source in sources} == {mark}
    assert mark_of_gap(gain(low, high), half, "training") == "unknown"


def test_the_slack_of_a_rare_share_is_a_quarter_of_it() -> None:
    rare = Estimate(0.08, 0.06, 0.12)
    assert mark_of_gap(gain(-0.02, 0.02), rare, "new") == "good"
    assert mark_of_gap(gain(-0.021, 0.02), rare, "new") == "doubtful"
    assert mark_of_gap(gain(0.029, 0.04), rare, "new") == "doubtful"  # 0.03 is a quarter of the upper end
    assert mark_of_gap(gain(0.031, 0.04), rare, "new") == "bad"
    assert mark_of_gap(gain(-0.034, -0.03), Estimate(0.09, 0.067, 0.121), "new") == "doubtful"
    assert mark_of_gap(gain(-0.001, 0.0), Estimate(0.0, 0.0, 0.01), "new") == "doubtful"  # none was seen


def test_auc_gain_is_the_difference_of_two_aucs() -> None:
    rng = np.random.default_rng(4)
    positive = rng.random(400) < 0.3
    good, poor = positive + rng.normal(size=400), positive + 3 * rng.normal(size=400)
    found = auc_gain(good, poor, positive)
    assert found.mean == pytest.approx(auc(positive, good) - auc(positive, poor))
    assert 0 < found.low < found.mean < found.high
    assert auc_gain(good, None, positive).mean == pytest.approx(auc(positive, good) - 0.5)


def test_auc_gain_holds_the_difference_as_often_as_it_says() -> None:
    rng, found = np.random.default_rng(5), []
    positive = np.arange(120) < 40
    for _ in range(600):
        scores, others = (positive + rng.normal(size=120) for _ in range(2))
        found.append(auc_gain(scores, others, positive))
    assert np.mean([one.low <= 0 <= one.high for one in found]) == pytest.approx(0.9, abs=0.05)
