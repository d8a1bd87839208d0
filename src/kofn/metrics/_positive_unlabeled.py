"""Scores of labelled positives against scores of unlabelled instances: what can be measured without a negative.

Under selection at random (SCAR) the labelled positives are a sample of all positives, so that the share of them above a
score is the recall there. Of the unlabelled a fraction, the mixture, is positive. All else follows from these two. The
labelled positives must not have been trained on, or their scores are too good.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn.metrics._classification import _array, _Values

_Floats: TypeAlias = NDArray[np.float64]


def recall_at(positive_scores: _Values, unlabeled_scores: _Values, fraction: float) -> float:
    """Recall at a budget: the share of all positives that is found in the top of the unlabelled.

    The budget pays for the `fraction` of the unlabelled with the highest scores, those above a score t. Under selection
    at random the labelled positives above t are the same share as all positives above t:

        recall = P(positive score > t),  t with P(unlabelled score > t) = fraction.

    Where unlabelled scores tie at t, labelled ones at t count in the share of the ties that the budget pays for.

    Args:
        positive_scores: of labelled positives that were not trained on, any shape.
        unlabeled_scores: any shape.
        fraction: above 0, at most 1.

    Raises:
        ValueError: no scores, NaN, a fraction outside these bounds.

    Examples:
        >>> from kofn import metrics
        >>> metrics.recall_at([4.0, 2.0, 0.0, -1.0], [5.0, 3.0, 1.0, -2.0, -3.0], 0.4)  # above 3: one of four
        0.25
    """
    positive, unlabeled = _require_scores(positive_scores, unlabeled_scores)
    _require_share("fraction", fraction)
    return _recall(positive, unlabeled, fraction * len(unlabeled))


def lift(positive_scores: _Values, unlabeled_scores: _Values, fraction: float) -> float:
    """Lift: how many times as often a positive is in the top of the unlabelled as in a random part of that size.

        lift = recall_at(fraction) / fraction,

    1 for random scores, at most 1 / fraction. It needs no mixture.

    Args:
        positive_scores: as in `recall_at`.
        unlabeled_scores: as in `recall_at`.
        fraction: as in `recall_at`.

    Raises:
        ValueError: as in `recall_at`.

    Examples:
        >>> from kofn import metrics
        >>> metrics.lift([4.0, 4.0, 0.0, -1.0], [5.0, 3.0, 1.0, -2.0, -3.0], 0.4)  # above 3: half of the positives
        1.25
    """
    return recall_at(positive_scores, unlabeled_scores, fraction) / fraction


def precision_at(positive_scores: _Values, unlabeled_scores: _Values, k: int, *, mixture: float) -> float:
    """Precision at the top k: the share of positives among the k unlabelled with the highest scores.

    Of n unlabelled, n mixture are positive, and the recall of these are in the top:

        precision = n mixture recall / k = mixture lift(k / n).

    It is an estimate and not cut at 1: well above, the mixture is too large, or the labelled positives are not a random
    sample (`selection_p_value`).

    Args:
        positive_scores: as in `recall_at`.
        unlabeled_scores: as in `recall_at`.
        k: from 1 to the number of unlabelled.
        mixture: fraction of positives among the unlabelled.

    Raises:
        ValueError: as in `recall_at`; k or the mixture outside their bounds.

    Examples:
        >>> from kofn import metrics
        >>> metrics.precision_at([4.0, 4.0, 0.0, -1.0], [5.0, 3.0, 1.0, -2.0, -3.0], 2, mixture=0.4)
        0.5
    """
    positive, unlabeled = _require_scores(positive_scores, unlabeled_scores)
    _require.whole_number("k", k, low=1, high=len(unlabeled))
    share = _require.fraction("mixture", mixture)
    return share * len(unlabeled) * _recall(positive, unlabeled, float(k)) / k


def pu_auc(positive_scores: _Values, unlabeled_scores: _Values) -> float:
    """An AUC that needs no negatives: how often a labelled positive scores above an unlabelled instance.

        AUC_PU = P(score_P > score_U) + P(score_P = score_U) / 2

    Args:
        positive_scores: as in `recall_at`.
        unlabeled_scores: as in `recall_at`.

    Raises:
        ValueError: no scores, NaN.

    Examples:
        >>> from kofn import metrics
        >>> metrics.pu_auc([4.0, 0.0], [5.0, 3.0, 1.0, -2.0])  # three and one of four
        0.5
    """
    above, _ = _placements(*_require_scores(positive_scores, unlabeled_scores))
    return float(above.mean())


def auc_of_mixture(pu_auc: float, mixture: float) -> float:
    """The AUC of positives against negatives that an AUC against unlabelled implies.

    Of the unlabelled the mixture are positives, against which a labelled positive, selected at random, wins half of the
    time; the others are negatives:

        AUC_PU = mixture / 2 + (1 - mixture) AUC,   so   AUC = (AUC_PU - mixture / 2) / (1 - mixture).

    It grows with the mixture where AUC_PU is above a half: AUC_PU itself, mixture 0, is a lower bound, and mixtures of
    more than 2 (1 - AUC_PU), which would imply an AUC above 1, contradict selection at random.

    Args:
        pu_auc: of `pu_auc`.
        mixture: fraction of positives among the unlabelled, below 1.

    Raises:
        ValueError: numbers outside [0, 1], a mixture of 1, where there are no negatives.

    Examples:
        >>> from kofn import metrics
        >>> round(metrics.auc_of_mixture(0.7, 0.5), 12)
        0.9
    """
    value, share = _require.fraction("pu_auc", pu_auc), _require.fraction("mixture", mixture)
    if share == 1:
        raise ValueError("`mixture` must be below 1: of unlabelled that are all positive there is no AUC.")
    return (value - share / 2) / (1 - share)


def auc_bounds(
    positive_scores: _Values,
    unlabeled_scores: _Values,
    *,
    mixture: float | tuple[float, float],
    level: float = 0.9,
) -> tuple[float, float]:
    """Bounds of the AUC of positives against negatives, from scores without negatives and the mixture or its interval.

    AUC_PU has a normal confidence interval by DeLong's variance: with V_i the share of unlabelled scores below positive
    score i, and W_j the share of positive scores above unlabelled score j,

        var AUC_PU = var V / n_P + var W / n_U.

    Its ends are turned into AUCs by `auc_of_mixture`, the lower one with the lowest mixture and the upper one with the
    highest (the other way round below a half), and cut at 0 and 1, which no AUC leaves.

    Args:
        positive_scores: as in `recall_at`, two or more.
        unlabeled_scores: as in `recall_at`, two or more.
        mixture: a number, or the ends of an interval.
        level: of the confidence interval of AUC_PU.

    Returns:
        The lower and the upper bound.

    Raises:
        ValueError: fewer than two scores, and as in `auc_of_mixture`.

    Examples:
        >>> import numpy as np
        >>> from kofn import metrics
        >>> rng = np.random.default_rng(0)
        >>> unlabeled = np.r_[rng.normal(1.5, 1, 300), rng.normal(0, 1, 700)]  # the true AUC is 0.856
        >>> low, high = metrics.auc_bounds(rng.normal(1.5, 1, 200), unlabeled, mixture=0.3)
        >>> round(low, 2), round(high, 2)
        (0.85, 0.93)
    """
    positive, unlabeled = _require_scores(positive_scores, unlabeled_scores)
    if min(len(positive), len(unlabeled)) < 2:
        raise ValueError(
            f"`positive_scores` and `unlabeled_scores` must hold two or more each to know how far they vary; got "
            f"{len(positive)} and {len(unlabeled)}."
        )
    _require_share("level", level)
    ends = mixture if isinstance(mixture, tuple) else (mixture, mixture)
    above, below = _placements(positive, unlabeled)
    deviation = np.sqrt(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below))
    reach = _normal_quantile((1 + level) / 2) * deviation
    centre = float(above.mean())
    found = [auc_of_mixture(min(max(centre + side * reach, 0.0), 1.0), share) for side in (-1, 1) for share in ends]
    return min(max(min(found), 0.0), 1.0), min(max(found), 1.0)


def _recall(positive: _Floats, unlabeled: _Floats, budget: float) -> float:
    """The share of positive scores in the top `budget` of the unlabelled."""
    lowest = len(unlabeled) - int(np.ceil(budget))
    cut = np.partition(unlabeled, lowest)[lowest]
    of_ties = (budget - (unlabeled > cut).sum()) / (unlabeled == cut).sum()
    return float((positive > cut).mean() + of_ties * (positive == cut).mean())


def _placements(positive: _Floats, unlabeled: _Floats) -> tuple[_Floats, _Floats]:
    """For each positive score the share of unlabelled ones below, for each of these that of positive ones above."""

    def below(values: _Floats, others: _Floats) -> _Floats:
        others = np.sort(others)
        twice = np.searchsorted(others, values, "left") + np.searchsorted(others, values, "right")  # ties count half
        return twice / (2 * len(others))

    return below(positive, unlabeled), 1 - below(unlabeled, positive)


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability) if probability < 1 else np.inf


def _require_share(name: str, value: float) -> None:
    """Require a number above 0 and at most 1."""
    if _require.fraction(name, value) == 0:
        raise ValueError(f"`{name}` must be above 0, at most 1; got 0.")


def _require_scores(positive_scores: _Values, unlabeled_scores: _Values) -> tuple[_Floats, _Floats]:
    """Require scores of both kinds, flat, float64, none of them NaN."""
    found = []
    for name, values in (("positive_scores", positive_scores), ("unlabeled_scores", unlabeled_scores)):
        scores = _array(values).astype(np.float64).ravel()
        if not scores.size:
            raise ValueError(f"`{name}` must hold one score or more; got none.")
        if np.isnan(scores).any():
            raise ValueError(f"`{name}` must not be NaN; {int(np.isnan(scores).sum())} of {scores.size} are.")
        found.append(scores)
    return found[0], found[1]
