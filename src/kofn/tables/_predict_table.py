"""Probabilities of rows and laws of bags, for tables of any length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kofn.bags import Bags
from kofn.counts import log_count_distribution
from kofn.metrics import bag_scores
from kofn.models import AttentionMIL
from kofn.tables._reading import encode_table, read_metadata
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel
from kofn.tables._writing import check_output, write_table

LEVEL = 0.9
BLOCK = 2**18  # probabilities of counts at a time


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
    file.require_columns(*model.encoder.columns)
    kept = [] if keep is None else file.parse_columns(keep)

    def chunks() -> Iterator[dict[str, Any]]:
        for logits, other_columns in model.scores(file, other_columns=kept):
            yield {**other_columns, "probability": torch.sigmoid(torch.from_numpy(logits)).numpy()}

    return write_table(output, chunks())


def predict_bags(model: TableModel, data: str | os.PathLike[str], output: str | os.PathLike[str], *, bag: str) -> int:
    """Write the law of each bag's count in numbers, in the order in which bags first appear; returns how many.

    Args:
        model: the model.
        data: a table with its columns and one of bags.
        output: CSV or Parquet, by extension.
        bag: the column of bags.
    """
    check_output(output)
    file = TableFile(data)
    file.require_columns(bag, *model.encoder.columns)
    metadata = read_metadata(file, bag)
    bags = Bags.from_ids(metadata.bag_of)
    names = {bag: np.array(metadata.bag_names, dtype=object)}
    if isinstance(model.estimator.network_, AttentionMIL):  # it judges bags as a whole, and has no law of counts
        matrix = encode_table(file, model.encoder, rows=metadata.rows)
        positive = model.estimator.predict_bag_proba(matrix, metadata.bag_of)[:, 1]
        return write_table(output, [names | {"size": metadata.sizes, "at_least_one": positive}])
    logits = np.concatenate([part for part, _ in model.scores(file)])
    return write_table(output, [names | count_summaries(torch.from_numpy(logits)[bags.index], bags.offsets)])


def count_summaries(logits: torch.Tensor, offsets: torch.Tensor) -> dict[str, NDArray[Any]]:
    """The law of each bag's count in numbers.

    Args:
        logits: (m,) float64 log-odds of instances, one bag after the other.
        offsets: (b + 1,) of the bags.

    Returns:
        Arrays (b,): size; mean; low and high, ends of the central interval that holds the count with probability 0.9 or
        more, P(S < low) <= 0.05 and P(S > high) <= 0.05; at_least_one, P(S >= 1).

    Examples:
        >>> import torch
        >>> from kofn.tables import count_summaries
        >>> found = count_summaries(torch.zeros(4).double(), torch.tensor([0, 4]))
        >>> {name: values.tolist() for name, values in found.items()}
        {'size': [4], 'mean': [2.0], 'low': [0], 'high': [4], 'at_least_one': [0.9375]}
    """
    sizes = offsets.diff()
    tail = (1 - LEVEL) / 2
    ends = []
    for start, end in _blocks(sizes):
        part = offsets[start : end + 1]
        here = part - part[0]
        probabilities = log_count_distribution(logits[part[0] : part[-1]], offsets=here).exp()
        # Bag j of the block has its counts from here[j] + j on; sums start anew in each bag.
        first = here[:-1] + torch.arange(end - start)
        bag = torch.arange(end - start).repeat_interleave(sizes[start:end] + 1)
        below = probabilities.cumsum(0) - probabilities  # over the block
        below = below - below[first][bag]  # P(S < s)
        counts = Bags.from_sizes(sizes[start:end] + 1)
        low = counts.sum(below + probabilities < tail - 1e-12)  # how many s have P(S <= s) < tail
        high = counts.sum(below + probabilities < 1 - tail - 1e-12)
        ends.append(torch.stack([low, torch.minimum(high, sizes[start:end])], 1))
    bounds = torch.cat(ends)
    return {
        "size": sizes.numpy(),
        "mean": Bags.from_sizes(sizes).sum(logits.sigmoid()).numpy(),
        "low": bounds[:, 0].numpy(),
        "high": bounds[:, 1].numpy(),
        "at_least_one": bag_scores(logits, offsets=offsets).sigmoid().numpy(),
    }


def _blocks(sizes: torch.Tensor) -> Iterator[tuple[int, int]]:
    """Ranges of bags that together have about `BLOCK` counts, or one bag."""
    ends = (sizes + 1).cumsum(0)
    start = 0
    while start < len(sizes):
        done = int(ends[start - 1]) if start else 0
        end = max(int(torch.searchsorted(ends, done + BLOCK, right=True)), start + 1)
        yield start, end
        start = end
