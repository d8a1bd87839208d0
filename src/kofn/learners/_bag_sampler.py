"""Plans of epochs: which bags make which batch of which process.

A sampler plans an epoch from its seed and the epoch's number alone, so that every process of a distributed run knows
the whole plan and takes its part of each step, and an interrupted run continues as if nothing had happened.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from kofn import _require
from kofn.learners._bag_dataset import Draw


class StepSampler(Sampler[Draw]):
    """Plans each epoch from a seed and the epoch's number, and yields the batches of one process.

    A step is what one update of the weights sees: at most processes * accumulate batches, of which each process takes
    `accumulate` one after the other. Where a step has too few, a process repeats the step's first one with share 0, so
    that all processes make the same number of batches.

    Args:
        shuffle: a new order for each epoch.
        seed: random seed of the orders.
        processes: how many there are.
        process: which this is, from 0.
        accumulate: batches of a process in one step.
    """

    def __init__(
        self, *, shuffle: bool = True, seed: int = 0, processes: int = 1, process: int = 0, accumulate: int = 1
    ) -> None:
        _require.whole_number("seed", seed, low=0)
        _require.whole_number("processes", processes, low=1)
        _require.whole_number("process", process, low=0)
        _require.whole_number("accumulate", accumulate, low=1)
        if process >= processes:
            raise ValueError(
                f"`process` must be less than `processes`, {processes}, as it counts from 0; got {process}."
            )
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.processes, self.process, self.accumulate = processes, process, accumulate
        self.sampler = (
            self  # Lightning, in which bags may be trained too, sets the epoch of `loader.batch_sampler.sampler` only
        )

    def set_epoch(self, epoch: int) -> None:
        """Which epoch comes next; Lightning calls this."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Draw]:
        # A generator: it looks at the epoch when the first batch is asked for. A trainer that resumes calls iter()
        # before it sets the epoch.
        order = np.random.SeedSequence([self.seed, self.epoch]).generate_state(1, np.uint64)
        generator = torch.Generator().manual_seed(int(order[0] >> np.uint64(1)))
        for step in self._steps(generator):
            total = sum(n_bags for _, n_bags in step)
            for batch in range(self.accumulate):
                position = batch * self.processes + self.process
                draw, n_bags = step[position] if position < len(step) else (step[0][0], 0)
                yield draw._replace(share=n_bags / total)

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def batches_per_step(self) -> int:
        """Batches of a step."""
        return self.processes * self.accumulate

    @abstractmethod
    def _steps(self, generator: torch.Generator) -> Iterator[list[tuple[Draw, int]]]:
        """For each step its draws, at most `batches_per_step`, each with its number of bags."""

    def _order(self, length: int, generator: torch.Generator) -> Tensor:
        return torch.randperm(length, generator=generator) if self.shuffle else torch.arange(length)


class BagSampler(StepSampler):
    """Steps of so many bags, or batches of at most so many instances.

    Args:
        sizes: (b,) sizes of the bags.
        bags: bags in a step, shared by its batches; the last step has what is left over.
        instances: instances in a batch at most, in place of `bags`; a larger bag is a batch of its own. The number of
            batches is the same in every epoch.
        **plan: as for `StepSampler`.

    Examples:
        >>> import torch
        >>> from kofn.learners import BagSampler
        >>> sizes = torch.tensor([3, 1, 2, 5])
        >>> [draw.items.tolist() for draw in BagSampler(sizes, bags=3, shuffle=False)]
        [[0, 1, 2], [3]]
        >>> [draw.items.tolist() for draw in BagSampler(sizes, instances=5, shuffle=False)]
        [[0, 1], [2], [3]]
    """

    def __init__(self, sizes: Tensor, *, bags: int | None = None, instances: int | None = None, **plan: Any) -> None:
        super().__init__(**plan)
        _require.one_of_two("bags", bags, "instances", instances)
        self.sizes = _require.whole_numbers("sizes", sizes, low=1).numpy()
        if not len(self.sizes):
            raise ValueError("`sizes` must be those of one bag or more; got none.")
        self.bags, self.instances = bags, instances
        self._batches = 0
        if instances is not None:
            fixed = 0 if self.shuffle else len(batch_ends(self.sizes, instances, 1))
            self._batches = fixed or max_batches(self.sizes, instances)

    def __len__(self) -> int:
        if self.bags is not None:
            return -(-len(self.sizes) // self.bags) * self.accumulate
        return -(-self._batches // self.batches_per_step) * self.accumulate

    def _steps(self, generator: torch.Generator) -> Iterator[list[tuple[Draw, int]]]:
        order = self._order(len(self.sizes), generator)
        if self.bags is not None:
            for step in order.split(self.bags):
                parts = step.tensor_split(min(self.batches_per_step, len(step)))
                yield [(Draw(part), len(part)) for part in parts]
            return
        ends = batch_ends(self.sizes[order.numpy()], int(self.instances or 0), self._batches)
        batches = [(Draw(part), len(part)) for part in order.tensor_split(ends[:-1].tolist())]
        for start in range(0, len(batches), self.batches_per_step):
            yield batches[start : start + self.batches_per_step]


def batch_ends(
    sizes: np.ndarray[Any, np.dtype[np.int64]], max_instances: int, batches: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Ends of consecutive batches of at most `max_instances` instances, filled one after the other.

    If they are fewer than `batches`, those with the most bags are halved until they are as many.
    """
    ends = np.cumsum(sizes)
    stops: list[int] = []
    while not stops or stops[-1] < len(sizes):
        start = stops[-1] if stops else 0
        full = int(np.searchsorted(ends, (ends[start - 1] if start else 0) + max_instances, side="right"))
        stops.append(max(full, start + 1))
    # The fullest first (by number of bags), until there are enough.
    heap = [(start - stop, start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
    heapify(heap)
    while len(heap) < batches:
        _, start, stop = heappop(heap)
        middle = (start + stop) // 2
        heappush(heap, (start - middle, start, middle))
        heappush(heap, (middle - stop, middle, stop))
    return np.sort(np.array([stop for _, _, stop in heap], dtype=np.int64))


def max_batches(sizes: np.ndarray[Any, np.dtype[np.int64]], max_instances: int) -> int:
    """How many batches of at most `max_instances` instances bags of these sizes can need, in any order.

    Write m for `max_instances`. A batch is closed because the next bag does not fit. So two neighbouring batches have
    more than m together, and of all instances T there are at most 2 ceil(T / m) - 1 batches. Or take some of the bags,
    of at most s instances each and t in all, and call the other c large. At most c batches have a large bag, and at
    most c others are closed before one. The rest are closed before a bag of at most s and so have at least m - s + 1,
    but for the last, which has one or more: at most 2 c + ceil(t / (m - s + 1)) batches.
    """
    unit = int(np.gcd.reduce(sizes))  # bags of 10 fill 200 of 209
    sizes, max_instances = sizes // unit, max(max_instances // unit, 1)
    small = np.sort(sizes[sizes <= max_instances])
    large = len(sizes) - np.arange(1, len(small) + 1)
    by_size = 2 * large - (-small.cumsum() // (max_instances - small + 1))
    return min(len(sizes), 2 * -(-int(sizes.sum()) // max_instances) - 1, int(by_size.min(initial=len(sizes))))
