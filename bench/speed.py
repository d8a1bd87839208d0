"""Medians of contenders that take turns, so that a busy moment of the machine hits all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

import kofn
from bench import contenders

Runs = dict[str, Callable[[], Any]]


def in_torch(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same run with kofn's C++ core turned off."""

    def without_core() -> None:
        with kofn.counts.use("torch"):
            run()

    return without_core


def with_torch(runs: Runs) -> Runs:
    """The contenders, and kofn a second time without its core."""
    return {**runs, "kofn in torch": in_torch(runs["kofn"])}


NAMES = {
    "kofn": "kofn.count_loss, value and gradient",
    "kofn, values only": "kofn.log_count_distribution, values only",
    "kofn in torch": "kofn without its C++ core, value and gradient",
    "algorithm 1": "Algorithm 1 in torch, value and gradient",
    "scipy": "scipy poisson_binom, values only",
    "fast-poibin": "fast-poibin, values only",
    "floor": "logits.sum(1).mean().backward()",
}


def medians(
    runs: Runs, *, seconds: float = 2.0, turn: float = 5e-3, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Milliseconds of each run: medians over rounds in which each has its turn, about `seconds` in all.

    A turn is at least `turn` seconds of calls in a row. With 0 it is one call, right after the other contenders': then
    every call starts with cold caches, which costs the short ones most. A training loop is somewhere between the two.
    """
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()  # caches, compilation, first allocations
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or min(map(len, samples.values())) < 3:
        for name, run in runs.items():
            start_of_turn = before = clock()
            while True:
                run()
                now = clock()
                samples[name].append(1e3 * (now - before))
                if now >= start_of_turn + turn:
                    break
                before = now
        if time.perf_counter() - start > 10 * seconds:
            break
    return {name: statistics.median(times) for name, times in samples.items()}


def cases() -> Iterator[tuple[str, Runs]]:
    """Every case: its name and its contenders."""
    for n in (8, 32, 128, 512):
        yield f"128 bags x {n}, one count", one_count(*batch(128, n))
    for n in (100, 500, 1000, 2000):
        yield f"1 bag x {n}, all counts, KL with a binomial", all_counts(n)
    for n in (10_000, 100_000, 1_000_000):
        logits, _ = batch(1, n)
        counts = torch.tensor([int(0.45 * n)])
        yield f"1 bag x {n:,}, one count", one_count(logits, counts, recursion=n <= 10_000, scipy=n <= 10_000)
    yield from ragged()


def batch(bags: int, n: int) -> tuple[Tensor, Tensor]:
    """Logits and counts as in learning from label proportions: scores that do not know the counts yet."""
    g = torch.Generator().manual_seed(n)
    logits = torch.randn(bags, n, generator=g) * 1.5
    counts = torch.binomial(torch.full((bags,), float(n)), torch.rand(bags, generator=g), generator=g).long()
    return logits.requires_grad_(), counts


def backward(logits: Tensor, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """A training step's share: the loss and its gradient."""

    def run() -> None:
        logits.grad = None
        loss().backward()

    return run


def one_count(logits: Tensor, counts: Tensor, *, recursion: bool = True, scipy: bool = True) -> Runs:
    probs = torch.sigmoid(logits.detach().double()).numpy()
    wanted = counts.numpy()

    def each(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[], Any]:
        return lambda: [function(p, k) for p, k in zip(probs, wanted, strict=True)]

    runs: Runs = {
        "floor": backward(logits, lambda: logits.sum(1).mean()),
        "kofn": backward(logits, lambda: kofn.count_loss(logits, kofn.Exactly(counts))),
        "fast-poibin": each(contenders.fast_poibin_log_probs),
    }
    if scipy:
        runs["scipy"] = each(contenders.scipy_log_probs)
    if recursion:
        runs["algorithm 1"] = backward(logits, lambda: contenders.algorithm_1_one_count(logits, counts).mean())
    return runs


def all_counts(n: int) -> Runs:
    logits, _ = batch(1, n)
    counts = torch.arange(n + 1)
    target = torch.distributions.Binomial(n, torch.tensor(0.4, dtype=torch.float64)).log_prob(counts.double())
    target = target.float()
    probs = torch.sigmoid(logits.detach().double())[0].numpy()

    def divergence(pmf: Tensor) -> Tensor:
        return torch.sum(target.exp() * (target - pmf))

    return {
        "floor": backward(logits, lambda: logits.sum(1).mean()),
        "kofn": backward(logits, lambda: divergence(kofn.log_count_distribution(logits)[0])),
        "kofn, values only": lambda: kofn.log_count_distribution(logits.detach()),
        "algorithm 1": backward(logits, lambda: divergence(contenders.algorithm_1(logits, n)[0])),
        "scipy": lambda: contenders.scipy_log_probs(probs, counts.numpy()),
        "fast-poibin": lambda: contenders.fast_poibin_log_probs(probs, counts.numpy()),
    }


def ragged() -> Iterator[tuple[str, Runs]]:
    """Ragged bags beside as many instances in equal bags, which say what they should cost."""
    g = torch.Generator().manual_seed(0)
    sizes = torch.exp(torch.rand(2000, generator=g) * np.log(2000)).long().clamp(min=1)
    yield "2,000 ragged bags of 1 to 2,000, one count", ragged_and_equal(sizes, g)
    yield "4,096 ragged bags of 1 to 64, one count", ragged_and_equal(torch.randint(1, 65, (4096,), generator=g), g)


def ragged_and_equal(sizes: Tensor, g: torch.Generator) -> Runs:
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    logits = (torch.randn(int(offsets[-1]), generator=g) * 1.5).requires_grad_()
    counts = (torch.rand(len(sizes), generator=g) * (sizes + 1)).long()
    width = int(sizes.double().mean())
    equal = (torch.randn(len(logits) // width, width, generator=g) * 1.5).requires_grad_()
    halves = (torch.rand(len(equal), generator=g) * (width + 1)).long()
    return {
        "floor": backward(logits, lambda: logits.sum()),
        "kofn": backward(logits, lambda: kofn.count_loss(logits, kofn.Exactly(counts), offsets=offsets)),
        "kofn, equal bags": backward(equal, lambda: kofn.count_loss(equal, kofn.Exactly(halves))),
    }
