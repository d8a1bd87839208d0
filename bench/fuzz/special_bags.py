"""Bags of which something special is asked: copies, known labels, bag effects, sums, counts of classes, large logits.

The oracles know nothing of the engines: the 80-bit recursion over all people, where rows have copies; tables of every
total or of all counts in 80 bits; exact fractions over all label vectors for logits up to 1e300; and for a bag effect
Gauss' rule on a mesh that is graded towards every -x_i, in 80-bit logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from torch import Tensor

import kofn
from bench.fuzz.awkward_bags import DTYPES, Array, adversarial_logits, some_count, with_certain
from bench.fuzz.wide_oracle import truths

BOUNDS = {  # of logarithms relative to max(1, |log p|), of posteriors absolute
    "large logits, log_prob": 1e-11,
    "large logits, log_between": 1e-11,
    "large logits, log_law": 1e-10,
    "large logits, posteriors": 1e-11,
    "classes, log_prob": 1e-11,
    "classes, posteriors": 1e-8,
    "bag effect, log_prob": 1e-9,
    "bag effect, log_between": 1e-9,
    "bag effect, log_law": 1e-9,
    "copies, log_prob": 1e-11,
    "copies, gradient": 2e-11,
    "copies, log_between": 1e-11,
    "copies, log_law": 1e-11,
    "copies, posteriors": 2e-11,
    "known labels, log_prob": 1e-11,
    "joint counts, log_prob": 1e-11,
    "joint counts by the limit, log_prob": 5e-3,
    "sums, log_prob": 1e-11,
    "sums, posteriors": 1e-10,
}
LEAST = -1e7  # log-probability of class counts, below which an answer is refused
Answer = tuple[str, Array, Callable[[], Tensor]]  # the quantity, the truth, and how kofn is asked
Case = tuple[int, str, list[Answer]]  # size of a bag, its dtype, and what is asked of it


def cases(seed: int, chunk: int) -> list[Case]:
    """The special bags of a chunk."""
    rng = np.random.default_rng([seed, chunk, 1])
    return [draw(rng) for draw, number in KINDS.items() for _ in range(number)]


def awkward_logits(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Logits as `awkward_bags` has them, of values that the dtype has."""
    x = with_certain(rng, adversarial_logits(rng, math.prod(shape)))
    return torch.from_numpy(x).to(getattr(torch, dtype)).double().numpy().reshape(shape)


def copies_case(rng: np.random.Generator) -> Case:
    """Rows that stand for 0 to 60 people each, beside a row for each person."""
    n, dtype = int(rng.integers(1, 13)), some_dtype(rng)
    x, copies = awkward_logits(rng, (n,), dtype), rng.integers(0, int(rng.choice([2, 6, 61])), n)
    people = x.repeat(copies)
    ends = np.sort([some_count(rng, people), some_count(rng, people)])
    count = some_count(rng, people)
    (truth,) = truths([people], np.array([count]), ends[:1], ends[1:])
    first, there = np.cumsum(copies) - copies, copies > 0
    posteriors, gradient = np.zeros(n), np.zeros(n)
    posteriors[there] = truth.posteriors[first[there]]
    gradient[there] = copies[there] * truth.gradient[first[there]]
    logits = torch.from_numpy(x).to(getattr(torch, dtype)).requires_grad_()
    where: dict[str, Any] = {"copies": torch.from_numpy(copies)}
    if rng.random() < 0.5:
        where["offsets"] = torch.tensor([0, n])
    dist = kofn.CountDistribution(logits, **where)
    low, high = (torch.tensor(int(end)) for end in ends)
    return (
        len(people),
        dtype,
        [
            ("copies, log_prob", truth.log_prob.astype(np.float64), lambda: dist.log_prob(count)),
            ("copies, gradient", gradient, lambda: torch.autograd.grad(dist.log_prob(count).sum(), logits)[0]),
            ("copies, log_between", truth.log_between.astype(np.float64), lambda: dist.log_prob_between(low, high)),
            ("copies, log_law", truth.log_law.astype(np.float64), lambda: dist.log_probs()),
            ("copies, posteriors", posteriors, lambda: dist.posteriors(count)),
        ],
    )


