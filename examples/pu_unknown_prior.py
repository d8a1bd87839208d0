"""Positives and unlabelled, when nobody knows how many of the unlabelled are positive.

Learning from positive and unlabelled data needs the mixture: the share of positives among the unlabelled. Here it is a
guess, swept from 0.2 to 0.9, and the truth of the generated data is 0.6. A small network is trained by
`kofn.losses.pu_loss`: a bag of 100 unlabelled has Binomial(100, guess) positives, and the labelled ones are positive;
or, in the column "by mean" (its accuracy), match="expectation": it has 100 * guess of them.

Do the data determine it? They give an upper bound. Whatever the scores, the unlabelled that pass a threshold
are at least the positives among them that do, so

    mixture <= (share of unlabelled that pass t) / (share of labelled positives that pass t)    for every t.

The smallest of these ratios on held-out data, over thresholds that 30 to 90 % of the positives pass, is the column
"bound". (The smallest of several noisy ratios is a little too small.)

They give no lower bound. Let a third of what looks positive among the unlabelled be negatives that look exactly like
positives: then the mixture is 0.4, and *every number a learner sees is the same*. The column "if 0.4" scores the
same models against that other truth. Only outside knowledge can distinguish the two.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from _picture import BLUE, GREEN, INK, ORANGE, PINK, plt, save
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import kofn
from kofn import metrics

MIXTURE, OTHER = 0.6, 0.4  # of the world that is drawn, and of another one with the same data
GUESSES, SEEDS, STEPS, BAG = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 3, 250, 100
COLUMNS = ("accuracy", "called +", "log loss", "held-out loss", "bound", "log loss if 0.4", "by mean")
Match = Literal["distribution", "expectation"]


def draw_rows(rows: int, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points in the plane, (rows, 2), positives to the right, and their labels."""
    labels = (torch.rand(rows, generator=generator) < share).float()
    points = torch.randn(rows, 2, generator=generator)
    points[:, 0] += 3 * labels - 1.5
    return points, labels


def train(positive: Tensor, unlabelled: Tensor, guess: float, match: Match, steps: int, seed: int) -> nn.Module:
    """A network of 16 hidden units; each step has one bag of unlabelled and as many labelled positives."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(steps):
        bag, known = (part[torch.randint(len(part), (BAG,), generator=generator)] for part in (unlabelled, positive))
        loss = kofn.losses.pu_loss(network(known), network(bag), guess, match=match)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network


def bound(positive: Tensor, unlabelled: Tensor) -> float:
    """The smallest ratio of passing shares: a mixture above it contradicts the scores."""
    shares = torch.arange(0.3, 0.95, 0.1)
    thresholds = positive.quantile(1 - shares)
    return float(((unlabelled[:, None] > thresholds).float().mean(0) / shares).min())


def measure(guess: float, seed: int, *, steps: int = STEPS) -> list[float]:
    """One row of the table: learn with a guess, then score on fresh positives and fresh unlabelled."""
    generator = torch.Generator().manual_seed(seed)
    positive, _ = draw_rows(1000, 1.0, generator)
    unlabelled, _ = draw_rows(4000, MIXTURE, generator)
    fresh_positive, _ = draw_rows(1000, 1.0, generator)
    fresh, truth = draw_rows(4000, MIXTURE, generator)
    other = truth * (torch.rand(len(truth), generator=generator) < OTHER / MIXTURE)
    models = [train(positive, unlabelled, guess, match, steps, seed) for match in ("distribution", "expectation")]
    with torch.no_grad():
        known, x, by_mean = models[0](fresh_positive), models[0](fresh), models[1](fresh)
        loss = kofn.losses.pu_loss(known, x.reshape(-1, BAG), guess) / BAG
    log_loss, log_loss_there = (float(binary_cross_entropy_with_logits(x, labels)) for labels in (truth, other))
    right, right_by_mean = (metrics.accuracy(truth, scores) for scores in (x, by_mean))
    called = float((x > 0).float().mean())
    return [right, called, log_loss, float(loss), bound(known, x), log_loss_there, right_by_mean]


def draw(table: NDArray[np.float64], error: NDArray[np.float64]) -> None:
    """What goes wrong when the guess is off, and the same models in two worlds."""
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 6.0))
    for panel, column, colour, name in (
        (upper, 0, BLUE, "accuracy"), (upper, 6, PINK, "accuracy, by mean"),
        (upper, 1, ORANGE, "share called positive"), (upper, 4, GREEN, "bound, from data alone"),
        (lower, 2, BLUE, "if 0.6 are positive"), (lower, 5, ORANGE, "if 0.4 are: same data"),
        (lower, 3, GREEN, "the loss itself, of an instance"),
    ):  # fmt: skip
        panel.errorbar(GUESSES, table[:, column], error[:, column], color=colour, marker="o", ms=4, label=name, lw=1.4)
    upper.axvline(MIXTURE, ymin=0.36, color=INK, ls=":", lw=1)
    upper.set(xlabel="assumed mixture", title="when the guess is off", ylim=(0, 1.02))
    lower.set(xlabel="assumed mixture", title="log loss in two worlds", ylim=(0, 2.7))
    upper.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0.36, 0))
    lower.legend(fontsize=8, loc="upper center")
    save(figure, "pu_unknown_prior")


def main() -> None:
    """Sweep the guess over several seeds, print the table, draw it."""
    torch.set_num_threads(1)
    runs = np.array([[measure(guess, seed) for guess in GUESSES] for seed in range(SEEDS)])
    table, error = runs.mean(0), runs.std(0, ddof=1) / SEEDS**0.5
    print(f"4000 fresh unlabelled, of which {MIXTURE} are positive; means of {SEEDS} seeds")
    print("guess  " + "  ".join(COLUMNS))
    for guess, row in zip(GUESSES, table, strict=True):
        print(f"{guess:>5}  " + "  ".join(f"{value:>{len(name)}.3f}" for name, value in zip(COLUMNS, row, strict=True)))
    print("s.e.<  " + "  ".join(f"{value:>{len(name)}.3f}" for name, value in zip(COLUMNS, error.max(0), strict=True)))
    draw(table, error)


if __name__ == "__main__":
    main()
