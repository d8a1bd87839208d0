"""What the fits to resampled bags say together: the mean of their probabilities, and intervals from their spread."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student_t
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn import _require
from kofn.bags import Bags
from kofn.classes import one_vs_rest
from kofn.counts import CountDistribution
from kofn.estimators._fit_warning import FitWarning
from kofn.estimators._row_labels import bags_of
from kofn.learners import Fitted
from kofn.learners._linear import FittedLinear


class Ensemble:
    """Intervals of an estimator that was fitted with `bootstrap`; the estimators inherit them."""

    fitted_: Fitted
    members_: list[Fitted]
    classes_: Any
    bag_effect_: float

    def predict_interval(
        self, X: Any, level: float = 0.9, *, groups: Any = None, copies: Any = None, mean: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Confidence intervals of probabilities, of expected counts, or of the mean probabilities of groups of rows.

        They say how far another sample of bags could have moved the model. With the log-odds z_b of the asked quantity
        by each of the B members, and z that of their mean probability, which the estimator predicts,

            sigmoid(z - q s)  to  sigmoid(z + q s),   s = standard deviation of z_1 ... z_B,

        where q is the quantile of Student's t distribution with B - 1 degrees of freedom.

        On simulated votes 90 % intervals of `kofn.Linear` hold the truth 90 % of the time. Those of trees are much too
        narrow: boosting that is stopped early is biased towards the base rate, in all members alike.

        Args:
            X: (n, ...) instances.
            level: a probability, above 0 and below 1.
            groups: (n,) the bag of each instance, or any other group of them, such as an age; groups come in the order
                in which they first appear. None asks of each row.
            copies: (n,) how many times each instance is in its group; by default once.
            mean: of a group the mean probability of its instances, in place of its expected number of positives.

        Returns:
            low and high, each (n,) or (groups,); for several classes (n, C) or (groups, C).

        Raises:
            ValueError: a model that was fitted without `bootstrap`; a level outside (0, 1).

        Examples:
            >>> import numpy as np, kofn
            >>> rng = np.random.default_rng(0)
            >>> X, groups = rng.normal(size=(400, 2)), np.repeat(np.arange(100), 4)
            >>> y = (X[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
            >>> model = kofn.LLPClassifier("linear", bootstrap=20, random_state=0).fit(X, y, groups=groups)
            >>> low, high = model.predict_interval(X, 0.9)
            >>> probability = model.predict_proba(X)[:, 1]
            >>> bool(((low <= probability) & (probability <= high)).all())
            True
            >>> low, high = model.predict_interval(X, groups=X[:, 0] > 0, mean=True)  # P(positive | X_0 > 0), and not
            >>> low.shape
            (2,)
        """
        check_is_fitted(self)
        self._require_members()
        _require.level("level", level)
        logits = self._marginal(self._member_logits(X))
        if groups is None and copies is None:
            return row_intervals(logits, level)
        bags = bags_of(groups, logits.shape[1], copies).repeated()
        low, high = mean_intervals(logits[:, bags.index], bags, level)
        if mean:
            return low, high
        sizes = bags.sizes.numpy().reshape(-1, *(1 for _ in low.shape[1:]))
        return low * sizes, high * sizes

    def _require_members(self) -> None:
        """Require fits to resampled bags, without which there are no intervals, and warn where they hold too little."""
        if not self.members_:
            raise ValueError(
                "`bootstrap` must be a number of fits, such as 50, for a model to have intervals; this model was "
                "fitted without. Fit it again with `bootstrap`."
            )
        if not isinstance(self.fitted_, FittedLinear):
            warnings.warn(
                "these intervals are a lower bound of the doubt: every fit of trees or of a network that stops early "
                "errs towards the base rate in the same way. On simulated votes 90 % intervals of trees held 35 % of "
                "the truths, those of a linear model 90 %. Where intervals matter, use the linear learner.",
                FitWarning,
                stacklevel=3,
            )

    def _marginal(self, logits: Tensor) -> Tensor:
        """Log-odds of each instance in a bag of which nothing is known, from those in a bag without a shift.

        With a bag effect the probability of an instance is E_u[sigmoid(x + u)], nearer to 1/2 than sigmoid(x). Several
        classes are left as they are: the shifts of their log-odds are those of no distribution of one instance.
        """
        if not self.bag_effect_ or len(self.classes_) > 2:
            return logits
        log_p, log_q = (
            CountDistribution(sign * logits.unsqueeze(-1), bag_effect=self.bag_effect_).mean.log() for sign in (1, -1)
        )
        return log_p - log_q

    def _member_logits(self, X: Any) -> Tensor:
        """Logits of instances by each member, (B, n) or (B, n, C), or by the one model that there is, (1, ...)."""
        instances = self._instances(X)  # type: ignore[attr-defined]  # of the estimator
        return torch.stack([torch.from_numpy(model.logits(instances)) for model in self.members_ or [self.fitted_]])


