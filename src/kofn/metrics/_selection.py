"""Whether labelled positives can be a random sample of the positives: what PU data say of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn.metrics._classification import _Values
from kofn.metrics._positive_unlabeled import _Floats, _require_scores

REGIONS = np.linspace(0.05, 0.95, 19)  # shares of the labelled positives that lie in the regions
FEWEST = 40  # labelled positives, of which the smallest region has two
DRAWS = 4000


def selection_p_value(positive_scores: _Values, unlabeled_scores: _Values, *, mixture: float) -> float:
    """The p-value of "the labelled positives were selected at random" (SCAR), from scores and the mixture.

    Let f_P and f_U be the densities of labelled positives and of the unlabelled. At random, f_P is that of all
    positives, and f_U = mixture f_P + (1 - mixture) f_N with a density f_N of negatives. So for every region A

        mixture P_P(A) <= P_U(A),

    and this is all that can be tested: if it holds everywhere, f_N = (f_U - mixture f_P) / (1 - mixture) is a density
    that fits the data. Regions that could break it are those of high f_P / f_U, where a model's scores are highest.
    Here 19 regions are taken, the scores from the quantiles 5 %, ..., 95 % of the labelled on, and

        T = max over regions of (mixture r - s) / sd(mixture r - s),

    with the shares r of the labelled and s of the unlabelled in a region. Its distribution is simulated where the
    inequality is an equality in each region, as where no negative scores so high: the probabilities of the regions are
    then those between order statistics of a uniform sample (Dirichlet), whatever the scores, and the unlabelled fall
    into them by a multinomial. Elsewhere T is smaller, so that false alarms are at most as frequent as the level.

    A small value says that positives with high scores were labelled more often than others, *or that the mixture is too
    large*. Positives that look like negatives and were labelled less, or more, cannot be seen without labels of
    negatives, and nothing can where the mixture was itself estimated from these scores.

    Args:
        positive_scores: of labelled positives that were not trained on, any shape.
        unlabeled_scores: any shape.
        mixture: fraction of positives among the unlabelled, known from elsewhere.

    Returns:
        The p-value; NaN with fewer than 40 labelled positives or 40 unlabelled.

    Raises:
        ValueError: no scores, NaN, a mixture outside [0, 1].

    Examples:
        >>> import numpy as np
        >>> from kofn import metrics
        >>> rng = np.random.default_rng(0)
        >>> unlabeled = np.r_[rng.normal(2, 1, 400), rng.normal(-2, 1, 600)]
        >>> positive = rng.normal(2, 1, 1000)
        >>> bool(metrics.selection_p_value(positive[:300], unlabeled, mixture=0.4) > 0.05)  # some of them
        True
        >>> easy = np.sort(positive)[-300:]  # those with the highest scores
        >>> bool(metrics.selection_p_value(easy, unlabeled, mixture=0.4) < 0.001)
        True
    """
    positive, unlabeled = _require_scores(positive_scores, unlabeled_scores)
    share = _require.fraction("mixture", mixture)
    if min(len(positive), len(unlabeled)) < FEWEST:
        return float("nan")
    cuts = np.unique(np.quantile(positive, REGIONS, method="higher"))[::-1]  # so that regions grow
    labelled, found = _from(positive, cuts), _from(unlabeled, cuts)
    expected = share * labelled / len(positive)
    deviation = np.sqrt(expected * (share - expected) / len(positive) + expected * (1 - expected) / len(unlabeled))
    if not (deviation > 0).all():  # nothing is positive, or all scores of both kinds are the same
        return 1.0
    # Gamma variables of whole shape, divided by their sum, are the spacings of order statistics.
    steps = np.diff(labelled, prepend=0, append=len(positive) + 1)
    rng = np.random.default_rng(0)  # the same p-value for the same scores
    spacings = rng.gamma(steps, size=(DRAWS, len(steps)))
    cells = share * spacings[:, :-1] / spacings.sum(1, keepdims=True)
    counts = rng.multinomial(len(unlabeled), np.concatenate([cells, 1 - cells.sum(1, keepdims=True)], axis=1))
    simulated = (expected - counts[:, :-1].cumsum(1) / len(unlabeled)) / deviation
    most = ((expected - found / len(unlabeled)) / deviation).max()
    return float((1 + (simulated.max(1) >= most).sum()) / (1 + DRAWS))


def _from(scores: _Floats, cuts: _Floats) -> NDArray[np.int64]:
    """How many scores are at or above each cut."""
    below: NDArray[np.int64] = np.searchsorted(np.sort(scores), cuts, "left")
    return len(scores) - below
