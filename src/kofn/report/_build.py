"""A report from a fitted estimator and the arrays it is looked at on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._count_errors import LEVEL
from kofn.estimators._count_mixture import count_distribution
from kofn.estimators._ensemble import mixed
from kofn.estimators._measure_names import MEASURES
from kofn.estimators._measures import count_summaries, known_counts, measure
from kofn.estimators._mil_classifier import ATTENTION
from kofn.estimators._mixture import ASSUMPTION
from kofn.estimators._row_labels import bags_of
from kofn.learners._learner import step_name
from kofn.report import _count_distributions as distributions
from kofn.report._class_chapters import class_chapters, class_codes, confusion
from kofn.report._contents import BagTable, Binomial, Metric, Report, Task
from kofn.report._examples import bag_examples, is_positive, leading_columns
from kofn.report._images import as_pixels
from kofn.report._opened_bags import opened_bags, opened_classes
from kofn.report._plot import percent

TASKS: dict[Task, str] = {"llp": "Label proportions", "mil": "Multiple instances", "pu": "Positive and unlabelled"}

STEPS = {"round": "Rounds", "epoch": "Epochs", "penalty": "Penalties"}


def report_of(
    estimator: LLPClassifier | MILClassifier | PUClassifier,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    copies: Any = None,
    truth: Any = None,
    images: Any = None,
    table: Any = None,
    title: str | None = None,
    facts: Any = (),
) -> Report:
    """What a report shows of a fitted estimator on some data, with exact distributions of counts.

    Args:
        estimator: fitted.
        X: (n, ...) instances, as for its `fit`; the names of a DataFrame's columns are shown.
        y: (n,) or (n, C) labels as for its `fit`, or None.
        groups: (n,) the bag of each row; without, there is nothing to say of bags.
        copies: (n,) how many times each row is in its bag; by default once.
        truth: (n,) the true class of each row, 0 and 1 or as in `classes_`, if it is known. For scoring only. Of
            several classes there is a chapter for each, and with `truth` a confusion matrix.
        images: (n, h, w) or (n, h, w, 3), the picture of each row: uint8, or numbers from 0 to 1.
        table: (n, columns) a DataFrame to show instances by, if they are no images and X is not fit to be read.
        title: heading of the page.
        facts: further names and values to show, before those that the estimator gives.

    Raises:
        sklearn.exceptions.NotFittedError: the estimator is not fitted.
        TypeError: no estimator of kofn.
        ValueError: arrays of other lengths; labels as for `fit`.

    Examples:
        >>> import numpy as np, kofn
        >>> from kofn.report import render, report_of
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(40, 2)), np.repeat(np.arange(10), 4)
        >>> y = (X[:, 0] > 0).reshape(10, 4).mean(1).repeat(4)
        >>> model = kofn.LLPClassifier(kofn.Trees(rounds=5), random_state=0).fit(X, y, groups=groups)
        >>> report = report_of(model, X, y, groups, title="First look")
        >>> len(report.bags), [len(one.after) for one in report.distributions][:2]
        (10, [5, 5])
        >>> "First look" in render(report)
        True
    """
    task = _task_of(estimator)
    check_is_fitted(estimator)
    members = estimator._member_logits(X)
    scores_of_rows = mixed(members, classes=members.dim() == 3).numpy()
    rows = len(scores_of_rows)
    facts = [*facts, *_bootstrap(estimator, X, rows)]
    if isinstance(estimator, LLPClassifier) and len(estimator.classes_) > 2:
        shown = X if table is None else table
        contents = _several_classes(estimator, scores_of_rows, members, y, groups, copies, truth, shown)
        return _report(estimator, task, rows, title, facts, contents)
    labels = _column("y", y, rows)
    positive = None if truth is None else is_positive(_column("truth", truth, rows), estimator.classes_)
    pixels = None if images is None else as_pixels(_column("images", images, rows))
    _column("table", table, rows)
    logits = torch.from_numpy(scores_of_rows)
    before = torch.full_like(logits, estimator.rate_).logit()  # where every learner starts
    report: dict[str, Any] = {}
    unlabeled = torch.ones(rows, dtype=torch.bool)
    if task == "pu" and labels is not None:
        unlabeled = torch.from_numpy(np.asarray(labels != estimator.classes_[1]))
    bags = bag_logits = None
    if groups is not None:
        bags = bags_of(groups, rows, copies)
        if estimator.loss in ATTENTION:  # which scores bags by itself
            bag_logits = cast(MILClassifier, estimator)._pooled_logits(estimator._instances(X), bags)
        bag_table, counts, label_texts = _bag_table(estimator, task, members, bags, labels, positive, bag_logits)
        each, each_before = members[:, bags.index], before[bags.index]
        scores = estimator._marginal(logits)
        columns = leading_columns(X if table is None else table, scores.numpy())
        report["bags"], report["details"] = opened_bags(
            estimator, task, bag_table, bags, members, labels=labels, label_texts=label_texts, counts=counts,
            truth=positive, bag_logits=bag_logits, columns=columns,
        )  # fmt: skip
        report["distributions"] = distributions.some_distributions(
            bag_table.names, bags, each, each_before, counts, estimator.bag_effect_
        )
        if counts is not None:
            report["calibration"] = distributions.calibration(each, counts, bags.offsets, estimator.bag_effect_)
        examples = bag_examples(columns, bags, bag_table, label_texts, scores, positive, pixels)
        bag = examples.typical_bag(counts)
        if bag is not None:
            distribution = distributions.bag_distribution(
                bag, bag_table.names, bags, each, each_before, counts, estimator.bag_effect_
            )
            report["typical_bag"] = examples.example(bag, int(bag_table.sizes[bag]), distribution=distribution)
        if task == "mil":
            report["examples"] = examples.most_positive()
    if isinstance(estimator, PUClassifier):
        report["binomial"] = _binomial(estimator, logits, unlabeled)
    if task == "pu" and labels is None:
        labels = np.full(rows, estimator.classes_[0])  # no row is labelled
    measures = measure(
        estimator, scores_of_rows, y=labels, bags=bags, truth=positive, bag_logits=bag_logits, members=members
    )
    return _report(estimator, task, rows, title, facts, report | {"metrics": metrics_of(measures)})


def _report(estimator: Any, task: Task, rows: int, title: str | None, facts: Any, contents: dict[str, Any]) -> Report:
    """The contents with what every report has."""
    table = contents.get("bags") or next((part.bags for part in contents.get("parts", ())), None)
    return Report(
        title or f"{TASKS[task]}: what was learned",
        task,
        facts=[*facts, *_facts(estimator, task, rows, table)],
        history=estimator.history_,
        best_step=estimator.best_step_,
        **contents,
    )


def _several_classes(
    estimator: LLPClassifier, scores: Any, members: Tensor, y: Any, groups: Any, copies: Any, truth: Any, shown: Any
) -> dict[str, Any]:
    """Measures of several classes, a chapter for each, and a confusion matrix."""
    rows, logits = len(scores), torch.from_numpy(scores)
    labels = None if y is None else estimator._labels(y, rows)
    codes = None if truth is None else class_codes(_column("truth", truth, rows), estimator.classes_)
    bags = None if groups is None else bags_of(groups, rows, copies)
    measures = measure(estimator, scores, y=labels, bags=bags, truth=codes, members=members)
    contents: dict[str, Any] = {"metrics": metrics_of(measures)}
    if codes is not None:
        contents["confusion"] = confusion(codes, logits, estimator.classes_)
    if bags is not None:
        known, _ = known_counts(estimator, labels, bags, codes)
        columns = leading_columns(shown, logits.softmax(1).amax(1).numpy())
        contents["parts"] = opened_classes(
            class_chapters(estimator, members, bags, known), estimator, bags, members, labels=labels, known=known,
            truth=codes, columns=columns,
        )  # fmt: skip
    return contents


def metrics_of(measures: Mapping[str, Any]) -> list[Metric]:
    """Measures by name, as they are shown: what is no measure is left out.

    Examples:
        >>> from kofn.report import metrics_of
        >>> [(metric.name, metric.value) for metric in metrics_of({"rows": 8, "auc": 0.75})]
        [('AUC', 0.75)]
    """
    return [
        Metric(about.name, float(measures[name]), about.meaning, percent=about.percent)
        for name, about in MEASURES.items()
        if name in measures
    ]


def _task_of(estimator: Any) -> Task:
    kinds: list[tuple[type, Task]] = [(LLPClassifier, "llp"), (MILClassifier, "mil"), (PUClassifier, "pu")]
    for kind, task in kinds:
        if isinstance(estimator, kind):
            return task
    raise TypeError(
        f"`estimator` must be a kofn.LLPClassifier, MILClassifier or PUClassifier; got {type(estimator).__name__}. "
        f"Of a pipeline, give its last step and what the steps before make of X."
    )


def _column(name: str, values: Any, rows: int) -> Any:
    if values is None:
        return None
    array = np.asarray(values)
    if len(array) != rows:
        raise ValueError(f"`{name}` must have one entry for each of the {rows} rows of X; got {len(array)}.")
    return array


def _bag_table(
    estimator: Any, task: Task, members: Tensor, bags: Bags, labels: Any, positive: Any, bag_logits: Any
) -> tuple[BagTable, Tensor | None, list[str] | None]:
    """The table, the exact counts if all are known, and what each bag's label says, in words."""
    summaries = count_summaries(count_distribution(members[:, bags.index], bags.offsets, estimator.bag_effect_))
    if bag_logits is not None:
        summaries["at_least_one"] = torch.from_numpy(bag_logits).sigmoid().numpy()
    known, exact = known_counts(estimator, labels, bags, positive)
    label_texts = positive_bags = None
    if labels is not None and task == "llp":
        _, stated, _, about = estimator._statement(labels, bags, estimator.classes_)
        if estimator.label == "interval":
            label_texts = [f"{int(a)} to {int(b)} positives" for a, b in stated.tolist()]
        else:
            certain = estimator.noise is None and bool((about == about.round()).all())
            label_texts = [f"{'' if certain else 'about '}{value:g} positives" for value in about.tolist()]
    elif labels is not None and task == "mil":
        positive_bags = estimator._bag_labels(labels, bags, len(labels)).numpy() == 1
        label_texts = ["at least one positive" if one else "no positive" for one in positive_bags.tolist()]
    table = BagTable(
        [str(name) for name in bags.names],
        summaries["size"],
        summaries["mean"],
        summaries["low"],
        summaries["high"],
        summaries["at_least_one"],
        known=None if known is None else known.numpy(),
        exact=exact,
        labels=label_texts if known is None or task == "mil" or not exact else None,
        positive=positive_bags,
    )
    return table, known.long() if known is not None and exact else None, label_texts


