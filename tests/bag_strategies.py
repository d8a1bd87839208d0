"""Bags for hypothesis: sizes, scales, ties, saturation, certain instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

Logits = np.ndarray[Any, np.dtype[np.float64]]
SCALES = (0.1, 1.0, 5.0, 30.0, 300.0, 2e4)


def adversarial_logits(rng: np.random.Generator, n: int) -> Logits:
    """Finite logits up to 2e4 in absolute value, of one of several awkward kinds."""
    scale = float(rng.choice(SCALES))
    kinds: dict[str, Callable[[], Logits]] = {
        "normal": lambda: rng.normal(0, scale / 3, n),
        "off centre": lambda: rng.normal(rng.uniform(-1, 1) * scale, 1.0, n),
        "all equal": lambda: np.full(n, rng.uniform(-scale, scale)),
        "few values": lambda: rng.choice(rng.uniform(-scale, scale, 3), n),
        "two clusters": lambda: rng.choice([-scale, scale], n) + rng.normal(0, 1, n),
        "staircase": lambda: np.linspace(-scale, scale, n),
        "one apart": lambda: np.where(np.arange(n) == 0, scale, -scale / 2) + rng.normal(0, 0.1, n),
        "saturated": lambda: np.full(n, scale) * rng.choice([-1, 1]),
        "mixed scales": lambda: rng.normal(0, 1, n) * rng.choice(SCALES, n) / 3,
    }
    return np.clip(list(kinds.values())[rng.integers(len(kinds))](), -2e4, 2e4)


def adversarial_count(rng: np.random.Generator, logits: Logits) -> int:
    """A possible count: anywhere, near an end, or near the mean."""
    n = len(logits)
    mean = float(torch.sigmoid(torch.from_numpy(logits)).sum())
    choices = [int(rng.integers(0, n + 1)), min(1, n), max(n - 1, 0), round(mean), 0, n]
    return int(np.clip(rng.choice(choices), 0, n))


def bags(max_size: int = 40, max_scale: float = 60.0) -> st.SearchStrategy[Tensor]:
    """Logits (n,) in float64, n from 0, finite."""
    values = st.floats(-max_scale, max_scale, allow_nan=False)
    return st.lists(values, max_size=max_size).map(lambda xs: torch.tensor(xs, dtype=torch.float64))
