"""The distribution of S for many bags at once, in 80-bit floats: what the fuzz measures the engines against.

The paper's recursion, forwards and backwards, vectorised over bags. It is done in linear space, on floats that have a
second exponent, and not in log space: a logarithm of -4e6, which four hundred logits of 2e4 bring about, leaves only
13 digits for its fraction even in 80 bits (gradients were off by 4e-13). Here every step adds positive numbers, at the
cost of a few units of 2^-64, relatively, in any tail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
BASE = 4096  # a number is mantissa * exp(BASE * exponent), its mantissa between exp(-BASE / 2) and exp(BASE / 2)
ZERO = -100_000  # the exponent of nothing: far below that of the smallest product of probabilities
POWERS = np.exp(BASE * np.array([-np.inf, -2, -1, 0, 1, 2], dtype=np.longdouble))  # of exponents -3 to 2
BLOCK = 1_600_000  # entries of a table, the fastest: fewer cost calls of numpy, more cost memory


class Wide(NamedTuple):
    """Nonnegative numbers of any size."""

    mantissa: Array
    exponent: Array

    def times(self, other: Wide) -> Wide:
        """The products of normal numbers; these are not normal."""
        return Wide(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def rows(self, first: int, last: int | None) -> Wide:
        return Wide(self.mantissa[first:last], self.exponent[first:last])

    def log(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mantissa) + BASE * self.exponent)


class Truth(NamedTuple):
    """What is known of a bag: its pmf has n + 1 entries, gradients and posteriors n, the rest one."""

    log_prob: Array
    gradient: Array
    log_between: Array
    between_gradient: Array
    log_law: Array
    posteriors: Array


def truths(bags: list[Array], counts: Array, low: Array, high: Array) -> list[Truth]:
    """Of bags of any sizes: log P(S = count), log P(low <= S <= high), gradients, posteriors and the pmf."""
    sizes = np.array([len(bag) for bag in bags])
    found: dict[int, Truth] = {}
    for block in blocks(sizes):
        padded = np.full((len(block), sizes[block].max()), -np.inf)  # certain negatives change nothing
        for row, j in zip(padded, block, strict=True):
            row[: sizes[j]] = bags[j]
        solved = solve(padded, counts[block], low[block], high[block])
        for row, j in enumerate(block):
            n = sizes[j]
            found[j] = Truth(*(part[row, :width] for part, width in zip(solved, (1, n, 1, n, n + 1, n), strict=True)))
    return [found[j] for j in range(len(bags))]


def blocks(sizes: Array) -> Iterator[Array]:
    """Indices of bags of about the same size, as many as a block holds."""
    order = np.argsort(sizes, kind="stable")[::-1]
    while len(order):
        many = max(1, BLOCK // (1 + int(sizes[order[0]])) ** 2)
        yield order[:many]
        order = order[many:]


def solve(logits: Array, counts: Array, low: Array, high: Array) -> Truth:
    """The same for (b, n) logits at once: each answer has a row for each bag."""
    x = logits.T.astype(np.longdouble)
    n = len(x)
    # The weights of no and yes over the larger of both, then divided by their sum in the end.
    no, yes = exp(np.minimum(-x, 0)), exp(np.minimum(x, 0))
    log_total = np.log1p(np.exp(-np.abs(x))).sum(0)
    prior = np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))
    ahead = [exp(np.zeros_like(x, shape=(1, x.shape[1])))]  # row k: the first i instances have k positives
    for i in range(n):
        ahead.append(longer(ahead[-1], no.rows(i, i + 1), yes.rows(i, i + 1)))
    k = np.arange(n + 1)[:, None]
    log_prob, posteriors = given((counts <= k) & (k <= counts), ahead, no, yes)
    log_between, between = given((low <= k) & (k <= high), ahead, no, yes)
    slopes = []
    for value, posterior in ((log_prob, posteriors), (log_between, between)):
        posterior[:, value == -np.inf] = prior[:, value == -np.inf]  # what cannot be says nothing of the labels
        slopes.append((posterior - prior).T)
    pmf = ahead[-1].log() - log_total
    column = (log_prob - log_total)[:, None], (log_between - log_total)[:, None]
    return Truth(column[0], slopes[0], column[1], slopes[1], pmf.T, posteriors.T)


def given(allowed: Array, ahead: list[Wide], no: Wide, yes: Wide) -> tuple[Array, Array]:
    """The logarithm of the weight of the allowed counts, (b,), and P(y_i = 1 | allowed), (n, b)."""
    n = len(ahead) - 1
    behind = exp(np.where(allowed, np.longdouble(0), -np.inf))  # row k: what leads from k positives to an allowed count
    parts = []
    for i in reversed(range(n)):
        positive = behind.rows(1, None).times(yes.rows(i, i + 1))
        parts.append(ahead[i].times(normal(*positive)))
        behind = total(behind.rows(0, -1).times(no.rows(i, i + 1)), positive)
    posteriors = np.empty((n, allowed.shape[1]), np.longdouble)
    with np.errstate(divide="ignore", invalid="ignore"):  # no count is allowed: the caller knows
        for i, part in zip(reversed(range(n)), parts, strict=True):
            steps = np.clip(part.exponent - behind.exponent, -3, 2)
            posteriors[i] = (part.mantissa / behind.mantissa * POWERS[steps + 3]).sum(0)
    return behind.log()[0], posteriors


def longer(row: Wide, no: Wide, yes: Wide) -> Wide:
    """One instance more: row k from k without it and from k - 1 with it."""
    nothing = exp(np.full_like(no.mantissa, -np.inf))
    without, with_it = row.times(no), row.times(yes)
    return total(
        Wide(*(np.concatenate(pair) for pair in zip(without, nothing, strict=True))),
        Wide(*(np.concatenate(pair) for pair in zip(nothing, with_it, strict=True))),
    )


def total(a: Wide, b: Wide) -> Wide:
    """The sums of products."""
    top = np.maximum(a.exponent, b.exponent)
    shrunk = [part.mantissa * POWERS[3 - np.minimum(top - part.exponent, 3)] for part in (a, b)]
    return normal(shrunk[0] + shrunk[1], top)


def normal(mantissa: Array, exponent: Array) -> Wide:
    """The same numbers with mantissas in the range that leaves room for a product of two."""
    shift = (mantissa > np.exp(np.longdouble(BASE // 2))).astype(np.int32)
    shift -= mantissa < np.exp(np.longdouble(-BASE // 2))
    return Wide(mantissa * POWERS[3 - shift], exponent + shift)


def exp(x: Array) -> Wide:
    """e^x, 0 for -inf."""
    nothing = x == -np.inf
    exponent = np.where(nothing, ZERO, np.rint(np.where(nothing, 0, x) / BASE)).astype(np.int32)
    return Wide(np.exp(np.where(nothing, x, x - BASE * exponent.astype(np.longdouble))), exponent)
