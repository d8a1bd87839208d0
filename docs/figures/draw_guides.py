"""Pictures of the guides that need no fitted model, or show a fit itself: losses, bags, batches, files."""

from __future__ import annotations

import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
from drawing import WIDTH, Look, bars, whole_numbers
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from page_code import after

import kofn


def evaluating(look: Look) -> Figure:
    """How often intervals hold the count, against how often they should, for three models."""
    names = after("guides/evaluating", 1)
    models = {"right": names["x"], "too sure": 3 * names["x"], "no features": names["same"]}
    figure, axes = plt.subplots(figsize=(WIDTH, 3.2))
    axes.plot([0.4, 1], [0.4, 1], color=look.faint, linestyle="--", linewidth=1.2, label="as it should be")
    for (name, logits), colour, marker in zip(
        models.items(), (look.model, look.label, look.third), ("o", "s", "D"), strict=True
    ):
        told = kofn.metrics.count_calibration(logits, names["counts"])
        axes.plot(told.levels, told.coverage, color=colour, marker=marker, label=name)
    axes.set(xlabel="what an interval should hold", ylabel="what it holds", xlim=(0.45, 1), ylim=(0.25, 1))
    axes.legend(loc="lower right")
    return figure


def losses(look: Look) -> Figure:
    """Two losses of a bag of two with one positive, over the two probabilities."""
    grid = torch.linspace(0.02, 0.98, 97, dtype=torch.float64)
    pairs = torch.logit(torch.cartesian_prod(grid, grid))
    one, half = torch.ones(len(pairs), dtype=torch.int64), torch.full((len(pairs),), 0.5, dtype=torch.float64)
    values = {
        "count loss": kofn.count_loss(pairs, kofn.Exactly(one), reduction="none"),
        "proportion loss": kofn.losses.proportion_loss(pairs, half, reduction="none"),
    }
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.9), sharey=True)
    for place, (name, value) in zip(axes, values.items(), strict=True):
        height = value.reshape(97, 97).T.numpy()
        levels = np.quantile(height, np.linspace(0.02, 0.9, 9))
        place.contour(grid, grid, height, levels=np.unique(levels), colors=[look.model], linewidths=1.2)
        place.plot([0, 1], [1, 0], color=look.faint, linestyle="--", linewidth=1)
        corners = ([0, 1], [1, 0]) if name == "count loss" else ([0, 0.25, 0.5, 0.75, 1], [1, 0.75, 0.5, 0.25, 0])
        place.scatter(*corners, color=look.label, marker="D", s=36, zorder=3, clip_on=False)
        place.set(title=f"{name}, smallest at ◆", xlabel="p of the first", aspect="equal", xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("p of the second")
    return figure


def noisy(look: Look) -> Figure:
    """The distribution of a count, alone, given "fewer than 5", and given 3.2 with noise."""
    names = after("guides/noisy", 1)
    log_pmf = kofn.log_count_distribution(names["logits"][1].detach())
    counts = torch.arange(11.0)
    given = {
        "the model's": log_pmf,
        "given “fewer than 5”": torch.where(counts < 5, log_pmf, -torch.inf),
        "given 7.9 with noise": log_pmf + torch.distributions.Laplace(0.0, 1.5).log_prob(7.9 - counts),
    }
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.5), sharey=True)
    for place, (title, log_p), colour in zip(axes, given.items(), (look.model, look.third, look.fourth), strict=True):
        bars(place, (log_p - log_p.logsumexp(0)).exp(), colour)
        whole_numbers(place, 10, 2)
        place.set(title=title, xlabel="count s")
    axes[0].set_ylabel("P(S = s)")
    return figure


