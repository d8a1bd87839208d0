"""Where the data of a training lie: on the device that trains, if they fit there, else on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from kofn.learners._bag_dataset import Draw
from kofn.learners._mapped_features import MappedFeatures
from kofn.learners._problem import Problem

LARGEST_SHARE = 0.5  # of a device's free memory, for instances: network, gradients and activations need the rest


class Batch(NamedTuple):
    """Some bags of a problem.

    Attributes:
        share: of the step, 0 for a repetition.
        rows: positions of their instances, one bag after the other, beside the instances.
        offsets: of the bags in `rows`, on the host: sizes of bags are shapes.
        labels: of the bags, on the device.
        weights: of the bags, float64 on the device; None for none.
        copies: of the instances, on the device; None for one each.
    """

    share: float
    rows: Tensor
    offsets: Tensor
    labels: Tensor
    weights: Tensor | None
    copies: Tensor | None = None


class DeviceData:
    """Instances, and the batches of an epoch, for a device.

    Instances that take at most half of the device's free memory are copied there once, and each batch is gathered
    there. Of larger ones each batch is gathered on the host, into pinned memory, and copied while the device computes.
    Labels, weights and positions of a whole epoch are copied in one go.

    Args:
        instances: (n, ...) on the CPU, or features of a table in a file, of which each batch is read.
        device: that trains.

    Examples:
        >>> import torch
        >>> data = DeviceData(torch.arange(4.0), torch.device("cpu"))
        >>> data.is_resident, data.gather(torch.tensor([2, 0]))
        (True, tensor([2., 0.]))
    """

    def __init__(self, instances: Tensor | MappedFeatures, device: torch.device) -> None:
        self.device = device
        self._instances = instances
        self.is_resident = False
        if isinstance(instances, Tensor) and instances.nbytes <= LARGEST_SHARE * _free_memory(device):
            self.is_resident = True
            self._instances = instances.to(device)

    def gather(self, rows: Tensor) -> Tensor:
        """The instances at some positions, on the device."""
        rows = rows.to(self._instances.device)
        if isinstance(self._instances, MappedFeatures):
            return self._instances[rows].to(self.device)
        if self.is_resident:
            return self._instances.index_select(0, rows)
        # A new piece of memory for each batch: torch gives it out again only when its copy is done.
        shape, pinned = (len(rows), *self._instances.shape[1:]), self.device.type == "cuda"
        some = torch.empty(shape, dtype=self._instances.dtype, pin_memory=pinned)
        torch.index_select(self._instances, 0, rows, out=some)
        return some.to(self.device, non_blocking=True)

    def batches(self, problem: Problem, draws: Sequence[Draw], weights: Tensor | None) -> Iterator[Batch]:
        """The batches of an epoch, whose positions are all looked up, and copied to the device, in one go.

        Args:
            problem: with the bags of the epoch.
            draws: the bags of each batch.
            weights: (b,) of the bags, or None.
        """
        items = torch.cat([draw.items for draw in draws])
        index, offsets, copies = problem.bags.gather(items)
        index = index.to(self._instances.device)
        copies = None if copies is None else copies.to(self.device)
        labels = problem.labels[items].to(self.device)
        weights = None if weights is None else weights[items].to(self.device)
        cuts = [0, *accumulate(len(draw.items) for draw in draws)]
        starts = offsets[cuts].tolist()
        for number, draw in enumerate(draws):
            start, end = starts[number : number + 2]
            first, last = cuts[number : number + 2]
            yield Batch(
                draw.share,
                index[start:end],
                offsets[first : last + 1] - start,
                labels[first:last],
                None if weights is None else weights[first:last],
                None if copies is None else copies[start:end],
            )


def _free_memory(device: torch.device) -> float:
    """Bytes that a device can still give; the host has the instances already."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else float("inf")


def training_device(option: str, processes: int, process: int) -> torch.device:
    """The device of a process, of so many on this machine: a GPU for each.

    Accelerate's own answer would be that of the first fit of the session, which may have been to the CPU. An `mps`
    device is none to train on: it has no float64.
    """
    if option == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", process if processes > 1 else torch.cuda.current_device())
