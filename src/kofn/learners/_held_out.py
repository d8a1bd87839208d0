"""How good each step of a fit was on bags that were held out, and what follows for the fit on all bags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.learners._problem import Problem


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What held-out bags say of a fit to the others, step by step.

    Attributes:
        losses: their mean loss after each step.
        weight: the sum of their weights.
        rows: their instances.
        scores: logits of these after a step.
    """

    losses: Sequence[float]
    weight: float
    rows: NDArray[np.int64]
    scores: Callable[[int], NDArray[np.float64]]


def mean_curve(tried: Sequence[HeldOut]) -> list[float]:
    """The mean loss of all held-out bags after each step that every fit has made."""
    shortest = min(len(each.losses) for each in tried)
    weights = [each.weight for each in tried]
    curve: list[float] = np.average([each.losses[:shortest] for each in tried], axis=0, weights=weights).tolist()
    return curve


def validation(problem: Problem, tried: Sequence[HeldOut], best: int) -> dict[str, Any]:
    """What a `Fitted` keeps of the step that was chosen: each bag is judged by the fit that had not seen it."""
    logits = np.full((len(problem.instances), *problem.outputs), np.nan)
    losses = []
    for each in tried:
        step = min(best, len(each.losses) - 1)  # a fit that stopped sooner
        logits[each.rows] = each.scores(step)
        losses.append(each.losses[step])
    mean = float(np.average(losses, weights=[each.weight for each in tried]))
    return {"best": best, "validation_loss": mean, "held_out_logits": logits}
