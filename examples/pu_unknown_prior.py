"""Positives and unlabelled, when nobody knows how many of the unlabelled are positive.

`PUClassifier` wants the mixture: the share of positives among the unlabelled. Here it is only a guess, and the guess
is swept from 0.2 to 0.9. Digits 0 to 4 are positive (scikit-learn's digits); 200 of them are labelled, and of 1000
unlabelled ones 600 are positive. A third of everything is held out.

Can the data tell? From above they can. Whatever the scores, the unlabelled that pass a threshold are at least the
positives among them that do, so

    mixture <= (share of unlabelled above t) / (share of labelled positives above t)    for every threshold t.

The smallest such ratio, over the thresholds that a fifth or more of the held-out positives pass, is the column
"bound". (The tightest of many noisy ratios is a little too small: the price of looking for it.)

From below they cannot. If a third of the "positives" among the unlabelled are in truth negatives that look exactly like
them, then the mixture is 0.4, and yet *every number a learner sees is the same*. The column "in a world of 0.4" scores
the very same models against that other truth. Only knowledge from outside tells the two apart.
"""

from __future__ import annotations

import numpy as np
import torch
from _picture import BLUE, GREEN, INK, ORANGE, plt, save
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, log_loss

import kofn

Array = NDArray[np.float64]
GUESSES, SEEDS = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 3
MIXTURE, OTHER = 0.6, 0.4  # of the world that was drawn, and of the other world with the same data
COLUMNS = ("accuracy", "called positive", "mean P", "log loss", "loss held out", "bound", "in a world of 0.4")


def digits(seed: int) -> tuple[Array, Array, Array]:
    """Pixels; 1 for labelled positives and -1 for unlabelled; the truth. In random order."""
    pixels, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    positive, negative = rng.permutation(np.flatnonzero(digit < 5)), rng.permutation(np.flatnonzero(digit >= 5))
    rows = rng.permutation(np.concatenate([positive[:800], negative[:400]]))
    label = np.where(np.isin(rows, positive[:200]), 1, -1)
    return pixels[rows] / 16, label, (digit[rows] < 5).astype(float)


def bound(positive: Array, unlabelled: Array) -> float:
    """The smallest ratio of passing shares: no mixture above it agrees with the scores."""
    thresholds = np.sort(positive)[: int(0.8 * len(positive))]
    passing = np.arange(len(positive), 0, -1)[: len(thresholds)] / len(positive)
    return float(min((unlabelled >= t).mean() / share for t, share in zip(thresholds, passing, strict=True)))


def measure(guess: float, seed: int, *, epochs: int = 30) -> list[float]:
    """One row of the table: train with a guessed mixture, score the held-out third."""
    x, label, truth = digits(seed)
    held = np.arange(len(x)) >= 800
    model = kofn.PUClassifier(mixture=guess, hidden=(64,), lr=0.003, epochs=epochs, random_state=seed)
    model.fit(x[~held], label[~held])
    known, hidden = (torch.from_numpy(model.decision_function(x[held & (label == kind)])) for kind in (1, -1))
    loss = kofn.losses.pu_loss(known, hidden[: len(hidden) // 50 * 50].reshape(-1, 50), guess)
    chance, truth = torch.sigmoid(hidden).numpy(), truth[held & (label == -1)]
    called = chance > 0.5
    other = truth * (np.random.default_rng(seed).random(len(truth)) < OTHER / MIXTURE)  # of the same data, another truth
    return [
        accuracy_score(truth, called), called.mean(), chance.mean(), log_loss(truth, chance), float(loss),
        bound(known.numpy(), hidden.numpy()), log_loss(other, chance),
    ]  # fmt: skip


def draw(table: Array, error: Array) -> None:
    """What goes wrong when the guess is off, and what the data say."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.0))
    for panel, column, colour, name in (
        (left, 0, BLUE, "accuracy"), (left, 1, ORANGE, "share called positive"), (left, 5, GREEN, "bound on the mixture"),
        (right, 3, BLUE, "truth: 0.6"), (right, 6, ORANGE, "truth: 0.4, same data"),
    ):  # fmt: skip
        panel.errorbar(GUESSES, table[:, column], error[:, column], color=colour, marker="o", ms=4, label=name)
    left.axvline(MIXTURE, color=INK, ls=":")
    left.set(xlabel="assumed mixture", title="when the guess is off", ylim=(0, 1.02))
    right.set(xlabel="assumed mixture", title="log loss in two worlds", ylim=(0, None))
    left.legend(fontsize=8)
    right.legend(fontsize=8)
    save(figure, "pu_unknown_prior")


def main() -> None:
    """Sweep the guess over several seeds, print the table, draw it."""
    runs = np.array([[measure(guess, seed) for guess in GUESSES] for seed in range(SEEDS)])
    table, error = runs.mean(0), runs.std(0, ddof=1) / SEEDS**0.5
    print(f"held-out unlabelled digits, of which 0.6 are positive; means of {SEEDS} seeds")
    print("guess  " + "  ".join(COLUMNS))
    for guess, row in zip(GUESSES, table, strict=True):
        print(f"{guess:>5}  " + "  ".join(f"{value:>{len(name)}.3f}" for name, value in zip(COLUMNS, row, strict=True)))
    print(f"largest standard error of a column: {', '.join(f'{e:.3f}' for e in error.max(0))}")
    draw(table, error)


if __name__ == "__main__":
    main()
