"""What a small fit costs from the shell to the saved model: `kofn fit llp`, against importing what it stands on."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.record import machine, markdown, write

ROWS, COLUMNS, SIZE = 1000, 20, 4
IMPORTS = [sys.executable, "-c", "import torch, sklearn, pandas, lightgbm"]


def table(path: Path) -> None:
    """A CSV with signal and noise, whose folds want some 200 rounds each.

    Standard normal columns; log-odds 2 x0 - 1.5 x1 x2 + x3^2 - 1 + x4, of which classes are drawn; x5 to x19 say
    nothing. Bags are four rows each, labelled by their share of positives.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS))
    log_odds = 2 * x[:, 0] - 1.5 * x[:, 1] * x[:, 2] + x[:, 3] ** 2 - 1 + x[:, 4]
    positive = rng.random(ROWS) < 1 / (1 + np.exp(-log_odds))
    bag = np.repeat(np.arange(ROWS // SIZE), SIZE)
    share = positive.reshape(-1, SIZE).mean(1).repeat(SIZE)
    names = [*(f"x{i}" for i in range(COLUMNS)), "bag", "share"]
    np.savetxt(path, np.column_stack([x, bag, share]), delimiter=",", header=",".join(names), comments="", fmt="%.17g")


def seconds(command: list[str]) -> tuple[float, float]:
    """Of the clock, and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each command")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        table(data)
        kofn = [sys.executable, "-m", "kofn", "fit", "llp", str(data), "--bag", "bag", "--label", "share"]
        fit = [*kofn, "-o", str(Path(folder) / "model"), "--force"]
        taken: dict[str, list[tuple[float, float]]] = {"import": [], "kofn fit llp": []}
        for _ in range(options.rounds + 1):  # they take turns; the first one warms up
            taken["import"].append(seconds(IMPORTS))
            taken["kofn fit llp"].append(seconds(fit))
    rows = [["", "import torch, sklearn, pandas, lightgbm", "kofn fit llp", "ratio", "ratios of the turns"]]
    for place, name in enumerate(("the clock, s", "the processor, s")):
        one, other = ([each[place] for each in taken[which][1:]] for which in taken)
        ratios = sorted(b / a for a, b in zip(one, other, strict=True))
        medians = [f"{statistics.median(part):.2f}" for part in (one, other, ratios)]
        rows.append([name, *medians, f"{ratios[0]:.2f} to {ratios[-1]:.2f}"])
        print(rows[-1], flush=True)
    where = machine().replace(", one thread used", "")
    text = (
        f"{where}.\n\nMedians of {options.rounds} turns. The fit: a CSV of {ROWS} rows and {COLUMNS} columns "
        f"in bags of {SIZE}, trees with five folds, some 1,250 rounds in all, the model saved. Folds share the "
        f"cores.\n\n"
        f"<!-- --8<-- [start:startup] -->\n{markdown(rows)}\n<!-- --8<-- [end:startup] -->\n"
    )
    write(Path("bench/startup"), {"machine": where, "seconds": taken}, text)


if __name__ == "__main__":
    main()
