"""What the labels of bags allow, and how improbable a model found them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from kofn.bags import Bags
from kofn.estimators._count_mixture import count_distribution
from kofn.estimators._ensemble import mixed_losses
from kofn.report._contents import Numbers, Task
from kofn.report._surprise import in_bits, tail_bits

TAIL = (
    "Surprise is a tail probability: how often the count would be at least as far out as the {word} one, on either "
    "side, if the model were right."
)
LABEL = "Surprise is the probability that the model gave to the bag's label."
DENSITY = "Surprise is the likelihood of the number that was told, noise included."


@dataclass(frozen=True, eq=False)
class LabelSurprise:
    """Of b bags: the counts that labels allow, (b, 2), how improbable they were, (b,) in bits, and by what measure."""

    bounds: Tensor | None
    bits: Numbers | None
    meaning: str


def label_surprise(
    estimator: Any, task: Task, labels: Any, bags: Bags, log_odds: Tensor, counts: Tensor | None, bag_logits: Any
) -> LabelSurprise:
    """Of two classes.

    Args:
        estimator: fitted.
        task: its task.
        labels: (n,) or (n, 2) of the rows, or None.
        bags: of the rows.
        log_odds: (B, m) of the entries of bags by each of B models.
        counts: (b,) exact counts, if they are known; they are asked for where there are no labels of bags.
        bag_logits: (b,) log-odds of the bags by an attention model, or None.
    """
    dist = count_distribution(log_odds, bags.offsets, estimator.bag_effect_)
    if labels is not None and task == "llp":
        _, stated, objective, about = estimator._statement(labels, bags, estimator.classes_)
        if estimator.noise is not None:
            losses = mixed_losses(torch.stack([objective(member, stated, bags.offsets) for member in log_odds]))
            return LabelSurprise(None, in_bits(-losses), DENSITY)
        bounds = stated if estimator.label == "interval" else torch.stack([about.floor(), about.ceil()], 1).long()
        return LabelSurprise(bounds, tail_bits(dist, *bounds.unbind(1)), TAIL.format(word="known"))
    if labels is not None and task == "mil":
        positive = estimator._bag_labels(labels, bags, len(labels)) == 1
        bounds = torch.stack([positive.long(), torch.where(positive, bags.sizes, 0)], 1)
        if bag_logits is not None:
            scores = torch.as_tensor(bag_logits)
            return LabelSurprise(bounds, in_bits(logsigmoid(torch.where(positive, scores, -scores))), LABEL)
        return LabelSurprise(bounds, in_bits(dist.log_prob_between(*bounds.unbind(1))), LABEL)
    if counts is not None:
        return LabelSurprise(
            torch.stack([counts, counts], 1), tail_bits(dist, counts, counts), TAIL.format(word="true")
        )
    return LabelSurprise(None, None, "")
