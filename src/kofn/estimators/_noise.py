"""Distributions of noise by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch.distributions import Laplace, Normal

from kofn.targets import DiscreteLaplace, Noisy


def noise_distribution(noise: Any) -> Any:
    """A distribution of noise from its name and scale, such as "laplace:1.5"; anything else as it is."""
    if not isinstance(noise, str):
        return Noisy(0.0, noise).noise  # which says what may be wrong with it
    name, _, text = noise.partition(":")
    known: dict[str, Callable[[float], Any]] = {
        "laplace": lambda width: Laplace(0.0, width),
        "normal": lambda width: Normal(0.0, width),
        "discrete-laplace": DiscreteLaplace,
    }
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if name not in known or not 0 < scale < np.inf:
        raise ValueError(
            f"`noise` must be a distribution and its scale, such as 'laplace:1.5', 'normal:2' or 'discrete-laplace:1'; "
            f"got {noise!r}."
        )
    return known[name](scale)
