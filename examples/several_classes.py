"""Ten digits, and of each bag only how many of each there are: which loss makes the most of it?

Images of handwritten digits (8 by 8, from scikit-learn) are dealt into bags. Known is how many zeros, ones, ..., nines
are in each bag, and of no image which it is. The same linear model is trained by

    joint:       -log P(all ten counts), exact in bags of 8, by the local limit in larger ones    loss="joint"
    marginal:    -sum_c log P(count of digit c), each digit by itself                             loss="marginal"
    proportion:  cross-entropy between the shares and the mean of the probabilities               loss="proportion"

and, as what could be reached, on every label (bags of one). Prints the accuracy on images that were not trained on,
over several seeds, which deal the bags anew. The picture shows it against the size of the bags.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from _picture import BLUE, GREEN, INK, ORANGE, plt, save
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import kofn

SIZES, SEEDS, TRAIN = (8, 32, 128), 3, 1280
LOSSES = {"joint": BLUE, "marginal": GREEN, "proportion": ORANGE}


def measure(size: int, loss: Any, seed: int) -> float:
    """Accuracy on the images that were not trained on; bags of one tell every label."""
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(digits))
    train, test = order[:TRAIN], order[TRAIN:]
    groups = np.arange(TRAIN) // size
    model = kofn.LLPClassifier(kofn.Linear(l2=1e-3), loss=loss, label="count", random_state=seed)
    model.fit(images[train], class_counts(digits[train], groups), groups=groups)
    return model.score(images[test], digits[test])


def class_counts(classes: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of each class are in the bag of each row: (n,) to (n, 10)."""
    counts = np.zeros((groups.max() + 1, 10), dtype=np.int64)
    np.add.at(counts, (groups, classes), 1)
    return counts[groups]


def draw(found: dict[str, dict[int, NDArray[np.float64]]], best: float) -> None:
    """Accuracy against the size of the bags, one line for each loss."""
    figure, axes = plt.subplots(figsize=(5.2, 3.6))
    axes.axhline(best, color=INK, lw=0.8, ls=":")
    axes.annotate("every label", (SIZES[-1], best), ha="right", va="bottom")
    for loss, colour in LOSSES.items():
        sizes, runs = list(found[loss]), list(found[loss].values())
        errors = [each.std(ddof=1) / len(each) ** 0.5 for each in runs]
        axes.errorbar(sizes, [each.mean() for each in runs], errors, color=colour, marker="o", ms=4, label=loss)
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set(xlabel="images in a bag", ylabel="accuracy")
    axes.legend()
    save(figure, "several_classes")


def main() -> None:
    """Train with each loss on each size of bags, print the table, draw it."""
    torch.set_num_threads(1)
    print(f"{TRAIN} images in bags, {SEEDS} seeds: mean accuracy on the others (standard error)")
    best = np.array([measure(1, "joint", seed) for seed in range(SEEDS)])
    print(f"every label  {best.mean():.3f} ({best.std(ddof=1) / SEEDS**0.5:.3f})")
    print("bag size     " + "".join(f"{loss:<16}" for loss in LOSSES))
    found: dict[str, dict[int, NDArray[np.float64]]] = {loss: {} for loss in LOSSES}
    for size in SIZES:
        cells = []
        for loss in LOSSES:
            runs = np.array([measure(size, loss, seed) for seed in range(SEEDS)])
            found[loss][size] = runs
            cells.append(f"{runs.mean():.3f} ({runs.std(ddof=1) / SEEDS**0.5:.3f})")
        print(f"{size:<13}" + "".join(f"{cell:<16}" for cell in cells))
    draw(found, float(best.mean()))


if __name__ == "__main__":
    main()
