"""The verdict on single rows, whose true classes no bag tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kofn import metrics
from kofn.bags import Bags
from kofn.estimators._judged import Judged
from kofn.estimators._measures import bag_of_rows, known_counts
from kofn.estimators._mil_classifier import MILClassifier
from kofn.estimators._pu_classifier import PUClassifier
from kofn.estimators._verdict_words import BRACKETS, gain_text, number_text, percent_text, score_text
from kofn.estimators._verdicts import (
    FEWEST,
    RARE,
    SCARCE,
    Estimate,
    Mark,
    Source,
    Verdict,
    auc_gain,
    auc_within,
    mark_of_rows,
    mean_of,
    share_of,
)

UNVERIFIED = (
    "Not verified: nothing here tells the true class of a row, and bags can be right while rows are not. Label {rows}, "
    "and give the labels with --truth (in Python, truth=...)."
)


def row_verdict(
    estimator: Any, judged: Judged, y: Any, truth: NDArray[np.int64] | None, which: NDArray[np.bool_]
) -> Verdict:
    """Whether rows are put in order and how probable their true classes are, against one probability for all.

    Of two classes rows must also be in order within bags, and all of them in a better order than by the key of the bag:
    the known rate of the bag that each row is in, which needs no model.

    Args:
        estimator: fitted.
        judged: rows and scores.
        y: (k,) labels of the judged rows as its `fit` takes them, or None.
        truth: (k,) true classes of the judged rows, 0 and 1 or 0 to C - 1, -1 where not known, or None.
        which: (k,) those to be looked at.
    """
    if truth is None:
        bags_matter = judged.bags is not None and not isinstance(estimator, PUClassifier)
        wanted = "about ten rows in each of ten bags or more" if bags_matter else "a hundred rows at random"
        return Verdict("rows", "unknown", UNVERIFIED.format(rows=wanted))
    partly = bool((truth[which] < 0).any())
    which = which & (truth >= 0)
    classes = np.asarray(truth, dtype=np.int64)[which]
    counts = np.bincount(classes, minlength=len(estimator.classes_))
    source, number = judged.source, len(classes)
    numbers: dict[str, Any] = {"number": number, "source": source}
    if np.sort(counts)[-2] < FEWEST:
        words = (
            f"Not known: of the {number:,} {source} rows with a true class too few are of another class than the rest."
        )
        return Verdict("rows", "unknown", words, numbers)
    shares, logits = counts / number, torch.from_numpy(judged.logits[which])
    on = f"on {number:,} {source} rows{' whose true class is known' if partly else ''} ({BRACKETS})"
    numbers["majority"] = float(shares.max())
    if logits.dim() == 1:
        bag_of, key = _bags_of_rows(estimator, judged, y)
        bag_of, key = None if bag_of is None else bag_of[which], None if key is None else key[which]
        return _of_two_classes(estimator._marginal(logits), classes == 1, bag_of, key, source, numbers, on)
    log_p = logits.log_softmax(1).numpy()[np.arange(number), classes]
    right = float((logits.argmax(1).numpy() == classes).mean())
    rank, gain = share_of(right, number), mean_of(log_p - np.log(shares[classes]))
    mark = mark_of_rows(rank, float(shares.max()), gain, source)
    said = f"accuracy {percent_text(right)} ({percent_text(rank.low)} to {percent_text(rank.high)})"
    sentence = (
        f"{_first(mark, rank.low > float(shares.max()))}: {said} where the largest class has "
        f"{percent_text(float(shares.max()))}, and {_gain_text(gain)}, {on}."
    )
    return Verdict("rows", mark, sentence, numbers | {"accuracy": right, "gain": gain.to_json()})


def _of_two_classes(
    logits: Tensor,
    positive: NDArray[np.bool_],
    bag_of: NDArray[np.int64] | None,
    key: NDArray[np.float64] | None,
    source: Source,
    numbers: dict[str, Any],
    on: str,
) -> Verdict:
    """The verdict on rows that are positive or not.

    Args:
        logits: (n,) log-odds of the rows.
        positive: (n,) which are.
        bag_of: (n,) the bag of each; None where no bag has two rows.
        key: (n,) the known rate of that bag; None where it is not known.
        source: of the rows.
        numbers: for machines, to be added to.
        on: on which rows, in words.
    """
    scores, share = logits.numpy(), float(positive.mean())
    log_p = torch.nn.functional.logsigmoid(torch.where(torch.from_numpy(positive), logits, -logits)).numpy()
    gain = mean_of(log_p - np.log(np.where(positive, share, 1 - share)))
    over = auc_gain(scores, None, positive)
    rank = Estimate(0.5 + over.mean, 0.5 + over.low, 0.5 + over.high)
    expected = float(logits.sigmoid().mean())
    near = abs(expected / share - 1) <= SCARCE
    numbers |= {"auc": rank.to_json(), "expected_ratio": expected / share, "gain": gain.to_json()}
    said, missing, others = f"AUC {_ends(rank)}", [], [near]
    within = over_key = None
    if bag_of is not None:
        within = auc_within(scores, positive, bag_of)
        numbers["auc_within_bags"] = None if within is None else within.to_json()
        if within is None:
            missing.append("Too few bags have rows of both classes to tell whether rows of one bag are in order")
            others.append(False)
        else:
            said += f" over all rows and {_ends(within)} within bags"
            if within.low <= 0.5 < within.high:
                missing.append("Within bags the order is not certainly better than by chance")
    if bag_of is not None and key is not None:
        over_key = auc_gain(scores, key, positive)
        by_key = 0.5 + auc_gain(key, None, positive).mean
        numbers |= {"bag_key": by_key, "gain_over_bag_key": over_key.to_json()}
        said += f", where giving each row the known rate of its bag has {score_text(by_key)}"
        others.append(over_key.low > 0)
        if over_key.low <= 0:
            missing.append("It is not certain that the model orders rows better than that rate does")
    if share < RARE:
        numbers["average_precision"] = metrics.average_precision(positive, scores)
        said += f"; average precision {score_text(numbers['average_precision'])} where chance has {score_text(share)}"
    else:
        numbers["accuracy"] = float(((scores > 0) == positive).mean())
        said += (
            f"; accuracy {percent_text(numbers['accuracy'])} where the largest class has "
            f"{percent_text(numbers['majority'])}"
        )
    if not near:
        missing.append("The expected number of positives is more than a quarter off")
    mark = mark_of_rows(rank, 0.5, gain, source, within=within, others=others)
    sentence = (
        f"{_first(mark, rank.low > 0.5)}: {said}; {number_text(expected / share)} times as many positives expected as "
        f"there are, and {_gain_text(gain)}, {on}."
    )
    return Verdict("rows", mark, " ".join([sentence, *(f"{words}." for words in missing)]), numbers)


def _bags_of_rows(
    estimator: Any, judged: Judged, y: Any
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """(k,) the bag of each judged row, and the rate of positives that is known of that bag, as far as these exist."""
    bags, rows = judged.bags, judged.members.shape[1]
    bag_of = None if bags is None else bag_of_rows(bags, rows)
    if bags is None or bag_of is None:
        return None, None
    rates = None if y is None else _bag_rates(estimator, y, bags)
    return bag_of, None if rates is None else np.where(bag_of >= 0, rates[bag_of.clip(0)], rates.mean())


def _bag_rates(estimator: Any, y: Any, bags: Bags) -> NDArray[np.float64] | None:
    """(b,) the share of positives of each bag, or of multiple instances its label; None where labels do not tell it."""
    if isinstance(estimator, MILClassifier):
        return np.asarray(estimator._bag_labels(y, bags, len(y)).double().numpy())
    if estimator.noise is not None:
        return None
    counts, _ = known_counts(estimator, y, bags, None)
    return None if counts is None else (counts / bags.sizes).numpy()


def _first(mark: Mark, in_order: bool) -> str:
    """The first word of the answer."""
    return {"good": "Yes", "doubtful": "Partly" if in_order else "Not certain", "bad": "No"}[mark]


def _ends(found: Estimate) -> str:
    return f"{score_text(found.mean)} ({score_text(max(found.low, 0.0))} to {score_text(min(found.high, 1.0))})"


def _gain_text(gain: Estimate) -> str:
    return f"{gain_text(gain, 'one probability for all')} in log-likelihood a row"
