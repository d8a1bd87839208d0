"""The paper's figures, drawn from records."""

from __future__ import annotations

import base64
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kofn import _require
from kofn._io.atomic_write import atomic_write
from paper.cells import FEW_BAGS, METHODS
from paper.records import load_records
from paper.summary import summary

SIDE = 28  # pixels of a digit's side
INK = "#57606a"  # on white, on light and dark pages alike
STYLE: dict[str, Any] = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', ['#1f8fb0', '#c27110', '#b0559f'])",
    "legend.frameon": False,
    "svg.hashsalt": "kofn",  # the same bytes every time
}


def figures(results: str | os.PathLike[str], out: str | os.PathLike[str], *, preset: str = "fast") -> dict[str, Path]:
    """Draw every figure whose records there are.

    Args:
        results: the folder with ``figures.jsonl`` and ``mil-small.jsonl``.
        out: folder for the pictures, ``NAME.svg``.
        preset: whose records are drawn.

    Returns:
        The file of each figure drawn, by its name.
    """
    pyplot = _pyplot()
    drawn = {}
    with pyplot.rc_context():
        _require.package("matplotlib", extra="paper").rcdefaults()  # not what a user's file has set
        pyplot.rcParams.update(STYLE)
        for name, draw in DRAWINGS.items():
            figure = draw(pyplot, results, preset)
            if figure is None:
                continue
            drawn[name] = Path(out) / f"{name}.svg"
            with atomic_write(drawn[name]) as part:
                figure.savefig(part, bbox_inches="tight", metadata={"Date": None})
            pyplot.close(figure)
    return drawn


def _pyplot() -> Any:
    _require.package("matplotlib", extra="paper").use("Agg")
    return _require.package("matplotlib.pyplot", extra="paper")


def _numbers_of(results: str | os.PathLike[str], preset: str, figure: str) -> dict[str, dict[str, Any]]:
    """The numbers of a figure by method, of the first seed."""
    records = [r for r in load_records(results, "figures") if r["cell"]["figure"] == figure and r["preset"] == preset]
    return {record["method"]: record["metrics"] for record in sorted(records, key=lambda r: -r["seed"])}


def dynamic_programming(pyplot: Any, results: Any, preset: str) -> Any:
    """The distribution of the count of the first 0, 1, 2, 3 instances, a row each."""
    shown = _numbers_of(results, preset, "dynamic-programming").get("CL")
    if shown is None:
        return None
    pmfs, probabilities = shown["pmfs"], shown["probabilities"]
    figure, axes = pyplot.subplots(figsize=(5.5, 3.2))
    table = np.full((len(pmfs), len(pmfs)), np.nan)
    for row, pmf in enumerate(pmfs):
        table[row, : len(pmf)] = pmf
        for column, value in enumerate(pmf):
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", color="black" if value < 0.7 else "white")
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1)
    names = ["no instance", *(f"+ p = {p:g}" for p in probabilities)]
    axes.set_xticks(range(len(pmfs)), [f"S = {s}" for s in range(len(pmfs))])
    axes.set_yticks(range(len(pmfs)), names)
    axes.set_title("The distribution of the count, instance by instance")
    return figure


def small_data(pyplot: Any, results: Any, preset: str) -> Any:
    """Bag AUC (of rounded predictions) over the number of training bags, a panel for each distribution of sizes."""
    rows = [row for row in summary("mil-small", results=results, preset=preset) if row.values]
    if not rows:
        return None
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for panel, sizes in zip(panels, ("N(10,2)", "N(5,1)"), strict=True):
        for method in METHODS["mil-small"]:
            points = [r for r in rows if r.entry.cell["setting"] == sizes and r.entry.method == method]
            spread = [0.0 if math.isnan(row.spread) else row.spread for row in points]
            where = [row.entry.cell["bags"] for row in points]
            panel.errorbar(where, [row.mean for row in points], spread, marker="o", capsize=3, label=method)
        panel.set(title=f"bag sizes {sizes}", xlabel="training bags", xticks=FEW_BAGS)
    panels[0].set_ylabel("bag AUC, rounded")
    panels[1].legend()
    return figure


def nines_in_a_bag(pyplot: Any, results: Any, preset: str) -> Any:
    """The images of a test bag with their probabilities to be a nine; those above one half framed."""
    shown = _numbers_of(results, preset, "test-bag").get("CL")
    if shown is None:
        return None
    pixels = np.frombuffer(zlib.decompress(base64.b64decode(shown["images"])), np.uint8).reshape(-1, SIDE, SIDE)
    columns = 7
    lines = -(-len(pixels) // columns)
    figure, places = pyplot.subplots(lines, columns, figsize=(columns * 1.1, lines * 1.4), squeeze=False)
    for place in places.flat:
        place.axis("off")
    for place, image, probability in zip(places.flat, pixels, shown["probabilities"], strict=False):
        place.imshow(image, cmap="gray_r")
        place.set_title(f"{probability:.4f}" if probability >= 1e-4 else "< 0.0001", fontsize=9, y=-0.35)
        if probability > 0.5:
            place.add_patch(pyplot.Rectangle((-0.5, -0.5), SIDE, SIDE, fill=False, color="red", linewidth=3))
    return figure


def count_distribution(pyplot: Any, results: Any, preset: str) -> Any:
    """The mean predicted distribution of the count of 100 test images of MNIST17 beside the binomial."""
    shown = _numbers_of(results, preset, "count-distribution")
    if not shown:
        return None
    figure, axes = pyplot.subplots(figsize=(5.5, 3.2))
    size = len(next(iter(shown.values()))["pmf"]) - 1
    counts = np.arange(size + 1)
    binomial = [math.comb(size, int(k)) / 2**size for k in counts]
    axes.fill_between(counts, binomial, color=INK, alpha=0.35, linewidth=0, label=f"Binomial({size}, 1/2)")
    for method, numbers in sorted(shown.items()):
        axes.plot(counts, numbers["pmf"], label=method)
    axes.set(xlabel="positives among 100 test images", ylabel="probability", xlim=(20, 80))
    axes.legend()
    return figure


DRAWINGS: dict[str, Callable[[Any, Any, str], Any]] = {
    "dynamic-programming": dynamic_programming,
    "small-data": small_data,
    "test-bag": nines_in_a_bag,
    "count-distribution": count_distribution,
}
