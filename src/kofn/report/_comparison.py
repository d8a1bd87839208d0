"""Methods beside each other, as dots on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kofn.estimators._verdict_words import score_text
from kofn.report._contents import Comparison


@dataclass(frozen=True)
class Dot:
    """A method's score and its place on the scale, in percent of its length."""

    name: str
    role: str
    score: float
    place: float


@dataclass(frozen=True)
class Block:
    """The methods of one task; the bound is the place of the model that saw every label."""

    task: str
    dots: Sequence[Dot]
    bound: float | None
    summary: str


@dataclass(frozen=True)
class Dots:
    """All tasks on one scale from `low` to 1."""

    low: float
    blocks: Sequence[Block]


def comparison_dots(comparison: Comparison) -> Dots | None:
    """Scores on a scale that starts a little below the lowest; None without scores.

    Raises:
        ValueError: scores outside 0 to 1, or not one for each task.
    """
    scores = [score for method in comparison.methods for score in method.scores if score is not None]
    for method in comparison.methods:
        if len(method.scores) != len(comparison.tasks):
            raise ValueError(
                f"`scores` must have one entry for each of the {len(comparison.tasks)} tasks, None where a method does "
                f"not apply; {method.name!r} has {len(method.scores)}."
            )
    odd = [score for score in scores if not 0 <= score <= 1]
    if odd:
        raise ValueError(f"`scores` must lie between 0 and 1; got {odd[0]:g}. Divide percentages by 100.")
    if not scores:
        return None
    low = max(0.0, math.floor(min(scores) * 20 - 0.5) / 20)
    return Dots(low, [_block(comparison, column, low) for column in range(len(comparison.tasks))])


def _block(comparison: Comparison, column: int, low: float) -> Block:
    dots = []
    for method in comparison.methods:
        score = method.scores[column]
        if score is not None:
            dots.append(Dot(method.name, method.role, score, 100 * (score - low) / (1 - low)))
    best = {role: max((dot.score for dot in dots if dot.role == role), default=None) for role in ("count", "baseline")}
    bound = max((dot for dot in dots if dot.role == "bound"), key=lambda dot: dot.score, default=None)
    words = []
    if best["count"] is not None:
        words.append(f"{score_text(best['count'])} from counts")
    if best["baseline"] is not None:
        words.append(f"{score_text(best['baseline'])} by the best baseline")
    if bound is not None:
        words.append(f"{score_text(bound.score)} with every instance labelled")
    return Block(comparison.tasks[column], dots, None if bound is None else bound.place, ", ".join(words))
