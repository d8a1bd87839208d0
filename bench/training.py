"""What kofn's loop costs: a fit of a network by `kofn.Network`, against a loop written by hand on the same tensors."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import kofn
from bench.record import machine, markdown, write
from kofn.learners import CountObjective, Problem

SIZE, BAGS, STEP, FEATURES = 8, 1024, 64, 108  # Adult in bags of 8, as in the paper
NETWORKS = {"108-2048-64-1, the paper's": (2048, 64), "108-128-1, the default": (128,)}


def tensors() -> tuple[Tensor, Tensor]:
    """Instances and counts of Adult's shape; the numbers are random, which costs the same."""
    generator = torch.Generator().manual_seed(0)
    instances = torch.randn(BAGS * SIZE, FEATURES, generator=generator)
    positive = instances[:, 0] + torch.randn(len(instances), generator=generator) > 0
    return instances, positive.view(BAGS, SIZE).sum(1)


def by_hand(instances: Tensor, counts: Tensor, hidden: tuple[int, ...], epochs: int) -> None:
    """What one would write: new bags in a step, their loss, a step of Adam, and nothing else."""
    bags = instances.view(BAGS, SIZE, FEATURES)
    network = kofn.learners.mlp(FEATURES, hidden)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(epochs):
        for which in torch.randperm(BAGS).split(STEP):
            loss = kofn.count_loss(network(bags[which]), kofn.Exactly(counts[which]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def by_kofn(instances: NDArray[np.float32], counts: Tensor, hidden: tuple[int, ...], epochs: int) -> None:
    """The same by the learner, which has everything else that it always does."""
    problem = Problem(
        instances=instances,
        bags=kofn.Bags.from_sizes([SIZE] * BAGS),
        labels=counts,
        objective=CountObjective(),
        rate=0.5,
        proportions=counts / SIZE,
    )
    network = kofn.Network(
        hidden=hidden, epochs=epochs, patience=None, validation_fraction=0.0, batch_size=STEP, standardise=False
    )
    network.fit(problem, seed=0)


def seconds(run: Callable[[], None]) -> float:
    """Of the processor: what others do on this machine does not count."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="turns of each contender")
    parser.add_argument("--epochs", type=int, default=10, help="epochs in a turn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    instances, counts = tensors()
    array = instances.numpy()
    rows, record = [["network", "by hand, ms an epoch", "kofn.Network, ms", "ratio", "ratios of the rounds"]], {}
    for name, hidden in NETWORKS.items():
        hand, ours = [], []
        for _ in range(options.rounds + 1):  # they take turns; the first round warms up
            hand.append(seconds(partial(by_hand, instances, counts, hidden, options.epochs)) / options.epochs)
            ours.append(seconds(partial(by_kofn, array, counts, hidden, options.epochs)) / options.epochs)
        ratios = sorted(b / a for a, b in zip(hand[1:], ours[1:], strict=True))
        a, b = 1e3 * statistics.median(hand[1:]), 1e3 * statistics.median(ours[1:])
        ratio = statistics.median(ratios)
        rows.append([name, f"{a:.1f}", f"{b:.1f}", f"{ratio:.2f}", f"{ratios[0]:.2f} to {ratios[-1]:.2f}"])
        record[name] = {"by hand": hand[1:], "kofn.Network": ours[1:]}
        print(rows[-1], flush=True)
    text = (
        f"{machine()}.\n\nMedians over {options.rounds} fits of {options.epochs} epochs, taken in turn in one process, "
        f"seconds of the processor. An epoch: {BAGS} bags of {SIZE} in steps of {STEP}; nothing is held out.\n\n"
        f"<!-- --8<-- [start:training] -->\n{markdown(rows)}\n<!-- --8<-- [end:training] -->\n"
    )
    write(Path("bench/training"), {"machine": machine(), "seconds": record}, text)


if __name__ == "__main__":
    main()
