"""kofn data: the data sets of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kofn.cli import _options as options
from kofn.cli._app import PLAIN, as_json
from kofn.cli._outputs import Force, require_writable
from kofn.cli._screen_text import line, shell_command

app = typer.Typer(help="List and download data sets.", **PLAIN)

# Name, what it is, and whether it is a table.
DATASETS = {
    "adult": ("Income above 50,000 dollars. 48,842 rows, 108 features.", True),
    "magic": ("Gamma rays among telescope images. 19,020 rows, 10 features.", True),
    "digits": ("scikit-learn's digits, 5 to 9 positive. 1,797 rows, 64 features.", True),
    "breast-cancer": ("scikit-learn's tumours, malignant positive. 569 rows, 30 features.", True),
    "mnist": ("Handwritten digits, 70,000 images.", False),
    "cifar10": ("Objects of ten classes, 60,000 images.", False),
    "colon": ("Cell nuclei in 100 images of tissue.", False),
}


@app.command("list")
def list_sets(json: options.Json = False) -> None:
    """List the data sets.

    \b
    Example:
      kofn data list
    """  # noqa: D301  # \b keeps the lines of the example
    if json:
        as_json({name: {"about": about, "table": table} for name, (about, table) in DATASETS.items()})
        return
    for name, (about, table) in DATASETS.items():
        line(f"{name:<15}{'table ' if table else 'images'}  {about}")


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that kofn data list shows.")],
    output: Annotated[
        Path | None,
        options.output_option("FILE", "The table to write: CSV or Parquet, by its extension."),
    ] = None,
    bag_size: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Group the rows into bags of this size; adds the columns bag and proportion.", min=1
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The folder to look in and to download to. By default $KOFN_DATA, or the cache."
        ),
    ] = None,
    force: Force = False,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Find or download a data set and, with -o, write it as a table.

    The table has the training rows. Its column truth has their classes.

    \b
    Example, with the rows in bags of 8:
      kofn data get adult --bag-size 8 -o adult.csv
      kofn fit llp adult.csv --bag bag --label proportion --drop truth -o model
    """  # noqa: D301  # \b keeps the lines of the example
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(DATASETS)}.")
    if output is not None and not DATASETS[name][1]:
        raise ValueError(f"{name} has images, which make no table. Leave -o out, and load them in Python.")
    if output is None and bag_size is not None:
        raise ValueError("--bag-size needs a table to write: name it with -o.")
    if output is not None:
        from kofn.tables import check_output

        check_output(output)
        require_writable(output, force=force)
    data = _load(name, root, seed)
    if output is not None:
        data = _write(data, output, bag_size, seed)
    rows = len(data.instances)
    shape = list(data.instances.shape[1:])
    summary = {"name": name, "rows": rows, "shape": shape, "classes": list(data.classes)}
    if json:
        as_json(summary | ({"output": str(output)} if output else {}))
    else:
        where = f" written to {output}" if output else ""
        line(f"{name}: {rows:,} rows of {' x '.join(map(str, shape))}, {', '.join(data.classes)}{where}")
        if output is not None and bag_size is not None:
            columns = ("--bag", "bag", "--label", "proportion", "--drop", "truth")
            line(f"next       {shell_command('kofn', 'fit', 'llp', output, *columns, '-o', 'model')}")


def _load(name: str, root: Path | None, seed: int) -> Any:
    """The rows to learn from."""
    from kofn import datasets

    if name in ("digits", "breast-cancer"):
        load = datasets.load_digits_task if name == "digits" else datasets.load_breast_cancer_task
        return load("llp", seed=seed).train
    loaded = getattr(datasets, f"load_{name}")(root)
    return getattr(loaded, "train", loaded)


def _write(data: Any, output: Path, bag_size: int | None, seed: int) -> Any:
    import torch

    from kofn.datasets import make_llp_bags
    from kofn.tables import write_table

    bag_columns: dict[str, Any] = {}
    if bag_size is not None:
        task = make_llp_bags(data.labels, bag_size=bag_size, generator=torch.Generator().manual_seed(seed))
        data = data.select(task.bags.index)
        bag = torch.arange(len(task.bags)).repeat_interleave(task.bags.sizes)
        bag_columns = {"bag": bag.numpy(), "proportion": task.proportions[bag].numpy()}
    features = dict(zip(data.features, data.instances.numpy().T, strict=True))
    write_table(output, [bag_columns | features | {"truth": data.labels.numpy()}])
    return data
