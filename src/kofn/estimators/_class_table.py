"""What labels with a column for each class say of each bag: counts of the classes, their loss, their base rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._frames import column_names, frame_of, is_frame
from kofn.estimators._row_labels import Array, as_array
from kofn.learners import CountObjective, Objective, ProportionObjective, TransportObjective
from kofn.targets import ClassCounts, MarginalClassCounts, class_counts_of_proportions, require_class_counts


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Labels of C classes, two or more: of each row's bag a number for each class, NaN where it is not known.

    Attributes:
        names: (C,) of the classes: those of the columns of a DataFrame, else 0 to C - 1.
        values: (n, C) floating point.
    """

    names: Array
    values: NDArray[Any]

    @classmethod
    def of(cls, y: Any) -> ClassTable | None:
        """The table that labels are, or that they are made of already; None if they are a single column.

        Raises:
            ValueError: columns that are no numbers, or two of one name.
        """
        if isinstance(y, ClassTable):
            return y
        named = is_frame(y)
        values = frame_of(y, name="y").to_numpy() if named else np.asarray(as_array(y))
        if values.ndim != 2 or values.shape[1] < 2:
            return None
        names = np.array(column_names(y)) if named else np.arange(values.shape[1])
        if (
            values.dtype.kind != "f"
        ):  # floating point keeps its precision, by which proportions are distinguished from counts
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"`y` must have numbers in the columns of all classes; got {values.dtype}, the first "
                    f"{values.flat[0]!r}."
                ) from None
        return cls(names, values)

    def __getitem__(self, rows: Any) -> ClassTable:
        return ClassTable(self.names, self.values[rows])

    def __len__(self) -> int:
        return len(self.values)

    def require(self, rows: int, classes: Array | None = None) -> None:
        """Require a row for each instance and the classes that were trained with, if any."""
        if len(self.values) != rows:
            raise ValueError(f"`y` must have an entry for each of the {rows} rows of X; got shape {self.values.shape}.")
        if classes is not None and len(classes) != len(self.names):
            raise ValueError(f"`y` must have a column for each of {len(classes)} classes; got {len(self.names)}.")
        if classes is not None and self.names.dtype.kind not in "iu" and self.names.tolist() != classes.tolist():
            raise ValueError(
                f"`y` must have the columns that were trained with, {classes.tolist()}; got {self.names.tolist()}."
            )

    def counts(self, bags: Bags, *, label: str, rounding: Any) -> Tensor:
        """(b, C) int64: how many of each bag are of each class, -1 where that is not known.

        Raises:
            ValueError: labels that differ within a bag, or that no bag of that size has.
        """
        values = torch.from_numpy(np.nan_to_num(self.values, nan=-1.0))  # a NaN would differ from itself
        stated = bags.common(values, name="y")
        if label == "count":
            return require_class_counts(stated, bags.sizes, names=bags.names)
        if len(bags.index) == len(bags) and bool(((stated != 0) & (stated != 1) & (stated != -1)).any()):
            raise ValueError(
                "`y` has proportions between 0 and 1, but without `groups` each row is a bag of its own, of one class. "
                "Pass fit(X, y, groups=...); in a pipeline or a search, enable scikit-learn's metadata routing."
            )
        shares = stated.masked_fill(stated == -1, torch.nan)
        return class_counts_of_proportions(shares, bags.sizes, rounding=rounding, names=bags.names)


def class_objective(loss: str, counts: Tensor) -> tuple[str, Objective]:
    """The loss of class counts with this name: "count" is the joint one, or where some are unknown the marginal one."""
    known = bool((counts >= 0).all())
    if loss == "count":
        loss = "joint" if known else "marginal"
    objectives: dict[str, Objective] = {
        "joint": CountObjective(ClassCounts),
        "marginal": CountObjective(MarginalClassCounts),
        "proportion": ProportionObjective(),
        "transport": TransportObjective(),
    }
    if loss not in objectives:
        raise ValueError(f"`loss` must be one of {', '.join(map(repr, objectives))} for several classes; got {loss!r}.")
    if not known and loss != "marginal":
        raise ValueError(f"`loss` must be 'marginal' where some counts are not known; got {loss!r}.")
    return loss, objectives[loss]
