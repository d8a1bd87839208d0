"""Metrics against hand values, against scikit-learn, and against simulated bags."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import kofn
from kofn import metrics

sklearn_metrics = importlib.import_module("sklearn.metrics")

LABELS = [0, 0, 0, 0, 1, 1, 1, 1]
SCORES = [-4.0, -1.0, 2.0, -3.0, 3.0, -2.0, 1.0, 0.5]  # TP 3, FN 1, FP 1, TN 3; 12 of 16 pairs in order


def test_by_hand() -> None:
    assert metrics.auc(LABELS, SCORES) == 12 / 16
    assert metrics.accuracy(LABELS, SCORES) == 6 / 8
    assert metrics.balanced_accuracy(LABELS, SCORES) == 6 / 8
    assert metrics.precision(LABELS, SCORES) == 3 / 4
    assert metrics.recall(LABELS, SCORES) == 3 / 4
    assert metrics.f1(LABELS, SCORES) == 6 / 8


def test_threshold() -> None:
    # Above 1.5: 3.0 (positive) and 2.0 (negative).
    assert metrics.precision(LABELS, SCORES, threshold=1.5) == 1 / 2
    assert metrics.recall(LABELS, SCORES, threshold=1.5) == 1 / 4
    assert metrics.f1(LABELS, SCORES, threshold=1.5) == 2 / 6
    assert metrics.accuracy(LABELS, SCORES, threshold=1.5) == 4 / 8
    assert metrics.accuracy([0, 1], [0.0, 1.0]) == 1.0  # a logit of exactly 0 is no positive, like round(0.5)
    assert metrics.precision([0, 1], [-1.0, -1.0]) == 0.0  # nothing predicted positive


@pytest.mark.parametrize("container", [list, np.asarray, torch.tensor, lambda v: torch.tensor(v).view(2, 4)])
def test_lists_arrays_and_tensors_of_any_shape(container: Callable[[list[float]], Tensor]) -> None:
    assert metrics.auc(container(list(LABELS)), container(SCORES)) == 12 / 16
    assert metrics.f1(container(list(LABELS)), container(SCORES)) == 6 / 8


def test_dtypes_and_tensors_that_need_gradients() -> None:
    scores = torch.tensor(SCORES, requires_grad=True)
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32):
        assert metrics.auc(torch.tensor(LABELS).to(dtype), scores) == 12 / 16
    assert metrics.auc(LABELS, scores.to(torch.bfloat16)) == 12 / 16
    assert isinstance(metrics.accuracy(LABELS, scores), float)


def test_against_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 500)
    logits = (rng.normal(size=500) + labels).round(1)  # with ties
    guess = (logits > 0.3).astype(int)
    assert metrics.auc(labels, logits) == pytest.approx(sklearn_metrics.roc_auc_score(labels, logits), abs=1e-14)
    pairs = {
        metrics.accuracy: sklearn_metrics.accuracy_score,
        metrics.balanced_accuracy: sklearn_metrics.balanced_accuracy_score,
        metrics.precision: sklearn_metrics.precision_score,
        metrics.recall: sklearn_metrics.recall_score,
        metrics.f1: sklearn_metrics.f1_score,
    }
    for ours, theirs in pairs.items():
        assert ours(labels, logits, threshold=0.3) == theirs(labels, guess)


def test_auc_is_of_scores_and_not_of_rounded_predictions() -> None:
    """A mistake of the field: AUC on rounded predictions, which is the balanced accuracy."""
    labels, scores = [0, 0, 1, 1], [-3.0, -2.0, -1.0, 5.0]
    assert metrics.auc(labels, scores) == 1.0
    assert metrics.balanced_accuracy(labels, scores) == 0.75
    probabilities = torch.tensor(scores, dtype=torch.float64).sigmoid()
    assert sklearn_metrics.roc_auc_score(labels, probabilities.round()) == 0.75


def test_auc_takes_infinite_and_saturated_scores() -> None:
    assert metrics.auc([0, 1, 0, 1], [-math.inf, math.inf, 3.0, math.inf]) == 1.0
    assert metrics.auc([0, 1], [40.0, 41.0]) == 1.0  # as probabilities they would tie
    assert metrics.auc([0, 1], [math.inf, math.inf]) == 0.5


@pytest.mark.parametrize("metric", [metrics.auc, metrics.balanced_accuracy])
def test_one_class_only_is_an_error(metric: Callable[..., float]) -> None:
    with pytest.raises(
        ValueError, match=rf"`labels` must hold a 0 for `{metric.__name__}` to exist; all 2 of them are 1"
    ):
        metric([1, 1], [0.0, 1.0])
    with pytest.raises(ValueError, match="must hold a 1"):
        metric([0, 0], [0.0, 1.0])
    assert metrics.accuracy([1, 1], [-1.0, 1.0]) == 0.5


@pytest.mark.parametrize("metric", [metrics.precision, metrics.recall, metrics.f1])
def test_no_positive_is_an_error(metric: Callable[..., float]) -> None:
    with pytest.raises(ValueError, match=f"`labels` must hold a 1 for `{metric.__name__}`"):
        metric([0, 0], [0.0, 1.0])
    assert metric([1, 1], [2.0, 1.0]) == 1.0


@pytest.mark.parametrize("metric", [metrics.auc, metrics.accuracy, metrics.f1])
def test_bad_arguments_are_named(metric: Callable[..., float]) -> None:
    with pytest.raises(ValueError, match=r"same shape; got \(2,\) and \(3,\)"):
        metric([0, 1], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"`labels` must be 0 or 1; got -1"):
        metric([-1, 1], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"`labels` must be 0 or 1; got 0.5"):
        metric([0.5, 1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; 1 of 2 are"):
        metric([0, 1], [0.0, math.nan])
    with pytest.raises(ValueError, match="must not be empty"):
        metric([], [])


def test_a_missing_scikit_learn_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(ImportError, match=r"pip install 'kofn\[train\]'"):
        metrics.accuracy([0, 1], [0.0, 1.0])


# --- bags ----------------------------------------------------------------------------------------------------------

OFFSETS = torch.tensor([0, 3, 3, 4, 9])
SIZES = [3, 0, 1, 5]


def dense(logits: Tensor, filler: float) -> tuple[Tensor, Tensor]:
    mask = torch.arange(5) < torch.tensor(SIZES)[:, None]
    return torch.full((4, 5), filler, dtype=logits.dtype).masked_scatter(mask, logits), mask


def test_bag_scores_are_log_odds_of_at_least_one() -> None:
    logits = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scores = metrics.bag_scores(logits, offsets=OFFSETS)
    for j, bag in enumerate(logits.split(SIZES)):
        none = float((1 - bag.sigmoid()).prod())
        assert float(scores[j]) == (pytest.approx(math.log((1 - none) / none), rel=1e-12) if len(bag) else -math.inf)
    torch.testing.assert_close(scores[2], logits[3])  # a bag of one
    padded, mask = dense(logits, torch.nan)
    torch.testing.assert_close(metrics.bag_scores(padded, mask=mask), scores)


def test_bag_scores_keep_the_order_where_probabilities_saturate() -> None:
    scores = metrics.bag_scores(torch.tensor([[-900.0, -901.0], [-899.0, -950.0], [60.0, 1.0], [61.0, 0.0]]))
    assert scores.isfinite().all()
    assert scores.dtype == torch.float32
    assert bool((scores.diff() > 0)[:3].all())
    assert metrics.bag_scores(torch.tensor([[torch.inf, 0.0], [-torch.inf, -torch.inf]])).tolist() == [
        math.inf,
        -math.inf,
    ]


def test_expected_count_error_by_hand() -> None:
    logits = torch.tensor([0.0, 0.0, math.log(3), 0.0])  # bags {1/2, 1/2, 3/4} and {1/2}
    error = metrics.expected_count_error(logits, torch.tensor([3, 0]), offsets=torch.tensor([0, 3, 4]))
    assert error == pytest.approx((1.25 + 0.5) / 2, rel=1e-6)
    assert metrics.expected_count_error(torch.zeros(4), 2) == 0.0  # one bag, one int
    certain = torch.tensor([torch.inf, torch.inf, -torch.inf])
    assert metrics.expected_count_error(certain, 2) == 0.0


def test_ragged_is_dense_for_counts() -> None:
    logits = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    counts = torch.tensor([2, 0, 1, 1])
    padded, mask = dense(logits, torch.nan)
    assert metrics.expected_count_error(padded, counts, mask=mask) == pytest.approx(
        metrics.expected_count_error(logits, counts, offsets=OFFSETS), rel=1e-14
    )
    ragged = metrics.count_calibration(logits, counts, offsets=OFFSETS)
    masked = metrics.count_calibration(padded, counts, mask=mask)
    assert masked.coverage == pytest.approx(ragged.coverage, rel=1e-12)
    torch.testing.assert_close(masked.pit, ragged.pit)


def test_calibration_by_hand() -> None:
    # Two fair coins: P(S = 0, 1, 2) = 1/4, 1/2, 1/4. The central half is (1/4, 3/4): all of count 1, none of the others.
    logits = torch.zeros(4, 2, dtype=torch.float64)
    seen = metrics.count_calibration(logits, torch.tensor([0, 1, 1, 2]), levels=(0.5, 0.75))
    assert seen.levels == (0.5, 0.75)
    assert seen.coverage == pytest.approx((0.5, 0.75))  # (1/8, 7/8): 1/2, 1, 1, 1/2
    assert seen.error == pytest.approx(0.0, abs=1e-12)
    assert seen.pit.tolist() == pytest.approx([0.125, 0.5, 0.5, 0.875])


def test_calibration_in_expectation_is_exact() -> None:
    """Weighting every count by its own probability gives back the nominal level, for any law."""
    logits = torch.tensor([-2.0, 0.3, 1.0, -0.4, 2.5], dtype=torch.float64)
    law = kofn.log_count_distribution(logits).exp()
    for level in (0.1, 0.5, 0.8, 0.99):
        covered = [metrics.count_calibration(logits, s, levels=[level]).coverage[0] for s in range(6)]
        assert sum(float(p) * c for p, c in zip(law, covered, strict=True)) == pytest.approx(level, rel=1e-12)
    pits = [float(metrics.count_calibration(logits, s).pit) for s in range(6)]
    assert sum(float(p) * u for p, u in zip(law, pits, strict=True)) == pytest.approx(0.5, rel=1e-12)


def test_calibration_of_simulated_bags() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 1.5 * torch.randn(2000, 40, generator=generator, dtype=torch.float64) - 0.5
    counts = (torch.rand(logits.shape, generator=generator, dtype=torch.float64) < logits.sigmoid()).sum(-1)
    # The standard error of a coverage from 2000 bags is at most 0.011.
    good = metrics.count_calibration(logits, counts)
    assert good.error < 0.04
    assert float(good.pit.mean()) == pytest.approx(0.5, abs=0.03)
    shifted = metrics.count_calibration(logits + 0.7, counts)
    assert shifted.coverage[1] < 0.6
    assert float(shifted.pit.mean()) < 0.3  # the model expects more than there are
    timid = metrics.count_calibration(0.01 * logits + torch.logit(logits.sigmoid().mean(-1, keepdim=True)), counts)
    assert timid.coverage[0] > 0.55  # the same expected counts, laws too wide


def test_calibration_of_counts_the_model_rules_out() -> None:
    certain = torch.tensor([[torch.inf, torch.inf], [-torch.inf, -torch.inf], [-1e4, -1e4]], dtype=torch.float64)
    seen = metrics.count_calibration(certain, torch.tensor([0, 2, 2]))
    assert seen.coverage == (0.0, 0.0, 0.0, 0.0)
    assert seen.pit.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("metric", [metrics.expected_count_error, metrics.count_calibration])
def test_bad_bags_are_named(metric: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="bag 1 has 4 instances and count 5"):
        metric(torch.zeros(2, 4), torch.tensor([1, 5]))
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    with pytest.raises(ValueError, match="bag 1 has 2 instances and count 3"):
        metric(torch.zeros(2, 4), torch.tensor([4, 3]), mask=mask)
    with pytest.raises(ValueError, match="bag 0 has 1 instances and count -1"):
        metric(torch.zeros(4), torch.tensor([-1, 0]), offsets=torch.tensor([0, 1, 4]))
    with pytest.raises(ValueError, match="`logits` must not be NaN"):
        metric(torch.tensor([0.0, torch.nan]), 1)
    with pytest.raises(ValueError, match="at least one bag"):
        metric(torch.zeros(0, 3), 1)
    with pytest.raises(ValueError, match="must not both"):
        metric(torch.zeros(3), 1, mask=torch.ones(3, dtype=torch.bool), offsets=torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="`offsets` must start at 0"):
        metric(torch.zeros(3), 1, offsets=torch.tensor([0, 2]))
    with pytest.raises(TypeError, match="`counts` must be integers"):
        metric(torch.zeros(3), torch.tensor(1.0))
    with pytest.raises(TypeError, match="`logits` must be floating point"):
        metric(torch.zeros(3, dtype=torch.int64), 1)


@pytest.mark.parametrize("levels", [[], [0.0], [0.5, 1.0], [90.0]])
def test_bad_levels_are_named(levels: list[float]) -> None:
    with pytest.raises(ValueError, match="`levels` must be probabilities between 0 and 1"):
        metrics.count_calibration(torch.zeros(3), 1, levels=levels)
