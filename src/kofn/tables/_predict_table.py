"""Probabilities of rows and distributions of the counts of bags, for tables of any length."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn import _require
from kofn.bags import Bags
from kofn.classes import one_vs_rest
from kofn.estimators import MILClassifier, PUClassifier
from kofn.estimators._count_mixture import count_distribution, in_parts
from kofn.estimators._ensemble import mean_intervals, mixed, row_intervals
from kofn.estimators._measures import count_summaries
from kofn.estimators._mil_classifier import ATTENTION
from kofn.tables._evaluate_table import labels_as_trained
from kofn.tables._reading import encode_table
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel
from kofn.tables._writing import check_output, write_table


def predict_rows(
    model: TableModel,
    data: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    keep: str | None = None,
    posterior: bool = False,
    interval: float | None = None,
) -> int:
    """Write each row's probability to be positive, in the order of the rows; returns how many there are.

    Of several classes a column for each: probability_CLASS, and low_CLASS and high_CLASS with an interval.

    Args:
        model: the model.
        data: a table with its columns.
        output: CSV or Parquet, by extension.
        keep: columns of the data to repeat before the probability, with commas.
        posterior: write P(positive | the label of the row's bag) too, as the column posterior. The data need the bags
            and labels of training, under their names. Of a bag whose count is known it sums to that count.
        interval: level of confidence intervals of the probabilities, the columns low and high, of a model that was
            fitted with `bootstrap`. Not with `posterior`, of which they are no intervals.

    Raises:
        FileNotFoundError, ValueError: bad input; a kept column of the name of one that is written; an interval of a
            model without a bootstrap, or beside a posterior.
    """
    check_output(output)
    if posterior and interval is not None:
        raise ValueError(
            "`interval` is of the probability, which does not know the result of the row's bag, and `posterior` does: "
            "an interval beside it would be one of another quantity. Leave one of them out, or write two tables."
        )
    file = TableFile(data)
    file.require_columns(*model.columns.names)
    kept = [] if keep is None else file.parse_columns(keep)
    kinds = ["probability", *(["low", "high"] if interval is not None else []), *(["posterior"] if posterior else [])]
    written = [name for kind in kinds for name in _names(model, kind)]
    _require_interval(model, interval)
    _require_other_names(file, kept, written)
    given = _posterior(model, file) if posterior else None

    def chunks() -> Iterator[dict[str, Any]]:
        at = 0
        for logits, other_columns in model.member_scores(file, other_columns=kept):
            members = model.estimator._marginal(logits)
            scores = mixed(members, classes=members.dim() == 3)
            found = _columns_of(scores.sigmoid() if scores.dim() == 1 else scores.softmax(1))
            if interval is not None:
                found += [column for end in row_intervals(members, interval) for column in _columns_of(end)]
            if given is not None:
                found += _columns_of(given[at : at + len(scores)])
            at += len(scores)
            yield {**other_columns, **dict(zip(written, found, strict=True))}

    return write_table(output, chunks())


def _columns_of(values: Any) -> list[NDArray[np.float64]]:
    """The columns of (n,) or (n, C) numbers."""
    table = np.asarray(values)
    return list(table.reshape(len(table), -1).T)


def _names(model: TableModel, what: str) -> list[str]:
    """The names of the columns of a probability: one, or of several classes one for each."""
    classes = model.estimator.classes_
    return [what] if len(classes) == 2 else [f"{what}_{name}" for name in classes.tolist()]


def predict_bags(
    model: TableModel,
    data: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    bag: str,
    copies: str | None = None,
    interval: float | None = None,
) -> int:
    """Write the distribution of each bag's count in numbers, in the order in which bags first appear; returns how many.

    Of several classes these are columns of each: mean_CLASS, low_CLASS, high_CLASS, at_least_one_CLASS. Of multiple
    instances only size and at_least_one are written: labels of "at least one" do not tell how many are positive.

    Args:
        model: the model.
        data: a table with its columns and one of bags.
        output: CSV or Parquet, by extension.
        bag: the column of bags, or several with commas; they are repeated before the numbers.
        copies: the column that says how many instances a row stands for; by default that of training.
        interval: level of confidence intervals of the expected counts, the columns mean_low and mean_high, of a model
            that was fitted with `bootstrap`; not of multiple instances.

    Raises:
        FileNotFoundError, ValueError: bad input; a column of bags of the name of one that is written; an interval of a
            model without a bootstrap or of multiple instances.
    """
    check_output(output)
    file = TableFile(data)
    named = file.parse_columns(bag)
    labels_tell_counts = not isinstance(model.estimator, MILClassifier)
    each = ["mean", "low", "high", "at_least_one"] if labels_tell_counts else ["at_least_one"]
    if interval is not None:
        if not labels_tell_counts:
            raise ValueError(
                "`interval` is about the expected count of a bag, which a model of multiple instances does not have: "
                "its labels say whether there is a positive row, not how many. Leave `interval` out, or leave `bag` "
                "out for intervals of the rows' probabilities."
            )
        each += ["mean_low", "mean_high"]
        _require_interval(model, interval)
    _require_other_names(file, named, ["size", *(name for what in each for name in _names(model, what))])
    metadata = model.metadata(file, bag=bag, copies=copies)
    names = dict(zip(named, _columns(metadata.bag_names, len(named)), strict=True)) | {"size": metadata.sizes}
    if not labels_tell_counts:
        table = encode_table(file, model.columns, rows=metadata.rows)
        log_odds = model.estimator.bag_decision_function(table, metadata.bag_of, metadata.copies)
        return write_table(output, [names | {"at_least_one": torch.from_numpy(log_odds).sigmoid().numpy()}])
    logits, bags = torch.cat([part for part, _ in model.member_scores(file)], 1), metadata.bags()
    parts = [_counts_of(model, logits, part, each, interval) for part in in_parts(bags, len(logits))]
    return write_table(output, [names | {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}])


def _counts_of(
    model: TableModel, logits: Tensor, bags: Bags, each: Sequence[str], interval: float | None
) -> dict[str, NDArray[Any]]:
    """The numbers of some bags, from the logits (B, n) or (B, n, C) of all rows by each of B models."""
    entries = logits[:, bags.index]
    by_class = one_vs_rest(entries).movedim(1, 0) if entries.dim() == 3 else entries.unsqueeze(0)
    told: dict[str, NDArray[Any]] = {}
    for place, log_odds in enumerate(by_class):
        found = count_summaries(count_distribution(log_odds, bags.offsets, model.estimator.bag_effect_))
        if interval is not None:
            low, high = mean_intervals(model.estimator._marginal(log_odds), bags, interval)
            sizes = bags.sizes.numpy()
            found |= {"mean_low": low * sizes, "mean_high": high * sizes}
        told |= {_names(model, what)[place]: found[what] for what in each}
    return told


def _require_interval(model: TableModel, interval: float | None) -> None:
    """Require a level, and a model that was fitted to resampled bags."""
    if interval is not None:
        model.estimator._require_members()
        _require.level("interval", interval)


def _posterior(model: TableModel, file: TableFile) -> NDArray[np.float64]:
    """P(positive | the label of the row's bag) of all rows, (n, 1), or that of each class, (n, C)."""
    estimator = model.estimator
    if isinstance(estimator, PUClassifier) or estimator.loss in ATTENTION:
        kind = "positive and unlabelled rows" if isinstance(estimator, PUClassifier) else "attention"
        raise ValueError(
            f"`posterior` needs labels of bags and a distribution of their counts; a model of {kind} has none."
        )
    metadata = model.metadata(file, bag=model.bag, labels=model.labels)
    y = labels_as_trained(model, metadata, model.labels, file)
    table = encode_table(file, model.columns, rows=metadata.rows)
    given: NDArray[np.float64] = estimator.posterior_proba(table, y, metadata.bag_of, metadata.copies)
    return given if len(estimator.classes_) > 2 else given[:, 1:]


def _columns(names: list[Any], many: int) -> list[NDArray[Any]]:
    """A column for each part of the bags' names, which are tuples where there are several."""
    parts = [names] if many == 1 else zip(*names, strict=True)
    return [np.array(list(part), dtype=object) for part in parts]


def _require_other_names(file: TableFile, repeated: Sequence[str], written: Sequence[str]) -> None:
    """Require columns of the data that differ, and none of the name of a column that is written beside it."""
    for place, name in enumerate(repeated):
        if name in repeated[:place]:
            raise ValueError(f"{file.path}: column {name!r} is to be repeated twice. Name it once.")
        if name in written:
            raise ValueError(
                f"{file.path}: column {name!r} cannot be repeated beside {', '.join(written)}: one of them would be "
                f"lost. Rename it."
            )
