"""The truth about a sum of values: enumeration in exact fractions, a recursion in 60 digits, one in log space."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import mpmath
import numpy as np

Law = dict[int, Fraction]
Array = np.ndarray[Any, np.dtype[Any]]


def enumerated(weights: Sequence[Sequence[Fraction]], values: Sequence[Sequence[int]]) -> tuple[Law, dict[int, Any]]:
    """P(T = s), and P(y_i = c | T = s), by all labels, of categories with these relative weights."""
    total = prod((sum(row) for row in weights), start=Fraction(1))
    law: Law = {}
    parts: dict[int, Any] = {}
    for labels in product(*(range(len(row)) for row in weights)):
        weight = prod((row[y] for row, y in zip(weights, labels, strict=True)), start=Fraction(1))
        s = sum(row[y] for row, y in zip(values, labels, strict=True))
        law[s] = law.get(s, Fraction(0)) + weight
        each = parts.setdefault(s, [[Fraction(0)] * len(row) for row in weights])
        for i, y in enumerate(labels):
            each[i][y] += weight
    posteriors = {s: [[w / law[s] for w in row] for row in each] for s, each in parts.items() if law[s]}
    return {s: p / total for s, p in law.items()}, posteriors


def log_law(logits: Array, values: Array, *, digits: int = 60) -> dict[int, float]:
    """log P(T = s) for every s that has a label, by one instance after the other, in so many digits."""
    with mpmath.workdps(digits):
        law = {0: mpmath.mpf(1)}
        for row, value in zip(logits, values, strict=True):
            weights = [mpmath.exp(mpmath.mpf(float(x))) for x in row]
            total = mpmath.fsum(weights)
            found: dict[int, Any] = {}
            for s, p in law.items():
                for w, v in zip(weights, value, strict=True):
                    if w:
                        found[s + int(v)] = found.get(s + int(v), mpmath.mpf(0)) + p * w / total
            law = found
        return {s: float(mpmath.log(p)) for s, p in law.items()}


def log_table(log_p: Array, values: Array) -> Array:
    """log P(T = s), s = 0, 1, ..., of values of at least 0, in log space: for large bags."""
    table = np.full(int(values.max(1).sum()) + 1, -np.inf)
    table[0] = 0.0
    for row, value in zip(log_p, values, strict=True):
        found = np.full_like(table, -np.inf)
        for x, v in zip(row, value, strict=True):
            moved = table[: len(table) - v] + x
            found[v:] = np.logaddexp(found[v:], moved)
        table = found
    return table
