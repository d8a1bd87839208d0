"""A report from a fitted estimator and the arrays it is looked at on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kofn.bags import Bags
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.estimators._count_mixture import count_distribution
from kofn.estimators._ensemble import mixed
from kofn.estimators._judged import Judged, judge
from kofn.estimators._measure_names import MEASURES
from kofn.estimators._measures import count_summaries, known_counts, measure
from kofn.estimators._row_labels import bags_of, whole_truth
from kofn.estimators._trust import verdicts
from kofn.report import _count_distributions as distributions
from kofn.report._class_chapters import class_chapters, class_codes, confusion
from kofn.report._contents import BagTable, Binomial, Metric, Report, Task
from kofn.report._examples import bag_examples, is_positive
from kofn.report._facts import TASKS, bootstrap_facts, model_facts
from kofn.report._images import as_pixels
from kofn.report._opened_bags import opened_bags, opened_classes
from kofn.report._row_curves import row_curves
from kofn.report._scope import Drawn, scope_sentences, taken
from kofn.report._table_contents import class_contents, table_contents


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
    folder: str | Path | None = None,
    title: str | None = None,
    facts: Any = (),
    limit: int = 100_000,
) -> Report:
    """What a report shows of a fitted estimator on some data, with exact distributions of counts.

    If X are the training data, in their order, it is about the bags that were held out, with scores by models that had
    not seen them, which the estimator keeps. Of other data that the model was trained on it says that it was.

    Args:
        estimator: fitted.
        X: (n, ...) instances, as for its `fit`; the names of a DataFrame's columns are shown.
        y: (n,) or (n, C) labels as for its `fit`, or None.
        groups: (n,) the bag of each row; without, there is nothing to say of bags.
        copies: (n,) how many times each row is in its bag; by default once.
        truth: (n,) the true class of each row, 0 and 1 or as in `classes_`, NaN or None where it is not known. For
            scoring only. Of several classes there is a chapter for each, and with `truth` a confusion matrix.
        images: (n, h, w) or (n, h, w, 3), the picture of each row: uint8, or numbers from 0 to 1.
        table: (n, columns) a DataFrame to show instances by, if they are no images and X is not fit to be read; or a
            function that makes one of the rows whose numbers it is given.
        folder: of the data; columns of `table` that name image files in it are shown as small pictures.
        title: heading of the page.
        facts: further names and values to show, before those that the estimator gives.
        limit: rows of the bags that are drawn, at random; verdicts and measures are of all.

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
    judged, place = judge(estimator, X, groups, copies), None if folder is None else Path(folder)
    kept, facts = judged.rows, [*facts, *bootstrap_facts(estimator, X, len(judged.rows))]
    if isinstance(estimator, LLPClassifier) and len(estimator.classes_) > 2:
        contents = _several_classes(
            estimator, judged, X, y, groups, truth, (X if table is None else table, place), limit
        )
        return _report(estimator, task, judged, title, facts, contents)
    labels, images = (_column(name, column, len(kept), kept) for name, column in (("y", y), ("images", images)))
    some = None if truth is None else is_positive(_column("truth", truth, len(kept), kept), estimator.classes_)
    every = whole_truth(some)
    positive = None if every is None else every == 1  # of all rows of a bag, or of none
    if not callable(table):
        _column("table", table, len(kept))
    logits = torch.from_numpy(judged.logits)
    report: dict[str, Any] = {}
    unlabeled = torch.ones(len(logits), dtype=torch.bool)
    if task == "pu" and labels is not None:
        unlabeled = torch.from_numpy(np.asarray(labels != estimator.classes_[1]))
    bags = None
    if groups is not None:
        bags = judged.bags or bags_of(taken(np.asarray(groups), kept), len(logits), taken(copies, kept)).repeated()
    each_row = torch.ones(len(logits), dtype=torch.int64)
    shown = Drawn.of(judged, Bags.from_sizes(each_row) if bags is None else bags, limit)
    of_shown = taken(labels, shown.rows), taken(positive, shown.rows)
    of_table, columns = table_contents(
        estimator, task, judged, shown, X, X if table is None else table, *of_shown, folder=place
    )
    report |= of_table
    if some is not None:
        at = unlabeled.numpy() & (some >= 0)
        report["row_curves"] = row_curves(estimator._marginal(logits).numpy()[at], some[at] == 1)
    if bags is not None:
        counts, exact = known_counts(estimator, labels, bags, positive)
        if counts is not None and exact and judged.bag_logits is None:
            entries = judged.members[:, bags.index]
            report["calibration"] = distributions.calibration(
                entries, counts.long(), bags.offsets, estimator.bag_effect_
            )
        pixels = None if images is None else as_pixels(images[shown.rows])
        report |= _bag_chapters(estimator, task, shown, *of_shown, columns, pixels)
    if isinstance(estimator, PUClassifier):
        report["binomial"] = _binomial(estimator, logits, unlabeled)
    report["verdicts"] = verdicts(estimator, judged, labels, some)
    if task == "pu" and labels is None:
        labels = np.full(len(logits), estimator.classes_[0])  # no row is labelled
    measures = measure(
        estimator,
        judged.logits,
        y=labels,
        bags=bags,
        truth=some,
        bag_logits=judged.bag_logits if bags is not None else None,
        members=judged.members,
    )
    report |= {
        "metrics": metrics_of(measures),
        "scope": scope_sentences(judged, bags, None if bags is None else shown.bags),
    }
    return _report(estimator, task, judged, title, facts, report)


