"""Tiny tasks and networks for the tests of training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kofn import Bags, models
from kofn.batches import BagDataset, Batch, PUDataset
from kofn.training import BagObjective, ByPrior, CountData, CountModule, CountObjective, PUObjective

FEATURES = 3
SGD = partial(torch.optim.SGD, lr=0.3)


def some_bags(bags: int = 10, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> BagDataset:
    """Bags of one to five instances, whose count of positives is that of a linear rule."""
    draw = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 6, (bags,), generator=draw)
    instances = torch.randn(int(sizes.sum()), FEATURES, generator=draw, dtype=torch.float64).to(dtype)
    where = Bags.from_sizes(sizes)
    return BagDataset(instances, where, where.sum((instances[:, 0] > 0).long()))


def mil_bags(bags: int = 10, *, seed: int = 0) -> BagDataset:
    """The same bags with labels 0 and 1."""
    data = some_bags(bags, seed=seed)
    return BagDataset(data.instances, data.bags, (data.labels > 0).long())


def some_pu(rows: int = 40, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> PUDataset:
    """A quarter labelled positives, the others unlabelled."""
    draw = torch.Generator().manual_seed(seed)
    labeled = torch.arange(rows) % 4 == 0
    instances = torch.randn(rows, FEATURES, generator=draw, dtype=torch.float64).to(dtype)
    instances[labeled, 0] = instances[labeled, 0].abs()
    return PUDataset(instances, labeled)


def network(*, seed: int = 0, dropout: float = 0.0, hidden: int = 4) -> nn.Sequential:
    """A small network with one hidden layer, the same for the same seed; torch's stream stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return models.mlp(FEATURES, (hidden,), dropout=dropout)


def llp_module(**options: Any) -> CountModule:
    return CountModule(options.pop("network", None) or network(), CountObjective(), **options)


def pu_module(**options: Any) -> CountModule:
    return CountModule(options.pop("network", None) or network(), PUObjective(0.5), **options)


def llp_data(valid: int | None = None, **options: Any) -> CountData:
    return CountData(some_bags(), None if valid is None else some_bags(valid, seed=1), **options)


def pu_data(valid: int | None = None, **options: Any) -> CountData:
    return CountData(some_pu(), None if valid is None else some_pu(valid, seed=1), **options)


def weights(module: CountModule) -> Tensor:
    """All parameters of the network, one after the other."""
    return torch.cat([p.detach().flatten() for p in module.network.parameters()])


def whole(data: BagDataset) -> Batch:
    """All bags in one batch."""
    return data.__getitems__(list(range(len(data))))


class Scripted:
    """A rule whose criterion is read from a list, epoch by epoch: what happens next is known."""

    def __init__(self, criteria: list[float]) -> None:
        self.criteria = list(criteria)

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        return logits.new_zeros(0, dtype=torch.float64)

    def criterion(self, loss: float, sums: Tensor) -> float:
        return self.criteria.pop(0)


Made = tuple[CountModule, CountData]


def net() -> nn.Sequential:
    return network(dropout=0.4, hidden=8)


def llp() -> Made:
    return llp_module(network=net(), seed=5, lr=0.02), llp_data(6, batch_size=3, seed=5)


def mil() -> Made:
    module = CountModule(net(), BagObjective("max"), seed=5, lr=0.02, l1=1e-3)
    return module, CountData(mil_bags(), batch_size=None, max_instances=7, seed=5)


def pu() -> Made:
    return pu_module(network=net(), seed=5, lr=0.02, rule=ByPrior(0.5)), pu_data(20, batch_size=8, seed=5)


#: Training with dropout, dealt by a seed: what must be the same after a restart.
RESUMABLE: dict[str, Callable[[], Made]] = {"llp": llp, "mil": mil, "pu": pu}


def double_bags(bags: int, *, seed: int) -> BagDataset:
    return some_bags(bags, seed=seed, dtype=torch.float64)


def distributed(train: Any, valid: Any, *, l1: float = 0.0, **batches: Any) -> Made:
    """In double precision, so that sums in another order are still the same."""
    objective = PUObjective(0.5) if isinstance(train, PUDataset) else CountObjective()
    module = CountModule(network().double(), objective, optimizer=SGD, l1=l1)
    return module, CountData(train, valid, **batches)


#: Steps of 4 + 4 + 1 bags, so that the last step has fewer bags than there are processes.
DISTRIBUTED: dict[str, Callable[[], Made]] = {
    "llp": lambda: distributed(double_bags(9, seed=0), double_bags(5, seed=1), l1=0.01, batch_size=4),
    "few": lambda: distributed(double_bags(3, seed=0), double_bags(1, seed=1), batch_size=2),
    "alone": lambda: distributed(double_bags(1, seed=0), None, batch_size=2),
    "pu": lambda: distributed(
        some_pu(dtype=torch.float64), some_pu(20, seed=1, dtype=torch.float64), batch_size=7
    ),  # five bags for training, three for validation
}
