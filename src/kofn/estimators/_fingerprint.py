"""How a model knows its training data again: hashes of bags.

They do not tell what is in a bag; but who has a bag, or can guess all its rows, can find out whether it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn._io.mapped import blocks
from kofn.bags import Bags

KEPT = 4096  # hashes: of so many bags or fewer each one is known
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Hashes of the bags of the training data, or of its rows where there are no bags.

    Of many bags the lowest hashes are kept, which are a random sample of the bags, and the same sample whoever draws
    it: of another table those bags are looked for whose hashes would be among them. A bag that occurs twice is left
    out, since a new one may be like it as well.

    Attributes:
        rows: how many there were.
        whole: SHA-256 of all rows in their order, and of their bags.
        lowest: the lowest hashes, in ascending order: of "bags", and of "rows" for tables without bags.
    """

    rows: int
    whole: str
    lowest: Mapping[str, Hashes]

    @classmethod
    def of(cls, instances: NDArray[np.float32], bags: Bags | None) -> Fingerprint:
        """Of (n, ...) instances, whatever the order of the rows in a bag.

        Examples:
            >>> import numpy as np, kofn
            >>> X, bags = np.arange(12, dtype=np.float32).reshape(6, 2), kofn.Bags.from_sizes([2, 2, 2])
            >>> known = Fingerprint.of(X, bags)
            >>> known.is_of(X, bags), known.is_of(X[::-1], bags)
            (True, False)
            >>> known.share_seen(X[::-1], bags), known.share_seen(X[:4], kofn.Bags.from_sizes([2, 1, 1])).__round__(2)
            (1.0, 0.33)
            >>> known.share_seen(X[:4] + 5, None)
            0.0
        """
        rows = _row_hashes(instances)
        lowest = {"rows": _once(rows), "bags": np.zeros(0, np.uint64) if bags is None else _once(_of_bags(rows, bags))}
        return cls(len(rows), _digest(rows, bags), lowest)

    def is_of(self, instances: NDArray[np.float32], bags: Bags | None) -> bool:
        """Whether these are all rows of the training data, in their order and in their bags."""
        return len(instances) == self.rows and _digest(_row_hashes(instances), bags) == self.whole

    def share_seen(self, instances: NDArray[np.float32], bags: Bags | None) -> float:
        """The share of these bags, or rows, that are in the training data, from 0 to 1; of many an estimate."""
        rows = _row_hashes(instances)
        units, lowest = (rows, self.lowest["rows"]) if bags is None else (_of_bags(rows, bags), self.lowest["bags"])
        if len(lowest) == KEPT:
            units = units[units <= lowest[-1]]
        return float(np.isin(units, lowest).mean()) if len(units) else 0.0

    def to_facts(self) -> dict[str, Any]:
        """What a model file keeps of it."""
        lowest = {name: hashes.tolist() for name, hashes in self.lowest.items()}
        return {"rows": self.rows, "whole": self.whole, "lowest": lowest}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Fingerprint:
        """What a model file kept."""
        lowest = {name: np.array(facts["lowest"][name], dtype=np.uint64) for name in ("bags", "rows")}
        return cls(facts["rows"], facts["whole"], lowest)


def _once(hashes: Hashes) -> Hashes:
    """The lowest of those that occur once."""
    found, times = np.unique(hashes, return_counts=True)
    lowest: Hashes = found[times == 1][:KEPT]
    return lowest


def _row_hashes(instances: NDArray[np.float32]) -> Hashes:
    """(n,) sum over the values of a row of their bits times a random odd number, modulo 2^64, mixed."""
    flat = np.ascontiguousarray(instances, dtype=np.float32).reshape(len(instances), -1)
    factors = np.random.default_rng(0).integers(0, 2**64, flat.shape[1], dtype=np.uint64) | np.uint64(1)
    found = np.empty(len(flat), np.uint64)
    for rows in blocks(flat):
        values = flat[rows] + np.float32(0)  # of -0 and 0 one zero
        values[np.isnan(values)] = np.nan  # of all NaN one
        found[rows] = _mixed((values.view(np.uint32).astype(np.uint64) * factors).sum(1, dtype=np.uint64))
    return found


def _of_bags(rows: Hashes, bags: Bags) -> Hashes:
    """(b,) of bags, whatever the order of their rows: the sum of the hashes of these, mixed."""
    entries = rows[bags.index.numpy()]
    if bags.copies is not None:
        entries = entries * bags.copies.numpy().astype(np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), entries.cumsum(dtype=np.uint64)])
    return _mixed(np.diff(sums[bags.offsets.numpy()]))


def _mixed(hashes: Hashes) -> Hashes:
    """The finaliser of SplitMix64: each bit of the result depends on every bit."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    return hashes ^ (hashes >> np.uint64(31))


def _digest(rows: Hashes, bags: Bags | None) -> str:
    found = sha256(rows.data)
    if bags is not None:
        for part in (bags.index, bags.offsets, bags.copies):
            found.update(b"" if part is None else part.numpy().data)
    return found.hexdigest()
