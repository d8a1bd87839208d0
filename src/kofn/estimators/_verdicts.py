"""Rules that make a verdict of numbers: whether to trust a model.

Each verdict answers one question with a mark: "good", "doubtful", "bad", or "unknown" where the data cannot tell.
Nothing here knows a model; the rules are functions of a few numbers. Where each threshold comes from:

LEVEL = 0.9. A verdict is made from both ends of a central 90 % interval, so that it is wrong by chance in one of
    twenty cases: "good" needs the lower end on the good side, "bad" the upper end on the bad side. Between them the
    data allow both, which is "doubtful".

FEWEST = 5. If a model were as good as a baseline, each bag would favour it with probability 1/2, and all of n bags with
    probability 2^-n. Four bags that all favour it happen by chance with probability 2^-4 = 6 %, more than one in
    twenty; five with 3 %. Of fewer than five bags (or rows of a kind) there is no verdict.

SLACK = 0.05. Intervals of 90 % miss one count in ten. Five points less is half as many misses again, which changes few
    decisions; ten points less, 2 SLACK, is twice as many as promised. "good" is a coverage within SLACK of what is
    asked, with data that rule out twice as many misses; "bad" one that is certainly more than SLACK too low. If even a
    coverage of exactly what is asked would not rule out twice as many misses, there are too few bags, and a coverage
    that is not "bad" is "unknown": with 90 % asked that is so below 44 bags.

RARE = 1/10. With fewer positives, accuracy says next to nothing: a model that finds none of them has more than 90 %.
    Average precision stands in its place.

SCARCE = 1/4. Of a share of positives the slack is min(SLACK, share / 4). Who plans with the expected number of them is
    then wrong by a quarter at most; five points alone would let a model expect 6 % where 1 % are positive.
    The two meet at 20 %. "good" takes a quarter of the share that was seen, "bad" of the upper end of its interval.
    Of single rows "good" allows a quarter whatever the share is: a model may order rows well and expect a third of the
    positives that there are.

SURELY = 2.5. The step of a fit was chosen on the bags that it is judged on, and a model that has learned nothing is
    then somewhat better than no features by chance, at times by more than its interval. Over a model that knows
    nothing, and in the order of rows, "good" needs two and a half times the distance to the lower end, about four
    standard errors (`bench/random_columns.md`).

On training data a model shows what it remembers, not what it knows: there is no verdict on skill and calibration, and
rows are "doubtful" at best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from kofn.metrics._positive_unlabeled import _placements
from kofn.metrics._within_bags import pairs_within_bags

LEVEL = 0.9
FEWEST = 5
SLACK = 0.05
SCARCE = 0.25
SURELY = 2.5
RARE = 0.1

Mark = Literal["good", "doubtful", "bad", "unknown"]
Source = Literal["held-out", "new", "training"]
About = Literal["skill", "calibration", "rows", "comparison"]
QUESTIONS: Mapping[About, str] = {
    "skill": "Better than simple models?",
    "calibration": "As sure as it should be?",
    "rows": "Right about single rows?",
    "comparison": "Which model is better?",
}


@dataclass(frozen=True)
class Verdict:
    """The answer to one question.

    Attributes:
        about: "skill", "calibration" or "rows"; of two models "comparison", of which "good" means that one is better.
        mark: "good", "doubtful", "bad" or "unknown".
        sentence: with its numbers.
        numbers: the same for machines.

    Examples:
        >>> from kofn.report import Report, Verdict, render
        >>> verdict = Verdict("rows", "good", "AUC 0.93 on 200 new rows.", {"auc": 0.93})
        >>> verdict.question
        'Right about single rows?'
        >>> "AUC 0.93 on 200 new rows." in render(Report("Votes", "llp", verdicts=[verdict]))
        True
    """

    about: About
    mark: Mark
    sentence: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """The question that it answers."""
        return QUESTIONS[self.about]

    def to_json(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {"about": self.about, "mark": self.mark, "sentence": self.sentence, "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Estimate:
    """A number and the ends of its central 90 % interval."""

    mean: float
    low: float
    high: float

    @property
    def turned(self) -> Estimate:
        """The same of the other side: what is better by this is worse by that."""
        return Estimate(-self.mean, -self.high, -self.low)

    def is_surely_above(self, value: float) -> bool:
        """Whether it would be above a value even if the interval reached `SURELY` times as far down.

        Examples:
            >>> Estimate(0.9, 0.8, 1.0).is_surely_above(0.6), Estimate(0.9, 0.8, 1.0).is_surely_above(0.7)
            (True, False)
        """
        return self.mean - SURELY * (self.mean - self.low) > value

    def to_json(self) -> dict[str, float]:
        """The three numbers by name."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


