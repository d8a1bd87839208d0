"""Two fitted models, compared bag by bag on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kofn.bags import Bags
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._bag_losses import MODEL, bag_losses
from kofn.estimators._count_mixture import count_distribution
from kofn.estimators._judged import Judged, judge
from kofn.estimators._measures import known_counts
from kofn.estimators._row_labels import whole_truth
from kofn.estimators._trust import verdicts
from kofn.estimators._verdict_words import gain_text
from kofn.estimators._verdicts import (
    LEVEL,
    Estimate,
    Source,
    Verdict,
    auc_gain,
    mark_of_difference,
    mean_of,
)
from kofn.report import _count_distributions as distributions
from kofn.report._build import _task_of
from kofn.report._contents import Calibration, Metric, Report
from kofn.report._examples import is_positive
from kofn.report._paired_contents import PairedBags

STUDENT = "Student's 90\u00a0% interval of the mean of the differences in brackets"
DELONG = "DeLong's 90\u00a0% interval in brackets"


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two models, and the rows that it may be judged on."""

    name: str
    estimator: Any
    judged: Judged
    labels: Any


def comparison_of(
    first: LLPClassifier | MILClassifier | PUClassifier,
    second: LLPClassifier | MILClassifier | PUClassifier,
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    copies: Any = None,
    truth: Any = None,
    names: Sequence[str] = ("A", "B"),
    title: str | None = None,
    facts: Any = (),
) -> Report:
    """Which of two fitted models is better, bag by bag: a report with the difference and its interval.

    Of each bag log P(label) by the second model less that by the first is taken; bags are independent, so that the mean
    of these differences has Student's interval, mean ± t(0.95, b - 1) sd / sqrt(b). Both models are asked about the
    same bags: of training data about those that both had held out, by scores of models that had not seen them. Of
    positives and unlabelled the AUCs of labelled against unlabelled rows are compared, with DeLong's interval.

    Args:
        first: fitted.
        second: fitted to the same task and the same kind of labels.
        X: (n, ...) instances, as for `fit` of both; or a pair of these, where each needs its own.
        y: (n,) or (n, C) labels as for `fit`.
        groups: (n,) the bag of each row.
        copies: (n,) how many times each row is in its bag.
        truth: (n,) the true class of each row; if all are known, their counts are shown.
        names: of the two models.
        title: heading of the page.
        facts: names and values to show.

    Raises:
        sklearn.exceptions.NotFittedError: a model is not fitted.
        TypeError: no estimator of kofn.
        ValueError: models of different tasks or labels; no bag that both may be judged on.

    Examples:
        >>> import numpy as np, kofn
        >>> from kofn.report import comparison_of
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(400, 2)), np.repeat(np.arange(100), 4)
        >>> y = (X[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
        >>> good = kofn.LLPClassifier(kofn.Linear(l2=0.01), random_state=0).fit(X, y, groups=groups)
        >>> poor = kofn.LLPClassifier(kofn.Linear(l2=10.0), random_state=0).fit(X, y, groups=groups)
        >>> new = rng.normal(size=(400, 2))
        >>> y = (new[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
        >>> report = comparison_of(poor, good, new, y, groups, names=["poor", "good"])
        >>> report.verdicts[0].mark, report.verdicts[0].sentence[:27]
        ('good', 'good is better than poor by')
    """
    for estimator in (first, second):
        _task_of(estimator)
        check_is_fitted(estimator)
    _require_alike(first, second)
    each = X if isinstance(X, tuple) and len(X) == 2 else (X, X)
    sides = []
    for name, estimator, instances in zip(names, (first, second), each, strict=True):
        judged = judge(estimator, instances, groups, copies)
        sides.append(_Side(str(name), estimator, judged, _labels(estimator, y, judged.rows)))
    task = _task_of(first)
    source = _source(sides)
    scope = " ".join(_scope(side) for side in sides)
    report = Report(title or f"{sides[1].name} against {sides[0].name}", task, facts=facts, source=source, scope=scope)
    return _of_rows(report, sides, source) if task == "pu" else _of_bags(report, sides, source, truth)


