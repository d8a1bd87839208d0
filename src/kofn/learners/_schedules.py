"""The learning rate over a fit, as a share of the largest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, cos, pi

WARMUP = 0.3  # of the steps, as in Smith and Topin, Super-Convergence (2018)


def constant(x: float) -> float:
    """1 throughout."""
    return 1.0


def cosine(x: float) -> float:
    """Half a cosine down, (1 + cos(pi x)) / 2; its mean is 1/2.

    Examples:
        >>> [round(cosine(x), 3) for x in (0.0, 0.25, 0.5, 1.0)]
        [1.0, 0.854, 0.5, 0.0]
    """
    return (1 + cos(pi * x)) / 2


def one_cycle(x: float) -> float:
    """Up in a line over the first three tenths, then half a cosine down; its mean is 1/2.

    Adam's first steps are as long as the rate whatever the slope, and all logits of a bag take them together: the
    chance of a bag of 50 to have no positive, (1 - p)^50, is thrown from end to end, and units die of it. Begun
    slowly, the network learns the rate of positives before anything else.

    Examples:
        >>> [round(one_cycle(x), 3) for x in (0.0, 0.15, 0.3, 0.65, 1.0)]
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return x / WARMUP if x < WARMUP else cosine((x - WARMUP) / (1 - WARMUP))


#: From the middle of a step, (t + 1/2) / T of T steps, to its share of the largest rate.
SCHEDULES: Mapping[str, Callable[[float], float]] = {"constant": constant, "cosine": cosine, "one-cycle": one_cycle}


def warm_up_epochs(schedule: str, epochs: int) -> int:
    """Number of epochs in which the rate still rises, rounded up.

    Examples:
        >>> warm_up_epochs("one-cycle", 200), warm_up_epochs("one-cycle", 5), warm_up_epochs("cosine", 200)
        (60, 2, 0)
    """
    return ceil(WARMUP * epochs) if schedule == "one-cycle" else 0
