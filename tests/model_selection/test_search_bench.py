"""The simulated tasks of bench/search.py: a search finds the setting that made the data, and refuses mixtures."""

from __future__ import annotations

import pytest
from estimator_cases import UNLEARNT

from bench import search


@pytest.mark.slow
@UNLEARNT
@pytest.mark.parametrize("labels", search.TASKS)
def test_the_true_setting_is_found(labels: str) -> None:
    for seed in (0, 1):  # of which different settings are true
        assert search.is_found(search.TASKS[labels](seed))


def test_mixtures_are_refused() -> None:
    assert search.is_refused(search.positive_unlabelled(0))


def test_the_page_tells_what_was_found() -> None:
    found = [
        {"labels": "MIL", "parameter": "columns", "settings": 4, "score": "log_likelihood", "found": 9, "seconds": 1.5},
        {"labels": "PU", "parameter": "mixture", "settings": 4, "refused": 10},
    ]
    rows = search.page(found).splitlines()[-2:]
    assert rows == [
        "| MIL | columns | 4 | log_likelihood | 9 of 10 | 1.5 |",
        "| PU | mixture | 4 | - | refused in 10 | - |",
    ]
