"""What an instance and a bag cost, and a run on many instances that exist only while they are looked at.

python -m bench.scale --rows 100000000

Times are seconds of the processor, of one thread: what others do on the machine does not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import kofn
from bench.out_of_core import memory
from bench.record import machine, markdown, write

INSTANCES = 1 << 20  # of one call
SIZES = (1, 10, 100, 1000, 10_000)
FEATURES, BAG, BATCH = 10, 100, 10_000  # of the simulated run, and its bags in a step
OUT = Path("bench/scale")


def seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """The least of some calls, of the processor."""
    found = []
    for _ in range(repeats + 1):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found[1:])  # the first one warms up


def loss_and_gradient(logits: Tensor, counts: Tensor) -> tuple[float, Tensor]:
    """Of bags (b, n) the mean loss and its gradient by the logits, by autograd as in training."""
    x = logits.detach().requires_grad_()
    loss = kofn.count_loss(x, kofn.Exactly(counts))
    loss.backward()
    assert x.grad is not None
    return float(loss.detach()), x.grad


def costs() -> list[dict[str, Any]]:
    """Seconds of a call on a million instances, in bags of several sizes."""
    generator = torch.Generator().manual_seed(0)
    calls = []
    for size in SIZES:
        bags = INSTANCES // size
        logits = torch.randn(bags, size, generator=generator)
        counts = torch.bernoulli(torch.sigmoid(logits), generator=generator).sum(1).long()
        spent = seconds(partial(loss_and_gradient, logits, counts))
        calls.append({"size": size, "bags": bags, "instances": bags * size, "seconds": spent})
    return calls


class Simulated:
    """Bags whose instances are drawn when they are asked for: a logistic model of their features makes the labels."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.weights = torch.randn(FEATURES, generator=self.generator) / 2
        self.intercept = -1.0

    def draw(self, bags: int) -> tuple[Tensor, Tensor]:
        """Features (bags, n, features) and counts (bags,)."""
        x = torch.randn(bags, BAG, FEATURES, generator=self.generator)
        positive = torch.rand(bags, BAG, generator=self.generator) < torch.sigmoid(x @ self.weights + self.intercept)
        return x, positive.sum(1)


def simulate(rows: int) -> dict[str, Any]:
    """One epoch of a logistic model on so many instances: a step of Adam for each batch, drawn and forgotten."""
    data = Simulated(0)
    model = torch.nn.Linear(FEATURES, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    steps = rows // (BATCH * BAG)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    spent = {"drawing": 0.0, "loss and gradient": 0.0, "model": 0.0}
    losses = []
    wall = time.monotonic()
    for _ in range(steps):
        marks = [time.process_time()]
        x, counts = data.draw(BATCH)
        marks.append(time.process_time())
        logits = model(x).squeeze(-1)
        marks.append(time.process_time())
        loss, slope = loss_and_gradient(logits, counts)
        marks.append(time.process_time())
        logits.backward(slope)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        marks.append(time.process_time())
        drawing, forward, both, backward = np.diff(marks)
        spent["drawing"] += drawing
        spent["loss and gradient"] += both
        spent["model"] += forward + backward
        losses.append(loss)
    truth = torch.cat([data.weights, torch.tensor([data.intercept])])
    found = torch.cat([model.weight.detach().flatten(), model.bias.detach()])
    return {
        "rows": steps * BATCH * BAG,
        "bags": steps * BATCH,
        "steps": steps,
        "seconds": spent,
        "wall": time.monotonic() - wall,
        "first loss": losses[0],
        "last loss": float(np.mean(losses[-10:])),
        "largest error of a weight": float((found - truth).abs().max()),
        "peak": memory("self")["VmHWM"],
    }


def told(record: dict[str, Any]) -> str:
    """The page of a record."""
    rows = [["size of the bags", "ns an instance", "µs a bag"]]
    for call in record["costs"]:
        instance, bag = 1e9 * call["seconds"] / call["instances"], 1e6 * call["seconds"] / call["bags"]
        rows.append([f"{call['size']:,}", f"{instance:.1f}", f"{bag:.2f}"])
    run = record["simulation"]
    parts = [["part of the epoch", "s of one thread", "ns an instance"]]
    for name, spent in run["seconds"].items():
        parts.append([name, f"{spent:.1f}", f"{1e9 * spent / run['rows']:.1f}"])
    return (
        f"{record['machine']}.\n\nThe count loss and its gradient, seconds of the processor, a million instances in a "
        f"call.\n\n<!-- --8<-- [start:costs] -->\n{markdown(rows)}\n<!-- --8<-- [end:costs] -->\n\n"
        f"{run['rows']:,} simulated instances in {run['bags']:,} bags of {BAG}, {FEATURES} features, one epoch of a "
        f"logistic model in {run['steps']} steps; {run['wall']:.0f} s passed on the clock of a busy machine.\n\n"
        f"<!-- --8<-- [start:simulation] -->\n{markdown(parts)}\n<!-- --8<-- [end:simulation] -->\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    record = {"machine": machine(), "costs": costs(), "simulation": simulate(options.rows)}
    write(options.out, record, told(record))


if __name__ == "__main__":
    main()
