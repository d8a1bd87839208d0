"""Features of a table that are larger than memory, made of its rows when a batch asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn._io.mapped import BLOCK, release
from kofn.learners._design import Design


class MappedFeatures:
    """What a design makes of the rows of a mapped matrix: of any rows, and never of all of them at once.

    Args:
        instances: (n, columns) in a file.
        design: from columns to features; None takes columns as they are.
        by_places: whether categories are their places (`Design.by_places`).

    Attributes:
        shape: of all features.
        device: where rows are gathered.

    Examples:
        >>> import numpy as np, torch
        >>> table = np.array([[20.0], [40.0], [30.0]], dtype=np.float32)
        >>> MappedFeatures(table, Design.learn(table[:2], {}))[torch.tensor([2, 0])]
        tensor([[ 0.],
                [-1.]])
    """

    def __init__(self, instances: NDArray[np.float32], design: Design | None, *, by_places: bool = False) -> None:
        self._instances = instances
        self._make = None if design is None else design.by_places if by_places else design
        self.shape = (len(instances), *(instances if self._make is None else self._make(instances[:1])).shape[1:])
        self.device = torch.device("cpu")
        self._read = 0
        release()

    def __len__(self) -> int:
        return len(self._instances)

    def __getitem__(self, rows: Any) -> Tensor:
        """The features of some rows, by their positions or a slice."""
        some = self._instances[rows.numpy() if isinstance(rows, Tensor) else rows]
        self._read += some.nbytes
        if self._read > BLOCK:
            release(self._instances)
            self._read = 0
        return torch.from_numpy(some.copy() if self._make is None else self._make(some))
