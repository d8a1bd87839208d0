"""How improbable the labels of bags were, and which bags are worth a line."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.counts import CountDistribution
from kofn.estimators._count_mixture import CountMixture
from kofn.report._contents import Numbers
from kofn.report._plot import number

MOST_BAGS = 300  # that a page lists
MOST_SURPRISING = 100  # of these, the others being drawn at random


def tail_bits(dist: CountDistribution | CountMixture, low: Tensor, high: Tensor) -> Numbers:
    """-log2 of the two-sided tail probability of counts from low to high, (b,).

        tail = min(1, 2 P(S <= high), 2 P(S >= low))

    The probability of a single count falls with the size of a bag, however good the model is; a tail does not.

    Examples:
        >>> import torch
        >>> from kofn.counts import CountDistribution
        >>> dist = CountDistribution(torch.zeros(2, 4, dtype=torch.float64))  # 1, 4, 6, 4, 1 of 16
        >>> counts = torch.tensor([2, 0])
        >>> tail_bits(dist, counts, counts).tolist()
        [0.0, 3.0]
    """
    tail = torch.minimum(dist.log_prob_between(None, high), dist.log_prob_between(low, None)) + math.log(2)
    return in_bits(tail)


def in_bits(log_probability: Tensor) -> Numbers:
    """-log2, at least 0, from natural logarithms."""
    bits: Numbers = (-log_probability.double() / math.log(2)).clamp(min=0).numpy()
    return bits


def odds_text(bits: float) -> str:
    """A surprise as a reader says it.

    Examples:
        >>> [odds_text(bits) for bits in (0.0, 4.0, 40.0, float("inf"))]
        ['1 in 1', '1 in 16', '1 in 10¹²', 'impossible']
    """
    if math.isnan(bits):
        return ""
    if math.isinf(bits):
        return "impossible"
    if bits < math.log2(1e7):
        return f"1 in {number(2**bits)}"
    power = str(int(bits * math.log10(2)))
    return "1 in 10" + power.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


@dataclass(frozen=True, eq=False)
class Listed:
    """The places of the bags that a page lists, and what to say of the choice."""

    places: NDArray[np.int64]
    note: str


def listed_bags(bags: int, surprise: Numbers | None) -> Listed:
    """All bags or, of more than 300, the 100 most surprising and as many others at random; drawn the same every time.

    Args:
        bags: how many there are.
        surprise: (bags,) larger is more surprising; NaN where nothing is known. None without labels.
    """
    if bags <= MOST_BAGS:
        return Listed(np.arange(bags), f"{number(bags)} bags.")
    rng = np.random.default_rng(0)
    if surprise is None:
        chosen = np.sort(rng.choice(bags, MOST_BAGS, replace=False))
        return Listed(chosen, f"{MOST_BAGS} of {number(bags)} bags, chosen at random.")
    order = np.argsort(-np.nan_to_num(surprise, nan=-1.0, posinf=np.finfo(float).max), kind="stable")
    others = rng.choice(order[MOST_SURPRISING:], MOST_BAGS - MOST_SURPRISING, replace=False)
    return Listed(
        np.sort(np.concatenate([order[:MOST_SURPRISING], others])),
        f"{MOST_BAGS} of {number(bags)} bags: the {MOST_SURPRISING} most surprising ones, and "
        f"{MOST_BAGS - MOST_SURPRISING} of the others at random.",
    )
