"""Which rows a report is about: all that can be judged, and a sample of them where bags are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._judged import Judged
from kofn.report._plot import number, percent

SEED = 0  # of their choice


def some_bags(bags: Bags, limit: int) -> Bags:
    """Bags at random, always the same, of at most so many rows in all but at least one bag, in the order of the table.

    Examples:
        >>> import kofn
        >>> bags = kofn.Bags.from_sizes([2, 2, 2, 2])
        >>> len(some_bags(bags, 8)), len(some_bags(bags, 5)), len(some_bags(bags, 1))
        (4, 2, 1)
    """
    if int(bags.offsets[-1]) <= limit:
        return bags
    order = torch.from_numpy(np.random.default_rng(SEED).permutation(len(bags)))
    reached = int((bags.sizes[order].cumsum(0) <= limit).sum())
    chosen = order[: max(reached, 1)].sort().values
    part = bags.select(chosen)
    return Bags(part.index, part.offsets, names=[bags.names[bag] for bag in chosen.tolist()])


def taken(values: Any, rows: Any) -> Any:
    """Some rows of an array, a tensor or a DataFrame, or of what a function gives for row numbers; None of nothing."""
    if values is None:
        return None
    if callable(values):
        return values(rows)
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


@dataclass(frozen=True, eq=False)
class Drawn:
    """The bags that are drawn, and their rows alone.

    Attributes:
        bags: of these rows.
        rows: (k,) their places among the rows that are judged.
        places: (k,) their places among all rows that were given.
        members: (B, k) or (B, k, C) logits.
        bag_logits: (b,) of an attention model.
    """

    bags: Bags
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    members: Tensor
    bag_logits: NDArray[np.float64] | None

    @classmethod
    def of(cls, judged: Judged, bags: Bags, limit: int) -> Drawn:
        """Some of the bags of the rows that are judged."""
        chosen = some_bags(bags, limit)
        rows, index = chosen.index.unique(return_inverse=True)
        scores = judged.bag_logits
        if scores is not None and len(chosen) < len(bags):
            place = {name: number for number, name in enumerate(bags.names)}
            scores = scores[[place[name] for name in chosen.names]]
        return cls(
            Bags(index, chosen.offsets, names=chosen.names),
            rows.numpy(),
            np.flatnonzero(judged.rows)[rows.numpy()],
            judged.members[:, rows],
            scores,
        )

    def given(self, values: Any) -> Any:
        """Their part of what was given for all rows."""
        return taken(values, self.places)


def scope_sentences(judged: Judged, bags: Bags | None, shown: Bags | None) -> str:
    """What the page is about, in words."""
    rows = f"{number(judged.members.shape[1])} rows"
    counted = rows if bags is None else f"{number(len(bags))} bags ({rows})"
    of_all = "" if judged.rows.all() else f" of {number(len(judged.rows))} rows"
    if judged.source == "held-out":
        how = "that were held out, scored by a model that had not seen them"
        if judged.parts > 1:
            how = f"in {judged.parts}-fold cross-validation, scored by models that had not seen them"
        told = (
            f"These are the training data. Verdicts and measures are of the {counted}{of_all} {how}; they chose when "
            f"to stop, so that all is a little too good."
        )
    elif judged.source == "training":
        told = (
            f"{percent(judged.seen)} of these data were in the training data, and nothing else was held out: verdicts "
            f"and measures, of {counted}, tell what the model remembers. Take other data."
        )
    else:
        told = f"New data, on which the model was not trained. Verdicts and measures are of all {counted}."
    if bags is not None and shown is not None and len(shown) < len(bags):
        told += f" Figures and tables of bags show {number(len(shown))} of them, drawn at random (seed {SEED})."
    return told
