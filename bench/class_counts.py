"""Counts of several classes: how accurate against 50 digits, how fast beside the recursion in torch and binary bags.

``python -m bench.class_counts`` writes bench/class_counts.md and .json, and fails if a bound is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

import kofn
from bench.record import machine, markdown, write
from bench.speed import backward, medians

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from class_count_oracles import enumerate_counts, precise_law

BOUND = 1e-10  # of log p relative to max(1, |log p|), of gradients and posteriors absolute
Array = NDArray[np.float64]


def some_logits(rng: np.random.Generator, n: int, classes: int) -> Array:
    """Mild, confident or extreme scores, some alike, some impossible."""
    x: Array = rng.normal(size=(n, classes)) * rng.choice([0.1, 1.0, 5.0, 30.0, 300.0, 1000.0])
    kind = rng.integers(6)
    if kind == 0:
        x[:, rng.integers(classes)] += rng.choice([-500.0, -20.0, 20.0, 500.0])  # one class for or against all
    elif kind == 1:
        x[:] = x[rng.integers(n)]  # all alike
    elif kind == 2:
        x[rng.random(x.shape) < 0.2] = -np.inf
        x[(x == -np.inf).all(1)] = 0.0
    return x


def some_counts(rng: np.random.Generator, n: int, classes: int) -> NDArray[np.int64]:
    """Counts of a few labels drawn at random, often in a far tail of what the logits say."""
    shares = rng.dirichlet(np.full(classes, rng.choice([0.3, 1.0, 10.0])))
    return np.bincount(rng.choice(classes, n, p=shares), minlength=classes)


def answers(logits: Array, counts: NDArray[np.int64], engine: Any) -> tuple[float, Array, Array]:
    x, k = torch.from_numpy(logits).requires_grad_(), torch.from_numpy(counts)
    with kofn.counts.use(engine):
        value = kofn.log_class_count_prob(x, k)
        (slope,) = torch.autograd.grad(value, x)
        return value.item(), slope.numpy(), kofn.class_count_posteriors(x.detach(), k).numpy()


def accuracy(cases: int, seed: int) -> tuple[list[list[str]], dict[str, Any]]:
    """The largest errors over so many bags: a fifth by enumeration in exact fractions, the others in 50 digits."""
    rng = np.random.default_rng(seed)
    worst: dict[str, dict[str, float]] = {}
    facts = {"bags": 0, "impossible": 0, "deepest log p": 0.0}
    for case in range(cases):
        if case % 5 == 0:
            n, classes = int(rng.integers(0, 8)), int(rng.integers(1, 5))
            n = min(n, 5 if classes == 4 else n)
            weights = rng.integers(0, 10, (n, classes))
            weights[weights.sum(1) == 0] = 1
            counts = some_counts(rng, n, classes)
            total, parts = enumerate_counts(weights.tolist(), counts.tolist())
            with np.errstate(divide="ignore"):
                logits = np.log(weights.astype(float))
            prior = weights / np.maximum(1, weights.sum(1, keepdims=True))
            given = np.array([[float(p) for p in row] for row in parts]).reshape(n, classes) if total else prior
            truth = (float(np.log(float(total))) if total else -np.inf, given - prior, given)
            name = "exact fractions"
        else:
            classes = int(rng.choice([3, 4]))
            n = int(np.exp(rng.uniform(np.log(2), np.log(41 if classes == 3 else 25))))
            if case % 100 == 1:
                n = 40
            logits, counts = some_logits(rng, n, classes), some_counts(rng, n, classes)
            value, slope, posteriors = precise_law(logits, counts.tolist())
            truth = (float(value), slope, posteriors)
            name = "50 digits"
        facts["bags"] += 1
        facts["impossible"] += truth[0] == -np.inf
        facts["deepest log p"] = min(facts["deepest log p"], truth[0] if truth[0] > -np.inf else 0.0)
        for engine in ("native", "torch"):
            found = answers(logits, counts, engine)
            errors = worst.setdefault(f"{name}, {engine}", {"log p": 0.0, "gradient": 0.0, "posteriors": 0.0})
            for key, a, b in zip(errors, map(np.asarray, found), map(np.asarray, truth), strict=True):
                with np.errstate(invalid="ignore"):
                    error = np.where(a == b, 0.0, np.abs(a - b))
                scale = max(1.0, abs(truth[0])) if key == "log p" and truth[0] > -np.inf else 1.0
                size = float(np.max(error, initial=0.0)) / scale
                errors[key] = max(errors[key], size if np.isfinite(size) else np.inf)
                if not size <= BOUND:
                    print(f"case {case}: {key} of {engine} off by {size}, counts {counts.tolist()}", flush=True)
    rows = [["truth, engine", "log p, relative", "gradient", "posteriors"]]
    rows += [[name, *(f"{error:.1e}" for error in errors.values())] for name, errors in worst.items()]
    return rows, {"facts": facts, "worst": worst}


def recursion(logits: Tensor, counts: Tensor) -> Tensor:
    """log P(K = k) by the recursion in torch, as well written as we can: linear space, states by mixed radix."""
    b, n, _ = logits.shape
    k, order = counts.sort(1, descending=True)
    used = max(2, int((k > 0).sum(1).max()))
    k, order = k[:, :used], order[:, :used]
    p = logits.softmax(-1).gather(2, order[:, None].expand(b, n, used))
    radix = k[:, 1:] + 1
    stride = torch.cat([radix.new_ones(b, 1), radix.cumprod(1)], 1)
    states = int(stride[:, -1].max())
    state = torch.arange(states)
    digit = state // stride[:, :-1, None] % radix[:, :, None]
    there = ((digit > 0) & (state < stride[:, -1:, None])).to(p.dtype)
    source = (state - stride[:, :-1, None]).clamp(min=0).flatten(1)
    table = torch.zeros(b, states, dtype=p.dtype)
    table[:, 0] = 1.0
    for row in p.unbind(1):
        moved = table.gather(1, source).view(b, used - 1, states) * there
        table = table * row[:, :1] + torch.einsum("bcs,bc->bs", moved, row[:, 1:])
    return table.gather(1, stride[:, -1:] - 1).squeeze(1).log()


def in_torch(logits: Tensor, counts: Tensor) -> Tensor:
    """The loss that kofn is measured against."""
    return -recursion(logits, counts).mean()


def batch(bags: int, n: int, classes: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(n)
    labels = torch.randint(0, classes, (bags, n), generator=g)
    logits = torch.randn(bags, n, classes, generator=g) * 1.5 + 2.0 * one_hot(labels, classes)
    return logits.requires_grad_(), one_hot(labels, classes).sum(1)


def speed(seconds: float) -> tuple[list[list[str]], dict[str, Any]]:
    """Ratios of medians of contenders that take turns in one process."""
    rows = [["case", "kofn, ms", "beside it", "ms", "ratio"]]
    record: dict[str, Any] = {}

    def joint(logits: Tensor, counts: Tensor) -> Callable[[], None]:
        return backward(logits, lambda: kofn.count_loss(logits, kofn.ClassCounts(counts)))

    def note(case: str, runs: dict[str, Callable[[], Any]], other: str, ratio: Callable[[float, float], float]) -> None:
        times = medians(runs, seconds=seconds)
        record[case] = {"ms": times, "ratio": ratio(times["kofn"], times[other])}
        rows.append([case, f"{times['kofn']:.3f}", other, f"{times[other]:.3f}", f"{record[case]['ratio']:.1f}"])
        print(rows[-1], flush=True)

    for bags, n, classes in ((128, 8, 10), (128, 16, 4), (16, 16, 10)):
        x, k = batch(bags, n, classes)
        torch.testing.assert_close(
            recursion(x.double(), k), kofn.log_class_count_prob(x.double(), k), rtol=1e-10, atol=1e-10
        )
        runs = {"kofn": joint(x, k), "recursion in torch": backward(x, partial(in_torch, x, k))}
        note(f"{bags} bags of {n}, {classes} classes", runs, "recursion in torch", lambda a, b: b / a)
    for n, classes in ((1000, 3), (1000, 4), (10_000, 3)):
        x, k = batch(1, n, classes)
        y = x.detach()[..., 0].clone().requires_grad_()
        runs = {"kofn": joint(x, k), "one binary bag": backward(y, partial(kofn.count_loss, y, kofn.Exactly(k[:, 0])))}
        note(f"1 bag of {n:,}, {classes} classes", runs, "one binary bag", lambda a, b: a / b)
    return rows, record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000, help="bags whose answers are compared with the truth")
    parser.add_argument("--seed", type=int, default=0, help="of these bags")
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds for each case of the speed")
    parser.add_argument("--out", type=Path, default=Path("bench/class_counts"), help="without the suffix")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, timed = speed(options.seconds)
    errors, checked = accuracy(options.cases, options.seed)
    facts = checked["facts"]
    text = (
        f'{machine()}.\n\nValue and gradient, medians of turns in one process; "ratio" is how many times as fast as '
        f"the recursion, or the cost in binary bags.\n\n{markdown(rows)}\n\n"
        f"Largest errors over {facts['bags']:,} bags ({facts['impossible']:,} impossible, deepest log p "
        f"{facts['deepest log p']:.0f}):\n\n{markdown(errors)}\n"
    )
    write(options.out, {"machine": machine(), "speed": timed, "accuracy": checked}, text)
    print(text)
    if any(not error <= BOUND for each in checked["worst"].values() for error in each.values()):
        sys.exit("a bound is broken")


if __name__ == "__main__":
    main()
