"""kofn fit llp | mil | pu: train on a table."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kofn.cli import _options as options
from kofn.cli._app import PLAIN, Interrupted, as_json

app = typer.Typer(help="Train a classifier of rows on a table whose labels are about counts.", **PLAIN)


@app.command("llp")
def fit_llp(
    data: options.Data,
    bag: options.Bag,
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="Proportion or count of positives in the bag; LOW,HIGH for bounds.")
    ],
    output: options.Output,
    label_kind: Annotated[
        Literal["proportion", "count", "interval"] | None,
        typer.Option(help="Needed only where the values do not tell."),
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Noise that was added: laplace:SCALE, normal:SD or discrete-laplace:SCALE.")
    ] = None,
    rounding: Annotated[
        Literal["error", "nearest", "spread"], typer.Option(help="Of proportions that are no whole count.")
    ] = "error",
    loss: Annotated[
        Literal["count", "proportion", "mutual-contamination"], typer.Option(help="What is made small.")
    ] = "count",
    features: options.Features = None,
    drop: options.Drop = None,
    max_categories: options.MaxCategories = 256,
    hidden: options.Hidden = "128",
    dropout: options.Dropout = 0.0,
    epochs: options.Epochs = 100,
    batch_size: options.BatchSize = None,
    lr: options.LearningRate = 1e-3,
    schedule: options.Schedule = "constant",
    weight_decay: options.WeightDecay = 0.0,
    l1: options.L1 = 0.0,
    valid_fraction: options.ValidFraction = 0.1,
    patience: options.Patience = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    resume: options.Resume = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Learn from the proportion, the count or bounds of the count of positives in each bag.

    \b
    Examples:
      kofn fit llp votes.csv --bag county --label share -o model
      kofn fit llp released.parquet --bag ward --label cases --noise laplace:1.5 -o model
      kofn fit llp bounds.csv --bag ward --label lowest,highest -o model
    """  # noqa: D301  # \b keeps the lines of the example
    parameters = _common(locals()) | {"noise": noise, "rounding": rounding}
    _run("LLPClassifier", parameters, locals(), {"bag": bag, "label_kind": label_kind})


@app.command("mil")
def fit_mil(
    data: options.Data,
    bag: options.Bag,
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="1 where the bag has at least one positive row, 0 where it has none.")
    ],
    output: options.Output,
    positive: options.Positive = None,
    loss: Annotated[
        Literal["count", "max", "mean", "logsumexp", "attention", "gated-attention"],
        typer.Option(help="What is made small."),
    ] = "count",
    start: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Probability that a new network gives a row: a number, or bags, for theirs."),
    ] = None,
    features: options.Features = None,
    drop: options.Drop = None,
    max_categories: options.MaxCategories = 256,
    hidden: options.Hidden = "128",
    dropout: options.Dropout = 0.0,
    epochs: options.Epochs = 100,
    batch_size: options.BatchSize = None,
    lr: options.LearningRate = 1e-3,
    schedule: options.Schedule = "constant",
    weight_decay: options.WeightDecay = 0.0,
    l1: options.L1 = 0.0,
    valid_fraction: options.ValidFraction = 0.1,
    patience: options.Patience = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    resume: options.Resume = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Learn from whether each bag has at least one positive row.

    \b
    Example:
      kofn fit mil slides.parquet --bag slide --label malignant -o model
    """  # noqa: D301  # \b keeps the lines of the example
    _run("MILClassifier", _common(locals()) | {"start": _rate(start)}, locals(), {"bag": bag, "positive": positive})


@app.command("pu")
def fit_pu(
    data: options.Data,
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="1 for labelled positives; 0, -1 or nothing for unlabelled rows.")
    ],
    output: options.Output,
    prior: Annotated[
        float | None, typer.Option(help="Share of positives in all rows, labelled or not.", min=0.0, max=1.0)
    ] = None,
    mixture: Annotated[
        float | None,
        typer.Option(help="Share of positives among the unlabelled, in place of --prior.", min=0.0, max=1.0),
    ] = None,
    positive: options.Positive = None,
    loss: Annotated[
        Literal["count", "expectation", "upu", "nnpu", "cvir"], typer.Option(help="What is made small.")
    ] = "count",
    features: options.Features = None,
    drop: options.Drop = None,
    max_categories: options.MaxCategories = 256,
    hidden: options.Hidden = "128",
    dropout: options.Dropout = 0.0,
    epochs: options.Epochs = 100,
    batch_size: Annotated[
        int | None, typer.Option(help="Unlabelled rows in a step; by default it fits their number.", min=1)
    ] = None,
    lr: options.LearningRate = 1e-3,
    schedule: options.Schedule = "constant",
    weight_decay: options.WeightDecay = 0.0,
    l1: options.L1 = 0.0,
    valid_fraction: options.ValidFraction = 0.1,
    patience: options.Patience = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    resume: options.Resume = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Learn from labelled positives and unlabelled rows of which a known share is positive.

    \b
    Example:
      kofn fit pu users.csv --label converted --prior 0.3 -o model
    """  # noqa: D301  # \b keeps the lines of the example
    if (prior is None) == (mixture is None):
        raise ValueError(
            "either --prior (share of positives in all rows) or --mixture (among the unlabelled) must be given, not "
            "both: unlabelled rows alone do not tell it."
        )
    parameters = _common(locals()) | {"prior": prior, "mixture": mixture}
    _run("PUClassifier", parameters, locals(), {"positive": positive})


