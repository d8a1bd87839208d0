"""How the error of learned probabilities falls with the number of bags, for labels of instances and two losses."""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from drawing import WIDTH, Look
from matplotlib.figure import Figure
from page_code import after
from torch import Tensor

import kofn

BAGS, DRAWS = (30, 100, 300, 1000, 3000), 12


def errors() -> dict[str, list[float]]:
    """Root mean square errors over the four kinds of instances of the page and over draws of the data."""
    names = after("ideas/consistency", 1)
    true, draw, learn = names["true"], names["draw"], names["learn"]
    found: dict[str, list[float]] = {"proportion loss": [], "count loss": [], "labels of instances": []}
    for bags in BAGS:
        squares: dict[str, list[Tensor]] = {name: [] for name in found}
        for seed in range(DRAWS):
            kinds, labels = draw(bags, torch.Generator().manual_seed(seed))
            shares = labels.double().mean(1)
            counted = torch.bincount(kinds.flatten(), labels.flatten().double(), 4) / torch.bincount(kinds.flatten())
            means = learn(kinds, lambda x, shares=shares: kofn.losses.proportion_loss(x, shares))
            results = (means, names["by_count"](kinds, labels), counted)
            for name, result in zip(found, results, strict=True):
                squares[name].append((result - true).square().mean())
        for name, values in squares.items():
            found[name].append(float(torch.stack(values).mean().sqrt()))
    return found


def consistency(look: Look) -> Figure:
    """Three lines that fall alike."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.2))
    for (name, values), colour, marker in zip(
        errors().items(), (look.label, look.model, look.third), "sod", strict=True
    ):
        axes.plot(BAGS, values, color=colour, marker=marker, label=name)
    axes.set(xscale="log", yscale="log", xlabel="bags of ten", ylabel="error of the probabilities")
    axes.set_xticks(BAGS, [f"{bags:,}" for bags in BAGS])
    axes.minorticks_off()
    axes.set_yticks([0.01, 0.03, 0.1], ["0.01", "0.03", "0.1"])
    axes.legend(loc="lower left")
    return figure


FIGURES = {"consistency": consistency}
