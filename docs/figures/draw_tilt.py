"""The tilt that brings a count from the tail to the middle, and the few frequencies that then tell its probability."""

from __future__ import annotations

import math
from functools import cache

import matplotlib.pyplot as plt
import torch
from drawing import WIDTH, Look, bars
from matplotlib.figure import Figure
from torch import Tensor

import kofn

BAG, WANTED = 60, 46
SIZES = (100, 10_000, 1_000_000)
NEGLIGIBLE = 40.0  # e^-40


def bag(n: int) -> Tensor:
    """Logits of a bag that expects about three positives in ten."""
    return torch.randn(n, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 1.0


def tilt_to(logits: Tensor, mean: float) -> float:
    """The t with sum_i sigmoid(x_i + t) = mean, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if torch.sigmoid(logits + middle).sum() < mean else (low, middle)
    return (low + high) / 2


def tilted_laws(look: Look) -> Figure:
    """The distribution of one bag before and after the tilt: on a linear axis, and on a logarithmic one."""
    logits = bag(BAG)
    t = tilt_to(logits, WANTED)
    before, after = (kofn.log_count_distribution(logits + shift).exp() for shift in (0.0, t))
    figure, (linear, logarithmic) = plt.subplots(2, 1, figsize=(WIDTH, 5.2), sharex=True)
    names = ("the distribution of S", f"tilted by t = {t:.2f}")
    for pmf, colour, name in zip((before, after), (look.model, look.label), names, strict=True):
        bars(linear, pmf, colour, label=name)
        logarithmic.plot(pmf.tolist(), color=colour, marker="o", markersize=2.5, linewidth=1)
    for axes in (linear, logarithmic):
        axes.axvline(WANTED, color=look.ink, linewidth=1, linestyle=":")
    linear.set(xlim=(-0.7, BAG + 0.7), ylim=(0, 0.165), yticks=(0, 0.05, 0.1, 0.15), ylabel="probability")
    linear.legend(loc="upper left", ncols=2)
    linear.annotate(
        f"s = {WANTED}", (WANTED, 0.135), (6, 0), textcoords="offset points", ha="left", va="center", color=look.ink
    )
    logarithmic.set_yscale("log")
    logarithmic.set(
        ylim=(1e-32, 1e4), yticks=(1, 1e-10, 1e-20, 1e-30), ylabel="the same, log axis", xlabel="number of positives s"
    )
    logarithmic.annotate(
        "", (WANTED, float(after[WANTED])), (WANTED, float(before[WANTED])),
        arrowprops={"arrowstyle": "->", "color": look.ink, "linewidth": 1.6},
    )  # fmt: skip
    power = math.log10(float(before[WANTED]))
    logarithmic.annotate(
        f"from $10^{{{power:.0f}}}$ to {float(after[WANTED]):.2f}", (WANTED, 1.0), (-6, 8),
        textcoords="offset points", ha="right", color=look.ink,
    )  # fmt: skip
    return figure


def radius(variance: float, exponent: float) -> float:
    """Bernstein: a count further from the mean than this has probability below 2 e^-exponent."""
    return exponent / 3 + math.sqrt((exponent / 3) ** 2 + 2 * exponent * variance)


@cache
def spectrum(n: int) -> Tensor:
    """log |phi| at the points of the trapezoid rule for a count near the mean, up to u = pi."""
    p = torch.sigmoid(bag(n))
    variance = float((p * (1 - p)).sum())
    points = min(n + 1, math.ceil(radius(variance, NEGLIGIBLE) + radius(variance, 1.0)))
    angles = 2 * math.pi * torch.arange(min(points // 2 + 1, 26), dtype=torch.float64) / points
    # |q + p e^{iu}|^2 = 1 - 4 p q sin^2(u / 2)
    return torch.stack([torch.log1p(-4 * p * (1 - p) * torch.sin(u / 2) ** 2).sum() / 2 for u in angles])


def frequencies(look: Look) -> Figure:
    """How fast the terms of the inversion fall, for three sizes of bag."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.3))
    for n, colour, marker in zip(SIZES, (look.model, look.label, look.third), "osD", strict=True):
        log_sizes = spectrum(n)
        kept = int((log_sizes > -NEGLIGIBLE).sum())
        axes.plot(
            (log_sizes / math.log(10)).tolist(), color=colour, marker=marker, markersize=4, linewidth=1.2,
            label=f"n = {n:,}: {kept} above the line",
        )  # fmt: skip
    axes.axhline(-NEGLIGIBLE / math.log(10), color=look.ink, linestyle="--", linewidth=1)
    axes.text(0.2, -NEGLIGIBLE / math.log(10) - 0.5, "below rounding", va="top", color=look.ink)
    axes.set(xlim=(-0.4, 30), ylim=(-24, 0.8), xlabel="frequency m", ylabel="log10 |φ(2π m / M)|")
    axes.legend(loc="upper right")
    return figure


FIGURES = {"tilt": tilted_laws, "frequencies": frequencies}
