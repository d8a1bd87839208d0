"""What must be the same for a checkpoint to be of a fit: the class, its parameters, and the data."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from kofn.batches import BagDataset, PUDataset

# More epochs are welcome; the others say where and how a fit is run, and its seed is known by itself.
FREE = ("epochs", "patience", "warm_start", "device", "progress", "checkpoint", "trainer", "random_state")


def fit_identity(kind: str, parameters: Mapping[str, Any], train: BagDataset | PUDataset) -> dict[str, str]:
    """What tells a fit from others, by name.

    Args:
        kind: class of the estimator.
        parameters: of the estimator.
        train: what it is trained on.
    """
    chosen = {name: _describe(value) for name, value in parameters.items() if name not in FREE}
    return chosen | {"class": kind, "data": _digest(train)}


def _digest(data: BagDataset | PUDataset) -> str:
    """Of the instances, the bags and their labels: a checkpoint of other data of the same shape is another fit's."""
    labels = [data.labeled] if isinstance(data, PUDataset) else [data.labels, data.bags.index, data.bags.offsets]
    total = hashlib.blake2b(digest_size=16)
    for part in [data.instances, *labels]:
        total.update(f"{part.dtype}{tuple(part.shape)}".encode())
        total.update(np.ascontiguousarray(part.numpy()).data)
    return total.hexdigest()


def _describe(value: Any) -> str:
    """A parameter, the same in every process: of a function its name, not its address."""
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))
