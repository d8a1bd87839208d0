"""The C++ core through its C interface, held to arithmetic of sixty digits: python core_check.py libkofn.so [levels].

Every instruction set that the machine has is checked; `levels`, such as 1,2, says which it must have. Nothing but the
standard library is needed, so that it runs in any emulator that has a Python.
"""

from __future__ import annotations

import ctypes
import math
import platform
import random
import sys
from collections.abc import Iterator
from decimal import Decimal, getcontext
from itertools import product

TOLERANCE = 1e-12
BAG_SIZES = (1, 2, 7, 40, 200)  # the last is beyond the recursion: it goes through characteristic functions

getcontext().prec = 60


def main(path: str, wanted: str = "") -> None:
    """Check the library at `path`; exits with a message if it is wrong or has other levels than wanted."""
    library = ctypes.CDLL(path)
    levels = [bit for bit in (1, 2, 4) if library.kofn_levels() & bit]
    names = ",".join(map(str, levels))
    if wanted and names != wanted:
        sys.exit(f"{path}: expected instruction sets {wanted}; this machine ({platform.machine()}) has {names}")
    errors = {level: largest_error(library, level) for level in levels}
    for level, error in errors.items():
        if not error < TOLERANCE:
            sys.exit(f"{path}: instruction set {level} is off by {error:.1e}, more than {TOLERANCE}")
    print(f"{platform.machine()}: " + ", ".join(f"level {level} off by {error:.0e}" for level, error in errors.items()))


def largest_error(library: ctypes.CDLL, level: int) -> float:
    """The largest difference of a log-probability or a posterior from exact ones, relative where it is above 1."""
    draw = random.Random(1)
    differences = [0.0]
    for n in BAG_SIZES:
        logits = [draw.uniform(-6, 4) for _ in range(n)]
        exact = count_law([sigmoid(x) for x in logits])
        differences += compare(law(library, level, logits), [log(p) for p in exact])
        for count in {0, n // 3, n}:
            value, posterior = one_count(library, level, logits, count)
            differences += compare([value], [log(exact[count])])
            differences += compare(posterior[:2], [exact_posterior(logits, count, i) for i in range(min(n, 2))])
            differences += compare([math.fsum(posterior) / n], [count / n])  # posteriors sum to the count
    rows = [[draw.uniform(-2, 2) for _ in range(3)] for _ in range(6)]
    differences += compare([class_counts(library, level, rows, (3, 2, 1))], [exact_class_counts(rows, (3, 2, 1))])
    return max(differences)


def compare(found: list[float], expected: list[float]) -> list[float]:
    """Differences of the two; infinite where one is no number."""
    pairs = zip(found, expected, strict=True)
    return [abs(a - b) / max(1, abs(b)) if math.isfinite(a) else math.inf for a, b in pairs]


# What the core says.


def law(library: ctypes.CDLL, level: int, logits: list[float]) -> list[float]:
    """log P(S = 0), ..., log P(S = n)."""
    n, value = len(logits), doubles([0.0] * (len(logits) + 1))
    size, one = ctypes.c_int64(n), ctypes.c_int64(1)
    require_ok(library.kofn_all_counts(1, doubles(logits), None, size, one, value, None, level, 1))
    return list(value)


def one_count(library: ctypes.CDLL, level: int, logits: list[float], count: int) -> tuple[float, list[float]]:
    """log P(S = count), and P(y_i = 1 | S = count)."""
    n, value, posterior = len(logits), doubles([0.0]), doubles([0.0] * len(logits))
    size, one, low = ctypes.c_int64(n), ctypes.c_int64(1), (ctypes.c_int64 * 1)(count)
    bag, weight = (1, doubles(logits), None, None, size, one), ctypes.c_double(1.0)
    require_ok(library.kofn_event(*bag, low, None, None, weight, None, value, None, None, posterior, level, 1))
    return value[0], list(posterior)


def class_counts(library: ctypes.CDLL, level: int, rows: list[list[float]], counts: tuple[int, ...]) -> float:
    """log P(K = counts)."""
    value, bag = doubles([0.0]), doubles([x for row in rows for x in row])
    size, one, classes = ctypes.c_int64(len(rows)), ctypes.c_int64(1), ctypes.c_int64(len(counts))
    wanted = (ctypes.c_int64 * len(counts))(*counts)
    require_ok(library.kofn_class_counts(1, bag, None, size, one, classes, wanted, value, None, None, level, 1))
    return value[0]


def doubles(numbers: list[float]) -> ctypes.Array[ctypes.c_double]:
    """An array for C."""
    return (ctypes.c_double * len(numbers))(*numbers)


def require_ok(code: int) -> None:
    """Require that a call succeeded."""
    if code:
        sys.exit(f"the core failed with code {code}")


# What is true.


def sigmoid(x: float) -> Decimal:
    """1 / (1 + e^-x)."""
    return 1 / (1 + (-Decimal(x)).exp())


def log(p: Decimal) -> float:
    """The logarithm, rounded once."""
    return float(p.ln())


def count_law(p: list[Decimal]) -> list[Decimal]:
    """P(S = 0), ..., P(S = n), one instance after the other."""
    table = [Decimal(1)]
    for one in p:
        table = [a * (1 - one) + b * one for a, b in zip([*table, Decimal(0)], [Decimal(0), *table], strict=True)]
    return table


def exact_posterior(logits: list[float], count: int, i: int) -> float:
    """P(y_i = 1 | S = count) = p_i P(S of the others = count - 1) / P(S = count)."""
    p = [sigmoid(x) for x in logits]
    if count == 0:
        return 0.0
    return float(p[i] * count_law(p[:i] + p[i + 1 :])[count - 1] / count_law(p)[count])


def exact_class_counts(rows: list[list[float]], counts: tuple[int, ...]) -> float:
    """log P(K = counts), by enumeration of all labels."""
    weights = [[Decimal(x).exp() for x in row] for row in rows]
    p = [[weight / sum(row) for weight in row] for row in weights]
    total = Decimal(0)
    for labels in arrangements(len(rows), counts):
        total += math.prod((p[i][c] for i, c in enumerate(labels)), start=Decimal(1))
    return log(total)


def arrangements(n: int, counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All labels of n instances with these counts."""
    for labels in product(range(len(counts)), repeat=n):
        if all(labels.count(c) == count for c, count in enumerate(counts)):
            yield labels


if __name__ == "__main__":
    main(*sys.argv[1:])
