"""Verdicts on positives and unlabelled, of which no bag tells its count."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from kofn.estimators._baselines import BAG_MEANS, NO_FEATURES
from kofn.estimators._judged import Judged
from kofn.estimators._pu_classifier import PUClassifier
from kofn.estimators._verdict_words import BRACKETS, gain_text, opening, percent_text
from kofn.estimators._verdicts import (
    LEVEL,
    Verdict,
    auc_gain,
    mark_of_gains,
    mark_of_gap,
    mean_of,
    share_of,
    slack_of,
)


def skill_of_order(judged: Judged, labelled: NDArray[np.bool_]) -> Verdict:
    """How much more often labelled positives score above unlabelled rows than by chance and by logistic regression."""
    positives, others = int(labelled.sum()), int((~labelled).sum())
    if min(positives, others) < 2:
        words = "Not known: these data have no labelled positives beside unlabelled rows to compare with."
        return Verdict("skill", "unknown", words)
    gains = {NO_FEATURES: auc_gain(judged.logits, None, labelled)}
    against = gain_text(gains[NO_FEATURES], "no features", scale=100)
    if judged.bag_means is not None and not bool(judged.bag_means.isnan().any()):
        gains[BAG_MEANS] = auc_gain(judged.logits, judged.bag_means.numpy(), labelled)
        against += f" and {gain_text(gains[BAG_MEANS], 'logistic regression', scale=100)}"
    source, fewest = judged.source, min(positives, others)
    mark = mark_of_gains(gains.values(), fewest, source, over_nothing=gains[NO_FEATURES])
    sentence = (
        f"{opening(mark, source, fewest)}{against} points of AUC of labelled positives against unlabelled rows, "
        f"on {positives:,} and {others:,} {source} rows ({BRACKETS})."
    )
    numbers = {"unit": "row", "labelled": positives, "unlabelled": others, "source": source, "level": LEVEL}
    return Verdict("skill", mark, sentence, numbers | {"gains": {name: gain.to_json() for name, gain in gains.items()}})


def calibration_of_share(
    estimator: PUClassifier, judged: Judged, labelled: NDArray[np.bool_], truth: NDArray[np.int64] | None
) -> Verdict:
    """Whether as many unlabelled rows are expected to be positive as are, or as the mixture says.

    The mixture is what was trained with: that the model agrees with it proves nothing, and that it does not, a lot.
    """
    unlabelled = ~labelled
    if not unlabelled.any():
        return Verdict("calibration", "unknown", "Not known: these data have no unlabelled rows.")
    if truth is not None and (truth[unlabelled] >= 0).any():
        unlabelled &= truth >= 0  # -1 is not known
    else:
        truth = None
    expected = torch.from_numpy(judged.logits[unlabelled]).sigmoid().numpy()
    source, number, share = judged.source, len(expected), float(expected.mean())
    on = f"on {number:,} unlabelled {source} rows"
    numbers = {"expected": share, "number": number, "unit": "row", "source": source}
    if truth is not None:
        known = np.asarray(truth)[unlabelled]
        gap, true_share = mean_of(known - expected), share_of(float(known.mean()), number)
        mark = mark_of_gap(gap, true_share, source)
        ends = f"{percent_text(true_share.low)} to {percent_text(true_share.high)}"
        sentence = (
            f"{opening(mark, source, number)}it expects {percent_text(share)} of them to be positive, "
            f"and {percent_text(true_share.mean)} are (90\u00a0% interval {ends}), {on}."
        )
        return Verdict("calibration", mark, sentence, numbers | {"gap": gap.to_json(), "share": true_share.to_json()})
    if not labelled.any():  # then the mixture, which is of rows that nobody labelled, is that of other rows
        return Verdict("calibration", "unknown", "Not known: these data have no labelled positives.", numbers)
    low, high = estimator.mixture_interval_ or (estimator.mixture_, estimator.mixture_)
    said = f"{percent_text(low)} to {percent_text(high)}" if high > low else percent_text(low)
    apart = not low - slack_of(low) <= share <= high + slack_of(high)
    outside = high > low and not low <= share <= high
    mark = "unknown"
    first = "Not known without true classes: "
    if apart or outside:
        mark, first = ("bad", "No: ") if apart else ("doubtful", "Not certain: ")
    sentence = (
        f"{first}it expects {percent_text(share)} of them to be positive, and the mixture that it was "
        f"trained with says {said}{', which leaves that out' if outside else ''}, {on}."
    )
    return Verdict("calibration", mark, sentence, numbers | {"mixture": [low, high]})
