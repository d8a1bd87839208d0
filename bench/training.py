"""What Lightning and the loader cost: an epoch of Adult's shape, against a loop written by hand on the same tensors."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn

import kofn
from bench.record import machine, markdown, write
from kofn import training
from kofn.batches import BagDataset

SIZE, BAGS, HELD_OUT, STEP, FEATURES = 8, 1024, 128, 128, 108  # Adult in bags of 8, as in the paper


def tensors() -> tuple[Tensor, Tensor]:
    """Instances and counts of Adult's shape; the numbers are random, which costs the same."""
    generator = torch.Generator().manual_seed(0)
    instances = torch.randn(BAGS * SIZE, FEATURES, generator=generator)
    positive = instances[:, 0] + torch.randn(len(instances), generator=generator) > 0
    return instances, positive.view(BAGS, SIZE).sum(1)


def by_hand(network: nn.Module, instances: Tensor, counts: Tensor, epochs: int) -> Iterator[float]:
    """Seconds of each epoch: train, validate, keep the best weights, and nothing else."""
    bags = instances.view(BAGS, SIZE, FEATURES)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-3)
    best, smallest = network.state_dict(), torch.inf
    for _ in range(epochs):
        start = time.perf_counter()
        network.train()
        for which in (HELD_OUT + torch.randperm(BAGS - HELD_OUT)).split(STEP):
            loss = kofn.losses.llp_loss(network(bags[which]), counts[which])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            loss = kofn.losses.llp_loss(network(bags[:HELD_OUT]), counts[:HELD_OUT])
        if loss.item() < smallest:
            smallest, best = loss.item(), deepcopy(network.state_dict())
        yield time.perf_counter() - start
    network.load_state_dict(best)


class Clock(Callback):
    """Seconds from the start of each epoch to the start of the next."""

    def __init__(self) -> None:
        self.starts: list[float] = []

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.starts.append(time.perf_counter())


def by_kofn(network: nn.Module, instances: Tensor, counts: Tensor, epochs: int) -> list[float]:
    bags = kofn.Bags.from_sizes([SIZE] * BAGS)
    train = BagDataset(instances, bags.select(slice(HELD_OUT, None)), counts[HELD_OUT:])
    valid = BagDataset(instances, bags.select(slice(HELD_OUT)), counts[:HELD_OUT])
    module = training.CountModule(network, training.CountObjective(), weight_decay=1e-3, seed=0)
    clock = Clock()
    data = training.CountData(train, valid, batch_size=STEP)
    training.fit(module, data, epochs=epochs + 1, trainer={"callbacks": [clock]})
    return [end - start for start, end in zip(clock.starts, clock.starts[1:], strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="turns of each contender")
    parser.add_argument("--epochs", type=int, default=10, help="epochs in a turn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    instances, counts = tensors()
    rows, record = [["network", "by hand, ms an epoch", "kofn.training, ms", "ratio", "ratios of the rounds"]], {}
    for name, hidden in (("108-2048-64-1, the paper's", (2048, 64)), ("108-64-1", (64,))):
        network = kofn.models.mlp(FEATURES, hidden)
        hand, ours = [], []
        for _ in range(options.rounds + 1):  # they take turns; the first round warms up
            hand.append(statistics.median(by_hand(deepcopy(network), instances, counts, options.epochs)))
            ours.append(statistics.median(by_kofn(deepcopy(network), instances, counts, options.epochs)))
        ratios = sorted(b / a for a, b in zip(hand[1:], ours[1:], strict=True))
        a, b = 1e3 * statistics.median(hand[1:]), 1e3 * statistics.median(ours[1:])
        ratio = statistics.median(ratios)
        rows.append([name, f"{a:.1f}", f"{b:.1f}", f"{ratio:.2f}", f"{ratios[0]:.2f} to {ratios[-1]:.2f}"])
        record[name] = {"by hand": hand[1:], "kofn.training": ours[1:]}
        print(rows[-1], flush=True)
    text = (
        f"{machine()}.\n\nMedians over {options.rounds} turns of {options.epochs} epochs, taken in turn in one "
        f"process. An epoch: {BAGS - HELD_OUT} bags of {SIZE} in steps of {STEP}, then {HELD_OUT} to validate.\n\n"
        f"<!-- --8<-- [start:training] -->\n{markdown(rows)}\n<!-- --8<-- [end:training] -->\n"
    )
    write(Path("bench/training"), {"machine": machine(), "seconds": record}, text)


if __name__ == "__main__":
    main()
