"""Whether a device answers rightly: awkward bags against the oracle, ways against each other, graphs, training."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

import kofn
from bench.device.routes import Answer, Route, synchronise
from bench.fuzz.awkward_bags import LAYOUTS
from bench.fuzz.checks import BOUNDS, CHUNK, Tally, check_chunk
from bench.record import Rows

SHOWN = ("log_prob", "gradient", "log_between", "between_gradient")
INTERPRETABLE = 1000  # instances
SAME = 1e-11  # two ways in float64 may be so far apart, relative to max(1, |value|)


class Case:
    """Bags whose time is measured, in float32, as networks have them."""

    def __init__(self, name: str, sizes: Sequence[int]) -> None:
        generator = torch.Generator().manual_seed(len(sizes))
        self.name = name
        self.logits = torch.randn(sum(sizes), generator=generator) * 1.5
        bags = kofn.Bags.from_sizes(sizes)
        self.counts = torch.binomial(bags.sizes.float(), torch.rand(len(bags), generator=generator)).long()
        self.offsets: Tensor | None = bags.offsets
        if len(set(sizes)) == 1:
            self.logits, self.offsets = self.logits.view(len(sizes), sizes[0]), None


def cases(*, quick: bool) -> list[Case]:
    """Small and large bags, dense and ragged."""
    if quick:
        return [Case("16 x 8", [8] * 16), Case("4 ragged bags", [3, 0, 12, 5])]
    ragged = np.random.default_rng(0).integers(1, 500, 1000).tolist()
    return [
        *(Case(f"128 x {n}", [n] * 128) for n in (8, 32, 128, 512)),
        Case("1,000 ragged bags of up to 500", ragged),
        Case("1 x 10,000", [10_000]),
        Case("1 x 1,000,000", [1_000_000]),
    ]


def against_the_oracle(ways: Sequence[Route], bags: int, interpreted: int) -> tuple[Rows, list[str]]:
    """Largest errors in float64 of every eager way on awkward bags, as rows, and what was wrong."""
    rows = [["way", "bags", "wrong", *(f"{name} (bound {BOUNDS[name]:.0e})" for name in SHOWN)]]
    wrong = []
    for way in ways:
        if way.compiled:
            continue
        number, tally = interpreted if way.interpreted else bags, Tally()
        with np.errstate(all="ignore"):  # Triton's interpreter divides by zero where a GPU does
            for chunk in range(-(-number // CHUNK)):
                tally.add(check_chunk(chunk, bags=number, seed=1, engines=[way.engine], device=way.device))
        errors = [[tally.worst.get(f"{name}, {way.engine}, {layout}", 0.0) for layout in LAYOUTS] for name in SHOWN]
        rows.append([str(way), f"{number:,}", str(len(tally.failures)), *(f"{max(e):.0e}" for e in errors)])
        wrong += [f"{way}: {failure}" for failure in tally.failures]
    return rows, wrong


def answer(way: Route, case: Case) -> Answer:
    """What a way answers to logits of double precision, where the device has it."""
    logits = case.logits if way.device == "mps" else case.logits.double()
    return Answer(*(part.cpu().double() for part in way.prepare(logits, case.counts, case.offsets)()))


def apart(found: Answer, right: Answer) -> float:
    """The largest difference of two answers, relative to max(1, |the right one|); infinite for what is no number."""
    parts = [(mine - other).abs() / other.abs().clamp(min=1.0) for mine, other in zip(found, right, strict=True)]
    return max(float(part.nan_to_num(nan=torch.inf).max()) for part in parts)


def host_reads(way: Route, case: Case) -> str:
    """How often the host waits for a CUDA device in one value and gradient, as torch warns of it."""
    run = way.prepare(case.logits, case.counts, case.offsets)
    run()
    synchronise(way.device)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return str(sum("synchron" in str(warning.message) for warning in seen))


def captured(way: Route, case: Case) -> str:
    """Capture one value and gradient as a CUDA graph, whose replay must give the same."""
    run = way.prepare(case.logits, case.counts, case.offsets)
    expected = run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = run()
    graph.replay()
    synchronise(way.device)
    if not all(torch.equal(mine, right) for mine, right in zip(found, expected, strict=True)):
        raise ValueError("the replay of the graph gives other numbers")
    return "yes"


def training(device: str) -> tuple[float, float]:
    """Seconds of a small `Network` on the device, and how far its validation loss is from that on the CPU."""
    rng = np.random.default_rng(0)
    features, groups = rng.normal(size=(6400, 8)), np.repeat(np.arange(800), 8)
    shares = (features[:, 0] > 0).reshape(800, 8).mean(1).repeat(8)

    def fit(where: str) -> float:
        network = kofn.Network(device=where, epochs=5, patience=None)  # type: ignore[arg-type]
        model = kofn.LLPClassifier(network, random_state=0).fit(features, shares, groups=groups)
        return float(model.history_[-1]["val_loss"])

    on_cpu, begin = fit("cpu"), time.perf_counter()
    return abs(fit(device) - on_cpu), time.perf_counter() - begin
