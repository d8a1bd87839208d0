"""Probabilities of rows and distributions of the counts of bags, for tables of any length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.estimators._mil_classifier import ATTENTION
from kofn.tables._reading import encode_table, read_metadata
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel
from kofn.tables._writing import check_output, write_table

LEVEL = 0.9


def predict_rows(
    model: TableModel, data: str | os.PathLike[str], output: str | os.PathLike[str], *, keep: str | None = None
) -> int:
    """Write each row's probability to be positive, in the order of the rows; returns how many there are.

    Args:
        model: the model.
        data: a table with its columns.
        output: CSV or Parquet, by extension.
        keep: columns of the data to repeat before the probability, with commas.
    """
    check_output(output)
    file = TableFile(data)
    file.require_columns(*model.columns.names)
    kept = [] if keep is None else file.parse_columns(keep)

    def chunks() -> Iterator[dict[str, Any]]:
        for logits, other_columns in model.scores(file, other_columns=kept):
            yield {**other_columns, "probability": torch.sigmoid(torch.from_numpy(logits)).numpy()}

    return write_table(output, chunks())


def predict_bags(model: TableModel, data: str | os.PathLike[str], output: str | os.PathLike[str], *, bag: str) -> int:
    """Write the distribution of each bag's count in numbers, in the order in which bags first appear; returns how many.

    Args:
        model: the model.
        data: a table with its columns and one of bags.
        output: CSV or Parquet, by extension.
        bag: the column of bags.
    """
    check_output(output)
    file = TableFile(data)
    file.require_columns(bag, *model.columns.names)
    metadata = read_metadata(file, bag)
    bags = Bags.from_ids(metadata.bag_of)
    names = {bag: np.array(metadata.bag_names, dtype=object)}
    if model.estimator.loss in ATTENTION:  # it has no distribution of counts
        table = encode_table(file, model.columns, rows=metadata.rows)
        positive = model.estimator.predict_bag_proba(table, metadata.bag_of)[:, 1]
        return write_table(output, [names | {"size": metadata.sizes, "at_least_one": positive}])
    logits = np.concatenate([part for part, _ in model.scores(file)])
    return write_table(output, [names | count_summaries(torch.from_numpy(logits)[bags.index], bags.offsets)])


def count_summaries(logits: torch.Tensor, offsets: torch.Tensor) -> dict[str, NDArray[Any]]:
    """The distribution of each bag's count in numbers.

    Args:
        logits: (m,) float64 log-odds of instances, one bag after the other.
        offsets: (b + 1,) of the bags.

    Returns:
        Arrays (b,): size; mean; low and high, the central interval that holds the count with probability 0.9 or more
        (`kofn.CountDistribution.interval`); at_least_one, P(S >= 1).

    Examples:
        >>> import torch
        >>> from kofn.tables import count_summaries
        >>> found = count_summaries(torch.zeros(4).double(), torch.tensor([0, 4]))
        >>> {name: values.tolist() for name, values in found.items()}
        {'size': [4], 'mean': [2.0], 'low': [0], 'high': [4], 'at_least_one': [0.9375]}
    """
    dist = CountDistribution(logits, offsets=offsets)
    low, high = dist.interval(LEVEL)
    return {
        "size": dist.sizes.numpy(),
        "mean": dist.mean.numpy(),
        "low": low.numpy(),
        "high": high.numpy(),
        "at_least_one": dist.log_prob_between(1, None).exp().numpy(),
    }