def _bag_chapters(
    estimator: Any, task: Task, shown: Drawn, labels: Any, positive: Any, columns: Any, pixels: Any
) -> dict[str, Any]:
    """The chapters that draw bags, of the rows that lie in them."""
    bags, members, effect = shown.bags, shown.members, estimator.bag_effect_
    bag_table, counts, label_texts = _bag_table(estimator, task, members, bags, labels, positive, shown.bag_logits)
    each, logits = members[:, bags.index], mixed(members)
    before = torch.full_like(logits, estimator.rate_).logit()[bags.index]  # where every learner starts
    report: dict[str, Any] = {}
    report["bags"], report["details"] = opened_bags(
        estimator, task, bag_table, bags, members, labels=labels, label_texts=label_texts, counts=counts,
        truth=positive, bag_logits=shown.bag_logits, columns=columns, numbers=shown.places + 1,
    )  # fmt: skip
    if bag_table.areas:
        report["distributions"] = distributions.some_distributions(bag_table.names, bags, each, before, counts, effect)
    examples = bag_examples(columns, bags, bag_table, label_texts, estimator._marginal(logits), positive, pixels)
    bag = examples.typical_bag(counts) if bag_table.areas else None
    if bag is not None:
        distribution = distributions.bag_distribution(bag, bag_table.names, bags, each, before, counts, effect)
        report["typical_bag"] = examples.example(bag, int(bag_table.sizes[bag]), distribution=distribution)
    if task == "mil":
        report["examples"] = examples.most_positive()
    return report


def _report(
    estimator: Any, task: Task, judged: Judged, title: str | None, facts: Any, contents: dict[str, Any]
) -> Report:
    """The contents with what every report has."""
    table = contents.get("bags") or next((part.bags for part in contents.get("parts", ())), None)
    return Report(
        title or f"{TASKS[task]}: what was learned",
        task,
        facts=[*facts, *model_facts(estimator, task, judged.members.shape[1], table)],
        source=judged.source,
        history=estimator.history_,
        best_step=estimator.best_step_,
        **contents,
    )


def _several_classes(
    estimator: LLPClassifier, judged: Judged, X: Any, y: Any, groups: Any, truth: Any, to_read: Any, limit: int
) -> dict[str, Any]:
    """Measures of several classes, a chapter for each, and a confusion matrix; `to_read` is a table and its folder."""
    kept = judged.rows
    labels = None if y is None else estimator._labels(y, len(kept))[kept]
    codes = None if truth is None else class_codes(_column("truth", truth, len(kept), kept), estimator.classes_)
    bags = None if groups is None else judged.bags
    measures = measure(estimator, judged.logits, y=labels, bags=bags, truth=codes, members=judged.members)
    contents: dict[str, Any] = {"metrics": metrics_of(measures), "verdicts": verdicts(estimator, judged, labels, codes)}
    if codes is not None:
        contents["confusion"] = confusion(codes, torch.from_numpy(judged.logits), estimator.classes_)
    if bags is None:
        return contents | {"scope": scope_sentences(judged, None, None)}
    shown = Drawn.of(judged, bags, limit)
    labels, codes = taken(labels, shown.rows), whole_truth(taken(codes, shown.rows))
    known, _ = known_counts(estimator, labels, shown.bags, codes)
    chapters = class_chapters(estimator, shown.members, shown.bags, known, told=codes is None, source=judged.source)
    table, folder = to_read
    chapters, more, columns = class_contents(chapters, estimator, judged, shown, X, table, labels, codes, folder=folder)
    contents["parts"] = opened_classes(
        chapters, estimator, shown.bags, shown.members, labels=labels, known=known, truth=codes, columns=columns,
        numbers=shown.places + 1,
    )  # fmt: skip
    return contents | more | {"scope": scope_sentences(judged, bags, shown.bags)}


def metrics_of(measures: Mapping[str, Any]) -> list[Metric]:
    """Measures by name, as they are shown: what is no measure is left out.

    Examples:
        >>> from kofn.report import metrics_of
        >>> [(metric.name, metric.value) for metric in metrics_of({"rows": 8, "auc": 0.75})]
        [('AUC', 0.75)]
    """
    return [
        Metric(about.name, float(measures[name]), about.meaning, form=about.form)
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


def _column(name: str, values: Any, rows: int, kept: Any = slice(None)) -> Any:
    """Some rows of an array, which must have one entry for each row of X."""
    if values is None:
        return None
    array = np.asarray(values)
    if len(array) != rows:
        raise ValueError(f"`{name}` must have one entry for each of the {rows} rows of X; got {len(array)}.")
    return array[kept]


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
        told=task == "llp" and positive is None,
        labels=label_texts if known is None or task == "mil" or not exact else None,
        positive=positive_bags,
        areas=task != "mil" or (known is not None and bag_logits is None),
    )
    return table, known.long() if known is not None and exact else None, label_texts


def _binomial(estimator: Any, logits: Tensor, unlabeled: Tensor) -> Binomial | None:
    n_unlabeled = int(unlabeled.sum())
    if not n_unlabeled:
        return None
    # Before training every instance has the mixture for its probability: that is the binomial itself.
    size = estimator._size_of_bags(n_unlabeled)
    return distributions.binomial(logits[unlabeled], None, logits[~unlabeled], estimator.mixture_, size)