def known_case(rng: np.random.Generator) -> Case:
    """A count and the labels of some instances, which do not contradict it."""
    n, dtype = int(rng.integers(1, 60)), some_dtype(rng)
    x = awkward_logits(rng, (n,), dtype)
    labels = np.where(np.isinf(x), x > 0, rng.random(n) < rng.random()).astype(int)
    known = np.where(rng.random(n) < rng.random(), labels, -1)
    rest, count = x[known < 0], np.array([labels.sum() - (known == 1).sum()])
    (truth,) = truths([rest], count, count, count)
    signed = np.where(known == 1, x, -x)[known >= 0].astype(np.longdouble)
    value = -np.logaddexp(np.longdouble(0), -signed).sum() + truth.log_prob
    logits, target = torch.from_numpy(x).to(getattr(torch, dtype)), kofn.Exactly(int(labels.sum()))
    ask = lambda: -kofn.count_loss(logits, target, known=torch.from_numpy(known))  # noqa: E731
    return n, dtype, [("known labels, log_prob", value.astype(np.float64), ask)]


def joint_case(rng: np.random.Generator) -> Case:
    """Counts of three or four classes of rows with copies, beside a table of all counts."""
    n, classes = int(rng.integers(2, 19)), int(rng.integers(3, 5))
    x = rng.normal(size=(n, classes)) * rng.choice([0.5, 3.0, 20.0])
    copies = np.ones(n, int) if rng.random() < 0.5 else rng.integers(0, 3, n)
    people = x.repeat(copies, 0)
    counts = np.bincount(drawn_classes(rng, people), minlength=classes)
    if rng.random() < 0.2:
        counts = rng.permutation(counts)
    logits, wanted, times = torch.from_numpy(x), torch.from_numpy(counts), torch.from_numpy(copies)
    dist = kofn.classes.ClassCountDistribution(logits, copies=times)
    value = np.array([log_joint(people, counts)], dtype=np.float64)
    return n, "float64", [("joint counts, log_prob", value, lambda: dist.log_prob(wanted))]


def limit_case(rng: np.random.Generator) -> Case:
    """Counts of at least five of each class in bags of 50 or more, by the local limit."""
    n, classes = int(rng.integers(50, 90)), int(rng.integers(3, 5))
    while True:
        x = rng.normal(size=(n, classes)) * rng.choice([1.0, 3.0])
        counts = np.bincount(drawn_classes(rng, x), minlength=classes)
        if counts.min() >= 5:
            break
    logits, wanted = torch.from_numpy(x), torch.from_numpy(counts)
    value = np.array([log_joint(x, counts)], dtype=np.float64)
    ask = lambda: kofn.log_class_count_prob(logits, wanted, method="limit")  # noqa: E731
    return n, "float64", [("joint counts by the limit, log_prob", value, ask)]


def drawn_classes(rng: np.random.Generator, logits: Array) -> Array:
    """A class for each row, by its probabilities."""
    return (logits + rng.gumbel(size=logits.shape)).argmax(1) if len(logits) else np.zeros(0, int)


def log_joint(logits: Array, counts: Array) -> Any:
    """log P(K = k): a table of the probabilities of all counts up to these, in 80 bits."""
    x = logits.astype(np.longdouble)
    p = np.exp(x - np.logaddexp.reduce(x, axis=1, keepdims=True)) if len(x) else x
    table = np.zeros(counts[:-1] + 1, dtype=np.longdouble)
    table.flat[0] = 1
    for each in p:
        longer = table * each[-1]
        for c, weight in enumerate(each[:-1]):
            last = (slice(None),) * c
            longer[(*last, slice(1, None))] += table[(*last, slice(None, -1))] * weight
        table = longer
    with np.errstate(divide="ignore"):
        return np.log(table.flat[-1]) if counts.sum() == len(x) else -np.inf


