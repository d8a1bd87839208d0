"""The engines on 20,000 awkward bags against an independent oracle; fails where a promised bound does not hold."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from bench.fuzz import special_bags
from bench.fuzz.awkward_bags import DTYPES, LAYOUTS
from bench.fuzz.checks import BOUNDS, CHUNK, Engine, Tally, check_chunk, installed
from bench.record import Rows, machine, markdown, write

COLUMNS = ("numbers", "refused", "largest error")
SHOWN = 20  # failures; as many are in the record
NAMES = {
    "log_prob": "`log_count_prob`",
    "gradient": "gradient of `log_count_prob`",
    "log_between": "`log_count_between`",
    "between_gradient": "gradient of `log_count_between`",
    "log_law": "`log_count_distribution`",
    "posteriors": "`count_posteriors`",
}


def run(
    chunks: Sequence[int], *, bags: int, seed: int, jobs: int, engines: Sequence[Engine] | None = None
) -> Iterator[Tally]:
    """The chunks in their order, whoever has done them."""
    check = partial(check_chunk, bags=bags, seed=seed, engines=engines)
    if jobs == 1:
        yield from map(check, chunks)
        return
    # Processes of their own, not forks: a fork of torch's threads may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        yield from pool.map(check, chunks)


def error_rows(tally: Tally, engines: Sequence[Engine]) -> Rows:
    columns = [(engine, layout) for engine in engines for layout in LAYOUTS]
    rows = [["largest error in float64", "bound", *(f"{engine}, {layout}" for engine, layout in columns)]]
    for quantity, bound in BOUNDS.items():
        errors = (tally.worst.get(f"{quantity}, {engine}, {layout}") for engine, layout in columns)
        rows.append([NAMES[quantity], f"{bound:.0e}", *("-" if e is None else f"{e:.1e}" for e in errors)])
    return rows


def special_rows(tally: Tally, engines: Sequence[Engine]) -> Rows:
    """The special bags: numbers compared, how many answers were refused, the largest error."""
    rows = [["special bags", "bound", *(f"{what}, {engine}" for engine in engines for what in COLUMNS)]]
    for quantity, bound in special_bags.BOUNDS.items():
        row = [quantity, f"{bound:.0e}"]
        for key in (f"{quantity}, {engine}" for engine in engines):
            row += [f"{tally.facts[key]:,}", f"{tally.facts[f'{key}, refused']:,}", f"{tally.worst.get(key, 0.0):.1e}"]
        rows.append(row)
    return rows


def failure_rows(tally: Tally, engines: Sequence[Engine]) -> Rows:
    rows = [["dtype", "bags", *(f"{what}, {engine}" for engine in engines for what in ("numbers", "wrong"))]]
    for dtype in DTYPES:
        counts = [(tally.numbers[f"{dtype}, {engine}"], tally.wrong[f"{dtype}, {engine}"]) for engine in engines]
        rows.append([dtype, f"{tally.facts[dtype]:,}", *(f"{number:,}" for pair in counts for number in pair)])
    return rows


def summary(tally: Tally, seed: int, seconds: float, jobs: int) -> str:
    """What was run, in a sentence or two."""
    facts = tally.facts
    layouts = ", ".join(f"{facts[layout]:,} {layout}" for layout in LAYOUTS)
    return (
        f"{facts['bags']:,} bags of 0 to 400 instances ({facts['instances']:,} in all), {layouts}; "
        f"{facts['impossible counts']:,} of the counts are impossible, log-probabilities go down to "
        f"{tally.deepest:,.0f}. Random seed {seed}, {seconds:,.0f} seconds in {jobs} processes. Errors of logarithms "
        "are relative to max(1, |log p|), others absolute. In a shorter dtype a number is wrong if it is off by more "
        "than the bound and one unit in the last place together. Special bags have copies, known labels, values to add "
        "up, logits up to 1e300, or bag effects from 1e-6 to 1e6; joint class counts with a log-probability below -1e7 "
        "are refused."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write; the number of the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=20_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes; the bags are the same for any number")
    parser.add_argument("--chunk", type=int, help="only this chunk of the bags: what a failure names")
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=get_args(Engine),
        default=installed(),
        help="which to ask; triton runs on a CPU with TRITON_INTERPRET=1",
    )
    parser.add_argument("--out", type=Path, default=Path("bench/fuzz"), help="where .md and .json go")
    options = parser.parse_args(arguments)
    if np.finfo(np.longdouble).eps > 1e-18:
        sys.exit("The oracle needs floats of 80 bits, which this machine does not have.")
    torch.set_num_threads(1)
    console = Console()
    chunks = range(-(-options.bags // CHUNK)) if options.chunk is None else [options.chunk]
    begin = time.perf_counter()
    tally = Tally()
    done = run(chunks, bags=options.bags, seed=options.seed, jobs=options.jobs, engines=options.engines)
    for part in track(done, "fuzz", total=len(chunks), console=console):
        tally.add(part)
    bounds = BOUNDS | special_bags.BOUNDS
    tally.failures.sort(key=lambda failure: -failure.error / bounds[failure.quantity])
    tables = [markdown(rows) for rows in (f(tally, options.engines) for f in (error_rows, failure_rows, special_rows))]
    about = summary(tally, options.seed, time.perf_counter() - begin, options.jobs)
    text = "\n\n".join([f"{machine()}.", about, *tables])
    console.print(text, markup=False, soft_wrap=True)
    for failure in tally.failures[:SHOWN]:
        console.print(f"wrong: {failure}", markup=False, soft_wrap=True)
    if tally.failures:
        repeat = f"--bags {options.bags} --seed {options.seed} --jobs 1 --out build/fuzz --chunk ..."
        console.print(
            f"{len(tally.failures)} answers are wrong. A chunk again: python -m bench.fuzz {repeat}",
            markup=False,
            soft_wrap=True,
        )
    record = vars(tally) | {"failures": [str(failure) for failure in tally.failures[:SHOWN]]}
    record |= {"machine": machine(), "seed": options.seed, "bounds": bounds, "wrong answers": len(tally.failures)}
    for target in write(options.out, record, text + "\n"):
        console.print(f"wrote {target}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
