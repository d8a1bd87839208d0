"""Multiple instances as images: which digit of the bag is the nine? Learnt from whether there is one.

A bag is a handful of handwritten digits (scikit-learn's, 8 x 8 pixels). Its label says only "there is a nine in here"
or "there is none". `MILClassifier` scores each digit by -log P(S >= 1) or -log P(S = 0), S being the number of nines
in the bag; afterwards it names the nine. For comparison the same network is trained on the bag's largest score
("max") and on its mean probability ("mean").

From the same scores comes the whole distribution of S, the number of nines, which no label ever said. The picture shows
held-out bags: the strength of a frame is P(this digit is a nine), a dot marks the digits that truly are nines, and at
the right is the distribution of S, with the true count in colour.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from _picture import BLUE, INK, ORANGE, plt, save
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from torch import Tensor

import kofn
from kofn import metrics
from kofn.datasets import BundledTask, MILTask, load_digits_task

Way = Literal["count", "max", "mean"]
WAYS: tuple[Way, ...] = ("count", "max", "mean")
SEEDS, SHOWN = 4, 8


def fit(data: BundledTask[MILTask], way: Way, seed: int) -> kofn.MILClassifier:
    """A classifier of digits, from labels of bags: a network with early stopping."""
    x, y, groups = data.task.rows(data.train.instances)
    return kofn.MILClassifier("network", loss=way, random_state=seed).fit(x, y, groups=groups)


def held_out(data: BundledTask[MILTask], model: kofn.MILClassifier) -> tuple[MILTask, Tensor, Tensor]:
    """The held-out bags, the logit of each of their digits, and whether each is a nine; bag after bag."""
    task = data.test_task
    assert task is not None
    logits = torch.from_numpy(model.decision_function(data.test.instances))
    return task, logits[task.bags.index], task.instance_labels[task.bags.index]


def measure(data: BundledTask[MILTask], model: kofn.MILClassifier) -> list[float]:
    """AUC of bags, by the pool they were trained with; AUC of digits; the error of the expected number of nines."""
    task, logits, nines = held_out(data, model)
    offsets, parts = task.bags.offsets, logits.split(task.bags.sizes.tolist())
    scores = {
        "count": lambda: metrics.bag_scores(logits, offsets=offsets),
        "max": lambda: torch.stack([part.max() for part in parts]),
        "mean": lambda: torch.stack([part.sigmoid().mean() for part in parts]),
    }[model.loss]()
    counts = task.bags.sum(task.instance_labels)
    error = metrics.expected_count_error(logits, counts, offsets=offsets)
    return [metrics.auc(task.bag_labels, scores), metrics.auc(nines, logits), error]


def draw(data: BundledTask[MILTask], model: kofn.MILClassifier) -> None:
    """Held-out bags, the first with a nine and the first without: what was found, and the distribution of S."""
    task, logits, nines = held_out(data, model)
    bags = [int(bag) for label in (1, 0) for bag in (task.bag_labels == label).nonzero()[: SHOWN // 2]]
    widest = int(task.bags.sizes[bags].max())
    figure = plt.figure(figsize=(5.6, 0.44 * SHOWN))
    grid = figure.add_gridspec(SHOWN, 2, width_ratios=[widest, 3])
    paper = figure.add_subplot(grid[:, 0], title="framed by P(nine); dot: is one", aspect="equal")
    paper.set(xlim=(-0.5, 10 * widest + 0.5), ylim=(12 * SHOWN - 1.5, -1))
    paper.axis("off")
    canvas = np.zeros((12 * SHOWN, 10 * widest, 4))
    canvas[..., :3] = to_rgb(INK)
    for row, bag in enumerate(bags):
        low, high = task.bags.offsets[bag : bag + 2].tolist()
        for column, i in enumerate(range(low, high)):
            top, left = 12 * row + 1, 10 * column + 1
            canvas[top : top + 8, left : left + 8, 3] = data.test.instances[task.bags.index[i]].reshape(8, 8)
            chance = float(torch.sigmoid(logits[i]))
            paper.add_patch(Rectangle((left - 1, top - 1), 9, 9, fill=False, lw=2, color=BLUE, alpha=chance))
            if nines[i]:
                paper.plot(left + 7.5, top - 0.5, "o", color=ORANGE, ms=5)
        pmf, true = kofn.log_count_distribution(logits[low:high]).exp(), int(nines[low:high].sum())
        panel = figure.add_subplot(grid[row, 1], ylim=(0, 1), yticks=[], xticks=range(4))
        panel.bar(range(4), pmf[:4], color=BLUE, width=0.7)
        panel.tick_params(length=0, labelsize=8)
        panel.get_xticklabels()[true].set(color=ORANGE, fontweight="bold")
        panel.spines["left"].set_visible(False)
        if row == 0:
            panel.set_title("nines?")
    paper.imshow(canvas, extent=(-0.5, 10 * widest - 0.5, 12 * SHOWN - 0.5, -0.5), interpolation="none")
    save(figure, "mil_images")


def main() -> None:
    """Learn over several seeds, print the table, draw the first."""
    print(f"200 held-out bags of about 10 digits; means (standard errors) of {SEEDS} seeds")
    print(f"{'bags scored by':<16}{'bag AUC':>16}{'digit AUC':>16}{'|E S - nines|':>16}")
    for way in WAYS:
        results = []
        for seed in range(SEEDS):
            data = load_digits_task("mil", seed=seed)
            model = fit(data, way, seed)
            results.append(measure(data, model))
            if way == "count" and seed == 0:
                shown = data, model
        mean, error = np.mean(results, 0), np.std(results, 0, ddof=1) / SEEDS**0.5
        print(f"{way:<16}" + "".join(f"{f'{m:.3f} ({e:.3f})':>16}" for m, e in zip(mean, error, strict=True)))
    draw(*shown)


if __name__ == "__main__":
    main()
