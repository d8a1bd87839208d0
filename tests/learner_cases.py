"""Small problems for every learner, and the loop of a network without the splitting of its bags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from kofn import Bags, learners
from kofn.learners import (
    BagObjective,
    ByPredictedShare,
    CountObjective,
    Network,
    Problem,
    PUObjective,
    PUProblem,
)
from kofn.learners._loop import Loop

FEATURES = 3
SGD = partial(torch.optim.SGD, lr=0.3)


def some_bags(bags: int = 10, *, seed: int = 0, dtype: Any = np.float32, **changes: Any) -> Problem:
    """Bags of one to five instances, whose count of positives is that of a linear rule."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=bags)
    instances = rng.normal(size=(int(sizes.sum()), FEATURES)).astype(dtype)
    where = Bags.from_sizes(sizes)
    counts = where.sum(torch.from_numpy(instances[:, 0] > 0).long())
    shares = counts.double() / where.sizes
    rate = float(counts.sum() / where.sizes.sum())
    made = Problem(
        instances=instances, bags=where, labels=counts, objective=CountObjective(), rate=rate, proportions=shares
    )
    return replace(made, **changes)


def mil_bags(bags: int = 10, *, seed: int = 0, pool: Any = None) -> Problem:
    """The same bags with labels 0 and 1."""
    made = some_bags(bags, seed=seed)
    labels = (made.labels > 0).long()
    return replace(made, labels=labels, proportions=labels.double(), objective=BagObjective(pool))


def some_pu(rows: int = 40, *, seed: int = 0, size: int = 30, dtype: Any = np.float32, **changes: Any) -> PUProblem:
    """A quarter labelled positives, the others unlabelled."""
    rng = np.random.default_rng(seed)
    labeled = torch.arange(rows) % 4 == 0
    instances = rng.normal(size=(rows, FEATURES)).astype(dtype)
    instances[labeled.numpy(), 0] = abs(instances[labeled.numpy(), 0])
    given: dict[str, Any] = {"instances": instances, "objective": PUObjective(0.5), "rate": 0.5} | changes
    return PUProblem.of(labeled, size=size, seed=seed, **given)


def halves(problem: Problem, train: int) -> tuple[Problem, Problem]:
    """The first bags to learn from, the others to judge on."""
    units = torch.arange(len(problem.strata))
    return problem.take(units[:train]), problem.take(units[train:])


def network(*, seed: int = 0, dropout: float = 0.0, hidden: int = 4) -> nn.Sequential:
    """A small network with one hidden layer, the same for the same seed; torch's stream stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return learners.mlp(FEATURES, (hidden,), dropout=dropout)


class Trained(NamedTuple):
    network: nn.Module
    history: list[dict[str, float]]
    best: int | None

    @property
    def weights(self) -> Tensor:
        return weights(self.network)


def train(
    on: Problem, valid: Problem | None = None, *, net: nn.Module | None = None, seed: int = 0, **options: Any
) -> Trained:
    """The loop alone: no splitting, no standardising, the network as it is given."""
    chosen: dict[str, Any] = {"patience": None, "epochs": 1} | options
    progress = chosen.pop("progress", None)
    loop = Loop(Network(**chosen), torch.from_numpy(on.instances), on, valid, seed)
    return Trained(*loop.run(network() if net is None else net, progress))


def weights(net: nn.Module) -> Tensor:
    """All parameters of a network, one after the other."""
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def stepped(net: nn.Module, loss: Tensor, lr: float = 0.3) -> Tensor:
    """Weights of a network after one step of gradient descent, written out."""
    slopes = torch.autograd.grad(loss, list(net.parameters()))
    return torch.cat([(p - lr * g).detach().flatten() for p, g in zip(net.parameters(), slopes, strict=True)])


def loss_of(net: nn.Module, problem: Problem) -> Tensor:
    """The mean loss of all bags at once."""
    x = torch.from_numpy(problem.instances).to(next(net.parameters()).dtype)
    return problem.mean_loss(net(x).flatten())


class Scripted:
    """A rule whose criterion is read from a list, epoch by epoch: what happens next is known."""

    def __init__(self, criteria: list[float]) -> None:
        self.criteria = list(criteria)

    def __repr__(self) -> str:
        return "Scripted"

    def measure(self, logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        return logits.new_zeros(0, dtype=torch.float64)

    def criterion(self, loss: float, sums: Tensor) -> float:
        return self.criteria.pop(0)


Case = tuple[Problem, Problem | None, dict[str, Any]]


def _llp() -> Case:
    return *halves(some_bags(16), 10), {"lr": 0.02, "batch_size": 3}


def _mil() -> Case:
    return mil_bags(pool="max"), None, {"lr": 0.02, "l1": 1e-3, "max_instances": 7}


def _pu() -> Case:
    return *halves(some_pu(60, size=8, rule=ByPredictedShare(0.5)), 40), {"lr": 0.02, "batch_size": 2}


#: Training with dropout: what must be the same after a restart.
RESUMABLE: dict[str, Callable[[], Case]] = {"llp": _llp, "mil": _mil, "pu": _pu}


def resumable(task: str, **options: Any) -> Trained:
    """One of these, trained."""
    on, valid, chosen = RESUMABLE[task]()
    return train(on, valid, net=network(dropout=0.4, hidden=8), seed=5, **(chosen | options))


#: Steps of 4 + 4 + 1 bags, so that the last step has fewer bags than there are processes.
DISTRIBUTED: dict[str, Callable[[], Case]] = {
    "llp": lambda: (*halves(some_bags(14, dtype=np.float64), 9), {"l1": 0.01, "batch_size": 4}),
    "weighted": lambda: (
        *halves(some_bags(14, dtype=np.float64, weight=torch.arange(14).double() % 4), 9),
        {"batch_size": 4},
    ),
    "few": lambda: (*halves(some_bags(4, dtype=np.float64), 3), {"batch_size": 2}),
    "alone": lambda: (some_bags(1, dtype=np.float64), None, {"batch_size": 2}),
    "instances": lambda: (*halves(some_bags(14, dtype=np.float64), 9), {"max_instances": 6}),
    "pu": lambda: (*halves(some_pu(60, size=7, dtype=np.float64), 40), {"batch_size": 3}),
}


def distributed(case: str, **options: Any) -> Trained:
    """One of these, trained in double precision, so that sums in another order are still the same."""
    on, valid, chosen = DISTRIBUTED[case]()
    return train(on, valid, net=network().double(), optimizer=SGD, epochs=2, **(chosen | options))