def _common(arguments: dict[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator that all three share."""
    same = ("loss", "dropout", "epochs", "lr", "schedule", "weight_decay", "l1", "patience", "device")
    others = {"validation_fraction": arguments["valid_fraction"], "random_state": arguments["seed"]}
    if arguments["batch_size"] is not None:  # else the estimator's own default
        others["batch_size"] = arguments["batch_size"]
    return {name: arguments[name] for name in same} | others | {"hidden": _widths(arguments["hidden"])}


def _widths(text: str) -> tuple[int, ...]:
    if text.strip().lower() == "none":
        return ()
    try:
        widths = tuple(int(width) for width in text.split(","))
    except ValueError:
        widths = (0,)
    if min(widths) < 1:
        raise ValueError(f"--hidden must be whole numbers with commas, such as 128,64, or none; got {text!r}.")
    return widths


def _rate(text: str | None) -> float | str | None:
    try:
        return text if text in (None, "bags") else float(str(text))
    except ValueError:
        raise ValueError(f"--start must be a number between 0 and 1, or bags; got {text!r}.") from None


def _run(kind: str, parameters: dict[str, Any], arguments: dict[str, Any], labels: dict[str, Any]) -> None:
    """Train, save, tell."""
    target: Path = arguments["output"]
    checkpoint = target.with_name(target.name + ".checkpoint")
    from rich.console import Console

    from kofn import estimators
    from kofn.tables import TableFile, check_model_target, fit_table

    check_model_target(target)
    TableFile(arguments["data"])
    _require_startable(checkpoint, target, arguments["resume"])
    console = Console(stderr=True, quiet=arguments["quiet"] or arguments["json"])
    estimator = getattr(estimators, kind)(**parameters, checkpoint=checkpoint)
    names = {name: arguments[name] for name in ("label", "features", "max_categories")}
    try:
        with console.status("reading") as status:

            def on_stage(stage: str) -> None:
                status.update(stage)
                (status.stop if stage == "training" else status.start)()
                if stage == "training":  # Lightning takes seconds to import: bad data are told of before
                    from kofn.cli._progress import RichProgress

                    estimator.set_params(trainer={"callbacks": [RichProgress(console)]})

            model = fit_table(
                arguments["data"], estimator, **names, **labels, drop=arguments["drop"] or (), on_stage=on_stage
            )
    except (KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, SystemExit) and not _interrupted(estimator):
            raise
        raise Interrupted(_resume_message(checkpoint)) from None
    except BaseException:
        if not arguments["resume"]:
            _delete_checkpoint(checkpoint)
        raise
    model.save(target)
    _delete_checkpoint(checkpoint)
    if arguments["json"]:
        from kofn.cli._info_command import facts

        as_json(facts(model, target))
    else:
        from kofn.cli._screen import show_fit

        show_fit(model, target)


def _interrupted(estimator: Any) -> bool:
    """Whether Ctrl-C ended training, of which Lightning makes an exit."""
    return any(callback.interrupted for callback in (estimator.trainer or {}).get("callbacks", []))


def _require_startable(checkpoint: Path, target: Path, resume: bool) -> None:
    """Require a checkpoint to resume, or none to start anew."""
    there = (checkpoint / "last.ckpt").exists()
    if there and not resume:
        raise ValueError(
            f"{checkpoint} holds a fit of {target} that was cut off. Add --resume to go on with it, or delete that "
            f"folder to start anew."
        )
    if resume and not there:
        raise ValueError(f"there is nothing to resume: no checkpoint in {checkpoint}. Leave --resume out.")
    if not there:
        _delete_checkpoint(checkpoint)  # what a killed process left before its first epoch ended


def _resume_message(checkpoint: Path) -> str:
    if not (checkpoint / "last.ckpt").exists():
        _delete_checkpoint(checkpoint)
        return "No epoch had ended, so nothing was kept."
    command = ["kofn", *sys.argv[1:]] if "--resume" in sys.argv else ["kofn", *sys.argv[1:], "--resume"]
    return f"The last epoch is kept in {checkpoint}. Go on with: {shlex.join(command)}"


def _delete_checkpoint(checkpoint: Path) -> None:
    """Delete the checkpoint, and nothing else that may be in its folder."""
    if not checkpoint.is_dir():
        return
    for file in (*checkpoint.glob(".*.last.ckpt"), checkpoint / "last.ckpt", checkpoint / "data.json"):
        file.unlink(missing_ok=True)  # the hidden ones are what a kill left in the middle of writing
    if not any(checkpoint.iterdir()):
        shutil.rmtree(checkpoint)
