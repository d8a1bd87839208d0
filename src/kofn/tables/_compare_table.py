"""Two models, compared on a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kofn.tables._evaluate_table import labels_as_trained, truth_of
from kofn.tables._label_columns import Column
from kofn.tables._reading import encode_table
from kofn.tables._report_table import bag_texts
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel

if TYPE_CHECKING:
    from kofn.report import Report


def compare_tables(
    first: TableModel,
    second: TableModel,
    data: str | os.PathLike[str],
    *,
    names: Sequence[str] = ("A", "B"),
    truth: str | None = None,
    positive: str | None = None,
    title: str | None = None,
) -> Report:
    """Which of two models is better on the bags of a table; see `kofn.report.comparison_of`.

    Args:
        first: a model.
        second: a model of the same task, bags and labels; it may be of other columns.
        data: a table with the columns, bags and labels of both.
        names: of the two, to be shown.
        truth: column of the rows' true classes; empty where they are not known.
        positive: the value of `truth` that means positive, if it is not 1, true or yes.
        title: heading of the page.

    Raises:
        FileNotFoundError, ValueError: bad input; models that cannot be compared.

    Examples:
        >>> import kofn
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.tables import compare_tables, fit_table, write_table
        >>> bag, x = [i // 2 for i in range(40)], [i % 7 for i in range(40)]
        >>> with TemporaryDirectory() as folder:
        ...     votes = Path(folder) / "votes.csv"
        ...     _ = write_table(votes, [{"ward": bag, "yes": [i % 3 for i in bag], "x": x, "z": x[::-1]}])
        ...     models = [
        ...         fit_table(votes, kofn.LLPClassifier(kofn.Linear(l2=1.0)), bag="ward", label="yes", features=name)
        ...         for name in ("x", "z")
        ...     ]
        ...     report = compare_tables(*models, votes, names=["x", "z"])
        >>> report.verdicts[0].mark, len(report.paired.names)  # both were trained on these bags, and held none out
        ('unknown', 20)
    """
    from kofn.report import comparison_of  # and with it jinja2, which no other command needs

    for name in ("task", "bag", "labels", "copies"):
        one, other = getattr(first, name), getattr(second, name)
        if one != other:
            raise ValueError(
                f"both models must have the same {name} to be compared; {names[0]} has {one!r}, {names[1]} {other!r}."
            )
    file = TableFile(data)
    of_truth = [] if truth is None else [truth]
    file.require_columns(*second.columns.names)
    metadata = first.metadata(file, bag=first.bag, labels=[*first.labels, *of_truth])
    where = Column(file.path, str(truth))
    return comparison_of(
        first.estimator,
        second.estimator,
        tuple(encode_table(file, model.columns, rows=metadata.rows) for model in (first, second)),
        labels_as_trained(first, metadata, first.labels, file),
        None if metadata.bag_of is None else np.array(bag_texts(metadata), object)[metadata.bag_of],
        copies=metadata.copies,
        truth=None if truth is None else truth_of(first, metadata.columns[truth], where, positive=positive),
        names=names,
        title=title,
        facts=[
            *((f"{name}, trained on", model.data["file"]) for name, model in zip(names, (first, second), strict=True)),
            *(
                (f"{name}, learner", type(model.estimator.fitted_learner_).__name__.lower())
                for name, model in zip(names, (first, second), strict=True)
            ),
            ("Compared on", f"{data}: {metadata.rows:,} rows"),
        ],
    )
