"""The share of positives among unlabelled instances, from scores: an estimate and an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kofn import _require

Array = NDArray[np.float64]

ASSUMPTION = "some positives look like no negative, and the labelled ones are positives drawn at random"
FEWEST = 10  # scores of each kind: fewer cannot determine three parameters
SMALLEST = 1e-4  # mixture that is told from 0
STARTS = (0.2, 0.5, 0.8)  # mixtures from which the likelihood is climbed


@dataclass(frozen=True)
class MixtureEstimate:
    """What scores say of the share of positives among the unlabelled.

    Attributes:
        mixture: the estimate.
        interval: its ends, which hold the estimate.
        level: the probability that the interval is made for.

    Examples:
        >>> import numpy as np, kofn
        >>> scores = np.linspace(-3, 3, 200)  # the upper half are positives
        >>> found = kofn.estimate_mixture(scores[100:], scores)
        >>> found.interval[0] < 0.5 < found.interval[1], found.level
        (True, 0.9)
    """

    mixture: float
    interval: tuple[float, float]
    level: float


def estimate_mixture(positive_scores: Any, unlabeled_scores: Any, *, level: float = 0.9) -> MixtureEstimate:
    """Estimate the share of positives among unlabelled instances, and an interval, by maximum likelihood.

    Of n_P labelled and n_U unlabelled instances, whose scores have densities f_P and f_U, the odds of being labelled
    are n_P f_P / (n_U f_U). The unlabelled ones are positive with probability P(positive | score) = mixture f_P / f_U.
    So, whatever the densities,

        odds(labelled | score) = (n_P / n_U) / mixture * P(positive | score)

    rises with the score and levels off where all are positive; the height of this plateau gives the mixture. With
    P(positive | score) = sigmoid(a + b score), b > 0, there are three parameters, fitted by maximum likelihood. The
    interval has all mixtures whose profile likelihood is near enough to the maximum (chi-squared, one degree of
    freedom).

    It assumes that some positives look like no negative (irreducibility), or there is no plateau and the estimate is
    too large; and that the labelled instances are positives drawn at random. No data can show whether that holds. The
    interval accounts for the number of scores, not for a bias of this kind. The estimate does not change with the scale
    and the origin of the scores.

    Args:
        positive_scores: (n_P,) scores of the labelled positives, larger for those that look more positive, such as
            log-odds of being labelled. By models that had not seen the instance: scores of their own training data
            make labelled instances look like no unlabelled one.
        unlabeled_scores: (n_U,) scores of the unlabelled, by the same models.
        level: of the interval.

    Raises:
        ValueError: fewer than 10 scores of a kind, scores that are not finite; a level that is not between 0 and 1.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> positive = rng.normal(2.0, size=1000)  # the log-odds of normal densities are linear in the score
        >>> unlabeled = np.concatenate([rng.normal(2.0, size=1200), rng.normal(-2.0, size=2800)])
        >>> found = kofn.estimate_mixture(positive, unlabeled)
        >>> round(found.mixture, 2), [round(end, 2) for end in found.interval]
        (0.29, [0.27, 0.31])

    Reference:
        Elkan, Noto. Learning classifiers from only positive and unlabeled data. KDD 2008 (the plateau). Garg, Wu,
        Smola, Balakrishnan, Lipton. Mixture proportion estimation and PU learning: a modern approach. NeurIPS 2021.
    """
    positive = _require_scores("positive_scores", positive_scores)
    unlabeled = _require_scores("unlabeled_scores", unlabeled_scores)
    if not 0 < _require.fraction("level", level) < 1:
        raise ValueError(f"`level` must lie between 0 and 1, such as 0.9; got {level}.")
    from scipy.special import gammaincinv

    likelihood = _Plateau(positive, unlabeled)
    best, smallest = likelihood.maximum()
    # Twice the log-likelihood ratio is chi-squared with one degree of freedom, which is a gamma distribution.
    allowed = smallest + float(gammaincinv(0.5, level))
    low, high = (likelihood.crossing(best, end, allowed) for end in (np.log(SMALLEST), 0.0))
    return MixtureEstimate(float(np.exp(best[2])), (0.0 if low is None else low, 1.0 if high is None else high), level)


class _Plateau:
    """Minus the log-likelihood of being labelled, by a, b and the logarithm of the mixture.

    The log-odds of being labelled are q = log(n_P / n_U) - log mixture + log sigmoid(z), z = a + b score. With the
    residual r = P(labelled) - label,

        d / d log mixture = -sum r,   d / d a = sum r sigmoid(-z),   d / d b = sum r sigmoid(-z) score.
    """

    def __init__(self, positive: Array, unlabeled: Array) -> None:
        scores = np.concatenate([positive, unlabeled])
        self.labels = np.concatenate([np.ones(len(positive)), np.zeros(len(unlabeled))])
        # Of one scale, so that where the search starts and ends does not depend on that of the scores.
        spread = float(scores.std())
        self.scores: Array = (scores - np.median(scores)) / (spread if spread > 0 else 1.0)
        self.offset = float(np.log(len(positive) / len(unlabeled)))

    def loss(self, at: Array) -> tuple[float, Array]:
        """The value and its gradient."""
        from scipy.special import expit, log_expit

        a, b, log_mixture = at
        z = a + b * self.scores
        q = self.offset - log_mixture + log_expit(z)
        residual = expit(q) - self.labels
        slope = residual * expit(-z)
        value = float(np.logaddexp(0.0, q).sum() - q[self.labels == 1].sum())
        return value, np.array([slope.sum(), (slope * self.scores).sum(), -residual.sum()])

    def maximum(self) -> tuple[Array, float]:
        """The parameters of the maximum likelihood and the loss there; the surface may have more than one summit."""
        tried = [
            _minimum(self.loss, np.array([0.0, 1.0, np.log(start)]), [(-50, 50), (0, 50), (np.log(SMALLEST), 0)])
            for start in STARTS
        ]
        return min(tried, key=lambda found: found[1])

    def crossing(self, best: Array, end: float, allowed: float) -> float | None:
        """The mixture between the best and an end where the profile loss is the allowed one; None if it is below."""
        from scipy.optimize import brentq

        def excess(log_mixture: float) -> float:
            def at_mixture(shape: Array) -> tuple[float, Array]:
                value, gradient = self.loss(np.array([*shape, log_mixture]))
                return value, gradient[:2]

            return _minimum(at_mixture, best[:2], [(-50, 50), (0, 50)])[1] - allowed

        if excess(end) <= 0:
            return None
        return float(np.exp(brentq(excess, best[2], end, xtol=1e-4)))


def _minimum(
    loss: Callable[[Array], tuple[float, Array]], start: Array, bounds: list[tuple[float, float]]
) -> tuple[Array, float]:
    from scipy.optimize import minimize

    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x, float(found.fun)


def _require_scores(name: str, value: Any) -> Array:
    """Require one finite score for each of at least 10 instances; returned as float64."""
    scores = _require.numbers(name, value).detach().cpu()
    if scores.dim() != 1 or len(scores) < FEWEST:
        raise ValueError(
            f"`{name}` must be the scores of at least {FEWEST} instances, shape (n,); got shape {tuple(scores.shape)}."
        )
    if scores.is_complex() or not bool(torch.isfinite(scores).all()):
        raise ValueError(f"`{name}` must be finite numbers. Take log-odds, not the logarithm of a probability of 0.")
    return scores.double().numpy()
