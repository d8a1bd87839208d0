"""How improbable a model, and the baselines, find the label of each bag."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from kofn.bags import Bags
from kofn.estimators._baselines import BAG_MEANS, NO_FEATURES
from kofn.estimators._ensemble import mixed, mixed_losses
from kofn.estimators._llp_classifier import LLPClassifier
from kofn.estimators._rates import losses_without_features
from kofn.learners import BagObjective, Objective, PooledObjective
from kofn.learners._objectives import losses_of_entries
from kofn.metrics import bag_scores

MODEL = "model"


def bag_losses(
    estimator: Any,
    y: Any,
    bags: Bags,
    *,
    members: Tensor | None = None,
    bag_logits: NDArray[Any] | None = None,
    bag_means: Tensor | None = None,
) -> dict[str, Tensor]:
    """-log P(label) of each bag, (b,), by "model", by "no features" and, if its logits are given, by "bag means".

    Of label proportions that is the count loss whatever loss was trained with; of multiple instances the cross-entropy
    of a bag's label. The baseline without features is the best constant of training (`losses_without_features`).

    Args:
        estimator: fitted, of LLP or MIL.
        y: (n,) or (n, C) labels as its `fit` takes them.
        bags: which rows lie in which bag.
        members: (B, m) or (B, m, C) logits of the entries of the bags by each model.
        bag_logits: (b,) in their place, of an attention model.
        bag_means: (b,) or (b, C) logits of the bags by a linear model of their means.
    """
    if isinstance(estimator, LLPClassifier):
        _, stated, objective, _ = estimator._statement(y, bags, estimator.classes_)
        shares = estimator.label_shares_

        def losses(entries: Tensor) -> Tensor:
            return losses_of_entries(objective, entries, stated, bags.offsets, bags.copies)

        found = {NO_FEATURES: losses_without_features(objective, stated, bags.sizes, estimator.rate_, shares)}
        if members is not None:
            found[MODEL] = mixed_losses(torch.stack([losses(member) for member in members]))
        if bag_means is not None:
            found[BAG_MEANS] = losses(bag_means[bags.bag_of()])
        return found
    # Log-odds z of at least one positive: -log P(label) = log(1 + e^-z) of a positive bag, log(1 + e^z) of another.
    labels = estimator._bag_labels(y, bags, len(y))
    sign = 1 - 2 * labels.double()
    constant: Objective = BagObjective() if estimator.loss == "count" else PooledObjective()
    shares = estimator.label_shares_
    found = {NO_FEATURES: losses_without_features(constant, labels, bags.sizes, estimator.rate_, shares)}
    scores: dict[str, Tensor] = {}
    if bag_logits is not None:
        scores[MODEL] = torch.from_numpy(bag_logits)
    elif members is not None:
        each = [bag_scores(member, offsets=bags.offsets, copies=bags.copies) for member in members]
        scores[MODEL] = mixed(torch.stack(each))
    if bag_means is not None:
        scores[BAG_MEANS] = _of_equal(estimator, bag_means, bags)
    return found | {name: softplus(sign * score) for name, score in scores.items()}


def _of_equal(estimator: Any, logits: Tensor, bags: Bags) -> Tensor:
    """Log-odds (b,) of bags all of whose instances have the same logit; of a pooled loss that of the bag itself."""
    if estimator.loss != "count":
        return logits
    return bag_scores(logits[bags.bag_of()], offsets=bags.offsets, copies=bags.copies)
