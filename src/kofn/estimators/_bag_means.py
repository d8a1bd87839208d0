"""A linear model of the means of bags: what anybody would try first, and what a model must beat."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn._io.mapped import release
from kofn.bags import Bags
from kofn.learners import BagObjective, PooledObjective, Problem, PUProblem
from kofn.learners._design import Design

MOST = 20_000  # bags or rows that it is fitted to: it is to take a second
WIDE = 512  # columns, beyond which the table is sparse
MOST_WIDE = 1000  # bags that it is then fitted to
ROWS = 1 << 16  # whose features are made at a time
KINDS = ("share", "any", "bag", "row")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BagFeatures:
    """The features that it sees: means over each bag, or of positives and unlabelled the rows themselves.

    Attributes:
        design: that standardises the columns.
        table: (units, width) float64; sparse where there are many columns of categories.
    """

    design: Design
    table: Any

    @classmethod
    def of(cls, problem: Problem) -> BagFeatures | None:
        """Those of all bags of a problem; None for instances that are no table."""
        if problem.instances.ndim != 2:
            return None
        design = Design.learn(problem.instances, problem.categories)
        return cls(design, _means(design, problem.instances, None if isinstance(problem, PUProblem) else problem.bags))

    def rows(self, units: Tensor) -> Any:
        """The features of some units."""
        return self.table[units.numpy()]


@dataclass(frozen=True, eq=False)
class BagMeans:
    """A fitted linear model of the means of bags.

    Attributes:
        design: that standardises the columns.
        weights: (width + 1,) or, of several classes, (width + 1, C); the intercept comes last.
        kind: what it predicts: "share", the proportions of a bag, by ridge regression; "any", the label of a bag of
            which at least one instance is positive, by logistic regression; "bag", the same where the bag has one
            logit; "row", whether a row is labelled, by logistic regression, the intercept moved until the mean
            probability of the unlabelled is the mixture.
    """

    design: Design
    weights: Floats
    kind: str

    @classmethod
    def fit(cls, problem: Problem, features: BagFeatures, units: Tensor | None = None) -> BagMeans | None:
        """Fit to some units (bags, or rows of positives and unlabelled), by default to all.

        None where there is one label only, or one bag.
        """
        if isinstance(problem, PUProblem):
            part = problem if units is None else problem.take(units)
            return cls._of_rows(features, part)
        most = MOST if features.design.width <= WIDE else MOST_WIDE
        units = (torch.arange(len(problem.bags)) if units is None else units)[:most]
        x, y = features.rows(units), problem.proportions[units].double().numpy()
        kind = _kind(problem)
        if kind == "share":
            if len(y) < 2:  # nothing is left to choose a penalty on
                return None
            from sklearn.linear_model import RidgeCV

            model = RidgeCV(alphas=np.logspace(-1, 5, 13)).fit(x, y)
            return cls(features.design, _weights(model.coef_, model.intercept_), kind)
        return None if len(np.unique(y)) < 2 else cls(features.design, _logistic(x, y), kind)

    @classmethod
    def _of_rows(cls, features: BagFeatures, part: PUProblem) -> BagMeans | None:
        from scipy.optimize import brentq

        rows = part.chosen[torch.linspace(0, len(part.chosen) - 1, min(MOST, len(part.chosen))).long()]
        y = part.labeled[rows].numpy()
        if y.all() or not y.any():
            return None
        weights = _logistic(features.rows(rows), y)
        unlabelled = part.chosen[~part.labeled[part.chosen]]
        scores = torch.from_numpy(_linear(features.rows(unlabelled), weights))
        weights[-1] += brentq(lambda b: float(torch.sigmoid(scores + b).mean()) - float(part.rate), -100.0, 100.0)
        return cls(features.design, weights, "row")

    def logits(self, table: Any, sizes: Tensor) -> Tensor:
        """Logits (units,) or (units, C): of an instance, or of kind "bag" of a bag; from features and bag sizes."""
        found = torch.from_numpy(_linear(table, self.weights))
        if self.kind == "share":
            # Nearer to 0 or 1 than half an instance nobody knows a bag.
            half = 0.5 / (sizes.double() + 1)
            if found.dim() == 2:
                return torch.maximum(found, half.unsqueeze(1)).log()
            return torch.logit(torch.clamp(found, half, 1 - half))
        if self.kind == "any":
            # P(S >= 1) = 1 - (1 - p)^n, so with t = -log P(S = 0) / n the odds p / (1 - p) are e^t - 1.
            return torch.log(torch.expm1(torch.nn.functional.softplus(found) / sizes.double()))
        return found

    def predict(self, instances: NDArray[np.float32], bags: Bags | None) -> Tensor:
        """The same of other bags; without bags, of rows."""
        sizes = torch.ones(len(instances)) if bags is None else bags.sizes
        return self.logits(_means(self.design, instances, bags), sizes)

    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What a model file keeps of it."""
        facts, tensors = self.design.to_model()
        return {"kind": self.kind, "design": facts}, tensors | {"weights": torch.from_numpy(self.weights)}

    @classmethod
    def from_model(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], outputs: tuple[int, ...]) -> BagMeans:
        """What a model file kept.

        Raises:
            ValueError: weights that are not those of the design or of the classes.
        """
        design, weights = Design.from_model(facts["design"], tensors), tensors["weights"].numpy()
        if weights.dtype != np.float64 or weights.shape != (design.width + 1, *outputs):
            raise ValueError(
                f"the model of bag means must have {design.width + 1} weights; it has {weights.shape}, of "
                f"{weights.dtype}."
            )
        if facts["kind"] not in KINDS:
            raise ValueError(f"the model of bag means must predict one of {', '.join(KINDS)}; got {facts['kind']!r}.")
        return cls(design, weights, facts["kind"])


