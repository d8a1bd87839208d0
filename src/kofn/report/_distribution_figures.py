"""Figures of distributions of counts: of single bags, their calibration, and against the binomial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kofn.report._contents import BagDistribution, Binomial, Calibration, Numbers
from kofn.report._figures import Figure
from kofn.report._plot import SMALL, Plot, number, percent

MAX_BARS = 60  # counts drawn as bars; more are an outline
NEGLIGIBLE = 1e-3  # of the peak: where the axis of a distribution ends


def before_and_after(distribution: BagDistribution, word: str = "known", *, width: float = SMALL) -> Figure:
    """The distribution of one bag's count as bars, the one before training as an outline, the known count as a flag.

    Args:
        distribution: of the bag.
        word: "known", or "true" if the model was told less than the count.
        width: of the picture.
    """
    size = len(distribution.after) - 1
    distributions = [distribution.after] if distribution.before is None else [distribution.after, distribution.before]
    start, end = _range(distributions, distribution.known)
    peak = max(float(one[start : end + 1].max()) for one in distributions)
    plot = Plot(
        (start - 0.5, end + 0.5),
        (0.0, peak * 1.02),
        x_label=f"positives among {number(size)}",
        y_label="probability",
        width=width,
        height=215,
        x_whole=True,
        y_percent=True,
        y_about=4,
    )
    _bars(plot, start, distribution.after[start : end + 1])
    if distribution.before is not None:
        plot.steps(start, distribution.before[start : end + 1].tolist(), "before")
    early = "" if distribution.before is None else f", before training {number(_mean(distribution.before))}"
    summary = f"Expected: {number(_mean(distribution.after))}{early}."
    if distribution.known is not None:
        plot.upright(distribution.known, 0.0, plot.y.high, "flag")
        plot.words(distribution.known, f"{word}: {number(distribution.known)}", "flagged")
        early = (
            ""
            if distribution.before is None
            else f", before training {percent(float(distribution.before[distribution.known]))}"
        )
        summary += f" Probability of the {word} count: {percent(float(distribution.after[distribution.known]))}{early}."
    return Figure(plot.svg(f"Distribution of the count of bag {distribution.name}", summary), summary)


def _range(distributions: Sequence[Numbers], known: int | None) -> tuple[int, int]:
    """First and last count worth showing: all of a small bag, else those with some probability and the known one."""
    size = len(distributions[0]) - 1
    if size <= MAX_BARS:
        return 0, size
    there = np.flatnonzero(np.any([one > NEGLIGIBLE * one.max() for one in distributions], axis=0))
    ends = [int(there[0]), int(there[-1]), *([] if known is None else [known])]
    return max(0, min(ends) - 1), min(size, max(ends) + 1)


def _bars(plot: Plot, start: int, heights: Numbers) -> None:
    if len(heights) > MAX_BARS:
        plot.steps(start, heights.tolist(), "after-line")
        return
    for index, height in enumerate(heights.tolist()):
        if height > 1e-4:
            count = start + index
            plot.bar(count - 0.5, count + 0.5, height, "after", f"{count}: {percent(height)}")


def _mean(distribution: Numbers) -> float:
    return float(distribution @ np.arange(len(distribution)))


def coverage_curve(calibration: Calibration) -> Figure:
    """Share of bags that central intervals hold, against what they should hold."""
    plot = Plot((0.0, 1.0), (0.0, 1.0), x_label="interval asked for", y_label="bags it holds", height=265,
                width=SMALL, x_percent=True, y_percent=True)  # fmt: skip
    # Two standard deviations of a share of so many bags: what chance alone may do.
    levels = np.linspace(0, 1, 41)
    slack = 2 * np.sqrt(levels * (1 - levels) / max(calibration.n_bags, 1))
    upper = list(zip(levels.tolist(), np.minimum(levels + slack, 1).tolist(), strict=True))
    lower = list(zip(levels.tolist(), np.maximum(levels - slack, 0).tolist(), strict=True))
    plot.path([*upper, *reversed(lower)], "chance", close=True)
    plot.path([(0.0, 0.0), (1.0, 1.0)], "ideal")
    points = list(zip(calibration.levels, calibration.coverage, strict=True))
    plot.path(points, "curve valid")
    for level, seen in points:
        plot.dot(level, seen, "point valid", radius=2.6, hint=f"{percent(level)} intervals hold {percent(seen)}")
    level, seen = max(points, key=lambda point: abs(point[1] - point[0]))
    reach = 2 * np.sqrt(level * (1 - level) / max(calibration.n_bags, 1))
    far = "more than chance explains" if abs(seen - level) > reach else "which chance explains"
    summary = (
        f"The largest gap is at the {percent(level)} intervals, which hold {percent(seen)} of "
        f"{number(calibration.n_bags)} bags, {far}."
    )
    return Figure(plot.svg("Coverage of the central intervals of counts", summary), summary)


def pit_histogram(calibration: Calibration, word: str = "known") -> Figure:
    """Where the known (or true) counts fall in their distributions, as a histogram."""
    shares = [float(share) for share in calibration.pit]
    parts = len(shares)
    plot = Plot((0.0, 1.0), (0.0, max(*shares, 1.3 / parts)), x_label="place in the predicted distribution",
                y_label="bags", height=265, width=SMALL, x_percent=True, y_percent=True, y_about=4)  # fmt: skip
    for index, share in enumerate(shares):
        span = f"{percent(index / parts)} to {percent((index + 1) / parts)}"
        plot.bar(index / parts, (index + 1) / parts, share, "after", f"{span}: {percent(share)} of bags")
    plot.path([(0.0, 1 / parts), (1.0, 1 / parts)], "ideal")
    lower, upper = sum(shares[: parts // 2]), sum(shares[(parts + 1) // 2 :])
    summary = (
        f"{percent(lower)} of the {word} counts fall in the lower half of their distributions, {percent(upper)} in the "
        f"upper."
    )
    return Figure(plot.svg(f"Place of the {word} counts in their predicted distributions", summary), summary)


def against_binomial(binomial: Binomial) -> Figure:
    """Distributions of the counts of bags of unlabelled instances over the binomial of the mixture."""
    size = len(binomial.reference) - 1
    start, end = _range([binomial.reference, *binomial.distributions, *binomial.before], None)
    peak = max(float(one.max()) for one in [binomial.reference, *binomial.distributions, *binomial.before])
    plot = Plot((start - 0.5, end + 0.5), (0.0, peak * 1.02), x_label=f"positives among {number(size)} unlabelled",
                y_label="probability", height=265, x_whole=True, y_percent=True)  # fmt: skip
    for distributions, kind in ((binomial.before, "thin before"), (binomial.distributions, "thin after-line")):
        for distribution in distributions:
            plot.path([(float(k), float(distribution[k])) for k in range(start, end + 1)], kind)
    plot.path([(float(k), float(binomial.reference[k])) for k in range(start, end + 1)], "curve reference")
    means = [_mean(distribution) for distribution in binomial.distributions]
    summary = (
        f"With a mixture of {percent(binomial.mixture)} the binomial expects {number(size * binomial.mixture)} "
        f"positives among {number(size)}; the model expects {number(float(np.mean(means)))} on average over "
        f"{len(means)} bags, from {number(min(means))} to {number(max(means))}."
    )
    if binomial.before:
        early = float(np.mean([_mean(distribution) for distribution in binomial.before]))
        summary += f" Before training it expected {number(early)}."
    return Figure(plot.svg("Predicted distributions of counts against the binomial", summary), summary)
