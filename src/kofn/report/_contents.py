"""What a report says, as plain data: strings, numbers and numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kofn.estimators._measure_names import Form
from kofn.estimators._verdicts import Source, Verdict
from kofn.report._column_contents import ColumnEffect, Importance, RowCurves
from kofn.report._detail_contents import BagDetails
from kofn.report._paired_contents import PairedBags

Task = Literal["llp", "mil", "pu"]
Numbers = NDArray[np.float64]
Image = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Metric:
    """One number of how good the model is.

    Attributes:
        name: a few words.
        value: the number; a string is shown as it is.
        meaning: one sentence for a reader who does not know the name.
        form: how a number is shown: 0.93 as "percent" is 93 %, as a "score" 0.930.
    """

    name: str
    value: float | str
    meaning: str
    form: Form = "number"


@dataclass(frozen=True)
class Method:
    """One row of a comparison.

    Attributes:
        name: of the method.
        scores: one for each task, larger is better; None where the method does not apply.
        role: "count" for the count loss, "baseline", or "bound" for a model that saw every instance's label.
    """

    name: str
    scores: Sequence[float | None]
    role: Literal["count", "baseline", "bound"] = "baseline"


@dataclass(frozen=True)
class Comparison:
    """Methods beside each other, on one task or several.

    Attributes:
        tasks: names of the columns.
        methods: the rows.
        measure: what the scores are, such as "AUC on held-out instances"; they lie between 0 and 1.

    Examples:
        >>> from kofn.report import Comparison, Method, Report, render
        >>> methods = [Method("count loss", [0.98], "count"), Method("mean pooling", [0.95])]
        >>> page = render(Report("Two methods", comparison=Comparison(["digits"], methods, "AUC")))
        >>> "mean pooling" in page
        True
    """

    tasks: Sequence[str]
    methods: Sequence[Method]
    measure: str


@dataclass(frozen=True, eq=False)
class Confusion:
    """How many instances of each true class are predicted to be of each class.

    Attributes:
        classes: their names.
        counts: (C, C): of each true class, a row, how many are predicted to be of each class, a column.

    Examples:
        >>> import numpy as np
        >>> from kofn.report import Confusion, Report, render
        >>> page = render(Report("Pets", confusion=Confusion(["cat", "dog", "fox"], np.eye(3, dtype=int) * 7)))
        >>> "True and predicted classes" in page
        True
    """

    classes: Sequence[str]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BagTable:
    """What the model says of each bag's count, one entry for each of b bags.

    Attributes:
        names: of the bags.
        sizes: (b,) instances.
        expected: (b,) expected number of positives.
        low, high: (b,) ends of the central 90 % interval of the exact distribution.
        at_least_one: (b,) P(S >= 1).
        known: (b,) the known number of positives, NaN where it is not known; None when it never is.
        exact: whether the known counts are the counts themselves; False if noise was added to them.
        told: whether the known counts were told to the model; False if they are a truth that it never saw.
        labels: (b,) what the bag's label says, in words; None when there are none.
        positive: (b,) whether the bag's label says that it has a positive instance; None when labels say other things.
        surprise: (b,) how improbable the bag's label was, in bits: -log2 of a probability; NaN where there is no label.
        surprise_meaning: of which probability, in a sentence.
        listed: places of the bags to list; None for all, or the first 300.
        note: how these were chosen.
        areas: whether the distribution of counts says how many are positive. "At least one" does not tell that: without
            a truth to compare with, expected counts and intervals of multiple instances are not shown.
    """

    names: Sequence[str]
    sizes: NDArray[np.int64]
    expected: Numbers
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    at_least_one: Numbers
    known: Numbers | None = None
    exact: bool = True
    told: bool = True
    labels: Sequence[str] | None = None
    positive: NDArray[np.bool_] | None = None
    surprise: Numbers | None = None
    surprise_meaning: str = ""
    listed: NDArray[np.int64] | None = None
    note: str = ""
    areas: bool = True

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Whether the distributions of counts are as wide as they should be; see `kofn.metrics.count_calibration`.

    Attributes:
        levels: nominal probabilities of central intervals.
        coverage: the share of bags whose count each interval holds.
        pit: shares of the bags' P(S <= known count) in equal parts of [0, 1]: all alike if calibrated.
        n_bags: how many bags it was measured on.
    """

    levels: Sequence[float]
    coverage: Sequence[float]
    pit: Sequence[float]
    n_bags: int


@dataclass(frozen=True, eq=False)
class BagDistribution:
    """The distribution of one bag's count.

    Attributes:
        name: of the bag.
        after: (n + 1,) P(S = k) by the trained model.
        before: (n + 1,) by the network before training; None if that is not known.
        known: the known count, or None.

    Examples:
        >>> import numpy as np
        >>> from kofn.report import BagDistribution, Report, render
        >>> distribution = BagDistribution("ward 7", after=np.array([0.1, 0.8, 0.1]), known=1)
        >>> "ward 7" in render(Report("One distribution", task="llp", distributions=[distribution]))
        True
    """

    name: str
    after: Numbers
    before: Numbers | None = None
    known: int | None = None