def _binomial(estimator: Any, logits: Tensor, unlabeled: Tensor) -> Binomial | None:
    n_unlabeled = int(unlabeled.sum())
    if not n_unlabeled:
        return None
    size = estimator.bag_size or min(max(n_unlabeled // 32, 32), 200)
    # Before training every instance has the mixture for its probability: that is the binomial itself.
    return distributions.binomial(logits[unlabeled], None, logits[~unlabeled], estimator.mixture_, size)


def _bootstrap(estimator: Any, X: Any, rows: int) -> list[tuple[str, str]]:
    """How many fits there are to resampled bags, and how sure they are of the mean probability of all rows."""
    if not estimator.members_ or not rows:
        return []
    low, high = estimator.predict_interval(X, LEVEL, groups=np.zeros(rows, dtype=np.int64), mean=True)
    names = estimator.classes_.tolist() if len(estimator.classes_) > 2 else [""]
    ends = zip(names, np.ravel(low), np.ravel(high), strict=True)
    told = ", ".join(f"{name}{' ' if name != '' else ''}{percent(a)} to {percent(b)}" for name, a, b in ends)
    return [("Bootstrap", f"{len(estimator.members_)} fits"), (f"Mean probability, {percent(LEVEL)} interval", told)]


def _mixture_text(estimator: PUClassifier) -> str:
    """How much of the unlabelled is positive and, if that was estimated, how well it is known."""
    if estimator.mixture_interval_ is None:
        return f"{estimator.mixture_:.3g}"
    low, high = estimator.mixture_interval_
    return (
        f"{estimator.mixture_:.3g}, 90\u00a0% interval {low:.3g} to {high:.3g}: estimated, which assumes that "
        f"{ASSUMPTION}"
    )


def _facts(estimator: Any, task: Task, rows: int, table: BagTable | None) -> list[tuple[str, str]]:
    found = [
        ("Task", TASKS[task]),
        ("Loss", str(getattr(estimator, "loss_", estimator.loss))),
        ("Instances", f"{rows:,}"),
    ]
    if table is not None:
        sizes = table.sizes
        spread = f"{sizes.min():,}" if sizes.min() == sizes.max() else f"{sizes.min():,} to {sizes.max():,}"
        found += [("Bags", f"{len(table):,}"), ("Bag size", spread)]
    if hasattr(estimator, "n_features_in_"):
        found.append(("Features", f"{estimator.n_features_in_:,}"))
    found.append(("Learner", type(estimator.fitted_learner_).__name__.lower()))
    if estimator.history_:
        found.append((STEPS.get(step_name(estimator.history_), "Steps"), f"{len(estimator.history_):,}"))
    if estimator.bag_effect_:
        found.append(("Bag effect", f"{estimator.bag_effect_:.3g}"))
    if task == "pu":
        found.append(("Mixture", _mixture_text(estimator)))
    if estimator.random_state is not None:
        found.append(("Random seed", str(estimator.random_state)))
    return found
