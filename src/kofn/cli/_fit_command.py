"""kofn fit llp | mil | pu: train on a table."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from kofn.cli import _options as options
from kofn.cli._app import PLAIN, as_json
from kofn.cli._option_groups import Settings, Table, Talk, takes
from kofn.cli._outputs import Force
from kofn.cli._task_options import LLP, MIL, PU

app = typer.Typer(help="Train a classifier of rows on a table with labels of bags.", **PLAIN)


@dataclass(frozen=True, kw_only=True)
class Model:
    """What is made, and where it goes."""

    output: Annotated[Path, options.output_option("MODEL", "The file to write the model to.")]
    force: Force = False
    learner: options.Learner = "auto"
    bootstrap: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Fit N more models to resampled bags, for intervals. 50 is a good number; 0 means none.",
            min=0,
        ),
    ] = 0
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="The number of processes for these fits. By default, one per CPU.", min=1),
    ] = None
    cluster: Annotated[
        str | None,
        options.text_option(
            "ADDRESS", "Grow the trees on the workers of this Dask scheduler, such as tcp://10.0.0.1:8786."
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the interrupted fit of a network from its checkpoint.")
    ] = False


@app.command("llp")
@takes(Table, LLP, Model, Settings, Talk)
def fit_llp(*groups: Any) -> None:
    """Train on the proportion or the count of positives in each bag.

    The label may also be bounds of the count, in two columns, or a count to which noise was added.

    \b
    Examples:
      kofn fit llp votes.csv --bag county --label share -o model
      kofn fit llp votes.csv --bag county --label share --learner linear -o model
      kofn fit llp votes.csv --bag county --label share --bootstrap 50 -o model
      kofn fit llp wards.csv --bag ward --label cases --noise laplace:1.5 -o model
      kofn fit llp bounds.csv --bag ward --label lowest,highest -o model
      kofn fit llp census.csv --bag ward,box --label votes --copies people -o model
    """  # noqa: D301  # \b keeps the lines of the example
    _run(*groups)


@app.command("mil")
@takes(Table, MIL, Model, Settings, Talk)
def fit_mil(*groups: Any) -> None:
    """Train on whether each bag has at least one positive row.

    \b
    Example:
      kofn fit mil slides.parquet --bag slide --label malignant -o model
    """  # noqa: D301  # \b keeps the lines of the example
    _run(*groups)


@app.command("pu")
@takes(Table, PU, Model, Settings, Talk)
def fit_pu(*groups: Any) -> None:
    """Train on labelled positive rows and on unlabelled rows.

    The proportion of positives may be given, among all rows or among the unlabelled ones. Otherwise it is estimated,
    with an interval, which assumes that some positives look like no negative. What the ends of the interval would
    change is then shown for trees and linear models.

    \b
    Examples:
      kofn fit pu users.csv --label converted --prior 0.3 -o model
      kofn fit pu users.csv --label converted -o model
    """  # noqa: D301  # \b keeps the lines of the example
    _run(*groups)


def _run(table: Table, task: LLP | MIL | PU, model: Model, settings: Settings, talk: Talk) -> None:
    """Train, save, tell."""
    from kofn.cli._cut_off import require_startable, told_how_to_go_on
    from kofn.cli._learner_options import chosen_learners, make_learners
    from kofn.cli._outputs import only_fit_of, require_writable
    from kofn.cli._processes import is_first, require_one_way
    from kofn.cli._progress import progress
    from kofn.estimators._count_classifier import best_of
    from kofn.tables import TableFile, check_model_target, fit_table

    target = model.output
    names = chosen_learners([model.learner], task.loss, labels_of_bags=isinstance(task, MIL) and model.cluster is None)
    checkpoint = target.with_name(target.name + ".checkpoint") if "network" in names else None
    require_one_way(names[0], model.cluster)
    if not is_first():  # which tells of the same warnings
        warnings.simplefilter("ignore", UserWarning)
    own: dict[str, dict[str, Any]] = {"network": {"checkpoint": checkpoint}, "trees": {"cluster": model.cluster}}
    learner = best_of(list(make_learners(names, settings.settings or (), **own).values()))
    check_model_target(target)
    require_writable(target, force=model.force, inputs=(table.data,))
    TableFile(table.data)
    with only_fit_of(target) if is_first() else nullcontext():
        require_startable(checkpoint, target, model.resume)
        with told_how_to_go_on(checkpoint, model.resume):
            with progress(quiet=talk.quiet or talk.json) as bar:
                estimator = task.estimator(
                    learner=learner,
                    bootstrap=model.bootstrap,
                    n_jobs=model.jobs or -1,
                    random_state=settings.seed,
                    progress=bar,
                )
                fitted = fit_table(
                    table.data,
                    estimator,
                    **table.columns(),
                    **task.columns(),
                    scratch=target.absolute().parent,
                    on_stage=bar or (lambda _: None),
                )
            if not is_first():  # the model is the same in all processes
                return
            fitted.save(target)
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
    if talk.json:
        from kofn.cli._info_command import facts

        as_json(facts(fitted, target))
    else:
        from kofn.cli._screen import show_fit

        show_fit(fitted, target)