def _of_bags(report: Report, sides: list[_Side], source: Source, truth: Any) -> Report:
    parts = [_common(side, sides) for side in sides]
    if not len(parts[0]):
        raise ValueError(
            "the two models must have a bag in common that both may be judged on; each was trained on bags that the "
            "other had held out. Compare them on other data."
        )
    losses = [_losses(side, part) for side, part in zip(sides, parts, strict=True)]
    gain = mean_of(losses[0] - losses[1])
    number = len(losses[0])
    two = len(sides[0].estimator.classes_) == 2 and all(side.judged.bag_logits is None for side in sides)
    two = two and not (truth is None and isinstance(sides[0].estimator, MILClassifier))  # which does not tell counts
    expected = known = None
    calibrations: list[Calibration] = []
    every = None
    if two:
        every = None if truth is None else whole_truth(is_positive(truth, sides[0].estimator.classes_))
        positive = None if every is None else every == 1
        found = [_counts(side, part, positive) for side, part in zip(sides, parts, strict=True)]
        expected, known = np.stack([one[0] for one in found]), found[0][1]
        calibrations = [one[2] for one in found if one[2] is not None]
    bags = PairedBags(
        [side.name for side in sides],
        [str(name) for name in parts[0].names],
        parts[0].sizes.numpy(),
        -np.stack(losses),
        expected,
        known,
        told=every is None,
    )
    on = f"on {number:,} {source} bags ({STUDENT})"
    told = [_verdict(sides, gain, number, source, "in log-likelihood a bag", on, "bag")]
    for side, part in zip(sides, parts, strict=True):
        on_both = replace(side.judged, bags=part, bag_logits=_pooled(side, part), bag_means=None)
        calibration = verdicts(side.estimator, on_both, side.labels)[1]
        told.append(replace(calibration, sentence=f"{side.name}: {calibration.sentence}"))
    better = float((bags.difference > 0).mean())
    metrics = [
        Metric(f"Log-likelihood, {side.name}", -float(loss.mean()), "Mean log-probability of the labels of bags.")
        for side, loss in zip(sides, losses, strict=True)
    ]
    meaning = f"{sides[1].name} less {sides[0].name}, a bag; 90\u00a0% interval {gain.low:.2g} to {gain.high:.2g}."
    metrics.append(Metric("Difference", gain.mean, meaning.replace("-", "\u2212")))
    words = f"Share of bags whose label {sides[1].name} finds more probable."
    metrics.append(Metric("Bags won", better, words, form="percent"))
    return replace(report, paired=bags, paired_calibration=calibrations, verdicts=told, metrics=metrics)


def _of_rows(report: Report, sides: list[_Side], source: Source) -> Report:
    """Positives and unlabelled: which model puts labelled positives first."""
    both = sides[0].judged.rows & sides[1].judged.rows
    scores = [side.judged.logits[both[side.judged.rows]] for side in sides]
    labelled = (sides[0].labels == sides[0].estimator.classes_[1])[both[sides[0].judged.rows]]
    positives, others = int(labelled.sum()), int((~labelled).sum())
    if min(positives, others) < 2:
        raise ValueError("the two models must have labelled and unlabelled rows in common that both may be judged on.")
    gain = auc_gain(scores[1], scores[0], labelled)
    on = f"on {positives:,} labelled and {others:,} unlabelled {source} rows ({DELONG})"
    points = Estimate(100 * gain.mean, 100 * gain.low, 100 * gain.high)
    words = "points of AUC of labelled against unlabelled"
    told = _verdict(sides, points, min(positives, others), source, words, on, "row")
    metrics = [
        Metric(
            f"AUC against the unlabelled, {side.name}",
            0.5 + auc_gain(score, None, labelled).mean,
            "How often a labelled positive scores above an unlabelled instance.",
            form="score",
        )
        for side, score in zip(sides, scores, strict=True)
    ]
    return replace(report, verdicts=[told], metrics=metrics)