def mean_of(values: NDArray[np.float64]) -> Estimate:
    """The mean of independent values with Student's interval: mean ± t(0.95, n - 1) sd / sqrt(n).

    Examples:
        >>> found = mean_of(np.array([1.0, 2.0, 3.0]))
        >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
        (2.0, 0.31, 3.69)
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, -inf, inf)
    if not isfinite(mean):
        return Estimate(mean, mean, mean)
    reach = float(student_t.ppf((1 + LEVEL) / 2, len(values) - 1)) * float(np.std(values, ddof=1)) / sqrt(len(values))
    return Estimate(mean, mean - reach, mean + reach)


def share_of(share: float, number: int) -> Estimate:
    """A share of so many independent cases with Wilson's interval, which is right near 0 and 1 too.

        (share + z^2 / 2n ± z sqrt(share (1 - share) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    Examples:
        >>> found = share_of(0.9, 40)
        >>> round(found.low, 3), round(found.high, 3)
        (0.795, 0.954)
    """
    if not number:
        return Estimate(share, 0.0, 1.0)
    z2 = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2 / number
    centre, reach = share + z2 / 2, sqrt(z2 * share * (1 - share) + z2 * z2 / 4)
    return Estimate(share, (centre - reach) / (1 + z2), (centre + reach) / (1 + z2))


def mark_of_gains(
    gains: Iterable[Estimate], number: int, source: Source, *, over_nothing: Estimate | None = None
) -> Mark:
    """Whether a model is better than each of its baselines, from its gains over them on so many bags or rows.

    Args:
        gains: over each baseline.
        number: of bags or rows.
        source: of these.
        over_nothing: the gain over a model that knows nothing, which must be surely above 0.

    Examples:
        >>> mark_of_gains([Estimate(0.5, 0.4, 0.6), Estimate(0.1, -0.1, 0.3)], 100, "held-out")
        'doubtful'
        >>> by_chance = Estimate(0.05, 0.01, 0.09)
        >>> mark_of_gains([by_chance], 100, "held-out", over_nothing=by_chance)
        'doubtful'
    """
    if source == "training" or number < FEWEST:
        return "unknown"
    each = ["good" if gain.low > 0 else "bad" if gain.high < 0 else "doubtful" for gain in gains]
    if over_nothing is not None and not over_nothing.is_surely_above(0.0):
        each.append("doubtful")
    return "bad" if "bad" in each else "doubtful" if "doubtful" in each else "good"


def mark_of_difference(gain: Estimate, number: int, source: Source) -> Mark:
    """Whether it is certain which of two models is better, "good", or not, "doubtful".

    Examples:
        >>> [mark_of_difference(Estimate(gain, gain - 0.2, gain + 0.2), 100, "new") for gain in (-0.3, 0.1)]
        ['good', 'doubtful']
    """
    mark = mark_of_gains([gain], number, source)
    return "good" if mark == "bad" else mark


def mark_of_coverage(held: float, asked: float, number: int, source: Source) -> Mark:
    """Whether intervals hold what they promise, from the share of so many bags that they hold and the share asked for.

    Examples:
        >>> [mark_of_coverage(0.9, 0.9, bags, "held-out") for bags in (20, 100)]
        ['unknown', 'good']
        >>> [mark_of_coverage(held, 0.9, 300, "held-out") for held in (0.75, 0.84, 0.99)]
        ['bad', 'doubtful', 'doubtful']
    """
    if source == "training" or not number:
        return "unknown"
    seen = share_of(held, number)
    if seen.high < asked - SLACK:
        return "bad"
    if share_of(asked, number).low < asked - 2 * SLACK:
        return "unknown"
    near = abs(held - asked) <= SLACK + 1e-9  # 0.9 - 0.85 is more than 0.05 in floats
    return "good" if near and seen.low >= asked - 2 * SLACK else "doubtful"


def slack_of(share: float) -> float:
    """How far off an expected share of positives may be: min(SLACK, share / 4).

    Examples:
        >>> slack_of(0.5), slack_of(0.08)
        (0.05, 0.02)
    """
    return min(SLACK, SCARCE * share)


def mark_of_gap(gap: Estimate, share: Estimate, source: Source) -> Mark:
    """Whether a share is expected right, from the true share less the expected one: within the slack, or certainly not.

    Args:
        gap: the true share less the expected one.
        share: the true share.
        source: of the rows.

    Examples:
        >>> half = Estimate(0.5, 0.48, 0.52)
        >>> [mark_of_gap(Estimate(gap, gap - 0.02, gap + 0.02), half, "new") for gap in (0.01, 0.04, 0.2)]
        ['good', 'doubtful', 'bad']
    """
    if source == "training":
        return "unknown"
    near, far = slack_of(share.mean), slack_of(share.high)
    if gap.low >= -near and gap.high <= near:
        return "good"
    return "bad" if gap.low > far or gap.high < -far else "doubtful"


def mark_of_rows(
    rank: Estimate,
    chance: float,
    gain: Estimate,
    source: Source,
    *,
    within: Estimate | None = None,
    others: Iterable[bool] = (),
) -> Mark:
    """Whether rows are right, from a measure of their order and the value that it has by chance, and from the gain.

    Good are an order that is certainly better than chance, among all rows and among those of the same bag, and
    probabilities that are certainly better than one and the same for all rows. Bad is an order that is certainly no
    better than chance, among all rows or within bags.

    Args:
        rank: the AUC or, of several classes, the accuracy.
        chance: what a model without features has: 1/2, or the share of the largest class.
        gain: of log-likelihood a row over a model that gives all rows the same probability.
        source: of the rows.
        within: the AUC within bags; None where it is not needed.
        others: whether each further condition holds, without which nothing is good.

    Examples:
        >>> mark_of_rows(Estimate(0.9, 0.85, 0.95), 0.5, Estimate(0.3, 0.2, 0.4), "new")
        'good'
        >>> mark_of_rows(Estimate(0.9, 0.85, 0.95), 0.5, Estimate(-0.3, -0.4, -0.2), "new")  # in order, but not so sure
        'doubtful'
        >>> by_bag = Estimate(0.53, 0.49, 0.57)  # the model may know the bags, and nothing of their rows
        >>> mark_of_rows(Estimate(0.9, 0.85, 0.95), 0.5, Estimate(0.3, 0.2, 0.4), "new", within=by_bag)
        'doubtful'
    """
    if rank.high <= chance or (within is not None and within.high <= 0.5):
        return "bad"
    in_order = rank.is_surely_above(chance) and (within is None or within.is_surely_above(0.5))
    return "good" if in_order and gain.low > 0 and source != "training" and all(others) else "doubtful"


def auc_within(scores: NDArray[np.float64], positive: NDArray[np.bool_], bag_of: NDArray[Any]) -> Estimate | None:
    """The AUC within bags with its interval, or None if fewer than `FEWEST` bags have rows of both classes.

    It is a ratio of sums over bags, sum U_j / sum P_j, and bags are independent where rows need not be. With R the
    ratio of all n bags and R_j that without bag j, the jackknife's variance is

        (n - 1) / n sum_j (R_j - R)^2,   R_j - R = -(U_j - R P_j) / (sum P - P_j),

    and Student's t has n - 1 degrees of freedom.

    Args:
        scores: (n,).
        positive: (n,).
        bag_of: (n,) the bag of each row.

    Examples:
        >>> scores, positive = np.arange(20.0), np.arange(20) % 4 > 1
        >>> auc_within(scores, positive, np.arange(20) // 4)
        Estimate(mean=1.0, low=1.0, high=1.0)
    """
    in_order, pairs = pairs_within_bags(positive, scores, bag_of)
    both = pairs > 0
    number, total = int(both.sum()), float(pairs.sum())
    if number < FEWEST:
        return None
    ratio = float(in_order.sum()) / total
    moves = (in_order - ratio * pairs)[both] / (total - pairs[both])
    reach = float(student_t.ppf((1 + LEVEL) / 2, number - 1)) * sqrt((number - 1) / number * float((moves**2).sum()))
    return Estimate(ratio, ratio - reach, ratio + reach)


def auc_gain(scores: NDArray[np.float64], others: NDArray[np.float64] | None, positive: NDArray[np.bool_]) -> Estimate:
    """How much larger the AUC of scores is than that of other scores of the same rows, or than 1/2, with its interval.

    With V_i the share of the rest that score below positive i, and W_j the share of positives that score above row j
    of the rest, each AUC is the mean of V, and that of W; DeLong's variance of the difference of two is

        var(V - V') / n_P + var(W - W') / n_N.

    Args:
        scores: (n,).
        others: (n,), or None for scores that are all alike.
        positive: (n,), of which two or more are True and two or more False.

    Examples:
        >>> scores, positive = np.arange(8.0), np.arange(8) > 3
        >>> found = auc_gain(scores, None, positive)
        >>> found.mean, auc_gain(scores, scores, positive).high
        (0.5, 0.0)
    """
    parts = [np.asarray(part) for part in _placements(scores[positive], scores[~positive])]
    if others is not None:
        parts = [mine - of for mine, of in zip(parts, _placements(others[positive], others[~positive]), strict=True)]
    gain = float(parts[0].mean()) - (0.5 if others is None else 0.0)
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * sqrt(sum(part.var(ddof=1) / len(part) for part in parts))
    return Estimate(gain, gain - reach, gain + reach)
