"""The simulated data of benchmarks, and how their records become pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import kofn
from bench import honest, impressions, random_columns, slides


def test_impressions_are_those_of_the_notes() -> None:
    made = impressions.impressions(40_000, 4, seed=0)
    assert made.X.shape == (40_000, 12)
    assert made.X["site"].nunique() > 2000
    assert 700 < made.X["creative"].nunique() <= 771
    assert made.probability.mean() == pytest.approx(0.015, abs=1e-6)
    assert 0.75 < roc_auc_score(made.converted, made.probability) < 0.85
    later = impressions.impressions(40_000, 4, seed=1)
    assert roc_auc_score(later.converted, later.probability) > 0.75
    assert not np.array_equal(later.converted, made.converted)


def test_small_releases_are_suppressed() -> None:
    made = impressions.impressions(40_000, 4, seed=0)
    kept, counts = impressions.released(made)
    assert counts[kept].min() >= 10
    assert counts[~kept].max() < 10
    assert 0.3 < kept.mean() < 0.8
    truth = np.bincount(made.cell, made.converted)
    noise = np.array([counts[made.cell == cell][0] - truth[cell] for cell in np.unique(made.cell)])
    assert abs(noise.mean()) < 0.5
    assert 0.7 < noise.std() < 2  # of discrete Laplace noise of scale 1 it is 1.36


def test_a_fit_that_failed_is_on_the_page() -> None:
    done: dict[str, Any] = {"learner": "trees", "peak_gb": 1.234, "peak_gb_before": 0.5, "seconds": 63.2, "auc": 0.618}
    done |= {"predicted_per_converted": 0.98, "rows": 100, "cells": 7, "auc_of_true_probability": 0.779}
    page = impressions.page([done, {"learner": "linear", "error": "MemoryError", "limit_gb": 8.0}], 1000)
    assert "| trees | 1.23 GB | 0.50 GB | 63 | 0.618 | 0.98 |" in page
    assert "| linear | MemoryError | - | - | - | - |" in page


def test_slides_have_one_positive_patch_in_twenty() -> None:
    train, test = slides.task("easy", 0)
    assert len(train.labels) == 80
    assert len(test.labels) == 100
    assert train.truth[train.labels[train.slide] == 1].mean() == pytest.approx(0.05, abs=0.005)
    assert not train.truth[train.labels[train.slide] == 0].any()
    assert [len(part) for part in train.parts()] == np.bincount(train.slide).tolist()
    signal = train.patches[train.truth].mean(0) - train.patches[~train.truth].mean(0)
    assert np.linalg.norm(signal) == pytest.approx(5.0, abs=0.2)


def test_seeds_of_slides_are_shown_beside_their_mean() -> None:
    cell = {"setting": "easy", "method": "kofn, trees", "slide_auc": 0.9, "patch_auc": 0.8, "seconds": 10.0}
    page = slides.page([cell | {"seed": 1}, cell | {"seed": 0, "slide_auc": 0.5}])
    assert "| easy | kofn, trees | 0.700 (0.500, 0.900) | 0.800 (0.800, 0.800) | 10 | 2 |" in page


@pytest.mark.parametrize("learner", ["trees", "linear"])
def test_the_loss_that_a_fit_says_is_found_again(monkeypatch: pytest.MonkeyPatch, learner: str) -> None:
    """`one` fails if the fold models of a second fit have another loss of held-out bags."""
    monkeypatch.setattr(honest, "NEW_BAGS", 40)
    made: dict[str, Any] = {"trees": lambda: kofn.Trees(max_rounds=20), "linear": kofn.Linear}
    monkeypatch.setattr(honest, "LEARNERS", made)
    found = honest.one(learner, 3)
    assert found["said"] < found["without_features"]
    assert abs(found["said"] - found["true"]) < 0.5


def test_a_small_bias_is_seen_without_chance() -> None:
    chance = np.linspace(-0.3, 0.3, 21)
    fits = [
        {
            "learner": "trees",
            "said": 1.7 + each + 0.001 * (-1) ** i,
            "true": 1.73,
            "chance": each,
            "without_features": 2.0,
        }
        for i, each in enumerate(chance)
    ]
    found = honest.summary(fits)
    assert found["difference"] == pytest.approx(-0.03, abs=1e-3)
    assert found["within_two"]
    assert not found["without_chance"]["within_two"]
    assert "| `Trees()` | 21 | 1.7000 | 1.7300 | -0.0300 ± 0.0406 | yes | -0.0300 ± 0.0002 | no |" in honest.page(fits)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", random_columns.KINDS)
def test_labels_of_random_columns_follow_from_the_truth(kind: str, seed: int) -> None:
    made = random_columns.task(kind, "linear", seed)
    if kind == "pu":
        assert made.groups is None
        assert set(made.truth[made.y == 1]) == {1}
        assert made.truth[made.y == 0].mean() == pytest.approx(made.estimator.mixture)
        return
    assert made.groups is not None
    counts = np.bincount(made.groups, made.truth)[made.groups]
    if kind == "interval":
        assert ((made.y[:, 0] <= counts) & (counts <= made.y[:, 1])).all()
        assert (made.y[:, 0] < made.y[:, 1]).any()
    else:
        assert np.array_equal(made.y, counts if kind == "counts" else counts > 0)
    same = random_columns.task(kind, "trees", seed)
    assert np.array_equal(same.X, made.X)
    assert np.array_equal(same.y, made.y)


def test_wrong_verdicts_are_listed() -> None:
    marks = {"skill": "good", "calibration": "good", "rows": "doubtful"}
    fit = {"kind": "mil", "learner": "trees", "seed": 7, "warned": False, "marks": marks}
    page = random_columns.page([fit])
    assert "| trees | MIL | 1 | 1 / 0 / 0 / 0 | 1 / 0 / 0 / 0 | 0 / 1 / 0 / 0 | 0 |" in page
    assert page.endswith("Good, and wrong:\n\n- skill: trees, MIL, seed 7\n")
    assert random_columns.page([]).endswith("None was good.\n")
