"""kofn demo: the main job on embedded data."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from kofn.cli import _options as options
from kofn.cli._app import as_json
from kofn.cli._option_groups import Settings, Talk, takes
from kofn.cli._outputs import Force, require_writable
from kofn.cli._screen_text import line


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What is fitted, and where it goes."""

    output: Annotated[
        Path, options.output_option("FOLDER", "The folder to write the page, the tables and the models to.")
    ] = Path("kofn-demo")
    force: Force = False
    learner: Annotated[
        str, options.text_option("NAMES", "Learners, separated by commas. The first is compared with the baselines.")
    ] = "network,trees"


@takes(Demo, Settings, Talk)
def demo(demo: Demo, settings: Settings, talk: Talk) -> None:
    """Train on handwritten digits, and compare with baselines.

    The digits come with scikit-learn. The labels are proportions, "at least one", and a few positive rows among
    unlabelled ones; the baselines are other losses, and training with every label known. The tables and the models are
    kept, for kofn info, predict, evaluate and report.

    \b
    Example:
      kofn demo
    """  # noqa: D301  # \b keeps the lines of the example
    from rich.console import Console
    from rich.progress import Progress

    from kofn import demo as digits
    from kofn.cli._learner_options import chosen_learners, make_learners
    from kofn.report import write
    from kofn.tables import check_model_target

    start = time.monotonic()
    output = demo.output
    names = chosen_learners(demo.learner.split(","), "count", labels_of_bags=False)
    learners = make_learners(names, settings.settings or ())
    page = output / "report.html"
    models = {(task, name): output / f"{task}-{name}" for task in digits.TASKS for name in learners}
    tables = [output / f"{task}{part}.csv" for task in digits.TASKS for part in ("", "-test")]
    for path in models.values():  # before a minute of training, not after it
        check_model_target(path)
    for path in (page, *tables, *models.values()):
        require_writable(path, force=demo.force)
    output.mkdir(parents=True, exist_ok=True)
    digits.write_tables(output, seed=settings.seed)
    runs = list(digits.fits(output, learners, seed=settings.seed))
    done = []
    with Progress(console=Console(stderr=True, quiet=talk.quiet), transient=True) as bar:
        task = bar.add_task("digits", total=len(runs))
        for run in runs:
            done.append(run())
            said = f"{done[-1].method}, {done[-1].learner}: {digits.TASKS[done[-1].task][0]}"
            bar.update(task, advance=1, description=said)
    write(digits.report(done, seed=settings.seed), page)
    for fit in done:
        if fit.model is not None:
            fit.model.save(models[fit.task, fit.learner])
    compared = digits.compare(done)
    following = digits.next_commands(output, learners)
    seconds = time.monotonic() - start
    if talk.json:
        rows = {method.name: list(method.scores) for method in compared.methods}
        facts = {"measure": compared.measure, "tasks": list(compared.tasks), "methods": rows}
        as_json(facts | {"next": following, "seconds": seconds})
        return
    _show(compared)
    line(f"{seconds:.0f} s. Open {page} in a browser; the tables and models are in {output}. To try next:")
    for command in following:
        line(f"  {command}")


def _show(compared: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=compared.measure, title_justify="left")
    table.add_column("method")
    for name in compared.tasks:
        table.add_column(name, justify="right")
    for method, after in zip(compared.methods, [*compared.methods[1:], None], strict=True):
        style = {"count": "bold", "bound": "dim"}.get(method.role)
        scores = ["" if score is None else f"{score:.3f}" for score in method.scores]
        table.add_row(method.name, *scores, style=style, end_section=after is None or after.role != method.role)
    Console().print(table)