def tensors(look: Look) -> Figure:
    """The distribution of one bag's count with its mean and its 90 % interval."""
    logits = torch.randn(20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    dist = kofn.CountDistribution(logits)
    low, high = (int(end) for end in dist.interval(0.9))
    pmf = dist.log_probs().exp()
    inside = torch.tensor([low <= k <= high for k in range(21)])
    figure, axes = plt.subplots(figsize=(WIDTH, 2.8))
    bars(axes, pmf * inside, look.model, label=f"interval(0.9): {low} to {high}")
    bars(axes, pmf * ~inside, look.faint, label="outside")
    axes.axvline(float(dist.mean), color=look.label, linestyle="--", linewidth=1.6, label=f"mean: {dist.mean:.1f}")
    whole_numbers(axes, 20, 2)
    axes.set(xlabel="number of positives s among 20", ylabel="P(S = s)")
    axes.legend(loc="upper right")
    return figure


def trainers(look: Look) -> Figure:
    """A batch: the instances of three bags one after the other, and the offsets."""
    figure, axes = _blank(1.7)
    sizes, colours = (3, 5, 2), (look.model, look.third, look.fourth)
    ends = np.cumsum([0, *sizes])
    for bag, (start, end) in enumerate(pairwise(ends)):
        for i in range(start, end):
            axes.add_patch(plt.Rectangle((i + 0.06, 0.1), 0.88, 0.8, color=colours[bag]))
        axes.text((start + end) / 2, 1.15, f"bag {bag}: count {(1, 4, 0)[bag]}", ha="center", color=look.ink)
    for end in ends:
        axes.text(end, -0.35, str(end), ha="center", color=look.ink)
        axes.plot([end, end], [-0.08, 0.98], color=look.ink, linewidth=1)
    axes.text(-0.3, 0.5, "instances", ha="right", va="center", color=look.ink)
    axes.text(-0.3, -0.35, "offsets", ha="right", color=look.ink)
    axes.set(xlim=(-2.2, 10.4), ylim=(-0.6, 1.6))
    return figure


def several_machines(look: Look) -> Figure:
    """The training loss of a fit in whole steps and in steps of four parts: one line on the other."""
    names = after("guides/several-machines", 1)
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6))
    for model, colour, style, width, words in (
        (names["one"], look.model, "-", 4, "a step of 40 bags at once"),
        (names["four"], look.label, "--", 1.8, "the same step in four parts"),
    ):
        history = model.history_
        axes.plot(
            [entry["epoch"] for entry in history], [entry["train_loss"] for entry in history],
            color=colour, linestyle=style, linewidth=width, marker="o", markersize=width + 3, label=words,
        )  # fmt: skip
    axes.set(xlabel="epoch", ylabel="training loss", xticks=range(1, 6))
    axes.legend(loc="upper right")
    return figure


def table(look: Look) -> Figure:
    """From one file to the others."""
    figure, axes = _blank(2.6)
    boxes = {
        (0, 1): ("votes.csv", "a row each,\nthe share of its bag"),
        (1, 1): ("model", "one file,\nno code in it"),
        (2, 2): ("rows.csv", "a probability for each row"),
        (2, 1): ("bags.csv", "a count and interval for each"),
        (2, 0): ("report.html", "can it be trusted?"),
    }
    left, width, height = (0.0, 2.9, 6.4), (2.2, 1.6, 3.3), 0.78
    for (column, row), (name, words) in boxes.items():
        x = left[column]
        axes.add_patch(plt.Rectangle((x, row), width[column], height, fill=False, color=look.model, linewidth=1.5))
        axes.text(x + 0.12, row + 0.56, name, color=look.ink, weight="bold", fontsize=9.5)
        axes.text(x + 0.12, row + 0.42, words, color=look.ink, fontsize=8, va="top")
    arrow = {"arrowstyle": "->", "color": look.label, "lw": 1.6}
    for x, y, end, row, words in (
        (2.2, 1.4, 2.9, 1.4, "fit"),
        (4.5, 1.6, 6.4, 2.4, "predict"),
        (4.5, 1.4, 6.4, 1.4, "predict --bag"),
        (4.5, 1.2, 6.4, 0.4, "report"),
    ):
        axes.annotate("", (end, row), (x, y), arrowprops=arrow)
        above = {"fit": (2.5, 1.5), "predict": (5.1, 2.15), "predict --bag": (5.45, 1.47), "report": (5.1, 0.55)}[words]
        axes.text(*above, words, ha="center", color=look.ink, fontsize=8)
    axes.set(xlim=(-0.05, 9.75), ylim=(-0.1, 2.9))
    return figure


def troubleshooting(look: Look) -> Figure:
    """The losses of a fit that learns, and of one whose features are noise."""
    generator = np.random.default_rng(0)
    features, noise = generator.normal(size=(2, 800, 2))
    groups = np.repeat(np.arange(100), 8)
    shares = (features[:, 0] > 0.5).reshape(100, 8).mean(1).repeat(8)
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.7), sharey=True)
    for place, columns, title in zip(axes, (features, noise), ("features that tell", "noise"), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kofn.estimators.FitWarning)  # of noise: that is what is shown
            model = kofn.LLPClassifier("trees", random_state=0).fit(columns, shares, groups=groups)
        for key, colour, style, words in (
            ("train_loss", look.model, "-", "training"),
            ("val_loss", look.label, "--", "held-out bags"),
        ):
            points = [(entry["round"], entry[key]) for entry in model.history_ if np.isfinite(entry.get(key, np.nan))]
            place.plot(*zip(*points, strict=True), color=colour, linestyle=style, label=words)
        place.axhline(
            model.baselines_["no features"], color=look.ink, linestyle=":", linewidth=1.2, label="no features"
        )
        place.set(title=title, xlabel="round")
    axes[0].set_ylabel("loss of a bag")
    axes[1].legend(loc="lower left", fontsize=9)
    return figure


def _blank(height: float) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(WIDTH, height))
    axes.set_axis_off()
    return figure, axes


FIGURES = {
    "guide-evaluating": evaluating,
    "guide-losses": losses,
    "guide-noisy": noisy,
    "guide-several-machines": several_machines,
    "guide-table": table,
    "guide-tensors": tensors,
    "guide-trainers": trainers,
    "guide-troubleshooting": troubleshooting,
}
