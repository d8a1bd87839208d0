"""What a report shows of several classes: a chapter for each, and which are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from torch import Tensor

from kofn.bags import Bags
from kofn.classes import one_vs_rest
from kofn.estimators._count_mixture import count_distribution
from kofn.estimators._measures import count_summaries
from kofn.estimators._verdicts import Source
from kofn.learners._problem import start_at
from kofn.report import _count_distributions as distributions
from kofn.report._contents import BagTable, Confusion, Report
from kofn.report._examples import is_known


def class_codes(truth: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """True classes as 0 to C - 1, from these numbers or from the estimator's classes; -1 where they are NaN or None.

    Raises:
        ValueError: other values.
    """
    given = np.asarray(truth)
    known = is_known(given)
    values = given[known]
    if given.dtype.kind == "f" and classes.dtype.kind != "f" and (values == values.round()).all():
        values = values.astype(np.int64)  # floats only so that some may be NaN
    codes = {name: code for code, name in enumerate(classes.tolist())}
    if values.dtype.kind in "iu" and classes.dtype.kind not in "iu":
        codes = {code: code for code in range(len(classes))}
    found = [codes.get(value, -1) for value in values.tolist()]
    if -1 in found:
        odd = values[found.index(-1)]
        raise ValueError(f"`truth` must be one of the classes {classes.tolist()}; got {odd!r}.")
    result = np.full(len(given), -1)
    result[known] = found
    return result


def confusion(truth: NDArray[np.int64], logits: Tensor, classes: NDArray[Any]) -> Confusion:
    """How many instances of each true class are predicted to be of each class."""
    known = truth >= 0
    counts = confusion_matrix(truth[known], logits.argmax(1).numpy()[known], labels=np.arange(len(classes)))
    return Confusion([str(name) for name in classes.tolist()], counts)


def class_chapters(
    estimator: Any, logits: Tensor, bags: Bags, known: Tensor | None, *, told: bool, source: Source
) -> list[Report]:
    """A report for each class against the rest: its count in each bag, some distributions, and their calibration.

    Args:
        estimator: fitted to several classes.
        logits: (B, n, C) of instances, by each of B models.
        bags: which instances lie in which bag.
        known: (b, C) float64 known counts, negative where unknown; None if there are none.
        told: whether the model was told these counts.
        source: of the rows.
    """
    names = [str(name) for name in bags.names]
    before = one_vs_rest(start_at(estimator.rate_).expand(1, -1).contiguous())
    by_class = one_vs_rest(logits).movedim(1, 0)
    chapters, effect = [], estimator.bag_effect_
    for code, (name, log_odds) in enumerate(zip(estimator.classes_.tolist(), by_class, strict=True)):
        after = log_odds[:, bags.index]
        summaries = count_summaries(count_distribution(after, bags.offsets, effect))
        counts = None if known is None else known[:, code]
        complete = None if counts is None or bool((counts < 0).any()) else counts.long()
        table = BagTable(
            names,
            summaries["size"],
            summaries["mean"],
            summaries["low"],
            summaries["high"],
            summaries["at_least_one"],
            known=None if counts is None else counts.masked_fill(counts < 0, np.nan).numpy(),
            told=told,
        )
        start = before[code].expand(after.shape[1])
        chapters.append(
            Report(
                f"Class {name} against the rest",
                "llp",
                source=source,
                bags=table,
                distributions=distributions.some_distributions(names, bags, after, start, complete, effect),
                calibration=None
                if complete is None
                else distributions.calibration(after, complete, bags.offsets, effect),
            )
        )
    return chapters
