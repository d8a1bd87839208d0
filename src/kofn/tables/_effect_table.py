"""What a model says of groups of rows: the mean probability of each value of a column, with its interval."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn import _require
from kofn.estimators._ensemble import group_sums, interval_of, mixed
from kofn.tables._row_groups import row_groups
from kofn.tables._table_file import TableFile
from kofn.tables._table_model import TableModel

Numbers = NDArray[np.float64]
DEFAULT_LEVEL = 0.9
#: What `Effect.probability` is, in a sentence.
AVERAGED = (
    "It is the mean predicted probability of a group's rows, and ignores each bag's own result; "
    "kofn predict --posterior uses it."
)


@dataclass(frozen=True, eq=False)
class Effect:
    """The mean predicted probability of groups of rows.

    It ignores the results of the bags that the rows lie in: the same rows have the same numbers whatever was counted in
    their bag. Probabilities given the bag's result are the posteriors of `predict_rows`.

    Attributes:
        by: names of the columns that make the groups.
        groups: of each group its values of these columns, as text.
        rows: (g,) number of instances of each group.
        classes: the classes whose probabilities are told: the positive one, or all of several.
        probability: (g, classes) mean probability.
        low: (g, classes) lower ends of their confidence intervals; None without intervals.
        high: (g, classes) upper ends.
        level: of the intervals.
        averaged: what the probability is, in a sentence.

    Examples:
        >>> import numpy as np
        >>> from kofn.tables import Effect
        >>> effect = Effect(["age"], [("young",), ("old",)], np.array([30, 20]), ["1"], np.array([[0.4], [0.7]]))
        >>> list(effect.columns()), effect.columns()["age"].tolist()
        (['age', 'rows', 'probability'], ['young', 'old'])
    """

    by: list[str]
    groups: list[tuple[str, ...]]
    rows: NDArray[np.int64]
    classes: list[str]
    probability: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    level: float | None = None
    averaged: ClassVar[str] = AVERAGED

    def columns(self) -> dict[str, Any]:
        """A table of the groups: a column for each of `by`, rows, probability and, with intervals, low and high.

        Of several classes probability_CLASS, low_CLASS and high_CLASS.
        """
        found: dict[str, Any] = {
            name: np.array([group[place] for group in self.groups], dtype=object) for place, name in enumerate(self.by)
        }
        found["rows"] = self.rows
        for place, name in enumerate(self.classes):
            end = "" if len(self.classes) == 1 else f"_{name}"
            found[f"probability{end}"] = self.probability[:, place]
            if self.low is not None and self.high is not None:
                found |= {f"low{end}": self.low[:, place], f"high{end}": self.high[:, place]}
        return found


def effect_of(
    model: TableModel,
    data: str | os.PathLike[str],
    *,
    by: Sequence[str],
    copies: str | None = None,
    interval: float | None = None,
) -> Effect:
    """The mean predicted probability of the rows of each group, and how sure the model is of it. No labels are needed.

    It ignores each bag's own result, also if the data have it.

    Args:
        model: the model.
        data: a table with its columns.
        by: columns, features or not, whose values make the groups; of several, their combinations. Of a column with
            many different numbers, bins of them.
        copies: the column that says how many instances a row stands for; by default that of training.
        interval: level of the confidence intervals; by default 0.9 if the model was fitted with `bootstrap`, and none
            if it was not.

    Raises:
        FileNotFoundError, ValueError: bad input; an interval of a model without a bootstrap.

    Warns:
        FitWarning: intervals of trees or of a network, which are too narrow.

    Examples:
        >>> import kofn, numpy as np
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.tables import effect_of, fit_table, write_table
        >>> rng = np.random.default_rng(0)
        >>> age, box = rng.choice(["old", "young"], 800), np.repeat(np.arange(40), 20)
        >>> votes = (rng.random(800) < np.where(age == "old", 0.8, 0.2)).reshape(40, 20).sum(1).repeat(20)
        >>> with TemporaryDirectory() as folder:
        ...     table = Path(folder) / "votes.csv"
        ...     _ = write_table(table, [{"box": box, "votes": votes, "age": age}])
        ...     estimator = kofn.LLPClassifier("linear", bootstrap=20, random_state=0)
        ...     model = fit_table(table, estimator, bag="box", label="votes")
        ...     effect = effect_of(model, table, by=["age"])
        >>> effect.groups, bool(effect.low[0] > effect.high[1])
        ([('old',), ('young',)], True)
    """
    estimator = model.estimator
    if interval is not None:
        _require.level("interval", interval)
    if interval is not None or estimator.members_:
        estimator._require_members()
    level = interval or (DEFAULT_LEVEL if estimator.members_ else None)
    file = TableFile(data)
    names = _columns(file, by, model)
    metadata = model.metadata(file, bag=None, copies=copies or _copies(model, file))
    groups = row_groups(file, names)
    copies_of = torch.ones(metadata.rows) if metadata.copies is None else torch.from_numpy(metadata.copies)
    of, many = torch.from_numpy(groups.of), len(groups.names)
    rows = torch.zeros(many, dtype=torch.float64).index_add(0, of, copies_of.double())
    log_copies = copies_of.double().log()
    sums: list[Tensor] = []  # of P(positive) and of P(negative) over the rows of each group, logs
    at = 0
    for in_a_bag, _ in model.member_scores(file):
        logits = estimator._marginal(in_a_bag)
        part = slice(at, at + logits.shape[1])
        at = part.stop
        more = group_sums(logits, of[part], many, log_copies[part])
        sums = [torch.logaddexp(a, b) for a, b in zip(sums, more, strict=True)] if sums else list(more)
    there = (rows > 0).nonzero().flatten()  # a group of no copies has no mean
    each = (sums[0] - sums[1])[:, there].reshape(len(sums[0]), len(there), -1)
    low, high = (None, None) if level is None else interval_of(each, level)
    classes = estimator.classes_.tolist()
    return Effect(
        by=names,
        groups=[groups.names[group] for group in there.tolist()],
        rows=rows[there].long().numpy(),
        classes=list(map(str, classes if len(classes) > 2 else classes[1:])),
        probability=mixed(each).sigmoid().numpy(),
        low=low,
        high=high,
        level=level,
    )


def _columns(file: TableFile, by: Sequence[str], model: TableModel) -> list[str]:
    """The columns that make the groups, each once and of no name that the table of groups has itself."""
    names = list(dict.fromkeys(name for entry in by for name in file.parse_columns(entry)))
    if not names:
        raise ValueError("`by` must name a column to group rows by; got none.")
    file.require_columns(*model.columns.names)
    taken = next((name for name in names if name == "rows" or name.split("_")[0] in ("probability", "low", "high")), "")
    if taken:
        raise ValueError(
            f"{file.path}: column {taken!r} cannot stand beside rows, probability, low and high: one of them would be "
            f"lost. Rename it."
        )
    return names


def _copies(model: TableModel, file: TableFile) -> str | None:
    """The column of copies of training, if there is one; a table without it has a row for each instance."""
    return model.copies if model.copies in file.columns else None
