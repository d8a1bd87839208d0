"""The truth about counts of several classes: enumeration in exact fractions, and a recursion in 50 digits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DIGITS = 50


def enumerate_counts(weights: Sequence[Sequence[int]], counts: Sequence[int]) -> tuple[Fraction, list[list[Fraction]]]:
    """P(K = k) and P(y_i = c | K = k) of instances with probabilities proportional to whole weights (n, C)."""
    n, classes = len(weights), len(counts)
    total, parts = Fraction(0), [[Fraction(0)] * classes for _ in range(n)]
    for labels in product(range(classes), repeat=n):
        if tuple(labels.count(c) for c in range(classes)) != tuple(counts):
            continue
        p = Fraction(1)
        for row, label in zip(weights, labels, strict=True):
            p *= Fraction(row[label], sum(row))
        total += p
        for i, label in enumerate(labels):
            parts[i][label] += p
    return total, [[part / total for part in row] for row in parts] if total else parts


def precise_law(logits: Array, counts: Sequence[int]) -> tuple[mpmath.mpf, Array, Array]:
    """log P(K = k), its gradient by the logits and the posteriors, in 50 digits; logits (n, C), none of them +inf."""
    with mpmath.workdps(DIGITS):
        # Exponents of any size: 50 digits are relative, and nothing underflows.
        weights = [[mpmath.exp(mpmath.mpf(float(x))) if x > -np.inf else mpmath.mpf(0) for x in row] for row in logits]
        probs = [[w / mpmath.fsum(row) for w in row] for row in weights]
        forward = [_nothing(counts)]
        for row in probs:
            forward.append(_times(forward[-1], row, counts))
        total = forward[-1].get(tuple(counts), mpmath.mpf(0))
        posteriors, slopes = np.zeros(logits.shape), np.zeros(logits.shape)
        if total == 0:
            return mpmath.mpf("-inf"), slopes, np.array([[float(p) for p in row] for row in probs])
        back = _nothing(counts)
        for i in reversed(range(len(probs))):
            for c, p in enumerate(probs[i]):
                ways = mpmath.mpf(0)
                for state, value in forward[i].items():
                    rest = tuple(k - j - (d == c) for d, (k, j) in enumerate(zip(counts, state, strict=True)))
                    ways += value * back.get(rest, 0)
                posterior = p * ways / total
                posteriors[i, c], slopes[i, c] = float(posterior), float(posterior - p)
            back = _times(back, probs[i], counts)
        return mpmath.log(total), slopes, posteriors


State = tuple[int, ...]


def _nothing(counts: Sequence[int]) -> dict[State, mpmath.mpf]:
    return {(0,) * len(counts): mpmath.mpf(1)}


def _times(
    table: dict[State, mpmath.mpf], probs: Sequence[mpmath.mpf], counts: Sequence[int]
) -> dict[State, mpmath.mpf]:
    """The law of one more instance, of counts that are not exceeded."""
    out: dict[State, mpmath.mpf] = defaultdict(lambda: mpmath.mpf(0))
    for state, value in table.items():
        for c, p in enumerate(probs):
            if p and state[c] < counts[c]:
                out[(*state[:c], state[c] + 1, *state[c + 1 :])] += p * value
    return dict(out)
