"""Choosing the step of a fit on held-out bags: folds side by side, one mean curve, and its smallest value.

The folds make their steps together. A step (a round of boosting, a penalty) is judged by the mean loss of all held-out
bags after it, and the step that is chosen is chosen for all folds: what is said of held-out bags is said of it, and not
of the step at which a fold by itself happens to be best, which would be too good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kofn.learners._problem import Problem

Floats = NDArray[np.float64]


class Fold(Protocol):
    """A fit to some of the bags that is judged on the others, step by step.

    Attributes:
        losses: mean loss of the held-out bags after each step so far.
        criteria: what a step is chosen by; the losses themselves, or something like them.
        weight: the sum of their weights.
        rows: (k,) their instances.
    """

    losses: list[float]
    criteria: list[float]
    weight: float
    rows: NDArray[np.int64]

    def advance(self, steps: int) -> None:
        """Make so many more steps."""

    def scores(self, step: int) -> Floats:
        """Logits (k,) or (k, C) of the held-out instances after a step, counted from 0."""


def held_out_curve(
    folds: Sequence[Fold],
    steps: int,
    over: Callable[[list[float]], bool],
    *,
    at_once: int = 1,
    threads: int = 1,
    in_each_thread: Callable[[], None] = lambda: None,
    progress: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """Let folds make steps until the mean curve of their criteria is over, and return that curve.

    Args:
        folds: that have made no step yet.
        steps: maximum number of steps.
        over: whether a curve says that no later step will be chosen.
        at_once: number of steps that a fold makes before the others are waited for. The curve does not depend on it.
        threads: number of folds that advance at the same time.
        in_each_thread: called in each of these threads, where there are several, before a fold is.
        progress: called with the curve so far.
    """
    curve: list[float] = []
    # One thread is this one: LightGBM knows the network of its process in the thread that has connected it.
    pool = ThreadPoolExecutor(threads, initializer=in_each_thread) if threads > 1 else None
    try:
        while len(curve) < steps and not over(curve):
            more = min(at_once, steps - len(curve))
            if pool is None:
                for fold in folds:
                    fold.advance(more)
            else:  # each in a copy of the context, which has the engine that was asked for
                for done in [pool.submit(copy_context().run, fold.advance, more) for fold in folds]:
                    done.result()
            for step in range(len(curve), len(curve) + more):
                curve.append(_mean(folds, [fold.criteria[step] for fold in folds]))
                if over(curve):
                    break
            if progress is not None:
                progress(curve)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    return curve


def is_over(curve: Sequence[float], patience: int) -> bool:
    """Whether a curve has not been better than its best for so many steps, and is not on its way down again.

    The likelihood of few large bags rises while a fit finds out that bags differ, before it falls for hundreds of
    rounds. A curve is on its way down if the last quarter of these steps is lower than the first.

    Examples:
        >>> is_over([3.0, 1.0, 2.0, 2.0], 2), is_over([3.0, 1.0, 2.0, 0.5], 2)
        (True, False)
        >>> is_over([1.0, 2.0, 3.0, 4.0, 5.0], 4), is_over([1.0, 5.0, 4.0, 3.0, 2.0], 4)
        (True, False)
    """
    if not curve or len(curve) - 1 - int(np.argmin(curve)) < patience:
        return False
    window, quarter = curve[-patience:], max(patience // 4, 1)
    return float(np.mean(window[-quarter:])) >= float(np.mean(window[:quarter]))


def validation(problem: Problem, folds: Sequence[Fold], best: int) -> dict[str, Any]:
    """What a `Fitted` keeps of the step that was chosen: each bag is judged by the fit that had not seen it."""
    logits = np.full((len(problem.instances), *problem.outputs), np.nan)
    for fold in folds:
        logits[fold.rows] = fold.scores(best)
    loss = _mean(folds, [fold.losses[best] for fold in folds])
    return {"best": best, "validation_loss": loss, "held_out_logits": logits}


def mean_losses(folds: Sequence[Fold], steps: int) -> list[float]:
    """The mean loss of all held-out bags after each step."""
    return [_mean(folds, [fold.losses[step] for fold in folds]) for step in range(steps)]


def _mean(folds: Sequence[Fold], values: Sequence[float]) -> float:
    return float(np.average(values, weights=[fold.weight for fold in folds]))


def history_of(name: str, **of_steps: Sequence[float]) -> list[dict[str, float]]:
    """A dict for each step that was tried, numbered from 1, of what is known of it.

    Steps after the chosen one have no training loss.

    Examples:
        >>> history_of("round", train_loss=[2.0], val_loss=[2.1, 2.2])
        [{'round': 1.0, 'train_loss': 2.0, 'val_loss': 2.1}, {'round': 2.0, 'val_loss': 2.2}]
    """
    history = [{name: float(number)} for number in range(1, max(map(len, of_steps.values())) + 1)]
    for kind, values in of_steps.items():
        for entry, value in zip(history, values, strict=False):
            entry[kind] = value
    return history
