"""Measures of positives against unlabelled: against what labels would say, and in expectation under SCAR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from kofn import metrics

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=30)


def drawn(seed: int, mixture: float, labelled: int, unlabelled: int, gap: float = 2.0) -> tuple[Any, Any, Any]:
    """Scores of labelled positives and of unlabelled, and the truth of these."""
    rng = np.random.default_rng(seed)
    truth = rng.random(unlabelled) < mixture
    return rng.normal(gap, 1, labelled), rng.normal(0, 1, unlabelled) + gap * truth, truth


class TestRanking:
    @given(positive=SCORES, unlabeled=SCORES)
    def test_pu_auc_is_the_auc_of_labelled_against_unlabelled(
        self, positive: list[float], unlabeled: list[float]
    ) -> None:
        labels = [1] * len(positive) + [0] * len(unlabeled)
        assert metrics.pu_auc(positive, unlabeled) == pytest.approx(metrics.auc(labels, positive + unlabeled))

    @given(positive=SCORES, unlabeled=SCORES, k=st.integers(1, 30))
    def test_ties_are_broken_at_random(self, positive: list[float], unlabeled: list[float], k: int) -> None:
        """The mean over thresholds just above and just below the ties, by the share of them that is paid for."""
        k = min(k, len(unlabeled))
        cut = sorted(unlabeled)[-k]
        u, p = np.array(unlabeled), np.array(positive)
        share = (k - (u > cut).sum()) / (u == cut).sum()
        expected = (1 - share) * (p > cut).mean() + share * (p >= cut).mean()
        found = metrics.recall_at(positive, unlabeled, k / len(unlabeled))
        assert found == pytest.approx(expected, abs=1e-9)
        precision = metrics.precision_at(positive, unlabeled, k, mixture=0.3)
        assert precision == pytest.approx(0.3 * metrics.lift(positive, unlabeled, k / len(unlabeled)), abs=1e-9)

    def test_everything_finds_everything(self) -> None:
        positive, unlabeled, _ = drawn(0, 0.3, 50, 70)
        assert metrics.recall_at(positive - 9, unlabeled + 9, 1.0) == 0.0  # not even the lowest unlabelled
        assert metrics.recall_at(positive + 9, unlabeled, 1.0) == 1.0
        assert metrics.precision_at(positive + 9, unlabeled, 70, mixture=0.3) == pytest.approx(0.3)

    @pytest.mark.parametrize("mixture", [0.1, 0.5, 0.8])
    def test_they_are_what_labels_would_say(self, mixture: float) -> None:
        positive, unlabeled, truth = drawn(1, mixture, 40_000, 40_000)
        order = np.argsort(-unlabeled)[:4000]
        assert metrics.recall_at(positive, unlabeled, 0.1) == pytest.approx(truth[order].sum() / truth.sum(), rel=0.05)
        assert metrics.precision_at(positive, unlabeled, 4000, mixture=mixture) == pytest.approx(
            truth[order].mean(), rel=0.05
        )
        implied = metrics.auc_of_mixture(metrics.pu_auc(positive, unlabeled), mixture)
        assert implied == pytest.approx(roc_auc_score(truth, unlabeled), abs=0.02)


class TestAucOfMixture:
    def test_formula(self) -> None:
        for mixture in (0.0, 0.2, 0.9):
            assert metrics.auc_of_mixture(mixture / 2 + (1 - mixture) * 0.77, mixture) == pytest.approx(0.77)

    def test_bounds_hold_the_auc(self) -> None:
        inside, centre = 0, 0.9213503964748575  # Phi(2 / sqrt 2)
        for seed in range(100):
            positive, unlabeled, _ = drawn(seed, 0.4, 150, 400)
            low, high = metrics.auc_bounds(positive, unlabeled, mixture=0.4, level=0.9)
            inside += low <= centre <= high
        assert 80 <= inside <= 98

    def test_an_interval_of_the_mixture_makes_them_wider(self) -> None:
        positive, unlabeled, _ = drawn(0, 0.4, 150, 400, 1.0)
        low, high = metrics.auc_bounds(positive, unlabeled, mixture=0.4)
        wide_low, wide_high = metrics.auc_bounds(positive, unlabeled, mixture=(0.3, 0.5))
        assert wide_low < low < high < wide_high <= 1


class TestSelection:
    @pytest.mark.parametrize("mixture", [0.2, 0.5, 0.8])
    def test_false_alarms_where_no_negative_scores_high(self, mixture: float) -> None:
        """There the inequality is an equality, so that p-values are uniform."""
        values = [
            metrics.selection_p_value(*drawn(seed, mixture, 100, 500, 6.0)[:2], mixture=mixture) for seed in range(200)
        ]
        assert sum(value < 0.05 for value in values) <= 22  # 10 expected; 22 have a probability of 1e-4
        assert 70 <= sum(value < 0.5 for value in values) <= 130

    def test_fewer_where_classes_overlap(self) -> None:
        values = [metrics.selection_p_value(*drawn(seed, 0.5, 100, 500, 1.0)[:2], mixture=0.5) for seed in range(100)]
        assert sum(value < 0.05 for value in values) <= 5

    def test_easy_positives_are_noticed(self) -> None:
        found = 0
        for seed in range(50):
            positive, unlabeled, _ = drawn(seed, 0.4, 2000, 2000)
            chance = 1 / (1 + np.exp(-(positive - 2)))  # of a high score three times that of a low one
            labelled = positive[np.random.default_rng(seed).random(2000) < chance / 3]
            found += metrics.selection_p_value(labelled, unlabeled, mixture=0.4) < 0.05
        assert found >= 40

    def test_a_mixture_that_is_too_large_is_noticed(self) -> None:
        positive, unlabeled, _ = drawn(3, 0.3, 500, 2000, 3.0)
        assert metrics.selection_p_value(positive, unlabeled, mixture=0.5) < 0.01
        assert metrics.selection_p_value(positive, unlabeled, mixture=0.2) > 0.5

    def test_edges(self) -> None:
        positive, unlabeled, _ = drawn(0, 0.3, 100, 100)
        assert np.isnan(metrics.selection_p_value(positive[:39], unlabeled, mixture=0.3))
        assert metrics.selection_p_value(positive, unlabeled, mixture=0.0) == 1.0
        assert metrics.selection_p_value(np.zeros(50), np.zeros(50), mixture=1.0) == 1.0
        assert 0 < metrics.selection_p_value(np.repeat(positive.round(), 2), unlabeled.round(), mixture=1.0) <= 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.recall_at([], [1.0], 0.1), "`positive_scores` must hold one score or more; got none"),
        (lambda: metrics.lift([1.0], [np.nan], 0.1), "`unlabeled_scores` must not be NaN; 1 of 1 are"),
        (lambda: metrics.lift([1.0], [1.0], 0.0), "`fraction` must be above 0, at most 1; got 0"),
        (lambda: metrics.recall_at([1.0], [1.0], 1.5), "`fraction` must lie between 0 and 1; got 1.5"),
        (lambda: metrics.precision_at([1.0], [1.0], 2, mixture=0.5), "`k` must"),
        (lambda: metrics.auc_of_mixture(0.7, 1.0), "`mixture` must be below 1"),
        (lambda: metrics.auc_bounds([1.0], [1.0, 2.0], mixture=0.5), "two or more each.*got 1 and 2"),
        (lambda: metrics.selection_p_value([1.0], [1.0], mixture=3.0), "`mixture` must lie between 0 and 1; got 3"),
    ],
)
def test_messages(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
