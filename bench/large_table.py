"""A large table to measure on: a folder of Parquet files, bags one after the other, each with its count of positives.

python -m bench.large_table FOLDER --rows 20000000
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

FILE_ROWS = 1_000_000  # of one file


def make(folder: Path, *, rows: int, columns: int = 20, bag: int = 100) -> None:
    """Write the files that are not there yet: columns bag, count and x0, x1, ...; the same numbers in every run."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        path = folder / f"part-{number:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([number, bag])
        n = min(FILE_ROWS, rows - start) // bag * bag
        x = rng.normal(size=(n, columns)).astype(np.float32)
        # Bags differ in their first column, so that their counts do.
        x[:, 0] += np.repeat(rng.normal(size=n // bag), bag)
        logits = x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 0.5 * (x[:, 4] > 1) - 1
        positive = rng.random(n) < 1 / (1 + np.exp(-logits))
        table = {
            "bag": np.repeat(np.arange(n // bag) + start // bag, bag),
            "count": np.repeat(positive.reshape(-1, bag).sum(1), bag),
        } | {f"x{place}": x[:, place] for place in range(columns)}
        part = path.with_suffix(".part")
        pyarrow.parquet.write_table(pyarrow.table(table), part, row_group_size=100_000)
        part.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--bag", type=int, default=100, help="rows in a bag")
    options = parser.parse_args()
    make(options.folder, rows=options.rows, columns=options.columns, bag=options.bag)


if __name__ == "__main__":
    main()
