"""Time against the size of a bag, from the record that `python -m bench.scaling` writes."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
from drawing import WIDTH, Look
from matplotlib.figure import Figure

RECORD = Path(__file__).parents[2] / "bench" / "scaling.json"
SAID = {
    "algorithm 1": "Algorithm 1 in torch",
    "scipy": "scipy (values only)",
    "kofn in torch": "kofn, no C++ core",
    "fast-poibin": "fast-poibin (values only)",
    "kofn, values only": "kofn (values only)",
    "kofn": "kofn",
}


def scaling(look: Look) -> Figure:
    """One panel a question, one line a contender, both axes logarithmic."""
    record = json.loads(RECORD.read_text())["milliseconds"]
    colours = (look.fourth, look.fifth, look.third, look.label, look.model, look.model)
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 6.6), sharex=True, sharey=True)
    for panel, (question, times) in zip(panels, record.items(), strict=True):
        for name, colour, marker in zip(SAID, colours, "^vDs.o", strict=True):
            by_size = times.get(name, {})  # not every contender has every question
            sizes = [int(n) for n in by_size]
            thick = 2.6 if name == "kofn" else 1.4
            panel.plot(
                sizes, list(by_size.values()), color=colour, marker=marker, markersize=5, linewidth=thick,
                linestyle="--" if name == "kofn, values only" else "-", label=SAID[name],
            )  # fmt: skip
        panel.set(xscale="log", yscale="log", ylabel="milliseconds", title=f"{question} of one bag")
        panel.grid(True)
    panels[1].set_xlabel("instances in the bag, n")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


FIGURES = {"scaling": scaling}