def _kind(problem: Problem) -> str:
    objective = problem.objective
    if not isinstance(objective, (BagObjective, PooledObjective)):
        return "share"
    # Of equal instances every pool is one of them.
    return "bag" if isinstance(objective, PooledObjective) or objective.pool is not None else "any"


def _means(design: Design, instances: NDArray[np.float32], bags: Bags | None) -> Any:
    """Means over the bags of what the design makes of instances, (units, width); without bags, that of each.

    Categories are counted, not spread out into a column of each row.
    """
    from scipy.sparse import csr_matrix, hstack, vstack

    numbers, categories = [], []
    width = design.width - design.dense_width
    for index, part in _chunks(instances, bags):
        rows = design.features(instances[index])
        release(instances)
        numbers.append(part.mean(rows.numbers).double().numpy())
        unit = part.bag_of().unsqueeze(1).expand(rows.places.shape)
        share = 1 / part.sizes.double()[unit]
        if part.copies is not None:
            share = share * part.copies.unsqueeze(1)
        known = rows.places < width
        cells = share[known].numpy(), (unit[known].numpy(), rows.places[known].numpy())
        categories.append(csr_matrix(cells, shape=(len(part), width)))
    dense, sparse = np.concatenate(numbers), vstack(categories, format="csr")
    if design.width <= WIDE:
        return np.concatenate([dense, sparse.toarray()], axis=1)
    return hstack([csr_matrix(dense), sparse], format="csr")


def _chunks(instances: NDArray[np.float32], bags: Bags | None) -> Iterator[tuple[Any, Bags]]:
    """Positions of about so many rows as are looked at together, bag after bag, and the bags of these rows."""
    if bags is None:
        for start in range(0, len(instances), ROWS):
            rows = slice(start, min(start + ROWS, len(instances)))
            yield rows, Bags.from_sizes(torch.ones(rows.stop - start, dtype=torch.int64))
        return
    starts = torch.searchsorted(bags.offsets, torch.arange(0, len(bags.index), ROWS)).unique()
    for some in torch.arange(len(bags)).tensor_split(starts[1:]):
        index, offsets, copies = bags.gather(some)
        yield index.numpy(), Bags(torch.arange(len(index)), offsets, copies=copies)


def _logistic(x: Any, y: Any) -> Floats:
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is no matter here
        model = LogisticRegression(max_iter=200).fit(x, y)
    return _weights(model.coef_[0], model.intercept_[0])


def _weights(coefficients: Any, intercept: Any) -> Floats:
    """(width + 1,) or (width + 1, C) from what scikit-learn has, (width,) and () or (C, width) and (C,)."""
    return np.concatenate([np.asarray(coefficients, np.float64).T, np.asarray(intercept, np.float64)[None]])


def _linear(table: Any, weights: Floats) -> Floats:
    found: Floats = table @ weights[:-1] + weights[-1]
    return found
