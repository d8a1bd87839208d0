"""kofn cv llp | mil | pu: cross-validation on a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from kofn.cli import _options as options
from kofn.cli._app import PLAIN, as_json
from kofn.cli._option_groups import Settings, Table, Talk, takes
from kofn.cli._task_options import LLP, MIL, PU

app = typer.Typer(help="Cross-validate learners on a table, next to two baselines.", **PLAIN)


@dataclass(frozen=True, kw_only=True)
class Folds:
    """What is compared, on how many folds."""

    learner: Annotated[
        str,
        options.text_option("LEARNERS", "auto, or some of trees, linear and network, separated by commas."),
    ] = "auto"
    folds: Annotated[int, typer.Option(metavar="N", help="Number of folds.", min=2)] = 5


@app.command("llp")
@takes(Table, LLP, Folds, Settings, Talk)
def cv_llp(*groups: Any) -> None:
    """Cross-validate learning from proportions, counts, or bounds of counts.

    \b
    Examples:
      kofn cv llp votes.csv --bag county --label share --learner trees,network
      kofn cv llp votes.csv --bag county --label share --set trees.rounds=200
    """  # noqa: D301  # \b keeps the lines of the example
    _run(*groups)


@app.command("mil")
@takes(Table, MIL, Folds, Settings, Talk)
def cv_mil(*groups: Any) -> None:
    """Cross-validate learning from whether each bag has at least one positive row.

    \b
    Example:
      kofn cv mil slides.csv --bag slide --label malignant --learner trees,linear
    """  # noqa: D301  # \b keeps the lines of the example
    _run(*groups)


@app.command("pu")
@takes(Table, PU, Folds, Settings, Talk)
def cv_pu(*groups: Any) -> None:
    """Cross-validate learning from labelled positives and unlabelled rows, in folds of rows.

    A proportion of positives that is not given is estimated once, from all rows.

    \b
    Example:
      kofn cv pu users.csv --label converted --prior 0.3 --folds 10
    """  # noqa: D301  # \b keeps the lines of the example
    _run(*groups)


def _run(table: Table, task: LLP | MIL | PU, folds: Folds, settings: Settings, talk: Talk) -> None:
    """Cross-validate, tell."""
    from kofn.cli._learner_options import chosen_learners, make_learners
    from kofn.cli._progress import progress
    from kofn.cli._screen import FoldTable
    from kofn.tables import cross_validate_table

    names = chosen_learners(folds.learner.split(","), task.loss, labels_of_bags=isinstance(task, MIL))
    learners = make_learners(names, settings.settings or ())
    estimators = {
        name: task.estimator(learner=learner, random_state=settings.seed) for name, learner in learners.items()
    }
    screen = FoldTable("rows" if isinstance(task, PU) else "bags")
    with progress(quiet=talk.quiet or talk.json) as bar:
        found = cross_validate_table(
            table.data,
            estimators,
            n_folds=folds.folds,
            seed=settings.seed,
            progress=bar,
            on_stage=bar or (lambda _: None),
            on_fold=(lambda *_: None) if talk.json else screen.fold,
            **table.columns(),
            **task.columns(),
        )
    if talk.json:
        as_json({"task": type(task).__name__.lower(), "data": str(table.data), "loss": task.loss} | found)
    else:
        screen.summary(found)
