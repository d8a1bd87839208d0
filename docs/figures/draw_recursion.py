"""The dynamic programme: the distribution of S after each instance, and how the mass flows."""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from drawing import WIDTH, Look, bars, whole_numbers
from matplotlib.figure import Figure
from torch import Tensor

PROBS = (0.9, 0.2, 0.6, 0.5, 0.8, 0.3)


def pmf_by_instance(probs: tuple[float, ...]) -> list[tuple[Tensor, Tensor]]:
    """After each instance: the mass that stayed at its count, and the mass that moved up by one. Together, the pmf."""
    pmf = torch.ones(1, dtype=torch.float64)
    parts = []
    for p in probs:
        none = pmf.new_zeros(1)
        stayed, moved = torch.cat([pmf * (1 - p), none]), torch.cat([none, pmf * p])
        pmf = stayed + moved
        parts.append((stayed, moved))
    return parts


def small_multiples(look: Look) -> Figure:
    """The distribution after 1, 2, ..., 6 instances, each bar in two parts."""
    figure, panels = plt.subplots(2, 3, figsize=(WIDTH, 3.9), sharex=True, sharey=True)
    for i, (panel, (stayed, moved)) in enumerate(zip(panels.flat, pmf_by_instance(PROBS), strict=True)):
        bars(panel, stayed, look.model, label="stayed: it is negative")
        bars(panel, moved, look.label, above=stayed, label="moved up: it is positive")
        panel.set_title(f"after {i + 1}: $p_{i + 1}$ = {PROBS[i]:g}")
        whole_numbers(panel, len(PROBS))
    for panel in panels[1]:
        panel.set_xlabel("count s")
    for panel in panels[:, 0]:
        panel.set_ylabel("P(S = s)")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def lattice(look: Look) -> Figure:
    """Every count after every instance as a disc of its mass; along the lines flows what stays and what moves."""
    probs = PROBS[:4]
    figure, axes = plt.subplots(figsize=(WIDTH, 4.0))
    pmf = torch.ones(1, dtype=torch.float64)
    rows = [pmf]
    for i, (p, (stayed, moved)) in enumerate(zip(probs, pmf_by_instance(probs), strict=True)):
        for s in range(i + 1):
            for to, mass, colour in ((s, stayed[s], look.model), (s + 1, moved[s + 1], look.label)):
                axes.plot([s, to], [-i, -i - 1], color=colour, linewidth=1 + 16 * float(mass), alpha=0.75, zorder=1)
        axes.text(-0.62, -i - 0.5, f"$p_{i + 1}$ = {p:g}", ha="right", va="center")
        rows.append(stayed + moved)
    for i, row in enumerate(rows):
        for s, mass in enumerate(row.tolist()):
            axes.scatter(s, -i, s=560, color=look.paper, edgecolors=look.ink, linewidths=0.8, zorder=2)
            axes.text(s, -i, f"{mass:.3f}".lstrip("0") if mass < 1 else "1", ha="center", va="center", fontsize=9)
    axes.set(xlim=(-1.5, len(probs) + 0.4), ylim=(-len(probs) - 0.4, 0.65))
    for s in range(len(probs) + 1):
        axes.text(s, 0.5, f"s = {s}", ha="center", va="center")
    axes.plot([], [], color=look.model, linewidth=5, label="negative: stays")
    axes.plot([], [], color=look.label, linewidth=5, label="positive: one up")
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.86))
    axes.axis("off")
    return figure


FIGURES = {"recursion": small_multiples, "lattice": lattice}
