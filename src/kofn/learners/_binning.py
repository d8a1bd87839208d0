"""LightGBM's data sets: the columns of a matrix in bins, from a matrix that may be larger than memory."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn import _require
from kofn._io.mapped import BLOCK, mapping_of, release


def binned(
    matrix: NDArray[np.float32], *, categories: Collection[int], params: dict[str, Any], reference: Any = None
) -> Any:
    """A `lightgbm.Dataset` of all rows of a matrix; those of a mapped matrix are read block by block.

    Bins are the same either way: LightGBM finds them in the same sample of rows.

    Args:
        matrix: (n, columns), NaN where a value is missing.
        categories: columns that hold codes of categories.
        params: of LightGBM.
        reference: a data set that has the bins; None finds them in the matrix.
    """
    lightgbm = _require.package("lightgbm", extra="train")
    data = matrix if mapping_of(matrix) is None else _rows_class(lightgbm)(matrix)
    found = lightgbm.Dataset(
        data,
        reference=reference,
        categorical_feature=sorted(categories) or "auto",
        params=params,
        free_raw_data=False,
    ).construct()
    release()
    return found


@cache
def _rows_class(lightgbm: Any) -> Any:
    """A matrix as LightGBM asks for its rows: single ones for its sample, then blocks of all of them."""

    class Rows(lightgbm.Sequence):  # type: ignore[misc]  # which is not imported before it is needed
        def __init__(self, matrix: NDArray[np.float32]) -> None:
            self.matrix, self.batch_size = matrix, max(BLOCK // max(matrix[:1].nbytes, 1), 1)
            self.asked = 0

        def __len__(self) -> int:
            return len(self.matrix)

        def __getitem__(self, rows: Any) -> NDArray[Any]:
            self.asked += 1
            if isinstance(rows, slice) or self.asked % 1024 == 0:  # a row brings some pages beside its own
                release(self.matrix)
            if isinstance(rows, slice):
                return self.matrix[rows]
            row: NDArray[np.float64] = self.matrix[rows].astype(np.float64)  # as LightGBM reads its sample
            return row

    return Rows
