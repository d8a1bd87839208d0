"""Which bags of a report can be opened, and what is in them: of two classes, and of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.classes import one_vs_rest
from kofn.estimators._count_mixture import count_distribution
from kofn.estimators._ensemble import mixed
from kofn.estimators._mil_classifier import ATTENTION
from kofn.report._bag_details import bag_details, shown_rows
from kofn.report._contents import BagTable, Numbers, Report, Task
from kofn.report._detail_contents import BagDetails
from kofn.report._label_surprise import TAIL, label_surprise
from kofn.report._surprise import Listed, listed_bags, tail_bits


def opened_bags(
    estimator: Any,
    task: Task,
    table: BagTable,
    bags: Bags,
    members: Tensor,
    *,
    labels: Any,
    label_texts: Sequence[str] | None,
    counts: Tensor | None,
    truth: NDArray[np.bool_] | None,
    bag_logits: Any,
    columns: Sequence[tuple[str, Any]],
    numbers: NDArray[np.int64],
) -> tuple[BagTable, BagDetails]:
    """The table with the surprise of each bag and those that are listed, and the details of these. Of two classes.

    Args:
        estimator: fitted.
        task: its task.
        table: of the bags.
        bags: of the rows.
        members: (B, n) logits of the rows by each of B models.
        labels: of the rows, as for `fit`, or None.
        label_texts: (b,) what labels say.
        counts: (b,) exact counts, if known.
        truth: (n,) whether rows are positive, if known.
        bag_logits: (b,) by an attention model.
        columns: names and values of the columns of rows, the most important first.
        numbers: (n,) of rows in the data, from 1.
    """
    told = label_surprise(estimator, task, labels, bags, members[:, bags.index], counts, bag_logits)
    listed = listed_bags(len(table), told.bits)
    probability = mixed(estimator._marginal(members)).sigmoid()
    posterior = None
    if labels is not None and task != "pu" and estimator.loss not in ATTENTION:

        def posterior(part: Bags) -> Tensor:
            given: Tensor = estimator._bag_posteriors(members[:, part.index], labels, part, len(labels))
            return given

    details = bag_details(
        shown_rows(bags, listed.places, probability),
        table,
        bags,
        members,
        probability.numpy(),
        bag_effect=estimator.bag_effect_,
        columns=columns,
        posterior=posterior,
        truth=truth,
        labels=label_texts,
        bounds=told.bounds,
        numbers=numbers,
    )
    return _with_surprise(table, told.bits, told.meaning, listed), details


def opened_classes(
    chapters: Sequence[Report],
    estimator: Any,
    bags: Bags,
    members: Tensor,
    *,
    labels: Any,
    known: Tensor | None,
    truth: NDArray[np.int64] | None,
    columns: Sequence[tuple[str, Any]],
    numbers: NDArray[np.int64],
) -> list[Report]:
    """The chapters of several classes, with the same bags and rows to open in each.

    Args:
        chapters: of the classes, each with its table of bags.
        estimator: fitted to several classes.
        bags: of the rows.
        members: (B, n, C) logits of the rows by each of B models.
        labels: of the rows, as for `fit`, or None.
        known: (b, C) counts, negative where unknown, or None.
        truth: (n,) classes of the rows, 0 to C - 1, or None.
        columns: names and values of the columns of rows.
        numbers: (n,) of rows in the data, from 1.
    """
    log_odds = one_vs_rest(members).movedim(1, 0)
    tables = [cast(BagTable, chapter.bags) for chapter in chapters]
    bits = [_class_bits(estimator, log_odds[code], bags, known, code) for code in range(len(chapters))]
    most = None if known is None else np.nanmax(np.stack([one for one in bits if one is not None]), axis=0)
    listed = listed_bags(len(bags), most)
    probability = mixed(members, classes=True).softmax(1)
    # All classes show the same rows, so that the page holds them once: of large bags the first ones.
    shown = shown_rows(bags, listed.places, -torch.arange(len(probability)))
    chosen = bags.select(torch.from_numpy(listed.places))
    joint = _joint_posteriors(estimator, members, labels, chosen, known, listed.places)
    found, rows = [], None
    for code, (chapter, table) in enumerate(zip(chapters, tables, strict=True)):
        details = bag_details(
            shown,
            table,
            bags,
            log_odds[code],
            probability[:, code].numpy(),
            bag_effect=estimator.bag_effect_,
            columns=columns if rows is None else (),
            posterior=None if joint is None else partial(_column, joint, code),
            truth=None if truth is None else truth == code,
            bounds=None,
            numbers=numbers,
        )
        rows = details.table if rows is None else rows
        name = str(estimator.classes_[code])
        details = replace(details, table=rows, given="counts", positive=f"class {name}")
        meaning = "" if bits[code] is None else TAIL.format(word="known")
        bags_of_class = _with_surprise(table, bits[code], meaning, listed)
        found.append(replace(chapter, bags=bags_of_class, details=details))
    return found


def _with_surprise(table: BagTable, bits: Numbers | None, meaning: str, listed: Listed) -> BagTable:
    return replace(table, surprise=bits, surprise_meaning=meaning, listed=listed.places, note=listed.note)


def _class_bits(estimator: Any, log_odds: Tensor, bags: Bags, known: Tensor | None, code: int) -> Any:
    """The surprise of the counts of one class; NaN where a count is unknown, None if all are."""
    if known is None:
        return None
    counts = known[:, code]
    told = counts.clamp(min=0).round().long()
    dist = count_distribution(log_odds[:, bags.index], bags.offsets, estimator.bag_effect_)
    return np.where(counts.numpy() < 0, np.nan, tail_bits(dist, told, told))


def _joint_posteriors(
    estimator: Any, members: Tensor, labels: Any, chosen: Bags, known: Tensor | None, places: NDArray[np.int64]
) -> Tensor | None:
    """P(y_i = c | all counts of the bag), (m, C), if they are known."""
    if labels is None or known is None:
        return None
    counts = known[torch.from_numpy(places)].long()
    if bool((counts < 0).any()):
        return None
    found: Tensor = estimator._bag_posteriors(members[:, chosen.index], labels, chosen, members.shape[1])
    return found


def _column(values: Tensor, code: int, _: Bags) -> Tensor:
    return values[:, code]
