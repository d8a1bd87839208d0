"""The processes that grow the same trees together, each on its own bags: what they tell each other beside LightGBM."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Protocol

from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]  # it does not say that it exports them

PATIENCE = timedelta(hours=12)  # who watches the processes ends them long before


class Peers(Protocol):
    """All processes of a fit; each asks the same of them in the same order."""

    def total(self, value: float) -> float:
        """The sum of the processes' values, the same number in each of them."""

    def mean(self, value: float, weight: float) -> float:
        """The mean of the processes' values by weight, the same number in each of them; one of weight 0 has no part."""


class Alone:
    """One process is all there are.

    Examples:
        >>> Alone().total(0.25), Alone().mean(0.25, 3.0)
        (0.25, 0.25)
    """

    def total(self, value: float) -> float:
        return value

    def mean(self, value: float, weight: float) -> float:
        return value


ALONE = Alone()


class StorePeers:
    """Processes that meet at a store of torch, which one of them holds.

    A sum is made by every process of all values in the same order. So it is the same to the last bit whatever machine
    a process runs on, and a decision that follows from it, such as to stop, is the same in all of them.

    Args:
        store: where all of them read and write.
        rank: of this process.
        number: of processes.
    """

    def __init__(self, store: Store, rank: int, number: int) -> None:
        self.store, self.rank, self.number = store, rank, number
        self._asked = 0

    @classmethod
    def first(cls, host: str, number: int) -> StorePeers:
        """Hold the store, at any free port of this machine."""
        return cls(TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=PATIENCE), 0, number)

    @property
    def port(self) -> int:
        """Of the store, where it is one that others can reach."""
        return self.store.port  # type: ignore[attr-defined, no-any-return]  # not known of stores in general

    @classmethod
    def at(cls, host: str, port: int, rank: int, number: int) -> StorePeers:
        """Meet at the store of another process."""
        store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=PATIENCE)
        return cls(store, rank, number)

    def gather(self, value: Any) -> list[Any]:
        """What each process says, by rank; anything that JSON can hold."""
        self._asked += 1
        self.store.set(f"{self._asked}/{self.rank}", json.dumps(value))
        return [json.loads(self.store.get(f"{self._asked}/{rank}")) for rank in range(self.number)]

    def leave(self) -> None:
        """Say that this process asks no more; the one that holds the store waits until all others have said so.

        It has the others' last values as soon as they are in the store, while they may still wait for its own: if it
        ended then, they would lose the store in the middle of an answer.
        """
        if self.rank:
            self.store.set(f"left/{self.rank}", "")
        else:
            self.store.wait([f"left/{rank}" for rank in range(1, self.number)])

    def total(self, value: float) -> float:
        return float(sum(self.gather(value)))

    def mean(self, value: float, weight: float) -> float:
        pairs = [pair for pair in self.gather((value, weight)) if pair[1] > 0]
        return float(sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs))
