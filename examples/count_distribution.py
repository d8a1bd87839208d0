"""A bag of 40 instances of which 28 are positive: the distribution of its count before, during and after training.

Nothing is known of any single instance. The only label is how many of them are positive, and
-log P(S = 28) is its loss. Draws kofn-demo/count-distribution.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import torch
from rich.progress import track

import kofn

mpl.use("Agg")
import matplotlib.pyplot as plt

BAG, COUNT, STEPS = 40, 28, 60
SHOWN = {0: "before training", 5: "after 5 steps", STEPS: f"after {STEPS} steps"}
COLOURS = ("#9aa5b1", "#e8a33d", "#1f6f8b")


def main() -> None:
    """Train, print what changed, draw."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(BAG, 5, generator=generator)
    weights = torch.zeros(5, requires_grad=True)
    bias = torch.tensor(-1.0, requires_grad=True)
    optimiser = torch.optim.Adam([weights, bias], lr=0.1)

    pmfs, scores = {}, {}
    for step in track(range(STEPS + 1), "training on one count"):
        logits = features @ weights + bias
        loss = -kofn.log_count_prob(logits, COUNT)
        if step in SHOWN:
            pmfs[step] = kofn.log_count_distribution(logits).exp().detach()
            scores[step] = torch.sigmoid(logits).detach()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    for step, name in SHOWN.items():
        print(f"{name:>16}: P(S = {COUNT}) = {pmfs[step][COUNT]:.2e}, expected count {scores[step].sum():5.2f}")
    posteriors = kofn.count_posteriors(logits.detach(), COUNT)
    print(f"given the count, the posteriors of the {BAG} instances sum to {posteriors.sum():.6f}")

    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    counts = torch.arange(BAG + 1)
    for (step, name), colour in zip(SHOWN.items(), COLOURS, strict=True):
        axes.fill_between(counts, pmfs[step], color=colour, alpha=0.25, step="mid")
        axes.step(counts, pmfs[step], where="mid", color=colour, label=name, linewidth=1.6)
    axes.axvline(COUNT, color="#c0392b", linestyle="--", linewidth=1.2, label=f"the label: {COUNT} of {BAG}")
    axes.set(xlabel="number of positives in the bag, s", ylabel="P(S = s)", xlim=(0, BAG), ylim=(0, None))
    axes.set_title("The distribution of the count moves to its label", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "kofn-demo")
    folder.mkdir(parents=True, exist_ok=True)
    partial, target = folder / "count-distribution.part.png", folder / "count-distribution.png"
    figure.savefig(partial, dpi=160)
    partial.replace(target)
    print(f"drew {target}")


if __name__ == "__main__":
    main()
