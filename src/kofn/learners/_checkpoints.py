"""A fit on disk after each epoch: one file, whole or not at all, and never code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from kofn._io.mapped import blocks
from kofn._io.model_file import read_model, write_model
from kofn.learners._problem import Problem
from kofn.learners._pu_problem import PUProblem

if TYPE_CHECKING:
    from kofn.learners._network import Network

KIND = "checkpoint"
# More epochs are welcome; the others say where a fit is run and who looks on.
FREE = ("epochs", "patience", "device", "checkpoint", "callback")


class Checkpoint:
    """The checkpoint of one fit.

    Args:
        path: the file.
        identity: what makes this fit this one, by name; a checkpoint of another is refused.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, str]) -> None:
        self.path, self.identity = Path(path), dict(identity)

    def exists(self) -> bool:
        """Whether there is something to continue from."""
        return self.path.exists()

    def save(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        history: list[dict[str, float]],
        best: Mapping[str, Tensor],
        best_epoch: int | None,
    ) -> None:
        """Write the state after an epoch in place of that of the one before."""
        tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in best.items()}
        numbers: dict[str, Any] = {}
        for parameter, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{parameter}.{name}"] = value
                else:
                    numbers[f"{parameter}.{name}"] = value
        facts = {"history": history, "best_epoch": best_epoch, "identity": self.identity, "optimizer": numbers}
        write_model(self.path, kind=KIND, facts=facts, tensors=tensors)

    def load(
        self, network: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[list[dict[str, float]], dict[str, Tensor], int | None]:
        """Put the state back; the history, the best weights and their epoch.

        Raises:
            ValueError: a checkpoint of another fit, or a file that is none.
        """
        try:
            model = read_model(self.path, kind=KIND)
        except ValueError as error:
            raise ValueError(
                f"`checkpoint` must be a whole checkpoint; {error} Delete {self.path} to start again."
            ) from None
        match model.facts:
            case {
                "identity": dict(before),
                "history": list(history),
                "best_epoch": best_epoch,
                "optimizer": dict(numbers),
            }:
                self._require_same_fit(before)
            case _:
                raise ValueError(
                    f"`checkpoint` must be a whole checkpoint; {self.path} is none. Delete it to start again."
                )
        network.load_state_dict(_under("network.", model.tensors))
        state: dict[int, dict[str, Any]] = {}
        for name, value in (_under("optimizer.", model.tensors) | numbers).items():
            parameter, _, key = name.partition(".")
            state.setdefault(int(parameter), {})[key] = value
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        return history, _under("best.", model.tensors), best_epoch

    def _require_same_fit(self, before: Mapping[str, str]) -> None:
        """Require that the checkpoint is of this very fit."""
        differ = [name for name in self.identity if before.get(name) != self.identity[name]]
        if differ:
            changed = ", ".join(f"{name} was {before.get(name)} and is {self.identity[name]}" for name in differ)
            raise ValueError(
                f"`checkpoint` must be of the same fit; it is of another: {changed}. Choose another file, or delete "
                f"the checkpoint to start again."
            )


def fit_identity(options: Network, train: Problem, valid: Problem | None, seed: int) -> dict[str, str]:
    """What identifies a fit, by name: its options, its seed, its data and what it is judged on."""
    chosen = {name: _describe(value) for name, value in options.get_params(deep=False).items() if name not in FREE}
    return chosen | {
        "objective": _describe(train.objective),
        "rule": _describe(train.rule),
        "seed": str(seed),
        "data": _digest_of(train),
        "held_out": "None" if valid is None else _digest_of(valid),
    }


def _digest_of(problem: Problem) -> str:
    """Of the instances, the bags and their labels: a checkpoint of other data of the same shape is another fit's."""
    bags = problem.bags
    parts = [problem.instances, problem.labels, bags.index, bags.offsets, problem.bag_weights]
    parts += [] if bags.copies is None else [bags.copies]
    return _digest([*parts, *([problem.chosen] if isinstance(problem, PUProblem) else [])])


def _digest(parts: Iterable[Any]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        array = np.ascontiguousarray(part)
        total.update(f"{array.dtype}{array.shape}".encode())
        for rows in blocks(array):
            total.update(array[rows].data)
    return total.hexdigest()


def _describe(value: Any) -> str:
    """A parameter, the same in every process: of a function its name, not its address."""
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, nn.Module):  # of one layout, but with other weights, it is another
        return f"{value} with weights {_digest(p.detach().float().cpu() for p in value.state_dict().values())}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
