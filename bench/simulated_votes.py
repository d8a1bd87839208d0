"""Simulated elections: ballot boxes whose counts are known, of voters whose probabilities are known too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

AGES = ("18-29", "30-39", "40-49", "50-59", "60-69", "70-79")
DISTRICTS = ("A", "B", "C", "D", "E")
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Election:
    """One row for the voters of an age group in a ballot box.

    Attributes:
        X: columns age and district, text.
        box: (rows,) the ballot box.
        voters: (rows,) how many voters a row stands for.
        votes: (rows,) votes for the party in the row's box.
        probability: (rows,) the true probability of such a vote.
    """

    X: pd.DataFrame
    box: Array
    voters: Array
    votes: Array
    probability: Array

    def truth(self, group: Array) -> dict[Any, float]:
        """The true mean probability of the voters of each group of rows."""
        return {
            name: float(np.average(self.probability[group == name], weights=self.voters[group == name]))
            for name in np.unique(group)
        }


def election(seed: int, *, boxes: int, bag_effect: float = 0.0) -> Election:
    """Draw an election: logit P(vote) = base + effect of the age group + effect of the district, all drawn anew.

    Boxes have 60 to 140 voters. Their shares of age groups vary around those of their district, as neighbourhoods do
    (Dirichlet of concentration 20): without such differences counts of boxes would say nothing about age groups. With a
    bag effect each box has a normal shift of its logits of this standard deviation, which `probability` does not have.
    """
    rng = np.random.default_rng([seed, boxes])
    of_age, of_district = rng.normal(0, 0.6, len(AGES)), rng.normal(0, 0.4, len(DISTRICTS))
    logits = rng.normal(0, 0.5) + of_age[:, None] + of_district
    shares = rng.dirichlet(np.full(len(AGES), 30.0), size=len(DISTRICTS))
    district = rng.integers(0, len(DISTRICTS), boxes)
    voters = np.stack([rng.multinomial(rng.integers(60, 141), rng.dirichlet(20 * shares[d])) for d in district])
    probability = 1 / (1 + np.exp(-logits[:, district].T))  # (boxes, ages)
    shift = bag_effect * rng.normal(size=(boxes, 1)) if bag_effect else 0.0
    votes = rng.binomial(voters, 1 / (1 + np.exp(-logits[:, district].T - shift))).sum(1)
    box, age = np.nonzero(voters)
    frame = pd.DataFrame({"age": np.array(AGES)[age], "district": np.array(DISTRICTS)[district[box]]})
    return Election(frame, box, voters[box, age], votes[box], probability[box, age])