def interval_of(log_odds: Tensor, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The interval of a probability from its log-odds by each member, (B, ...): low and high, (...).

    Examples:
        >>> low, high = interval_of(torch.tensor([[-0.1], [0.0], [0.1]], dtype=torch.float64), 0.9)
        >>> low.round(3), high.round(3)
        (array([0.428]), array([0.572]))
    """
    spread = log_odds.std(0) * float(student_t.ppf((1 + level) / 2, len(log_odds) - 1))
    centre = mixed(log_odds)
    return torch.sigmoid(centre - spread).numpy(), torch.sigmoid(centre + spread).numpy()


def mixed(logits: Tensor, *, classes: bool = False) -> Tensor:
    """Logits of the mean of the members' probabilities, (B, ...) to (...); with `classes` along the last dimension.

    The mean of logits would be another model, in which a member that is sure outvotes all others.

    Examples:
        >>> mixed(torch.tensor([[0.0], [30.0]])).sigmoid()  # of one half and one
        tensor([0.7500])
    """
    if len(logits) == 1:
        return logits[0]
    if classes:
        return logits.log_softmax(-1).logsumexp(0) - math.log(len(logits))
    log_p, log_q = (logsigmoid(x).logsumexp(0) for x in (logits, -logits))
    return log_p - log_q


def mixed_losses(losses: Tensor) -> Tensor:
    """-log of the mean of the members' likelihoods, from their losses -log P_b: (B, bags) to (bags,)."""
    return losses[0] if len(losses) == 1 else math.log(len(losses)) - losses.neg().logsumexp(0)


def mixed_posteriors(each: Tensor, losses: Tensor, bags: Bags) -> Tensor:
    """P(y_i = 1 | label of the bag), (m,), or of each class, (m, C), given that one of the members is true.

        sum_b P(member b | label) P_b(y_i = 1 | label),   P(member b | label) ~ P_b(label)

    Args:
        each: (B, m) or (B, m, C) posteriors by each member, of the entries of bags.
        losses: (B, bags) -log P_b(label).
        bags: of the entries.
    """
    if len(each) == 1:
        return each[0]
    weights = losses.neg().softmax(0)[:, bags.bag_of()]
    return ((weights.unsqueeze(-1) if each.dim() == 3 else weights) * each).sum(0)


def row_intervals(logits: Tensor, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intervals of the probabilities of instances from their logits by each member, (B, n) or (B, n, C)."""
    return interval_of(one_vs_rest(logits).movedim(-2, -1) if logits.dim() == 3 else logits, level)


def mean_intervals(logits: Tensor, bags: Bags, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intervals of the mean probability of each bag's instances, (b,), or of each class, (b, C).

    Args:
        logits: (B, m) or (B, m, C) by each member, one bag after the other.
        bags: of these instances.
        level: of the intervals.
    """
    log_p, log_q = group_sums(logits, bags.bag_of(), len(bags))
    return interval_of(log_p - log_q, level)


def group_sums(logits: Tensor, group: Tensor, groups: int, log_weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Logs of the sums of P(positive) and of P(negative) over groups, (B, groups), or of each class, (B, groups, C).

    Their difference is the log-odds of the mean probability of a group.

    Args:
        logits: (B, n) or (B, n, C) by each member.
        group: (n,) the group of each instance.
        groups: how many there are.
        log_weights: (n,) logs of the weights of instances; None for 1.
    """
    log_odds = one_vs_rest(logits).movedim(-2, -1) if logits.dim() == 3 else logits
    shift = 0.0 if log_weights is None else log_weights.reshape(-1, *(1 for _ in log_odds.shape[2:]))
    log_p, log_q = (log_sums(logsigmoid(x) + shift, group, groups) for x in (log_odds, -log_odds))
    return log_p, log_q


def log_sums(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """log of the sum of e^value over the members of each group, (B, m, ...) to (B, groups, ...).

    The log-odds of a mean probability are the log-sum of P(positive) less that of P(negative): stable where one minus
    the mean would have lost its digits, or a sum is too small for a float.

    Args:
        values: (B, m, ...) logarithms.
        group: (m,) the group of each entry.
        groups: how many there are; an empty one has -inf.

    Examples:
        >>> log_sums(torch.tensor([[-2000.0, -2000.0, 0.0]]), torch.tensor([0, 0, 1]), 2)
        tensor([[-1999.3069,     0.0000]])
    """
    place = group.reshape(-1, *(1 for _ in values.shape[2:])).expand(values.shape)
    shape = (len(values), groups, *values.shape[2:])
    top = values.new_full(shape, -torch.inf).scatter_reduce(1, place, values, "amax").nan_to_num(neginf=0.0)
    return values.new_zeros(shape).scatter_add(1, place, (values - top.gather(1, place)).exp()).log() + top
