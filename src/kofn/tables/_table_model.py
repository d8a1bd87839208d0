"""A classifier and the table that it was trained on: what is needed to read another table with the same columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kofn._io.model_file import require_replaceable
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._columns import Columns
from kofn.estimators._ensemble import mixed
from kofn.estimators._fact_shapes import NUMBER, TEXT_OR_NONE, require_shape
from kofn.estimators._saving import load, save
from kofn.tables._reading import RowMetadata, feature_chunks, read_metadata
from kofn.tables._table_file import TableFile

Task = Literal["llp", "mil", "pu"]

_KINDS = (LLPClassifier, MILClassifier, PUClassifier)


_TABLE: dict[str, Any] = {
    "task": str,
    "bag": TEXT_OR_NONE,
    "labels": [str],
    "positive": TEXT_OR_NONE,
    "copies": TEXT_OR_NONE,
    "data": {"file": str, "rows": int, "bags": (int, NoneType), "sizes": (list, NoneType), "columns": [str]},
    "validation": {"on": str, "rows": int},
    "seconds": NUMBER,
}


_SENSITIVITY = dict.fromkeys(("mixture", "predicted_positive_share", "rank_correlation", "top_overlap"), NUMBER)


class NoTableError(ValueError):
    """A model that was saved from Python, without the columns of a table."""


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted estimator that reads tables.

    Attributes:
        estimator: `LLPClassifier`, `MILClassifier` or `PUClassifier`, fitted.
        task: "llp", "mil" or "pu".
        bag: name of the column of bags, or several with commas; None for "pu".
        labels: names of the columns of labels, two for intervals.
        positive: the label's value that means positive, if it is not 1, true or yes.
        copies: name of the column that says how many instances a row stands for, if there is one.
        data: facts about the training data: file, rows, bags, columns.
        validation: measures on the held-out bags, or on all if none were held out; see "on". With a mixture that was
            estimated, "sensitivity" has what `PUClassifier.sensitivity` says of the training data.
        seconds: that training took.
    """

    estimator: Any
    task: Task
    bag: str | None
    labels: list[str]
    positive: str | None = None
    copies: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one model file, which appears whole or not at all.

        The estimator alone is read from it by its own `load`.
        """
        table = {
            "task": self.task,
            "bag": self.bag,
            "labels": list(self.labels),
            "positive": self.positive,
            "copies": self.copies,
            "data": self.data,
            "validation": self.validation,
            "seconds": self.seconds,
        }
        save(self.estimator, Path(path), extra={"table": table})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TableModel:
        """Read a file that `save` wrote.

        Raises:
            FileNotFoundError, ValueError: no such model; an altered or cut file.
            NoTableError: one that was not trained on a table.
        """
        estimator, extra = load(Path(path), kinds=_KINDS, code_parameters={})
        if "table" not in extra or estimator.columns_ is None:
            raise NoTableError(
                f"{path} was saved from Python, without the columns of a table. Use it there: "
                f"kofn.estimators.load({os.fspath(path)!r}); or train it with kofn fit."
            )
        try:
            require_shape("table", extra["table"], _TABLE)
            require_shape("sizes", extra["table"]["data"]["sizes"] or [], [int])
            validation = dict(extra["table"]["validation"])
            require_shape("sensitivity", validation.pop("sensitivity", []), [_SENSITIVITY])
            require_shape("confusion", validation.pop("confusion", {}), {...: {...: int}})
            require_shape("validation", {name: validation[name] for name in validation.keys() - {"on"}}, {...: NUMBER})
            if extra["table"]["task"] not in get_args(Task):
                raise TypeError(f"its task is {extra['table']['task']!r}")
            return cls(estimator, **extra["table"])
        except (TypeError, KeyError) as error:
            raise ValueError(f"{path} must describe a table as kofn fit does; {error!r:.200}. Fit again.") from error

    @property
    def columns(self) -> Columns:
        """The columns that it was trained with."""
        columns: Columns = self.estimator.columns_
        return columns

    def scores(
        self, file: TableFile, *, other_columns: Sequence[str] = ()
    ) -> Iterator[tuple[NDArray[np.float64], Any]]:
        """Log-odds of the rows of a table, chunk by chunk, and a DataFrame of the columns `other_columns`.

        Raises:
            ValueError: a column that is missing or of another kind.
        """
        for members, frame in self.member_scores(file, other_columns=other_columns):
            yield mixed(members, classes=members.dim() == 3).numpy(), frame

    def member_scores(self, file: TableFile, *, other_columns: Sequence[str] = ()) -> Iterator[tuple[Tensor, Any]]:
        """The same by each member of the bootstrap, (B, rows) or (B, rows, C); without, by the one model there is."""
        for chunk, frame in feature_chunks(file, self.columns, others=other_columns):
            yield self.estimator._member_logits(chunk), frame[list(other_columns)]

    def metadata(
        self, file: TableFile, *, bag: str | None, labels: Sequence[str] = (), copies: str | None = None
    ) -> RowMetadata:
        """Bags and labels of a table, and how many instances its rows stand for: by default as in training."""
        counted = copies or (None if bag is None else self.copies)
        file.require_columns(*self.columns.names, *labels, *([] if counted is None else [counted]))
        return read_metadata(file, bag, labels, copies=counted)


def check_model_target(path: str | os.PathLike[str]) -> None:
    """Raise ValueError unless a model may be written to `path`: there is nothing, or a model that it replaces.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.tables import check_model_target
        >>> with TemporaryDirectory() as folder:
        ...     check_model_target(Path(folder) / "model")  # nothing there: well and good
        ...     _ = (Path(folder) / "notes.txt").write_text("mine")
        ...     try:
        ...         check_model_target(Path(folder) / "notes.txt")
        ...     except ValueError:
        ...         print("not a model, so it is not replaced")
        not a model, so it is not replaced
    """
    require_replaceable(path)