def _verdict(sides: list[_Side], gain: Estimate, number: int, source: Source, unit: str, on: str, of: str) -> Verdict:
    mark = mark_of_difference(gain, number, source)
    first, second = (side.name for side in sides)
    winner, loser, shown = (second, first, gain) if gain.mean >= 0 else (first, second, gain.turned)
    sentence = f"{winner} is {gain_text(shown, loser)} {unit}, {on}."
    if mark == "unknown":
        why = "they have seen these data" if source == "training" else f"{number:,} are too few to tell"
        sentence = f"Not known, {why}: {sentence}"
    numbers = {"difference": gain.to_json(), "number": number, "unit": of, "source": source, "level": LEVEL}
    return Verdict("comparison", mark, sentence, numbers | {"models": [first, second]})


def _require_alike(first: Any, second: Any) -> None:
    """Require two models of one task, whose likelihoods are of the same labels."""
    kinds = [type(one).__name__ for one in (first, second)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"both models must be of one task to be compared; got a {kinds[0]} and a {kinds[1]}.")
    if first.classes_.tolist() != second.classes_.tolist():
        raise ValueError(
            f"both models must have the same classes; got {first.classes_.tolist()} and {second.classes_.tolist()}."
        )
    for name in ("label", "noise", "rounding"):
        one, other = getattr(first, name, None), getattr(second, name, None)
        if one != other:
            raise ValueError(f"both models must have the same `{name}` to be compared; got {one!r} and {other!r}.")
    losses = [getattr(one, "loss_", "") for one in (first, second)]
    if losses[0] != losses[1] and {"joint", "marginal"} & set(losses) and len(first.classes_) > 2:
        raise ValueError(
            f"both models must have one likelihood of several classes; got {losses[0]!r} and {losses[1]!r}. Fit both "
            f"with loss='marginal'."
        )


def _labels(estimator: Any, y: Any, kept: NDArray[np.bool_]) -> Any:
    if isinstance(estimator, LLPClassifier):
        return estimator._labels(y, len(kept))[kept]
    return np.asarray(y)[kept]


def _source(sides: list[_Side]) -> Source:
    """The least honest of the two."""
    there = {side.judged.source for side in sides}
    return "training" if "training" in there else "held-out" if "held-out" in there else "new"


def _scope(side: _Side) -> str:
    told = {
        "held-out": "was trained on these data, and is judged on what it had held out",
        "training": "was trained on these data, or on some of them",
        "new": "was not trained on these data",
    }
    return f"{side.name} {told[side.judged.source]}."


def _common(side: _Side, sides: list[_Side]) -> Bags:
    """The bags of a model that both are judged on, in the order of the first model."""
    of = [one.judged.bags for one in sides]
    mine, there = side.judged.bags, set(of[1].names if of[1] is not None else ())
    if mine is None or of[0] is None:
        return Bags.from_sizes([])
    place = {name: number for number, name in enumerate(mine.names)}
    shared = [name for name in of[0].names if name in there]
    part = mine.select(torch.tensor([place[name] for name in shared], dtype=torch.int64))
    return Bags(part.index, part.offsets, names=shared)


def _pooled(side: _Side, bags: Bags) -> NDArray[np.float64] | None:
    """Logits of some bags by an attention model; None of others."""
    scores = side.judged.bag_logits
    if scores is None or side.judged.bags is None:
        return None
    place = {name: number for number, name in enumerate(side.judged.bags.names)}
    return scores[[place[name] for name in bags.names]]


def _losses(side: _Side, bags: Bags) -> NDArray[np.float64]:
    """-log P(label) of the bags."""
    scores = _pooled(side, bags)
    entries = side.judged.members[:, bags.index] if scores is None else None
    found = bag_losses(side.estimator, side.labels, bags, members=entries, bag_logits=scores)
    losses: NDArray[np.float64] = found[MODEL].numpy()
    return losses


def _counts(
    side: _Side, bags: Bags, positive: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, Calibration | None]:
    """Expected counts, what is known of them, and their calibration."""
    estimator, entries = side.estimator, side.judged.members[:, bags.index]
    mean = count_distribution(entries, bags.offsets, estimator.bag_effect_).mean.numpy()
    known, exact = known_counts(estimator, side.labels, bags, None if positive is None else positive[side.judged.rows])
    if known is None:
        return mean, None, None
    if not exact:
        return mean, known.numpy(), None
    return mean, known.numpy(), distributions.calibration(entries, known.long(), bags.offsets, estimator.bag_effect_)