@dataclass(frozen=True, eq=False)
class Instance:
    """One instance of an example bag.

    Attributes:
        probability: that it is positive.
        image: uint8, (h, w) or (h, w, 3); None if it is no image.
        cells: its values under the bag's columns.
        truth: whether it is positive, if that is known.
    """

    probability: float
    image: Image | None = None
    cells: Sequence[str] = ()
    truth: bool | None = None


@dataclass(frozen=True, eq=False)
class ExampleBag:
    """A bag and its instances, the most positive first.

    Attributes:
        name: of the bag.
        size: how many instances it has; those shown may be fewer.
        instances: in descending order of probability.
        label: what the bag's label says, in words.
        columns: names of the instances' cells.
        distribution: of the bag's count, to be shown beside.

    Examples:
        >>> from kofn.report import ExampleBag, Instance, Report, render
        >>> rows = [Instance(0.9, cells=["41"]), Instance(0.2, cells=["29"])]
        >>> bag = ExampleBag("ward 7", 2, rows, label="one of two", columns=["age"])
        >>> "one of two" in render(Report("One bag", task="llp", examples=[bag]))
        True
    """

    name: str
    size: int
    instances: Sequence[Instance]
    label: str = ""
    columns: Sequence[str] = ()
    distribution: BagDistribution | None = None


@dataclass(frozen=True, eq=False)
class Binomial:
    """Distributions of the count in bags of unlabelled instances, against the binomial that the mixture implies.

    Attributes:
        mixture: fraction of positives among the unlabelled.
        reference: (n + 1,) the binomial of n and the mixture.
        distributions: predicted distributions of some bags of n, each (n + 1,).
        before: the same before training; empty if that is not known.
        labelled: (p,) probabilities of the labelled positives to be positive; None if there are none.
        unlabelled: (u,) probabilities of the unlabelled instances.
    """

    mixture: float
    reference: Numbers
    distributions: Sequence[Numbers]
    before: Sequence[Numbers] = ()
    labelled: Numbers | None = None
    unlabelled: Numbers | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """All that a page shows. A section appears when its data are there.

    Attributes:
        title: heading.
        task: "llp", "mil" or "pu"; None for a page that only compares or holds other reports.
        facts: names and values: what was trained on what.
        metrics: how good it is.
        history: a mapping for each step (epoch, round or penalty) with its number, train_loss and, with validation,
            val_loss.
        best_step: the number of the step that was kept.
        comparison: methods beside each other.
        bags: what the model says of each bag.
        calibration: of the counts.
        distributions: of a few bags, before and after training.
        typical_bag: one whole bag, about half of it positive, that shows what the model makes of a bag's label.
        examples: the most positive instances of some bags.
        binomial: for positive-unlabelled learning.
        confusion: of several classes, which are taken for which.
        sensitivity: what other mixtures would change, as `PUClassifier.sensitivity` returns it.
        importance: of the columns of a table.
        effects: of the leading columns.
        row_curves: of rows whose truth is known.
        details: the bags of the table that can be opened.
        parts: further reports, as chapters of the same page.
        verdicts: whether to trust the model: on skill, calibration and rows.
        source: what sections are about: "held-out" bags of the training data, "new" data, or "training" data.
        scope: in a sentence, which rows were measured and which are drawn.
        paired: two models, bag by bag.
        paired_calibration: of the counts by each of the two.
    """

    title: str
    task: Task | None = None
    facts: Sequence[tuple[str, str]] = ()
    metrics: Sequence[Metric] = ()
    history: Sequence[Mapping[str, float]] = ()
    best_step: int | None = None
    comparison: Comparison | None = None
    bags: BagTable | None = None
    calibration: Calibration | None = None
    distributions: Sequence[BagDistribution] = ()
    typical_bag: ExampleBag | None = None
    examples: Sequence[ExampleBag] = ()
    binomial: Binomial | None = None
    confusion: Confusion | None = None
    sensitivity: Sequence[Mapping[str, float]] = ()
    importance: Importance | None = None
    effects: Sequence[ColumnEffect] = ()
    row_curves: RowCurves | None = None
    details: BagDetails | None = None
    parts: Sequence[Report] = ()
    verdicts: Sequence[Verdict] = ()
    source: Source | None = None
    scope: str = ""
    paired: PairedBags | None = None
    paired_calibration: Sequence[Calibration] = ()

    @property
    def has_validation(self) -> bool:
        """Whether some step of the history has a loss of held-out bags."""
        return any(np.isfinite(entry.get("val_loss", np.nan)) for entry in self.history)
