"""Time against the size of one bag: every contender from 10 instances up to as many as it can do in a second."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bench import speed
from bench.record import machine, markdown, write

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
LIBRARIES = ("torch", "numpy", "scipy", "fast-poibin", "kofn")


def one_count(n: int) -> speed.Runs:
    logits, _ = speed.batch(1, n)
    return speed.one_count(logits, torch.tensor([int(0.45 * n)]))


QUESTIONS: dict[str, Callable[[int], speed.Runs]] = {"one count": one_count, "all counts": speed.all_counts}


def sweep(
    question: Callable[[int], speed.Runs], sizes: tuple[int, ...], *, passes: int, seconds: float, longest: float
) -> dict[str, dict[str, float]]:
    """Milliseconds by contender and size. Who needs more than `longest` seconds for a call does not go on.

    The clock is the processor's: it stands still while the machine works for somebody else, and all contenders use one
    thread. Each pass goes through all sizes; of the medians, one a pass, the smallest is taken, so that a busy
    while, which costs caches, spoils one pass of every contender and not one size of the curve.
    """
    times: dict[str, dict[str, float]] = {}
    last: dict[str, int] = {"floor": 0}  # the largest bag of those that are out
    for _ in range(passes):
        for n in sizes:
            runs = {name: run for name, run in speed.with_torch(question(n)).items() if n <= last.get(name, n)}
            last |= {name: n - 1 for name, run in runs.items() if name not in last and too_slow(run, longest)}
            left = {name: run for name, run in runs.items() if n <= last.get(name, n)}
            if not left:
                break
            for name, ms in speed.medians(left, seconds=seconds, clock=time.process_time).items():
                known = times.setdefault(name, {})
                known[str(n)] = min(ms, known.get(str(n), ms))
    return times


def too_slow(run: Callable[[], Any], longest: float) -> bool:
    before = time.process_time()
    run()
    return time.process_time() - before > longest


def page(record: dict[str, Any]) -> str:
    """The record as a table, milliseconds; every other size."""
    shown = [str(n) for n in SIZES[::2]]
    rows = [["ms for bags of", *(f"{int(n):,}" for n in shown)]]
    for question, times in record["milliseconds"].items():
        for name, by_size in times.items():
            rows.append([f"{question}, {name}", *(f"{by_size[n]:.3g}" if n in by_size else "-" for n in shown)])
    libraries = ", ".join(
        f"{name} {version}" for name, version in record["versions"].items() if name not in {"kofn", "torch"}
    )
    table = f"<!-- --8<-- [start:scaling] -->\n{markdown(rows)}\n<!-- --8<-- [end:scaling] -->"
    return f"{record['machine']}; {libraries}. {record['date']}; {record['clock']}.\n\n{table}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=5, help="how often to go through all sizes")
    parser.add_argument("--seconds", type=float, default=0.2, help="time to spend on each size in a pass")
    parser.add_argument("--longest", type=float, default=1.0, help="seconds after which a contender does not go on")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="do not go beyond bags of this size")
    parser.add_argument("--out", type=Path, default=Path("bench/scaling"), help="where .md and .json go")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = tuple(n for n in SIZES if n <= options.largest)
    record: dict[str, Any] = {
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "contenders": {name: said for name, said in speed.NAMES.items() if name != "floor"},
        "clock": f"processor time, smallest of {options.passes} medians",
        "milliseconds": {},
    }
    console = Console()
    for name, question in QUESTIONS.items():
        times = sweep(question, sizes, passes=options.passes, seconds=options.seconds, longest=options.longest)
        record["milliseconds"][name] = times
        for contender, by_size in times.items():
            console.print(f"{name}, {contender}: " + "  ".join(f"{n}: {ms:.3g} ms" for n, ms in by_size.items()))
    for target in write(options.out, record, page(record)):
        console.print(f"wrote {target}")


if __name__ == "__main__":
    main()
