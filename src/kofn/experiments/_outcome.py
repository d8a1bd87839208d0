"""What a run brings: numbers on test data, and the curve of its training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kofn import metrics


@dataclass(frozen=True)
class Outcome:
    """The result of one training.

    Attributes:
        metrics: by name; of a figure, what is drawn.
        curve: a dict for each epoch.
    """

    metrics: dict[str, Any]
    curve: list[dict[str, float]] = field(default_factory=list)


def compute_metrics(labels: Any, scores: Any, names: Iterable[str], *, prefix: str = "") -> dict[str, float]:
    """Metrics of scores (log-odds) by name.

    Examples:
        >>> compute_metrics([0, 1, 0, 1], [-2.0, -1.0, -3.0, 3.0], ["auc", "auc_rounded"])
        {'auc': 1.0, 'auc_rounded': 0.75}
    """
    return {prefix + name: getattr(metrics, name)(labels, scores) for name in names}