def sums_case(rng: np.random.Generator) -> Case:
    """A sum of values of categories, or of weights of positives, of rows with copies, beside a table of sums."""
    n, dtype, two = int(rng.integers(1, 8)), some_dtype(rng), bool(rng.random() < 0.4)
    classes = 2 if two else int(rng.integers(1, 6))
    x = awkward_logits(rng, (n,), dtype) if two else adversarial_logits(rng, n * classes).reshape(n, classes)
    x = torch.from_numpy(x).to(getattr(torch, dtype)).double().numpy()
    least, most, step = ((0, 9, 1), (-6, 6, 1), (-3, 12, 3), (1, 60, 1))[rng.integers(4)]
    shape = (n,) if two else ((classes,), (n, classes))[rng.integers(2)]
    values = rng.integers(least, most, shape, endpoint=True) * step
    copies = np.ones(n, int) if rng.random() < 0.5 else rng.integers(0, 5, n)
    if not two:
        log_p = x.astype(np.longdouble) - np.logaddexp.reduce(x.astype(np.longdouble), axis=1, keepdims=True)
    else:
        log_p = np.stack([-np.logaddexp(0, side * x.astype(np.longdouble)) for side in (1, -1)], 1)
    worth = np.stack([np.zeros_like(values), values], 1) if two else np.broadcast_to(values, (n, classes))
    people, of_each = log_p.repeat(copies, 0), worth.repeat(copies, 0)
    drawn = [
        row[int(np.exp(p).cumsum().searchsorted(rng.random() * 0.999))] for row, p in zip(of_each, people, strict=True)
    ]
    total = int(sum(drawn)) + int(rng.choice([0, 0, 0, 1, -2, 7, 400]))
    value = log_total(people, of_each, total)
    posteriors = np.exp(log_p if value == -np.inf else np.full((n, classes), -np.inf))
    first, there = np.cumsum(copies) - copies, copies > 0
    posteriors[~there] = 0.0
    for i in np.flatnonzero(there) if value > -np.inf else []:
        rest = np.arange(len(people)) != first[i]
        each = [log_total(people[rest], of_each[rest], total - int(worth[i, c])) for c in range(classes)]
        posteriors[i] = np.exp(log_p[i] + np.array(each) - value)
    logits = torch.from_numpy(x).to(getattr(torch, dtype))
    dist = kofn.counts.SumDistribution(
        logits, torch.from_numpy(values), categories=not two, copies=torch.from_numpy(copies)
    )
    return (
        n,
        dtype,
        [
            ("sums, log_prob", np.array([value], dtype=np.float64), lambda: dist.log_prob(total)),
            ("sums, posteriors", posteriors[:, 1] if two else posteriors, lambda: dist.posteriors(total)),
        ],
    )


def log_total(log_p: Array, values: Array, total: int) -> Any:
    """log P(T = total) of instances with log-probabilities (n, C) of values (n, C): a table of all sums, in 80 bits."""
    low, high = int(values.min(1, initial=1 << 30).sum()), int(values.max(1, initial=-(1 << 30)).sum())
    if not len(log_p):
        return np.longdouble(0 if total == 0 else -np.inf)
    if not low <= total <= high:
        return np.longdouble(-np.inf)
    table = np.full(high - low + 1, -np.inf, dtype=np.longdouble)
    table[0] = 0
    for each, worth in zip(log_p, values - values.min(1, keepdims=True), strict=True):
        longer = np.full_like(table, -np.inf)
        for p, v in zip(each, worth.tolist(), strict=True):
            longer[v:] = np.logaddexp(longer[v:], table[: len(table) - v] + p)
        table = longer
    return table[total - low]


def some_dtype(rng: np.random.Generator) -> str:
    return str(rng.choice(list(DTYPES), p=list(DTYPES.values())))


def large_case(rng: np.random.Generator) -> Case:
    n = int(rng.integers(1, 9))
    x, s = extreme_logits(rng, (n,), 300), int(rng.integers(0, n + 1))
    subsets = [[i in chosen for i in range(n)] for chosen in combinations(range(n), s)]
    pairs = [[Fraction(0), Fraction(v)] for v in x.tolist()]
    value, posteriors = enumerated(pairs, np.array(subsets, dtype=int))
    logits = torch.from_numpy(x)
    return (
        n,
        "float64",
        [
            ("large logits, log_prob", np.array([value]), lambda: kofn.log_count_prob(logits, s)),
            ("large logits, log_between", np.array([value]), lambda: kofn.log_count_between(logits, s, s)),
            ("large logits, log_law", np.array([value]), lambda: kofn.log_count_distribution(logits)[s]),
            ("large logits, posteriors", posteriors[:, 1], lambda: kofn.count_posteriors(logits, s)),
        ],
    )


def class_case(rng: np.random.Generator) -> Case:
    n, classes = int(rng.integers(1, 6)), int(rng.integers(2, 4))
    x, labels = extreme_logits(rng, (n, classes), rng.choice([5, 7, 18, 300])), rng.integers(0, classes, n)
    counts = np.bincount(labels, minlength=classes)
    every = np.array(list(product(range(classes), repeat=n)))
    fits = (every[:, :, None] == np.arange(classes)).sum(1) == counts
    rows = [[Fraction(v) for v in row] for row in x.tolist()]
    value, posteriors = enumerated(rows, every[fits.all(1)])
    logits, wanted = torch.from_numpy(x), torch.from_numpy(counts)
    return (
        n,
        "float64",
        [
            ("classes, log_prob", np.array([value]), lambda: kofn.log_class_count_prob(logits, wanted)),
            ("classes, posteriors", posteriors, lambda: kofn.class_count_posteriors(logits, wanted)),
        ],
    )


