"""On which rows a fitted model may be judged, and by which scores: held-out ones, new ones, or those of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators._ensemble import mixed
from kofn.estimators._fingerprint import Fingerprint
from kofn.estimators._mil_classifier import ATTENTION
from kofn.estimators._pu_classifier import PUClassifier
from kofn.estimators._row_labels import bags_of
from kofn.estimators._verdicts import Source
from kofn.learners._network import FittedNetwork

SEEN = 0.1  # share of bags of the training data from which on data are not called new


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows to judge a model on, with scores that are as honest as can be had.

    Attributes:
        source: "held-out" if these are rows of the training data, with scores by models that had not seen them; "new"
            if the model was not trained on them; "training" if it was, and nothing was held out.
        seen: the share of the bags that are in the training data.
        rows: (n,) which of the given rows are judged: all but for "held-out".
        members: (B, k) or (B, k, C) logits of the k judged rows by each model.
        bags: the bags of the judged rows; of positives and unlabelled None.
        bag_logits: (b,) of an attention model, which scores bags by itself.
        bag_means: logits of the bags, or rows, by a linear model of their means; None where there is none.
        parts: in which "held-out" rows were held out: 5 for five folds.
    """

    source: Source
    seen: float
    rows: NDArray[np.bool_]
    members: Tensor
    bags: Bags | None
    bag_logits: NDArray[np.float64] | None = None
    bag_means: Tensor | None = None
    parts: int = 1

    @property
    def logits(self) -> NDArray[np.float64]:
        """(k,) or (k, C) of the judged rows."""
        return mixed(self.members, classes=self.members.dim() == 3).numpy()


def training_data_of(estimator: Any) -> Fingerprint:
    """How a model knows its training data again.

    Raises:
        ValueError: it was fitted without diagnostics.
    """
    known: Fingerprint | None = estimator.fingerprint_
    if known is None:
        raise ValueError(
            "`diagnostics` must be True in the fit of a model that is to be judged: without, it does not know which "
            "data it was trained on. Fit it again."
        )
    return known


def held_out_words(estimator: Any) -> str:
    """What a model's held-out data are called."""
    parts = estimator.held_out_parts_
    return "held-out data" + (f" ({parts}-fold cross-validation)" if parts > 1 else "")


def judge(estimator: Any, X: Any, groups: Any = None, copies: Any = None) -> Judged:
    """Held-out rows with held-out scores if X are the training data; else all rows with the scores of the model.

    Args:
        estimator: fitted.
        X: (n, ...) instances.
        groups: (n,) the bag of each row; None makes each row its own, as in `fit`.
        copies: (n,) how many times each row is in its bag.
    """
    instances = estimator._instances(X)
    rows, attention = len(instances), estimator.loss in ATTENTION
    bags = None if isinstance(estimator, PUClassifier) else bags_of(groups, rows, copies)
    known = training_data_of(estimator)
    whole = known.is_of(instances, bags)
    if whole and len(estimator.held_out_):
        return _held_out(estimator, instances, bags)
    seen = 1.0 if whole else known.share_seen(instances, None if groups is None else bags)
    means = None if estimator.bag_means_ is None else estimator.bag_means_.predict(instances, bags)
    bags = None if bags is None else bags.repeated()
    return Judged(
        "training" if seen >= SEEN else "new",
        seen,
        np.ones(rows, dtype=bool),
        estimator._member_logits(X),
        bags,
        estimator._pooled_logits(instances, bags) if attention else None,
        means,
    )


def was_trained_on(estimator: Any, X: Any, groups: Any = None, copies: Any = None) -> bool:
    """Whether a tenth or more of these bags, or rows, are of the training data; arguments as for `judge`."""
    instances = estimator._instances(X)
    bags = None if isinstance(estimator, PUClassifier) or groups is None else bags_of(groups, len(instances), copies)
    return bool(training_data_of(estimator).share_seen(instances, bags) >= SEEN)


def _held_out(estimator: Any, instances: Any, bags: Bags | None) -> Judged:
    """Trees and linear models are fitted again to all bags: the model itself has seen them, and must not be asked."""
    part: Bags | None = None
    pooled, scores = None, estimator.held_out_logits_
    rows = np.zeros(len(instances), dtype=bool)
    if bags is None:
        rows[estimator.held_out_] = True
    else:
        of_held = bags.select(torch.from_numpy(estimator.held_out_)).repeated()
        rows[of_held.index.numpy()] = True
        place = torch.from_numpy(rows.cumsum() - 1)
        part = Bags(place[of_held.index], of_held.offsets, names=[bags.names[bag] for bag in estimator.held_out_])
    if scores is None and part is not None:
        # A network that pools, which is fitted once, to the other bags; its bootstrap is to all.
        fitted = cast(FittedNetwork, estimator.fitted_)
        scores = np.full(len(rows), np.nan)
        scores[rows] = fitted.logits(instances[rows])
        pooled = fitted.bag_logits(instances[rows], part)
    means = estimator.held_out_bag_means_
    return Judged(
        "held-out",
        1.0,
        rows,
        torch.from_numpy(scores[rows]).unsqueeze(0),
        part,
        pooled,
        None if means is None else torch.from_numpy(means),
        estimator.held_out_parts_,
    )
