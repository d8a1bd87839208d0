"""The kernel machine with which the mutual contamination loss was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from kofn import _require
from kofn.losses import mutual_contamination_loss, pair_bags
from kofn.losses._llp import require_pairs

Array = NDArray[np.float64]
RIDGE_OF_ROUNDING = 1e-8  # on the kernel's diagonal, so that rounding does not make it indefinite


@dataclass
class MutualContaminationKernelMachine:
    """LMMCM as published: an RBF kernel machine, its ridge penalty chosen by cross-validation over pairs of bags.

        f(x) = sum_i a_i exp(-gamma |x - x_i|^2),  minimising  mutual_contamination_loss(f) + penalty |f|^2,

    where |f|^2 = a' K a, by L-BFGS. The held-out score is the loss itself, which is unbiased.

    Args:
        gamma: width of the kernel; "scale" is 1 / (features * variance of X), as in scikit-learn.
        penalties: the ridge penalties to choose from.
        folds: number of folds of pairs; with fewer pairs, each pair is a fold.
        landmarks: so many instances, drawn at random, are the x_i of f (Nystroem's approximation): the cost falls from
            m^3 to m landmarks^2. None takes all, as published.
        random_state: seed of the folds and of the landmarks.

    Attributes:
        penalty_: the chosen penalty.
        scores_: mean held-out loss of each penalty.

    Examples:
        >>> import numpy as np
        >>> from paper.kernel_machine import MutualContaminationKernelMachine
        >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])  # a bag of positives, a bag of negatives
        >>> machine = MutualContaminationKernelMachine(penalties=(0.01,)).fit(X, [1.0, 0.0], [0, 2, 4])
        >>> machine.decision_function(np.array([[0.05], [1.05]])) > 0
        array([ True, False])

    Reference:
        Scott, Zhang. Learning from Label Proportions: A Mutual Contamination Framework. NeurIPS 2020.
    """

    gamma: float | str = "scale"
    penalties: Sequence[float] = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    folds: int = 5
    landmarks: int | None = None
    random_state: int = 0
    penalty_: float = field(init=False, repr=False)
    scores_: dict[float, float] = field(init=False, repr=False)

    def fit(self, X: ArrayLike, proportions: ArrayLike, offsets: ArrayLike) -> MutualContaminationKernelMachine:  # noqa: N803
        """Choose the penalty, then fit all pairs.

        Args:
            X: (m, d) features of the instances.
            proportions: (b,) of positives in the bags, from 0 to 1.
            offsets: (b + 1,) from 0 to m; bag j is ``X[offsets[j]:offsets[j + 1]]``.

        Returns:
            The machine itself.
        """
        self._x: Array = np.asarray(X, dtype=np.float64)
        spread = float(self._x.var()) or 1.0
        self._gamma = 1.0 / (self._x.shape[1] * spread) if self.gamma == "scale" else float(self.gamma)
        bags, everything = _Bags(proportions, offsets), self._x
        self._centres = self._choose(len(everything))
        self._x = everything[self._centres]
        kernel = self._kernel(everything)
        self.scores_ = dict.fromkeys(map(float, self.penalties), 0.0)
        if len(self.scores_) > 1:
            shuffled = bags.pairs[np.random.default_rng(self.random_state).permutation(len(bags.pairs))]
            folds = min(self.folds, len(shuffled))
            if folds < 2:
                raise ValueError(
                    f"`penalties` are chosen by cross-validation, which needs two pairs of bags; got {len(shuffled)}. "
                    f"Give one penalty, or more bags."
                )
            for held_out in np.array_split(np.arange(len(shuffled)), folds):
                self._score(kernel, bags, np.delete(shuffled, held_out, axis=0), shuffled[held_out])
        self.penalty_ = min(self.scores_, key=self.scores_.__getitem__)
        used, (self._weights,) = _fit(kernel, self._centres, bags, bags.pairs, [self.penalty_])
        self._x = self._x[used]
        return self

    def decision_function(self, X: ArrayLike) -> Array:  # noqa: N803
        """Log-odds f(x) of each row of X, (m, d) to (m,)."""
        scores: Array = self._kernel(np.asarray(X, dtype=np.float64)) @ self._weights
        return scores

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:  # noqa: N803
        """1 where f(x) > 0, else 0."""
        return (self.decision_function(X) > 0).astype(np.int64)

    def _choose(self, instances: int) -> NDArray[np.int64]:
        """Positions of the centres, ascending."""
        if self.landmarks is None:
            return np.arange(instances)
        _require.whole_number("landmarks", self.landmarks, low=1)
        order = np.random.default_rng(self.random_state).permutation(instances)
        return np.sort(order[: self.landmarks])

    def _kernel(self, rows: Array) -> Array:
        values: Array = _require.package("sklearn.metrics.pairwise", extra="train").rbf_kernel(
            rows, self._x, gamma=self._gamma
        )
        return values

    def _score(self, kernel: Array, bags: _Bags, train: NDArray[np.int64], held_out: NDArray[np.int64]) -> None:
        """Add to each penalty's score its loss on the pairs held out."""
        used, solutions = _fit(kernel, self._centres, bags, train, list(self.scores_))
        for penalty, weights in zip(self.scores_, solutions, strict=True):
            value, _ = bags.loss(kernel[:, used] @ weights, held_out)
            self.scores_[penalty] += value * len(held_out) / len(bags.pairs)