def effect_case(rng: np.random.Generator) -> Case:
    n, sigma = int(rng.integers(1, 7)), float(10 ** rng.uniform(-6, 6))
    x = extreme_logits(rng, (n,), 6)
    law = shifted_law(x, sigma)
    dist = kofn.CountDistribution(torch.from_numpy(x).expand(n + 1, n), bag_effect=sigma)
    counts = torch.arange(n + 1)
    return (
        n,
        "float64",
        [
            ("bag effect, log_prob", law, lambda: dist.log_prob(counts)),
            ("bag effect, log_between", law, lambda: dist.log_prob_between(counts, counts)),
            ("bag effect, log_law", law, lambda: dist.log_probs()[0]),
        ],
    )


def extreme_logits(rng: np.random.Generator, shape: tuple[int, ...], decades: float) -> Array:
    """Logits of a size up to 10^decades, of one of several awkward kinds."""
    x, size = rng.normal(size=shape), 10 ** rng.uniform(0, decades)
    step = max(1.0, size * 2.0**-50)
    kinds: list[Callable[[], Array]] = [
        lambda: x * size,
        lambda: np.sign(x) * size,
        lambda: np.sign(x) * size + step * rng.integers(-4, 5, shape),
        lambda: np.where(rng.random(shape) < 0.5, x, np.sign(x) * size),
        lambda: np.sign(x) * 10 ** rng.uniform(-2, decades, shape),
        lambda: size + step * rng.integers(-3, 4, shape),
    ]
    return np.asarray(kinds[rng.integers(len(kinds))](), dtype=np.float64)


def enumerated(rows: Sequence[Sequence[Fraction]], labels: Array) -> tuple[float, Array]:
    """log P(the labels are one of these), (k, n), and P(y_i = c | that), (n, C), for logits in exact fractions."""
    tops = [max(row) for row in rows]
    below = [[value - top for value in row] for row, top in zip(rows, tops, strict=True)]
    normal = math.fsum(math.log(math.fsum(_exp(value) for value in row)) for row in below)
    scores = [sum((below[i][c] for i, c in enumerate(each)), Fraction(0)) for each in labels.tolist()]
    top = max(scores)
    weights = np.array([_exp(score - top) for score in scores])
    posteriors = np.zeros((len(rows), len(rows[0])))
    for each, weight in zip(labels, weights / weights.sum(), strict=True):
        posteriors[np.arange(len(rows)), each] += weight
    return float(top + Fraction(math.log(math.fsum(weights)) - normal)), posteriors


def _exp(x: Fraction) -> float:
    return math.exp(float(x)) if x > -800 else 0.0


def shifted_law(x: Array, sigma: float) -> Array:
    """log P(S = 0..n) with a shift of standard deviation sigma."""
    n, s = len(x), np.longdouble(sigma)
    edges = [s * s * k + s * j for k in range(-n, n + 1) for j in np.arange(-12, 12.5, 0.5)]
    graded = np.concatenate([np.arange(0, 64, 2.0), 2.0 ** np.arange(6, 62)])
    for value in (0.0, *x.tolist()):
        edges += [-np.longdouble(value) + sign * g for sign in (-1, 1) for g in graded]
    reach = s * (n * s + 12)
    points = np.unique(np.array([u for u in edges if abs(u) <= reach], dtype=np.longdouble))
    nodes, weights = np.polynomial.legendre.leggauss(32)
    half = np.diff(points)[:, None] / 2
    u = (points[:-1, None] + half * (1 + nodes.astype(np.longdouble))).ravel()
    terms = (np.log(half) + np.log(weights.astype(np.longdouble))).ravel() - (u / s) ** 2 / 2
    law = np.full((n + 1, len(u)), -np.inf, dtype=np.longdouble)
    law[0] = 0
    for value in x.astype(np.longdouble):
        shifted = u + value
        no, yes = (-np.logaddexp(np.longdouble(0), side * shifted) for side in (1, -1))
        law[1:] = np.logaddexp(law[1:] + no, law[:-1] + yes)
        law[0] += no
    total = np.logaddexp.reduce(law + terms, axis=1)
    return np.asarray(total - np.log(s) - np.log(2 * np.longdouble(math.pi)) / 2, dtype=np.float64)


KINDS: dict[Callable[[np.random.Generator], Case], int] = {  # and how many there are of each in a chunk
    large_case: 20,
    class_case: 10,
    effect_case: 4,
    copies_case: 60,
    known_case: 40,
    sums_case: 40,
    joint_case: 10,
    limit_case: 1,
}


def found_of(ask: Callable[[], Tensor], truth: Array) -> Array | None:
    """What kofn answers; None where it refuses what it says it refuses."""
    try:
        answer: Any = ask()
    except ValueError as error:
        if "must not differ so much" in str(error):
            return None
        raise
    return np.asarray(answer.detach().double().numpy()).reshape(truth.shape)
