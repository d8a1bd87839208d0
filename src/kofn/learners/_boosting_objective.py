"""Any loss of logits as the objective of a library of boosted trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.learners._surrogate import curvature

Floats = NDArray[np.float64]
BoostingObjective = Callable[[Any, Any], tuple[Floats, Floats]]


def boosting_objective(loss: Callable[[Tensor], Tensor], *, weight: Tensor | None = None) -> BoostingObjective:
    r"""The gradient and the curvature of a loss: ``grad`` and ``hess`` of LightGBM and XGBoost.

    The gradient is the loss's own, by autograd: for a count loss p_i - P(y_i = 1 | label of the bag), exact. The
    curvature is w_i p_i (1 - p_i), that of the bound of expectation-maximisation which touches the loss there, so that
    each round of boosting is a generalised EM step.

    Args:
        loss: from logits (n,) of the rows, or (n, C) of several classes, float64, to one number: a *sum* over bags, so
            that a row's gradient does not depend on how many bags there are.
        weight: (n,) float64, how many times each row counts; by default once.

    Returns:
        A function of the scores of the rows and of the library's data set, which it does not look at, that gives the
        gradient and the curvature, of the shape of the logits: ``params["objective"]`` of `lightgbm.train`, ``obj`` of
        `xgboost.train`.

    Examples:
        >>> import lightgbm, numpy as np, torch, kofn
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> truth = torch.from_numpy(X[:, 0] > 0)
        >>> offsets, counts = torch.arange(0, 401, 4), truth.reshape(100, 4).sum(1)
        >>> def loss(logits):
        ...     return kofn.count_loss(logits, kofn.Exactly(counts), offsets=offsets, reduction="sum")
        >>> objective = kofn.learners.boosting_objective(loss)
        >>> trees = lightgbm.train({"objective": objective, "verbose": -1}, lightgbm.Dataset(X), 50)
        >>> bool(((trees.predict(X) > 0) == truth.numpy()).mean() > 0.95)
        True
    """

    def gradient_and_curvature(scores: Any, _: Any) -> tuple[Floats, Floats]:
        logits = torch.from_numpy(np.asarray(scores, dtype=np.float64)).requires_grad_()
        with torch.enable_grad():
            value = loss(logits)
        (slope,) = torch.autograd.grad(value, logits)
        rows = logits.detach()
        bend = curvature(rows, slope, rows.new_ones(len(rows)) if weight is None else weight)
        return slope.numpy(), bend.numpy()

    return gradient_and_curvature
