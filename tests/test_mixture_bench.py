"""The contenders of bench/mixture.py, and how its records become a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench import mixture


def test_best_bin_counts_what_is_separated() -> None:
    positive, negative = np.linspace(1, 2, 500), np.linspace(-2, -1, 1500)
    assert mixture.best_bin(positive, np.concatenate([positive, negative])) == pytest.approx(0.25, abs=1e-9)


def test_best_bin_is_an_upper_bound_where_classes_overlap() -> None:
    rng = np.random.default_rng(0)
    unlabeled = np.concatenate([rng.normal(0.5, size=2000), rng.normal(-0.5, size=2000)])
    assert 0.5 < mixture.best_bin(rng.normal(0.5, size=2000), unlabeled) < 0.9


def test_a_prior_of_all_rows_as_a_mixture() -> None:
    labels = np.repeat([1, 0], [20, 80])
    assert mixture.among_unlabeled(0.4, labels) == pytest.approx(0.25)
    assert mixture.among_unlabeled(0.1, labels) == 0.0  # fewer positives than are labelled


def test_a_page_of_some_records() -> None:
    cell: dict[str, Any] = {"task": "adult", "mixture": 0.2, "seed": 0}
    ours = {
        "truth": 0.2,
        "estimates": {"kofn": 0.25, "best bin": 0.3},
        "interval": [0.15, 0.35],
        "accuracy": {"estimated": 0.8, "true": 0.81},
    }
    other = {"task": "adult", "mixture": 0.5, "seed": 0, "estimates": {"pulearn histogram": 0.1}}
    lines = [cell | {"run": "kofn"} | ours, cell | {"estimates": {"pulearn histogram": 0.1}}, other]
    (record,) = mixture.gathered(lines)  # what has no estimate of ours is left out
    assert record["estimates"] == {"kofn": 0.25, "best bin": 0.3, "pulearn histogram": 0.1}
    page = mixture.page([record])
    assert "| kofn | 1 | 0.050 | +0.050 | 0.050 |" in page
    assert "holds the truth in 1 of 1 cells" in page
    assert mixture.FRESH[0] not in page