class _Bags:
    """Proportions, offsets and pairs of bags, and the loss of scores with its gradient."""

    def __init__(self, proportions: ArrayLike, offsets: ArrayLike) -> None:
        self._proportions = torch.as_tensor(np.asarray(proportions, dtype=np.float64))
        self.offsets = torch.as_tensor(np.asarray(offsets, dtype=np.int64))
        pairs = require_pairs(pair_bags(self._proportions), self._proportions)
        self.pairs: NDArray[np.int64] = pairs.numpy()

    def loss(self, scores: Array, pairs: NDArray[np.int64]) -> tuple[float, Array]:
        f = torch.from_numpy(scores).requires_grad_()
        with torch.enable_grad():
            value = mutual_contamination_loss(f, self._proportions, pairs=torch.from_numpy(pairs), offsets=self.offsets)
        (slope,) = torch.autograd.grad(value, f)
        return value.item(), slope.numpy()

    def rows(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The instances of these pairs."""
        ends = self.offsets.numpy()
        return np.concatenate([np.arange(ends[bag], ends[bag + 1]) for bag in np.unique(pairs)])


def _fit(
    kernel: Array,
    centres: NDArray[np.int64],
    bags: _Bags,
    pairs: NDArray[np.int64],
    penalties: Sequence[float],
) -> tuple[NDArray[np.int64], list[Array]]:
    """Which columns of the kernel (m, c) are instances of the pairs, and their weights for each penalty.

    With K = L L' over these centres and w = L'a, |f|^2 = a'Ka is |w|^2: as well conditioned as the loss is. The scores
    of the rows are K_rows a = (L^-1 K_rows')' w, which is L w where every row is a centre.
    """
    linalg = _require.package("scipy.linalg", extra="train")
    minimize = _require.package("scipy.optimize", extra="train").minimize
    rows = bags.rows(pairs)
    used: NDArray[np.int64] = np.isin(centres, rows).nonzero()[0]
    square = kernel[np.ix_(centres[used], used)]
    lower: Array = linalg.cholesky(square + RIDGE_OF_ROUNDING * np.eye(len(used)), lower=True)
    basis = lower
    if len(used) < len(rows):
        basis = np.ascontiguousarray(linalg.solve_triangular(lower, kernel[np.ix_(rows, used)].T, lower=True).T)
    scores = np.zeros(len(kernel))

    def objective(w: Array, penalty: float) -> tuple[float, Array]:
        scores[rows] = basis @ w
        value, slope = bags.loss(scores, pairs)
        return value + penalty * float(w @ w), basis.T @ slope[rows] + 2 * penalty * w

    solutions, w = [], np.zeros(len(used))
    for penalty in penalties:  # each starts where the one before ended
        w = minimize(objective, w, args=(penalty,), jac=True, method="L-BFGS-B").x
        solutions.append(linalg.solve_triangular(lower, w, lower=True, trans="T"))
    return used, solutions
