"""The distribution of a bag's count before, during and after training, and what a count says to each instance."""

from __future__ import annotations

from functools import cache

import matplotlib.pyplot as plt
import torch
from drawing import WIDTH, Look
from matplotlib.figure import Figure
from torch import Tensor

import kofn

BAGS, SIZE, STEPS = 30, 40, (0, 6, 100)
LOGITS = (-2.2, -1.6, -1.1, -0.6, -0.2, 0.3, 0.9, 1.8)
COUNT = 5


@cache
def train() -> tuple[list[Tensor], int]:
    """Train a logistic model on the counts of thirty bags; the pmf and the count of the bag with most positives."""
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(BAGS, SIZE, 5, generator=generator) + torch.randn(BAGS, 1, 5, generator=generator)
    truth = torch.tensor([2.0, -1.0, 0.5, 0.0, 0.0])
    labels = torch.rand(BAGS, SIZE, generator=generator) < torch.sigmoid(features @ truth)
    counts = labels.sum(1)
    shown = int(counts.argmax())
    model = torch.nn.Linear(5, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    pmfs = []
    for step in range(STEPS[-1] + 1):
        logits = model(features).squeeze(-1)
        if step in STEPS:
            pmfs.append(kofn.log_count_distribution(logits[shown].detach()).exp())
        optimiser.zero_grad()
        kofn.count_loss(logits, kofn.Exactly(counts)).backward()
        optimiser.step()
    return pmfs, int(counts[shown])


def count_distribution(look: Look) -> Figure:
    """The distribution of one bag at three moments, and the count that is its label."""
    pmfs, count = train()
    figure, axes = plt.subplots(figsize=(WIDTH, 3.2))
    for pmf, step, colour in zip(pmfs, STEPS, (look.fourth, look.third, look.model), strict=True):
        name = f"after {step} steps" if step else "before training"
        axes.fill_between(range(SIZE + 1), pmf.tolist(), color=colour, alpha=0.2, step="mid", linewidth=0)
        axes.step(range(SIZE + 1), pmf.tolist(), where="mid", color=colour, label=name)
    axes.axvline(count, color=look.label, linestyle="--", linewidth=1.6, label=f"the label: {count} of {SIZE}")
    axes.set(xlabel="number of positives s in the bag", ylabel="P(S = s)", xlim=(0, SIZE), ylim=(0, None))
    axes.locator_params(axis="y", nbins=5)
    axes.legend(loc="upper left")
    return figure


def posterior(look: Look) -> Figure:
    """Each instance's probability before and after its bag's count is known; the arrow is minus the gradient."""
    logits = torch.tensor(LOGITS, dtype=torch.float64)
    figure, axes = plt.subplots(figsize=(WIDTH, 3.0))
    before = torch.sigmoid(logits)
    after = kofn.count_posteriors(logits, COUNT)
    arrow = {"arrowstyle": "->", "color": look.faint, "lw": 2, "shrinkA": 4, "shrinkB": 4}
    for i, (low, high) in enumerate(zip(before.tolist(), after.tolist(), strict=True)):
        axes.annotate("", (i, high), (i, low), arrowprops=arrow)
    axes.scatter(
        range(len(before)),
        before.tolist(),
        color=look.model,
        s=45,
        label=f"model: they sum to {float(before.sum()):.2f}",
    )
    axes.scatter(
        range(len(after)),
        after.tolist(),
        color=look.label,
        s=45,
        marker="D",
        label=f"given S = {COUNT}: they sum to {COUNT}",
    )
    axes.set(xlabel="instance", ylabel="P(positive)", ylim=(0, 1.02), xticks=range(len(before)))
    axes.set_xticklabels(range(1, len(before) + 1))
    axes.legend(loc="upper left")
    return figure


FIGURES = {"count-distribution": count_distribution, "posterior": posterior}
