"""Cross-validation on a table: folds over bags, several learners and two baselines side by side."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from sklearn.base import clone

from kofn import _require
from kofn.estimators import FitWarning, LLPClassifier, PUClassifier
from kofn.estimators._bag_effects import with_bag_effect
from kofn.estimators._baselines import Baselines, judge_with_bag_effects
from kofn.estimators._measures import measure, scores_of
from kofn.learners import CountObjective, Problem, Progress, PUProblem
from kofn.learners._splits import Split, folds, has_each_stratum
from kofn.tables._training_table import Estimator, TrainingTable, read_training_table

Fold = dict[str, dict[str, float]]  # measures by name, of each method


def cross_validate_table(
    path: str | os.PathLike[str],
    estimators: Mapping[str, Estimator],
    *,
    n_folds: int = 5,
    seed: int = 0,
    on_fold: Callable[[int, Fold], None] = lambda *_: None,
    progress: Progress | None = None,
    **table_options: Any,
) -> dict[str, Any]:
    """Fit estimators to all folds of the bags but one, and measure them on the one; for each fold in turn.

    Each fold holds about the same part of the positive and of the negative bags, where bags are one or the other; for
    PU, of the labelled and of the unlabelled rows. With `fold_by`, such as the patient of each slide, bags that
    belong together are in the same fold.

    Args:
        path: a CSV or Parquet file, or a folder of Parquet files.
        estimators: by name; of one task, with the same loss, so that their losses can be compared.
        n_folds: how many.
        seed: of the folds.
        on_fold: called after each fold with its number, from 0, and its measures.
        progress: called while learners learn, as in an estimator.
        **table_options: label, bag and the other options of `fit_table`.

    Returns:
        rows; bags (None for PU); folds: for each a dict with the two baselines and the estimators by name, of each the
        mean loss of the held-out bags, of estimators also measures such as bag_auc, and seconds; summary: for each
        method the mean and the standard deviation of each measure over the folds.

    Raises:
        FileNotFoundError, ValueError: bad input; fewer bags, or bags of a kind, than folds.

    Examples:
        >>> import numpy as np, kofn
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kofn.tables import cross_validate_table, write_table
        >>> rng = np.random.default_rng(0)
        >>> x, bag = rng.normal(size=400), np.repeat(np.arange(100), 4)
        >>> count = (x > 0).reshape(100, 4).sum(1).repeat(4)
        >>> with TemporaryDirectory() as folder:
        ...     votes = Path(folder) / "votes.csv"
        ...     _ = write_table(votes, [{"ward": bag, "yes": count, "x": x}])
        ...     linear = {"linear": kofn.LLPClassifier("linear", random_state=0)}
        ...     found = cross_validate_table(votes, linear, bag="ward", label="yes", n_folds=2)
        >>> list(found["summary"])
        ['no features', 'bag means', 'linear']
        >>> mean = {name: measures["loss"]["mean"] for name, measures in found["summary"].items()}
        >>> mean["linear"] < mean["bag means"] < mean["no features"]
        True
    """
    first = next(iter(estimators.values()))
    table = read_training_table(path, first, **table_options)
    problem, mixture = _problem(first, table)
    if mixture is not None:  # one for all folds, or each would be judged by a loss of its own
        estimators = {name: clone(each).set_params(mixture=mixture) for name, each in estimators.items()}
    splits = _splits(problem, n_folds, seed)
    found: list[Fold] = []
    for number, split in enumerate(splits):
        fold: Fold = {name: {"loss": loss} for name, loss in _baselines(first, problem, split).items()}
        for name, estimator in estimators.items():
            told = _telling(progress, f"fold {number + 1} of {n_folds}, {name}: ")
            fold[name] = _judge(
                _with_label(estimator, table).set_params(progress=told, diagnostics=False), table, problem, split
            )
        found.append(fold)
        on_fold(number, fold)
    return {
        "rows": table.metadata.rows,
        "bags": len(table.metadata.bag_names) or None,
        "folds": found,
        "summary": {name: _summary([fold[name] for fold in found]) for name in found[0]},
    }


def _problem(estimator: Estimator, table: TrainingTable) -> tuple[Problem, float | None]:
    """The problem of all bags, whose parts are judged on, and the mixture of PU, if it had to be estimated."""
    scratch: Any = _with_label(estimator, table)
    if not isinstance(scratch, PUClassifier):
        return cast(Problem, scratch._problem(**table.arguments())[0]), None
    problem, _, mixture, interval = scratch._problem(**table.arguments(), seed=scratch._seed())
    return problem, None if interval is None else mixture


def _with_label(estimator: Estimator, table: TrainingTable) -> Any:
    """A clone, of LLP with the kind of label that the table has."""
    copy = clone(estimator)
    return copy.set_params(label=table.label) if isinstance(copy, LLPClassifier) else copy


def _splits(problem: Problem, n_folds: int, seed: int) -> list[Split]:
    """Folds of which each can be learned from and judged on."""
    _require.whole_number("n_folds", n_folds, low=2)
    units = len(problem.strata) if problem.together is None else len(problem.together.unique())
    if units < n_folds:
        of_what = "bags" if problem.together is None else "different values of `fold_by`"
        raise ValueError(f"`n_folds` must be at most the number of {of_what}; got {n_folds}, and there are {units}.")
    # A fold of labelled and unlabelled rows needs both; what is learned from bags needs both kinds of them.
    kind, needed = ("row", n_folds) if isinstance(problem, PUProblem) else ("bag", 2)
    fewest = int(problem.strata.unique(return_counts=True)[1].min())
    if fewest < needed and not isinstance(problem.objective, CountObjective):
        raise ValueError(
            f"each label must be that of at least {needed} {kind}s, so that it is in what is learned from and in what "
            f"is held out; one is that of {fewest}. Take fewer folds (`n_folds`), or more data."
        )
    splits = folds(problem.strata, n_folds, seed, together=problem.together)
    # Only what is held together can still leave a fold without one of them.
    for train, held in splits:
        needed_in = (train, held) if isinstance(problem, PUProblem) else (train,)
        if not isinstance(problem.objective, CountObjective) and not all(
            has_each_stratum(problem, units) for units in needed_in
        ):
            raise ValueError(
                f"each label must be that of {kind}s with enough different values of `fold_by`, so that it is in what "
                f"is learned from and in what is held out; one has too few. Take fewer folds (`n_folds`), or more data."
            )
    return splits


def _baselines(estimator: Estimator, problem: Problem, split: Split) -> dict[str, float]:
    """Losses of both; if models learn the effect of bags, so do these."""
    if getattr(estimator, "bag_effect", None) == "fit":
        return judge_with_bag_effects(problem, split)
    return Baselines.fit(problem, [split], to_all=False).losses(problem)


def _judge(estimator: Any, table: TrainingTable, problem: Problem, split: Split) -> dict[str, float]:
    """Fit to one part of the bags, and measure on the other."""
    train, held = (_rows(problem, units) for units in split)
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the baselines stand beside it
        estimator.fit(**table.arguments(train))
    seconds = time.monotonic() - start
    bags = None if table.metadata.bag_of is None else table.metadata.bags(held)
    scores = scores_of(estimator, table.encoded[held], bags)
    rows = scores["logits"]
    part = problem.take(split[1])
    if rows is None:
        loss = part.mean(part.objective(torch.as_tensor(scores["bag_logits"]), part.labels, part.bags.offsets))
    else:
        logits = torch.full((len(problem.instances), *problem.outputs), torch.nan, dtype=torch.float64)
        logits[torch.from_numpy(held)] = torch.from_numpy(rows)
        if getattr(estimator, "bag_effect", None) == "fit":
            part = with_bag_effect(part, estimator.bag_effect_)
        loss = part.mean_loss(logits)
    found = measure(estimator, **scores, y=table.y[held], bags=bags)
    return {"loss": float(loss)} | found | {"seconds": seconds}


def _rows(problem: Problem, units: torch.Tensor) -> Any:
    """The rows of some bags, in the order of the table; of PU the units are rows."""
    if isinstance(problem, PUProblem):
        return units.numpy()
    return problem.bags.select(units).index.unique().numpy()


def _telling(progress: Progress | None, prefix: str) -> Progress | None:
    if progress is None:
        return None
    return lambda what, step, of, losses: progress(prefix + what, step, of, losses)


def _summary(folds: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over the folds that have a measure."""
    found = {}
    for name in dict.fromkeys(name for fold in folds for name in fold):
        values = [fold[name] for fold in folds if name in fold]
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
        found[name] = {"mean": float(np.mean(values)), "spread": spread}
    return found
