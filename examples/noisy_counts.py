"""Counts that were perturbed for privacy: use their exact likelihood, or round them and pretend that they are exact?

Bags of instances with two features; only each bag's number of positives is released, with discrete Laplace noise (the
geometric mechanism; scale 1 / epsilon). The same logistic model is trained on the same released numbers by

    noisy:    -log sum_s P(S = s) P(noise = released - s)         kofn.Noisy
    plug-in:  -log P(S = released, cut to the bag's range)        kofn.Exactly

and, as what could be reached without the noise, on the true counts. Over several seeds, prints the instance AUC on
fresh data, the cross-entropy of their labels, and the distance of the weights from those that made the labels. (The
order of instances, AUC, hardly suffers from a wrong label distribution; the probabilities do.) The picture shows the
latter two against the scale of the noise.
"""

from __future__ import annotations

import torch
from _picture import BLUE, INK, ORANGE, plt, save
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import kofn
from kofn import metrics
from kofn.targets import DiscreteLaplace, Target

BAGS, SIZE, SEEDS, STEPS = 200, 8, 20, 120
SCALES = (0.5, 1.0, 2.0, 4.0)
TRUE = torch.tensor([2.0, -1.5, -0.5], dtype=torch.float64)  # two weights and the bias


def simulate(bags: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Features with a constant, (bags, SIZE, 3), and labels, (bags, SIZE)."""
    features = torch.randn(bags, SIZE, 2, generator=generator, dtype=torch.float64)
    features = torch.cat([features, torch.ones(bags, SIZE, 1, dtype=torch.float64)], -1)
    uniform = torch.rand(bags, SIZE, generator=generator, dtype=torch.float64)
    return features, (uniform < torch.sigmoid(features @ TRUE)).long()


def released(counts: Tensor, scale: float, generator: torch.Generator) -> Tensor:
    """Counts plus discrete Laplace noise: the difference of two geometric numbers."""
    uniform = torch.rand(2, *counts.shape, generator=generator, dtype=torch.float64)
    geometric = (uniform.log() * -scale).floor().long()
    return counts + geometric[0] - geometric[1]


def train(features: Tensor, target: Target) -> Tensor:
    """Weights of a logistic model fitted to what is said of the bags, by L-BFGS."""
    weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = kofn.count_loss(features @ weights, target) + 1e-3 * weights.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return weights.detach()


def measure(scale: float, seed: int) -> dict[str, list[float]]:
    """For each kind of label: AUC and cross-entropy of fresh instances, and the distance of the weights."""
    generator = torch.Generator().manual_seed(seed)
    features, labels = simulate(BAGS, generator)
    fresh, fresh_labels = simulate(2000, generator)
    counts = labels.sum(-1)
    numbers = released(counts, scale, generator)
    kinds = {
        "exact": kofn.Exactly(counts),
        "noisy": kofn.Noisy(numbers, DiscreteLaplace(scale)),
        "plug-in": kofn.Exactly(numbers.clamp(0, SIZE)),
    }
    results = {}
    for name, target in kinds.items():
        weights = train(features, target)
        scores, truth = fresh @ weights, fresh_labels.double()
        cross_entropy = float(binary_cross_entropy_with_logits(scores, truth))
        results[name] = [metrics.auc(truth, scores), cross_entropy, float((weights - TRUE).norm())]
    return results


def draw(table: dict[str, list[tuple[list[float], list[float]]]]) -> None:
    """Cross-entropy and distance against the scale of the noise; table[kind][scale] has means and standard errors."""
    figure, axes = plt.subplots(2, 1, figsize=(5.2, 5.6))
    for panel, column, title in zip(axes, (1, 2), ("cross-entropy of fresh labels", "|w - w*|"), strict=True):
        for (name, rows), colour in zip(table.items(), (INK, BLUE, ORANGE), strict=True):
            means, errors = ([row[part][column] for row in rows] for part in (0, 1))
            panel.errorbar(SCALES, means, errors, color=colour, marker="o", ms=4, label=name)
        panel.set_xscale("log", base=2)
        panel.set_xticks(SCALES, [str(scale) for scale in SCALES])
        panel.set(xlabel="scale of the noise", title=title)
    axes[0].legend()
    save(figure, "noisy_counts")


def main() -> None:
    """Train on each kind of label, print the table, draw it."""
    torch.set_num_threads(1)
    print(f"{BAGS} bags of {SIZE}, {SEEDS} seeds: means (standard errors) on fresh instances")
    print("noise scale  trained on              AUC    cross-entropy         |w - w*|  noisy closer to w*")
    drawn: dict[str, list[tuple[list[float], list[float]]]] = {"exact": [], "noisy": [], "plug-in": []}
    for scale in SCALES:
        runs = [measure(scale, seed) for seed in range(SEEDS)]
        wins = sum(run["noisy"][2] < run["plug-in"][2] for run in runs)
        for name, rows in drawn.items():
            table = torch.tensor([run[name] for run in runs], dtype=torch.float64)
            mean, error = table.mean(0).tolist(), (table.std(0) / SEEDS**0.5).tolist()
            rows.append((mean, error))
            columns = "  ".join(f"{m:.4f} ({e:.4f})" for m, e in zip(mean, error, strict=True))
            note = f"  {wins} of {SEEDS}" if name == "noisy" else ""
            print(f"{scale:>11}  {name:<10}  {columns}{note}")
    draw(drawn)


if __name__ == "__main__":
    main()
