"""The paper's tables as lists of cells: what is run, with what, how often, and what was published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kofn import _require
from paper import published
from paper.published import rows

TABLES = ("llp", "mil", "mil-instance", "mil-small", "colon", "pu", "classes", "sums", "figures")
PRESETS = ("fast", "paper")
SEEDS = {"llp": 5, "mil": 3, "mil-instance": 3, "mil-small": 3, "colon": 5, "pu": 3}
SEEDS |= {"classes": 3, "sums": 3, "figures": 1}
METHODS = {
    "llp": ("CL", "CL-trees", "PL", "LMMCM"),  # trees with the count loss are ours alone
    "mil": ("CL", "Attention", "Gated Attention"),
    "mil-instance": ("CL", "Instance-Max"),
    "mil-small": ("CL", "Attention", "Gated Attention"),
    "colon": ("CL", "Attention", "Gated Attention"),
    "pu": ("CL", "CL-expect", "CVIR", "nnPU", "uPU"),
    "classes": ("Joint", "Marginal", "Proportion", "Transport", "Every label"),
    "sums": ("Sum", "Gaussian", "Squares"),
    "figures": ("CL", "CVIR"),
}
# What the table prints, first; the other metrics of a record are for the reader.
METRICS = {
    "llp": ("auc",),
    "mil": ("auc_rounded",),
    "mil-instance": ("accuracy", "auc_rounded"),
    "mil-small": ("auc_rounded",),
    "colon": ("accuracy", "auc_rounded", "f1", "precision", "recall"),
    "pu": ("accuracy",),
    "classes": ("accuracy",),
    "sums": ("accuracy",),
    "figures": (),
}
FOLDS = 10

BAG_SIZES = (8, 32, 128, 512)
BAGS = (50, 100, 150, 200, 300, 400, 500)
FEW_BAGS = (10, 20, 30, 40)


@dataclass(frozen=True)
class Cell:
    """One method in one cell of one table.

    Attributes:
        table: one of `TABLES`.
        cell: the data set, the setting, the bag size or number of bags.
        method: one of the table's `METHODS`.
        published: of each metric the mean and the spread, as printed; empty where the paper prints none.
        folds: of a cross-validation, each of which is run by itself.
    """

    table: str
    cell: Mapping[str, Any]
    method: str
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    folds: int = 0


@dataclass(frozen=True)
class Run:
    """One training with one random seed: what a record describes."""

    table: str
    cell: Mapping[str, Any]
    method: str
    preset: str
    seed: int

    @property
    def name(self) -> str:
        """A name for a file.

        Examples:
            >>> Run("llp", {"data": "adult", "setting": "[0,1/2]", "bag_size": 8}, "CL", "fast", 0).name
            'adult_0-1-2_8_CL_fast_0'
        """
        words = [*map(str, self.cell.values()), self.method, self.preset, str(self.seed)]
        return "_".join(re.sub(r"[^0-9A-Za-z.]+", "-", word).strip("-") for word in words)

    @property
    def facts(self) -> dict[str, Any]:
        """What tells this run from others, as a record has it."""
        return {"table": self.table, "cell": dict(self.cell)} | {
            "method": self.method,
            "preset": self.preset,
            "seed": self.seed,
        }


def cells(table: str) -> list[Cell]:
    """The cells of a table, in the paper's order, the methods of a cell side by side.

    Examples:
        >>> from paper.cells import cells
        >>> first = cells("llp")[0]
        >>> dict(first.cell), first.method, dict(first.published)
        ({'data': 'adult', 'setting': '[0,1/2]', 'bag_size': 8}, 'PL', {'auc': (0.8889, 0.0024)})
    """
    _require.option("table", table, TABLES)
    if table == "llp":
        found = _by_column(table, "bag_size", BAG_SIZES, auc=published.LLP)
        return [
            each for cl in found for each in ([cl, Cell(table, cl.cell, "CL-trees")] if cl.method == "CL" else [cl])
        ]
    if table == "mil":
        return _by_column(table, "bags", BAGS, auc_rounded=published.MIL)
    if table == "mil-instance":
        accuracy, auc = published.MIL_INSTANCE_ACCURACY, published.MIL_INSTANCE_AUC
        return _by_column(table, "bags", BAGS, accuracy=accuracy, auc_rounded=auc)
    if table == "mil-small":
        keys = [(sizes, bags) for sizes in ("N(10,2)", "N(5,1)") for bags in FEW_BAGS]
        settings = [{"data": "mnist", "setting": sizes, "bags": bags} for sizes, bags in keys]
        return [Cell(table, setting, method) for setting in settings for method in METHODS[table]]
    if table == "colon":
        return [
            Cell(
                table,
                {"data": data, "setting": setting},
                method,
                dict(zip(METRICS[table], numbers, strict=True)),
                FOLDS,
            )
            for (data, setting, method), numbers in rows(published.COLON)
        ]
    if table == "pu":
        order = ("CL-expect", "CL", "CVIR", "nnPU", "uPU")
        return [
            Cell(table, {"data": data, "setting": setting}, method, {"accuracy": number})
            for (data, setting), numbers in rows(published.PU)
            for method, number in zip(order, numbers, strict=True)
        ]
    if table == "classes":
        return _classes()
    if table == "sums":
        setting = {"data": "mnist", "setting": "sum of digits", "bag_size": 10}
        return [Cell(table, setting, method) for method in METHODS[table]]
    drawn = [
        ("dynamic-programming", "CL"),
        ("test-bag", "CL"),
        ("count-distribution", "CL"),
        ("count-distribution", "CVIR"),
    ]
    return [Cell(table, {"figure": figure}, method) for figure, method in drawn]


def _classes() -> list[Cell]:
    """Counts of several classes. A bag of one knows its label."""
    return [
        Cell("classes", {"data": data, "setting": setting, "bag_size": size}, method)
        for data, setting in (("mnist", "10 classes"), ("adult", "3 classes"))
        for size in (1, *BAG_SIZES)
        for method in METHODS["classes"]
        if (size == 1) == (method == "Every label")
    ]


def _by_column(table: str, column: str, values: Sequence[int], **blocks: str) -> list[Cell]:
    """Cells of a table whose columns are bag sizes or numbers of bags, column by column of each block."""
    found: dict[tuple[str, str, int, str], dict[str, tuple[float, float]]] = {}
    for metric, block in blocks.items():
        for (data, setting, method), numbers in rows(block):
            for value, number in zip(values, numbers, strict=True):
                found.setdefault((data, setting, value, method), {})[metric] = number
    settings = {key[:2]: None for key in found}
    ordered = sorted(found, key=lambda key: (list(settings).index(key[:2]), key[2]))  # stable: methods as they were
    return [Cell(table, {"data": k[0], "setting": k[1], column: k[2]}, k[3], found[k]) for k in ordered]


def runs(
    table: str, *, only: Iterable[str] | str | None = None, seeds: int | None = None, preset: str = "fast"
) -> list[Run]:
    """What to run: of each cell and method so many seeds, all cells with the first seed before the second.

    Args:
        table: one of `TABLES`.
        only: words such as "data=adult", "bag_size=8", "method=CL"; a key named twice allows both values.
        seeds: number of random seeds, from 0; by default as many as in the paper.
        preset: "fast" or "paper".

    Raises:
        ValueError: an unknown table, preset, key or value.

    Examples:
        >>> from paper.cells import runs
        >>> [run.name for run in runs("llp", only=["data=magic", "bag_size=8", "setting=[0,1]"], seeds=1)]
        ['magic_0-1_8_PL_fast_0', 'magic_0-1_8_LMMCM_fast_0', 'magic_0-1_8_CL_fast_0', 'magic_0-1_8_CL-trees_fast_0']
    """
    _require.option("preset", preset, PRESETS)
    number = SEEDS[table] if table in SEEDS and seeds is None else seeds
    _require.whole_number("seeds", number, low=1)
    wanted = allowed_values(table, only)
    return [
        Run(table, cell, entry.method, preset, seed)
        for seed in range(int(number or 0))
        for entry in cells(table)
        for cell in ([{**entry.cell, "fold": fold} for fold in range(entry.folds)] if entry.folds else [entry.cell])
        if all(str({**cell, "method": entry.method}[key]) in values for key, values in wanted.items())
    ]


def allowed_values(table: str, only: Iterable[str] | str | None) -> dict[str, set[str]]:
    """Allowed values by key, from words "key=value"."""
    known: dict[str, set[str]] = {}
    for entry in cells(table):
        for key, value in {**entry.cell, "method": entry.method}.items():
            known.setdefault(key, set()).add(str(value))
        if entry.folds:
            known["fold"] = set(map(str, range(entry.folds)))
    wanted: dict[str, set[str]] = {}
    for word in [only] if isinstance(only, str) else only or []:
        key, _, value = word.partition("=")
        if key not in known:
            raise ValueError(f"`only` must name {', '.join(sorted(known))} of the table {table!r}; got {word!r}.")
        if value not in known[key]:
            raise ValueError(f"`only` must have {key} one of {', '.join(sorted(known[key]))}; got {word!r}.")
        wanted.setdefault(key, set()).add(value)
    return wanted
