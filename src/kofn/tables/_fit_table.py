"""Train a classifier on a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._judged import held_out_words
from kofn.estimators._measures import Array, measure, scores_of
from kofn.learners import Linear, Trees
from kofn.tables._table_model import TableModel, Task
from kofn.tables._training_table import Estimator, TrainingTable, read_training_table

MOST = 1_000_000  # rows that a model is measured on, if it must score them for that


def fit_table(
    path: str | os.PathLike[str],
    estimator: Estimator,
    *,
    label: str,
    bag: str | None = None,
    copies: str | None = None,
    fold_by: str | None = None,
    features: str | None = None,
    drop: Sequence[str] = (),
    label_kind: str | None = None,
    positive: str | None = None,
    max_categories: int = 256,
    scratch: str | os.PathLike[str] | None = None,
    on_stage: Callable[[str], None] = lambda _: None,
) -> TableModel:
    """Train an estimator on a CSV or Parquet file, or on a folder of Parquet files.

    The header is checked first, then bags and labels, and only then the features are read. There is one float32 matrix
    of all features, and some rows at a time beside it. A matrix of more than 1 GiB lies in a temporary file, as do its
    rows' bags and labels; trees and networks then read it in blocks, and one whose bags are scattered is sorted by bag
    in a second file. `Linear` and `EM` take all of it into memory.

    Args:
        path: the file, or the folder.
        estimator: with its options; for LLP the kind of label is set here.
        label: column of the label, or with commas two for an interval, or one for each class.
        bag: column of the bag, or several with commas that name it together; None for PU.
        copies: column that says how many instances a row stands for, of LLP; by default one.
        fold_by: column of what bags belong to, such as the patient of each slide (for PU, what rows belong to), or
            several with commas: bags with the same value are held out together. It is a feature only if `features`
            names it. By default each bag stands for itself.
        features: columns to learn from, with commas; by default all others. A column of the bag, such as the campaign
            of a bag of campaign and day, may be one if it is named here.
        drop: columns to leave out, with or without commas.
        label_kind: of LLP: "proportion", "count", "interval" or, for a column of counts or proportions for each class,
            "classes"; None where the values tell.
        positive: the value of a label that means positive, for MIL and PU.
        max_categories: a text column with more is refused.
        scratch: folder of that temporary file; by default the system's for such files (``TMPDIR``).
        on_stage: called with what is being done.

    Returns:
        The model, not yet saved.

    Raises:
        FileNotFoundError, ValueError: bad input, which the message names with its file, column and bag.

    Warns:
        TableWarning: a CSV that seems to have no header; a feature that seems to be the truth.

    Examples:
        >>> import kofn
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.tables import (
        ...     TableFile, TableModel, evaluate_bags, evaluate_rows, fit_table, predict_bags, predict_rows,
        ...     report_table, write_table,
        ... )
        >>> here = TemporaryDirectory()
        >>> model = Path(here.name) / "model"
        >>> votes, rows, wards = (Path(here.name) / f"{name}.csv" for name in ("votes", "rows", "wards"))
        >>> columns = {"ward": [1, 1, 2, 2], "share": [0.5, 0.5, 1.0, 1.0]}
        >>> write_table(votes, [columns | {"age": [30, 60, 50, 70], "voted": [0, 1, 1, 1]}])
        4
        >>> estimator = kofn.LLPClassifier(kofn.Trees(rounds=5), random_state=0)
        >>> fitted = fit_table(votes, estimator, bag="ward", label="share", drop=["voted"])
        >>> fitted.save(model)
        >>> again = TableModel.load(model)
        >>> predict_rows(again, votes, rows, keep="age"), TableFile(rows).columns
        (4, ['age', 'probability'])
        >>> predict_bags(again, votes, wards, bag="ward"), TableFile(wards).columns
        (2, ['ward', 'size', 'mean', 'low', 'high', 'at_least_one'])
        >>> evaluate_rows(again, votes, truth="voted")["rows"], evaluate_bags(again, votes)["bags"]
        (4, 2)
        >>> report_table(again, votes, title="Votes").title
        'Votes'
        >>> here.cleanup()
    """
    table = read_training_table(
        path,
        estimator,
        label=label,
        bag=bag,
        copies=copies,
        fold_by=fold_by,
        features=features,
        drop=drop,
        label_kind=label_kind,
        positive=positive,
        max_categories=max_categories,
        scratch=None if scratch is None else Path(scratch),
        on_stage=on_stage,
    )
    if table.label is not None:
        estimator.set_params(label=table.label)
    on_stage("training")
    start = time.monotonic()
    estimator.fit(**table.arguments())
    seconds = time.monotonic() - start
    on_stage("measuring")
    validation = _validation(estimator, table) | _sensitivity(estimator, table)
    metadata = table.metadata
    data = {
        "file": str(path),
        "rows": metadata.rows,
        "bags": len(metadata.bag_names) or None,
        "sizes": [int(metadata.sizes.min()), int(metadata.sizes.max())] if bag is not None else None,
        "columns": table.encoded.columns.names,
    }
    if isinstance(estimator, PUClassifier):
        data["labelled"] = int(np.asarray(table.y).sum())
    return TableModel(estimator, _task(estimator), bag, table.labels, positive, copies, data, validation, seconds)


def _task(estimator: Estimator) -> Task:
    if isinstance(estimator, LLPClassifier):
        return "llp"
    return "mil" if isinstance(estimator, MILClassifier) else "pu"


def _validation(estimator: Any, table: TrainingTable) -> dict[str, Any]:
    """Measures on rows that were not learned from, by models that had not seen them; on all if none were held out."""
    rows, logits = _held_out(estimator, table)
    found: dict[str, Any] = {"on": "training data" if rows.all() and logits is None else held_out_words(estimator)}
    if logits is None and table.metadata.rows > MOST:
        rows &= _some(table, estimator.seed_)
    found["rows"] = int(rows.sum())
    bags = None
    if table.metadata.bag_of is not None:
        bags = table.metadata.bags(rows)
        found["bags"] = len(bags)
    scores = {"logits": logits} if logits is not None else scores_of(estimator, table.encoded[rows], bags)
    return found | measure(estimator, **scores, y=table.y[rows], bags=bags)


def _some(table: TrainingTable, seed: int) -> NDArray[np.bool_]:
    """A mask of the rows of bags, or of rows where there are none, drawn at random: about so many as are measured."""
    metadata, chance = table.metadata, np.random.default_rng(seed)
    units = metadata.rows if metadata.bag_of is None else len(metadata.bag_names)
    chosen = np.zeros(units, dtype=bool)
    chosen[chance.permutation(units)[: max(units * MOST // metadata.rows, 1)]] = True
    return chosen if metadata.bag_of is None else chosen[metadata.bag_of]


def _sensitivity(estimator: Any, table: TrainingTable) -> dict[str, Any]:
    """What the ends of the interval of an estimated mixture would change, unless two more fits would take long."""
    if not isinstance(estimator, PUClassifier) or estimator.mixture_interval_ is None:
        return {}
    if not isinstance(estimator.fitted_learner_, (Trees, Linear)):
        return {}
    return {"sensitivity": estimator.sensitivity(**table.arguments())}


def _held_out(estimator: Any, table: TrainingTable) -> tuple[NDArray[np.bool_], Array | None]:
    """A mask of the rows to measure on, and their scores by models that had not seen them, if such are known.

    Trees and linear models are fitted again to all bags once their options are chosen: the model itself has seen the
    rows that were held out, and must not be asked.
    """
    logits = estimator.held_out_logits_
    if logits is not None:
        rows = ~np.isnan(logits).reshape(len(logits), -1).any(1)
        return rows, logits[rows]
    metadata = table.metadata
    held = np.zeros(metadata.rows if metadata.bag_of is None else len(metadata.bag_names), dtype=bool)
    held[estimator.held_out_] = True
    if not held.any():
        return np.ones(metadata.rows, dtype=bool), None
    return held if metadata.bag_of is None else held[metadata.bag_of], None
