"""A known rate as a regulariser in an ordinary training loop: labels that are unfair to a group, put right by a census.

A few hundred labelled people teach a classifier who qualifies. The labels come from past decisions, and those missed
half of the qualified people of group B. Of 2000 unlabelled people of each group nobody knows who qualifies, but a
census says how many of the group do. One line joins the two in an otherwise unchanged training loop:

    loss = cross_entropy(labelled) + WEIGHT * count_loss(logits of a whole group, statement)

WEIGHT makes it one likelihood: the cross-entropy is a mean over the labelled, the count loss one over two groups.

What may be stated:  Exactly(count);  Between(count - 40, count + 40), a census with a margin of two points;
Distributed(Binomial(n, rate)), if the group is a sample of a population with this rate. For comparison: no statement,
and the squared distance of the mean probability from the rate, what one would write by hand (times n, so that it is of
the same size). The last row is a warning that comes with the paper: with a wrong census, the same line makes a fair
classifier unfair. Here it says that no more of B qualify than the past decisions found.

Measured on fresh people with true labels: accuracy in each group, and the gap between the positive rates of A and B.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from _picture import BLUE, INK, ORANGE, plt, save
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Binomial
from torch.nn.functional import binary_cross_entropy_with_logits

import kofn

LABELLED, GROUP, FRESH, SEEDS, STEPS, MARGIN = 300, 2000, 20_000, 5, 150, 40
WEIGHT = 2 / LABELLED
TRUE = torch.tensor([1.5, -1.0, 0.5, 0.0])  # B's people qualify by the same rule as A's
Statement = Callable[[Tensor, Tensor], Tensor]  # logits (2, GROUP), counts (2,) -> loss


def people(rows: int, group: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Four features and the group, (rows, 5), and who qualifies."""
    features = torch.randn(rows, 4, generator=generator)
    labels = torch.rand(rows, generator=generator) < torch.sigmoid(2 * features @ TRUE)
    return torch.cat([features, torch.full((rows, 1), float(group))], 1), labels.float()


def binomial(logits: Tensor, counts: Tensor) -> Tensor:
    """KL(Binomial(n, rate) || distribution of S)."""
    log_pmf = Binomial(GROUP, counts[:, None] / GROUP).log_prob(torch.arange(GROUP + 1.0))
    return kofn.count_loss(logits, kofn.Distributed(log_pmf))


STATEMENTS: dict[str, Statement] = {
    "no statement": lambda logits, counts: logits.new_zeros(()),
    "Exactly": lambda logits, counts: kofn.count_loss(logits, kofn.Exactly(counts)),
    "Between": lambda logits, counts: kofn.count_loss(logits, kofn.Between(counts - MARGIN, counts + MARGIN)),
    "Distributed": binomial,
    "squared rate": lambda logits, counts: (GROUP * (logits.sigmoid().mean(1) - counts / GROUP) ** 2).mean(),
}


def train(x: Tensor, y: Tensor, groups: Tensor, counts: Tensor, statement: Statement, steps: int = STEPS) -> nn.Module:
    """An ordinary loop, but for one line."""
    network = nn.Sequential(nn.Linear(5, 1), nn.Flatten(-2))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(steps):
        loss = binary_cross_entropy_with_logits(network(x), y)
        loss = loss + WEIGHT * statement(network(groups), counts)  # this one
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network


def measure(seed: int, *, steps: int = STEPS) -> dict[str, list[float]]:
    """For each statement: accuracy in A and in B, and the positive rate of A less that of B."""
    generator = torch.Generator().manual_seed(seed)
    parts = [people(LABELLED // 2, group, generator) for group in (0, 1)]
    missed = torch.rand(LABELLED // 2, generator=generator) < 0.5
    x, y = torch.cat([part[0] for part in parts]), torch.cat([parts[0][1], parts[1][1] * ~missed])
    census = [people(GROUP, group, generator) for group in (0, 1)]
    groups, counts = torch.stack([part[0] for part in census]), torch.stack([part[1].sum() for part in census]).long()
    fresh = [people(FRESH, group, generator) for group in (0, 1)]
    wrong = counts // torch.tensor([1, 2])
    runs = {name: (statement, counts) for name, statement in STATEMENTS.items()}
    runs["a wrong census"] = (STATEMENTS["Exactly"], wrong)
    results = {}
    for name, (statement, stated) in runs.items():
        torch.manual_seed(seed)
        network = train(x, y, groups, stated, statement, steps)
        with torch.no_grad():
            called = [(network(features) > 0).float() for features, _ in fresh]
        right = [float((guess == part[1]).float().mean()) for guess, part in zip(called, fresh, strict=True)]
        results[name] = [*right, float(called[0].mean() - called[1].mean())]
    return results


def draw(names: list[str], mean: NDArray[np.float64], error: NDArray[np.float64]) -> None:
    """Accuracy in both groups, and the gap."""
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 4.8))
    place = np.arange(len(names))[::-1]
    for column, colour, label in ((0, BLUE, "group A"), (1, ORANGE, "group B")):
        upper.errorbar(mean[:, column], place, xerr=error[:, column], fmt="o", color=colour, label=label)
    lower.errorbar(mean[:, 2], place, xerr=error[:, 2], fmt="o", color=INK)
    lower.axvline(0, color=INK, ls=":", lw=1)
    upper.set_title("accuracy")
    upper.legend(fontsize=8, loc="center left")
    lower.set_title("positive rate of A less that of B (truth: 0)")
    for panel in (upper, lower):
        panel.set_yticks(place, names)
        panel.grid(axis="x")
    save(figure, "count_regulariser")


def main() -> None:
    """Train with each statement over several seeds, print the table, draw it."""
    torch.set_num_threads(1)
    runs = [measure(seed) for seed in range(SEEDS)]
    names = list(runs[0])
    values = np.array([[run[name] for name in names] for run in runs])
    mean, error = values.mean(0), values.std(0, ddof=1) / SEEDS**0.5
    print(f"{LABELLED} labelled, {GROUP} unlabelled of each group; means (standard errors) of {SEEDS} seeds")
    print(f"{'stated of a group':<18}{'accuracy in A':>16}{'in B':>16}{'gap of rates':>17}")
    for name, m, e in zip(names, mean, error, strict=True):
        cells = [f"{a:.3f} ({b:.3f})" for a, b in zip(m, e, strict=True)]
        print(f"{name:<18}{cells[0]:>16}{cells[1]:>16}{cells[2]:>17}")
    draw(names, mean, error)


if __name__ == "__main__":
    main()
