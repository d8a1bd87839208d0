"""Independent ways to the law of S, slow and plain: what the engine is measured against."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]


def enumerated_law(odds: Sequence[Fraction]) -> list[Fraction]:
    """P(S = 0..n) by going through all 2^n label vectors, in exact fractions."""
    law = [Fraction(0)] * (len(odds) + 1)
    for labels in itertools.product((0, 1), repeat=len(odds)):
        weight = math.prod((r for r, y in zip(odds, labels, strict=True) if y), start=Fraction(1))
        law[sum(labels)] += weight
    total = math.prod((1 + r for r in odds), start=Fraction(1))
    return [p / total for p in law]


def enumerated_posteriors(odds: Sequence[Fraction], count: int) -> list[Fraction]:
    """P(y_i = 1 | S = count) by enumeration, in exact fractions."""
    weights = [Fraction(0)] * len(odds)
    total = Fraction(0)
    for labels in itertools.product((0, 1), repeat=len(odds)):
        if sum(labels) == count:
            weight = math.prod((r for r, y in zip(odds, labels, strict=True) if y), start=Fraction(1))
            total += weight
            weights = [w + weight * y for w, y in zip(weights, labels, strict=True)]
    return [w / total for w in weights]


def log_fraction(value: Fraction) -> float:
    """The logarithm of an exact fraction, however small."""
    with mpmath.workdps(50):
        return float(mpmath.log(mpmath.mpf(value.numerator) / value.denominator))


def mpmath_law(logits: Sequence[float]) -> list[Any]:
    """P(S = 0..n) as 50-digit numbers, by the paper's recursion in linear space: mpmath does not underflow."""
    with mpmath.workdps(50):
        law = [mpmath.mpf(1)]
        for x in logits:
            p, q = _probabilities(x)
            law = [
                (law[k] * q if k < len(law) else mpmath.mpf(0)) + (law[k - 1] * p if k else mpmath.mpf(0))
                for k in range(len(law) + 1)
            ]
        return law


def mpmath_log_prob(logits: Sequence[float], count: int) -> float:
    """log P(S = count) at 50 digits."""
    with mpmath.workdps(50):
        return float(mpmath.log(mpmath_law(logits)[count]))


def mpmath_gradient(logits: Sequence[float], count: int) -> list[float]:
    """d log P(S = count) / d x_i = P(y_i = 1 | S = count) - p_i at 50 digits, from forward and backward tables."""
    with mpmath.workdps(50):
        n = len(logits)
        ahead = [[mpmath.mpf(1)]]
        for x in logits:
            p, q = _probabilities(x)
            row = ahead[-1]
            ahead.append(
                [(row[k] * q if k < len(row) else 0) + (row[k - 1] * p if k else 0) for k in range(len(row) + 1)]
            )
        total = ahead[n][count]
        behind = [mpmath.mpf(1)]  # law of the instances after i
        gradient = [0.0] * n
        for i in reversed(range(n)):
            p, q = _probabilities(logits[i])
            joint = sum(
                ahead[i][k] * behind[count - 1 - k] for k in range(max(0, count - len(behind)), min(i, count - 1) + 1)
            )
            gradient[i] = float(p * joint / total - p)
            behind = [
                (behind[k] * q if k < len(behind) else 0) + (behind[k - 1] * p if k else 0)
                for k in range(len(behind) + 1)
            ]
        return gradient


def _probabilities(x: float) -> tuple[Any, Any]:
    odds = mpmath.exp(mpmath.mpf(x))
    return odds / (1 + odds), 1 / (1 + odds)


def long_tables(logits: Array) -> tuple[Array, Array]:
    """Log-space forward and backward tables in 80-bit floats: row i has the law of the first (last) i instances."""
    x = logits.astype(np.longdouble)
    n = len(x)
    log_p = -np.logaddexp(np.longdouble(0), -x)
    log_q = -np.logaddexp(np.longdouble(0), x)
    tables = []
    for order in (range(n), reversed(range(n))):
        table = np.full((n + 1, n + 1), -np.inf, dtype=np.longdouble)
        table[0, 0] = 0
        for row, i in enumerate(order):
            table[row + 1] = table[row] + log_q[i]
            table[row + 1, 1:] = np.logaddexp(table[row + 1, 1:], table[row, :-1] + log_p[i])
        tables.append(table)
    return tables[0], tables[1]


def long_gradient(logits: Array, count: int, tables: tuple[Array, Array]) -> Array:
    """d log P(S = count) / d x in 80-bit floats, from the tables."""
    ahead, behind = tables
    n = len(logits)
    x = logits.astype(np.longdouble)
    log_p = -np.logaddexp(np.longdouble(0), -x)
    gradient = -np.exp(log_p)
    if count >= 1:
        for i in range(n):
            joint = ahead[i, :count] + behind[n - 1 - i, :count][::-1]
            top = joint.max()
            if top > -np.inf:
                gradient[i] += np.exp(top - ahead[n, count] + log_p[i]) * np.exp(joint - top).sum()
    return gradient


def algorithm_1(logits: Tensor) -> Tensor:
    """The paper's Algorithm 1 in torch, all counts: log-space rows in a list, differentiated by autograd."""
    log_p = torch.nn.functional.logsigmoid(logits)
    log_q = torch.nn.functional.logsigmoid(-logits)
    row = logits.new_zeros(*logits.shape[:-1], 1)
    for i in range(logits.shape[-1]):
        p, q = log_p[..., i : i + 1], log_q[..., i : i + 1]
        middle = torch.logaddexp(row[..., 1:] + q, row[..., :-1] + p)
        row = torch.cat([row[..., :1] + q, middle, row[..., -1:] + p], -1)
    return row
