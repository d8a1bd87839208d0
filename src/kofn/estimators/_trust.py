"""Whether to trust a fitted model: three verdicts from the rows that it may be judged on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kofn import metrics
from kofn.bags import Bags
from kofn.estimators._bag_losses import MODEL, bag_losses
from kofn.estimators._baselines import BAG_MEANS, NO_FEATURES
from kofn.estimators._count_errors import calibration_where_known, counts_of
from kofn.estimators._ensemble import mixed
from kofn.estimators._judged import Judged
from kofn.estimators._measures import known_counts
from kofn.estimators._mil_classifier import MILClassifier
from kofn.estimators._pu_classifier import PUClassifier
from kofn.estimators._pu_trust import calibration_of_share, skill_of_order
from kofn.estimators._row_labels import whole_truth
from kofn.estimators._row_verdict import row_verdict
from kofn.estimators._verdict_words import BRACKETS, gain_text, opening, percent_text
from kofn.estimators._verdicts import LEVEL, Source, Verdict, mark_of_coverage, mark_of_gains, mean_of, share_of


def verdicts(estimator: Any, judged: Judged, y: Any = None, truth: Any = None) -> list[Verdict]:
    """Three verdicts: on skill, on calibration and on rows; the rules are those of `_verdicts`.

    Args:
        estimator: fitted.
        judged: rows and scores.
        y: (k,) or (k, C) labels of the judged rows, as its `fit` takes them, or None.
        truth: (k,) true classes of the judged rows, 0 and 1 or 0 to C - 1, -1 where not known: rows with a class are
            judged, and counts are not told.
    """
    if isinstance(estimator, PUClassifier):
        labelled = np.zeros(judged.members.shape[1], bool) if y is None else np.asarray(y == estimator.classes_[1])
        of_labels = skill_of_order(judged, labelled), calibration_of_share(estimator, judged, labelled, truth)
        return [*of_labels, row_verdict(estimator, judged, y, truth, ~labelled)]
    return [
        _skill(estimator, judged, y),
        _calibration(estimator, judged, y, whole_truth(truth)),
        row_verdict(estimator, judged, y, truth, np.ones(judged.members.shape[1], bool)),
    ]


def _skill(estimator: Any, judged: Judged, y: Any) -> Verdict:
    """How much more probable than the baselines the model finds the labels of bags."""
    bags, source = judged.bags, judged.source
    if y is None or bags is None:
        return Verdict("skill", "unknown", "Not known: these data have no labels of bags to compare with.")
    of_bags, means = judged.bag_logits, judged.bag_means
    entries = judged.members[:, bags.index] if of_bags is None else None
    losses = bag_losses(estimator, y, bags, members=entries, bag_logits=of_bags, bag_means=means)
    there = [name for name in (NO_FEATURES, BAG_MEANS) if name in losses]
    gains = {name: mean_of((losses[name] - losses[MODEL]).numpy()) for name in there}
    mark = mark_of_gains(gains.values(), len(bags), source, over_nothing=gains[NO_FEATURES])
    regression = "logistic" if isinstance(estimator, MILClassifier) else "ridge"
    names = {NO_FEATURES: "no features", BAG_MEANS: f"{regression} regression on bag means"}
    told = " and ".join(gain_text(gain, names[name]) for name, gain in gains.items())
    numbers = {"unit": "bag", "number": len(bags), "source": source, "level": LEVEL}
    sentence = (
        f"{opening(mark, source, len(bags))}{told} in log-likelihood a bag, on {len(bags):,} {source} bags "
        f"({BRACKETS})."
    )
    return Verdict("skill", mark, sentence, numbers | {"gains": {name: gain.to_json() for name, gain in gains.items()}})


def _calibration(estimator: Any, judged: Judged, y: Any, truth: Any) -> Verdict:
    """Whether the intervals of counts hold what they promise; of multiple instances, its confidence in labels."""
    bags = judged.bags
    if bags is not None and y is not None and isinstance(estimator, MILClassifier):
        return _confidence(estimator, judged, y, bags)
    counts, exact = (None, False) if bags is None else known_counts(estimator, y, bags, truth)
    told = counts is not None and exact and bool((counts >= 0).any())
    if bags is None or counts is None or not told or judged.bag_logits is not None:
        return Verdict("calibration", "unknown", "Not known: these data do not tell the count of each bag.")
    dist, known = counts_of(judged.members[:, bags.index], bags.offsets, counts, estimator.bag_effect_)
    (held,) = calibration_where_known(dist, known, (LEVEL,)).coverage
    return coverage_verdict(held, LEVEL, len(bags), judged.source)


def coverage_verdict(held: float, asked: float, number: int, source: Source, *, unit: str = "bags") -> Verdict:
    """The verdict on the randomised coverage of intervals of counts, which the measure of that name explains."""
    said = f"the randomised coverage of {percent_text(asked)} intervals of the counts is {percent_text(held)}"
    return _covered(held, asked, number, source, said, unit)


def _confidence(estimator: MILClassifier, judged: Judged, y: Any, bags: Bags) -> Verdict:
    """Of how many bags the label is right, and of how many it should be by the model's own probabilities."""
    scores = judged.bag_logits
    if scores is None:
        each = [metrics.bag_scores(member, offsets=bags.offsets) for member in judged.members[:, bags.index]]
        scores = mixed(torch.stack(each)).numpy()
    labels = estimator._bag_labels(y, bags, len(y)).numpy()
    right = float(((scores > 0) == (labels == 1)).mean())
    asked = float(torch.from_numpy(scores).abs().sigmoid().mean())
    said = f"by its own probabilities it should be right about {percent_text(asked)} of the bags, and is about "
    return _covered(right, asked, len(bags), judged.source, said + percent_text(right), "bags")


def _covered(held: float, asked: float, number: int, source: Source, said: str, unit: str) -> Verdict:
    mark = mark_of_coverage(held, asked, number, source)
    doubt = share_of(held, number)
    first = opening(mark, source, number)
    if mark == "bad":
        first = "No, it is too sure: "
    elif mark == "doubtful" and doubt.high < asked:
        first = "Somewhat too sure: "
    elif mark == "doubtful" and doubt.low > asked:
        first = "Less sure than it could be: "
    ends = f"{percent_text(doubt.low)} to {percent_text(doubt.high)}"
    sentence = f"{first}{said} (90\u00a0% interval {ends}), on {number:,} {source} {unit}."
    numbers = {"held": held, "asked": asked, "low": doubt.low, "high": doubt.high, "number": number}
    return Verdict("calibration", mark, sentence, numbers | {"unit": unit.removesuffix("s"), "source": source})
