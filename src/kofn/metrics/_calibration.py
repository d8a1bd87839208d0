"""Distributions of counts against bags: scores of bags, expected counts, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from kofn.counts import CountDistribution

LEVELS = (0.5, 0.8, 0.9, 0.95)


def bag_scores(
    logits: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None, copies: Tensor | None = None
) -> Tensor:
    """Log-odds that a bag has a positive instance, from the logits of its instances.

        log P(S >= 1) - log P(S = 0)

    Exact where the probability itself rounds to 0 or 1, so that bags stay in order. Of one instance it is its logit.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        copies: how many alike instances each logit stands for; by default one.

    Returns:
        (...) or (b,), in the dtype of `logits`; -inf for an empty bag, NaN for a bag with a NaN.

    Raises:
        TypeError, ValueError: as for `kofn.log_count_prob`.

    Examples:
        >>> import torch
        >>> from kofn import metrics
        >>> metrics.bag_scores(torch.tensor([[0.0, 0.0], [-50.0, -51.0]])).exp()  # 3 : 1, and e^-50 + e^-51
        tensor([3.0000e+00, 2.6383e-22])
    """
    dist = CountDistribution(logits, mask=mask, offsets=offsets, copies=copies).double()
    log_none, log_any = dist.log_prob(0), dist.log_prob_between(1, None)
    return (log_any - log_none).to(logits.dtype)


def expected_count_error(
    logits: Tensor,
    counts: Tensor | int,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    copies: Tensor | None = None,
    bag_effect: Tensor | float | None = None,
) -> float:
    """Mean absolute count error: the mean over bags of |expected count - true count|.

        mean_j |sum_{i in bag j} sigmoid(x_i) - s_j|

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        counts: (...) or (b,) true counts of any integer dtype, or one int for all bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        copies: how many alike instances each logit stands for; by default one.
        bag_effect: as for `kofn.CountDistribution`.

    Raises:
        TypeError: a tensor of the wrong kind.
        ValueError: shapes that do not fit, counts outside 0 to the bag's size, no bag at all, NaN.

    Examples:
        >>> import torch
        >>> from kofn import metrics
        >>> metrics.expected_count_error(torch.zeros(2, 4), torch.tensor([2, 3]))  # two expected of four
        0.5
    """
    dist, truth = _with_true_counts(logits, counts, mask, offsets, copies, bag_effect)
    return float((dist.mean - truth).abs().mean())


@dataclass(frozen=True, eq=False)
class CountCalibration:
    """How often the true counts lie in the central intervals of their predicted distributions.

    Attributes:
        levels: nominal probabilities of the intervals.
        coverage: share of the bags whose count each interval holds; of a calibrated model the levels themselves.
            Below them the distributions are too narrow or off, above them too wide.
        below: (bags,) P(S < s) of each bag's true count s, float64.
        here: (bags,) P(S = s).
    """

    levels: tuple[float, ...]
    coverage: tuple[float, ...]
    below: Tensor = field(repr=False)
    here: Tensor = field(repr=False)

    def of(self, bags: Tensor) -> CountCalibration:
        """That of some of the bags alone, from a mask (bags,) of at least one."""
        return _calibration(self.below[bags], self.here[bags], self.levels)

    @property
    def pit(self) -> Tensor:
        """(bags,) P(S < s) + P(S = s) / 2 of each bag; below 1/2 where the model expected more positives."""
        return self.below + self.here / 2

    @property
    def error(self) -> float:
        """The largest distance between a level and its coverage."""
        return max(abs(seen - level) for seen, level in zip(self.coverage, self.levels, strict=True))

    def histogram(self, bins: int = 10) -> list[float]:
        """Shares of the bags in equal parts of [0, 1] by P(S <= s): all alike if the model is calibrated.

        A count s stands for all of [P(S < s), P(S <= s)], evenly, so that the histogram is flat for a calibrated model
        however small its bags are.
        """
        edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)
        # An impossible count has no width: it stands where it is.
        there = (edges > self.below[:, None]).double()
        reached = torch.where(self.here[:, None] > 0, (edges - self.below[:, None]) / self.here[:, None], there)
        shares: list[float] = reached.clamp(0, 1).mean(0).diff().tolist()
        return shares


def count_calibration(
    logits: Tensor,
    counts: Tensor | int,
    *,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    copies: Tensor | None = None,
    bag_effect: Tensor | float | None = None,
    levels: Sequence[float] = LEVELS,
) -> CountCalibration:
    """Calibration of the predicted distributions of counts, on bags whose counts are known.

    If a bag's count s has the predicted distribution, then U = P(S < s) + V P(S = s) with V uniform on [0, 1] is
    uniform too, and lies in the central interval of level q with probability q, although no interval of integer counts
    has that probability. V need not be drawn: the share of V that puts U inside is known, and the mean over bags of

        P_V((1 - q) / 2 <= U <= (1 + q) / 2)

    is the coverage, free of chance and exactly q in expectation.

    Args:
        logits: (..., n) log-odds; (m,) with `offsets`.
        counts: (...) or (b,) true counts of any integer dtype, or one int for all bags.
        mask: (..., n) bool, True where an instance exists. Only for dense logits.
        offsets: (b + 1,) int64 from 0 to m; bag j is ``logits[offsets[j]:offsets[j + 1]]``.
        copies: how many alike instances each logit stands for; by default one.
        bag_effect: as for `kofn.CountDistribution`.
        levels: nominal probabilities, between 0 and 1.

    Raises:
        TypeError: a tensor of the wrong kind.
        ValueError: as for `expected_count_error`; levels that are none or not inside (0, 1).

    Examples:
        >>> import torch
        >>> from kofn import metrics
        >>> seen = metrics.count_calibration(torch.zeros(3, 2), torch.tensor([1, 1, 1]), levels=[0.25, 0.5, 0.75])
        >>> seen.coverage  # the middle count every time: too wide
        (0.5, 1.0, 1.0)

    Reference:
        Czado, Gneiting, Held. Predictive Model Assessment for Count Data. Biometrics 65 (2009).
    """
    wanted = tuple(float(level) for level in levels)
    if not wanted or not all(0 < level < 1 for level in wanted):
        raise ValueError(f"`levels` must be probabilities between 0 and 1, both excluded; got {list(levels)}.")
    return calibration_of(*_with_true_counts(logits, counts, mask, offsets, copies, bag_effect), wanted)


def calibration_of(dist: Any, truth: Tensor, levels: tuple[float, ...]) -> CountCalibration:
    """The same of anything that has `cdf` and `log_prob` of counts, such as a mixture of distributions."""
    return _calibration(dist.cdf(truth - 1).flatten(), dist.log_prob(truth).exp().flatten(), levels)


def _calibration(below: Tensor, here: Tensor, levels: tuple[float, ...]) -> CountCalibration:
    coverage = []
    for level in levels:
        # U runs from `below` over a width of `here`; an impossible count has no width, and lies in no interval.
        start, end = ((edge - below).div(here).clamp(0, 1) for edge in ((1 - level) / 2, (1 + level) / 2))
        coverage.append(float((end - start).mean()))
    return CountCalibration(levels, tuple(coverage), below, here)


def _with_true_counts(
    logits: Tensor,
    counts: Tensor | int,
    mask: Tensor | None,
    offsets: Tensor | None,
    copies: Tensor | None,
    bag_effect: Tensor | float | None,
) -> tuple[CountDistribution, Tensor]:
    """The distribution of each bag's count in float64, without a graph, and a count for each that the bag can have."""
    x = logits.detach()
    dist = CountDistribution(x, mask=mask, offsets=offsets, copies=copies, bag_effect=bag_effect).double()
    layout = dist.instance_layout
    truth = layout.whole_numbers("counts", counts)
    if not truth.numel():
        raise ValueError(f"`logits` must hold at least one bag; got shape {tuple(logits.shape)}.")
    if bool(layout.present(logits, 0.0).isnan().any()):
        raise ValueError("`logits` must not be NaN; some are. Look for a division by zero or a diverged training.")
    layout.require_counts(truth)
    return dist, truth
