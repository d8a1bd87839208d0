"""Small tables of which the truth is known: rows are positive where x + z is above 0, mostly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kofn.estimators import LLPClassifier
from kofn.learners import Linear
from kofn.tables import TableModel, fit_table


def make_table(rows: int = 240, bag_size: int = 4, seed: int = 0) -> pd.DataFrame:
    """Numbers, categories, missing values, bags, and a label of every kind."""
    rng = np.random.default_rng(seed)
    x, colour = rng.normal(size=rows), rng.choice(["red", "green"], rows)
    truth = (x + np.where(colour == "red", 0.5, -0.5) > 0).astype(int)
    bag = np.repeat(np.arange(rows // bag_size), bag_size)
    count = truth.reshape(-1, bag_size).sum(1).repeat(bag_size)
    frame = pd.DataFrame(
        {
            "bag": [f"b{i:03d}" for i in bag],
            "x": np.where(rng.random(rows) < 0.1, np.nan, x),
            "colour": colour,
            "proportion": count / bag_size,
            "count": count,
            "low": np.maximum(count - 1, 0),
            "high": np.minimum(count + 1, bag_size),
            "noisy": count + rng.laplace(0, 0.5, rows // bag_size).repeat(bag_size),
            "some": (count > 0).astype(int),
            "labelled": pd.Series("1", range(rows)).where((truth == 1) & (rng.random(rows) < 0.5)),
            "truth": np.where(truth == 1, "pos", "neg"),
        }
    )
    order = rng.permutation(rows)  # bags need not lie together
    return frame.iloc[order].reset_index(drop=True)


def write(frame: pd.DataFrame, path: Path) -> Path:
    """A CSV or Parquet file by its extension."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    return path


def fit_counts(path: Path, label: str = "count", bag: str = "bag", **options: Any) -> TableModel:
    """A linear model of the columns x and colour, from counts of bags."""
    estimator = LLPClassifier(Linear(l2=0.1), random_state=0)
    return fit_table(path, estimator, bag=bag, label=label, **{"features": "x,colour", **options})
