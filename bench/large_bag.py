"""One bag of ten million instances, value and gradient: on one thread, on two, and on two processes."""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, distributed
from torch.multiprocessing.spawn import spawn

import kofn
import kofn.contrib.shared_bags
from bench.record import machine, markdown, write

SHARE = 0.45  # of positives; the scores say a half


def instances(n: int) -> Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(0)) * 1.5


def peak() -> int:
    """The largest memory that this process has had since `forget_peak`, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def on_threads(n: int, rounds: int) -> dict[str, Any]:
    """Wall time of one and of two threads, which take turns; whether all digits are the same; memory."""
    dist, count = kofn.CountDistribution(instances(n).requires_grad_()), int(SHARE * n)
    times: dict[int, list[float]] = {1: [], 2: []}
    answers = {}
    forget_peak()
    before, memory = peak(), 0
    for _ in range(rounds):
        for threads, spent in times.items():
            torch.set_num_threads(threads)
            start = time.perf_counter()
            value = dist.log_prob(count)
            (gradient,) = torch.autograd.grad(value, dist.logits)
            spent.append(time.perf_counter() - start)
            memory = memory or peak() - before - gradient.nbytes  # of the first call, where all of it is new
            answers[threads] = value.detach(), gradient
    same = all(torch.equal(a, b) for a, b in zip(answers[1], answers[2], strict=True))
    milliseconds = {f"{threads} threads": 1e3 * min(spent) for threads, spent in times.items()}
    return {"milliseconds": milliseconds, "same digits": same, "bytes an instance": max(memory, 0) / n}


def process(rank: int, n: int, rounds: int, folder: str) -> None:
    """One of two processes: it has half the bag."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    logits = instances(n).chunk(2)[rank].clone().requires_grad_()
    times = []
    for _ in range(rounds):
        logits.grad = None
        distributed.barrier()
        start = time.perf_counter()
        value = kofn.contrib.shared_bags.log_count_prob(logits, int(SHARE * n))
        value.backward()
        times.append(time.perf_counter() - start)
    # In float64, where a difference can be seen.
    x = logits.detach().double().requires_grad_()
    value = kofn.contrib.shared_bags.log_count_prob(x, int(SHARE * n))
    value.backward()
    torch.save((min(times), value.detach(), x.grad), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def on_processes(n: int, rounds: int) -> dict[str, Any]:
    """Wall time of two processes, and how far their answers are from those of one."""
    with tempfile.TemporaryDirectory() as folder:
        spawn(process, (n, rounds, folder), nprocs=2)
        first, second = (torch.load(f"{folder}/{rank}.pt", weights_only=True) for rank in (0, 1))
    x = instances(n).double().requires_grad_()
    alone = kofn.log_count_prob(x, int(SHARE * n))
    (gradient,) = torch.autograd.grad(alone, x)
    differences = {
        "of log p, relative": (first[1] - alone).abs().item() / max(1.0, abs(alone.item())),
        "of the gradient": (torch.cat([first[2], second[2]]) - gradient).abs().max().item(),
        "between the two": (first[1] - second[1]).abs().item(),
    }
    return {"milliseconds": {"2 processes": 1e3 * max(first[0], second[0])}, "differences": differences}


def page(record: dict[str, Any]) -> str:
    threads, processes = record["threads"], record["processes"]
    times = {**threads["milliseconds"], **processes["milliseconds"]}
    one = times["1 threads"]
    rows = [["", "milliseconds", "times as fast"]]
    rows += [[name.replace("1 threads", "1 thread"), f"{ms:.0f}", f"{one / ms:.2f}"] for name, ms in times.items()]
    off = processes["differences"]
    digits = "the same digits" if threads["same digits"] else "different digits"
    where = record["machine"].replace(", one thread used", "")
    notes = (
        f"One and two threads have {digits}; beside logits and gradient they need {threads['bytes an instance']:.2f} "
        f"bytes an instance. In float64, two processes (gloo) are {off['of log p, relative']:.0e} (relative) from "
        f"log p of one and {off['of the gradient']:.0e} from its gradient. {where}; smallest of {record['rounds']} "
        f"wall times; {record['date']}."
    )
    return f"{markdown(rows)}\n\n{notes}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=10_000_000, help="in the bag")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each, of which the fastest counts")
    parser.add_argument("--out", type=Path, default=Path("bench/large_bag"), help="where .md and .json go")
    options = parser.parse_args()
    record = {
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
        "instances": options.instances,
        "rounds": options.rounds,
        "threads": on_threads(options.instances, options.rounds),
        "processes": on_processes(options.instances, options.rounds),
    }
    console = Console()
    console.print(page(record))
    for target in write(options.out, record, page(record)):
        console.print(f"wrote {target}")


if __name__ == "__main__":
    main()
