"""Intervals of P(vote | age group) hold the truth of simulated elections about as often as they say.

`bench/intervals.py` measures the same on hundreds of elections.
"""

from __future__ import annotations

import numpy as np
import pytest

import kofn
from bench.simulated_votes import AGES, election

pytestmark = pytest.mark.slow


def test_intervals_of_groups_hold_the_truth() -> None:
    held, widths = [], []
    for seed in range(16):
        votes = election(seed, boxes=80)
        model = kofn.LLPClassifier("linear", label="count", bootstrap=20, random_state=seed)
        model.fit(votes.X, votes.votes, groups=votes.box, copies=votes.voters)
        ages = votes.X["age"].to_numpy()
        low, high = model.predict_interval(votes.X, 0.9, groups=ages, copies=votes.voters, mean=True)
        truth = np.array([votes.truth(ages)[age] for age in dict.fromkeys(ages)])
        held.append((low <= truth) & (truth <= high))
        widths.append(high - low)
    # Of 96 intervals that are alike within an election, 90 % plus or minus three standard errors.
    assert np.size(held) == 16 * len(AGES)
    assert 0.77 < np.mean(held) < 0.99
    assert 0.05 < np.mean(widths) < 0.3  # as wide as the data ask for: all ages alike would be 0.0, no data 1.0
