"""What a run brings: numbers on test data, and the curve of its training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

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


def auc_rounded(labels: Any, scores: Any) -> float:
    """The "AUC" of the paper's public MIL code: taken of rounded predictions, it is the balanced accuracy.

        (TP / (TP + FN) + TN / (TN + FP)) / 2

    Only for a comparison with the paper's columns; `kofn.metrics.auc` is the area under the curve.

    Examples:
        >>> labels, scores = [0, 1, 0, 1], [-2.0, -1.0, -3.0, 3.0]
        >>> metrics.auc(labels, scores), auc_rounded(labels, scores)
        (1.0, 0.75)
    """
    return metrics.auc(labels, torch.as_tensor(scores) > 0)


def compute_metrics(labels: Any, scores: Any, names: Iterable[str], *, prefix: str = "") -> dict[str, float]:
    """Metrics of scores (log-odds) by name.

    Examples:
        >>> compute_metrics([0, 1, 0, 1], [-2.0, -1.0, -3.0, 3.0], ["auc", "auc_rounded"])
        {'auc': 1.0, 'auc_rounded': 0.75}
    """
    ours = {"auc_rounded": auc_rounded}
    return {prefix + name: (ours.get(name) or getattr(metrics, name))(labels, scores) for name in names}
