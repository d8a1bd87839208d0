"""Counts that were perturbed for privacy: use their exact likelihood, or round them and pretend that they are exact?

Bags of instances with two features; only each bag's number of positives is released, with discrete Laplace noise (the
geometric mechanism; scale 1 / epsilon). The same logistic model is trained on the same released numbers by

    noisy:    -log sum_s P(S = s) P(noise = released - s)         kofn.Noisy
    plug-in:  -log P(S = released, cut to the bag's range)        kofn.Exactly

and, as what could be reached without the noise, on the true counts. Over several seeds, prints the instance AUC on
fresh data, the cross-entropy of their labels, and the distance of the weights from those that made the labels. (The
order of instances, AUC, hardly suffers from a wrong label distribution; the probabilities do.)
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import kofn
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


def auc(scores: Tensor, labels: Tensor) -> float:
    """The share of pairs, a positive and a negative, that are in order."""
    ranks = scores.argsort().argsort().double() + 1
    positives = int(labels.sum())
    negatives = len(labels) - positives
    return float((ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def main() -> None:
    """Train on each kind of label, print the table."""
    torch.set_num_threads(1)
    print(f"{BAGS} bags of {SIZE}, {SEEDS} seeds: means (standard errors) on fresh instances")
    print("noise scale  trained on              AUC    cross-entropy         |w - w*|  noisy closer to w*")
    for scale in SCALES:
        results: dict[str, list[tuple[float, float, float]]] = {"exact": [], "noisy": [], "plug-in": []}
        for seed in range(SEEDS):
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
            for name, target in kinds.items():
                weights = train(features, target)
                scores, truth = (fresh @ weights).flatten(), fresh_labels.flatten()
                surprise = float(binary_cross_entropy_with_logits(scores, truth.double()))
                results[name].append((auc(scores, truth), surprise, float((weights - TRUE).norm())))
        pairs = zip(results["noisy"], results["plug-in"], strict=True)
        wins = sum(noisy[2] < plugged[2] for noisy, plugged in pairs)
        for name, values in results.items():
            table = torch.tensor(values, dtype=torch.float64)
            mean, error = table.mean(0).tolist(), (table.std(0) / SEEDS**0.5).tolist()
            columns = "  ".join(f"{m:.4f} ({e:.4f})" for m, e in zip(mean, error, strict=True))
            note = f"  {wins} of {SEEDS}" if name == "noisy" else ""
            print(f"{scale:>11}  {name:<10}  {columns}{note}")


if __name__ == "__main__":
    main()
