"""A bag of 100,000 instances: what its count costs, and what a handful of such bags can teach.

The paper's recursion (Algorithm 1) adds one instance after the other: n steps, each over all counts up to s, all of
them kept for the backward pass. Time and memory grow like n * s, so that a county or a slide is out of reach.
`kofn.log_count_prob` needs about 20 frequencies of the characteristic function, whatever n is: both grow like n.

First the cost of log P(S = n / 2) and its gradient. Each measurement is a process of its own, so that the peak of its
memory is its own. Then a logistic model of four weights learns from twelve counts, each of 100,000 instances.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time

import torch
from _picture import BLUE, ORANGE, plt, save
from torch import Tensor
from torch.nn.functional import logsigmoid

import kofn

SIZES, SMALL = (1_000, 10_000, 100_000, 1_000_000), (300, 1_000, 3_000)
BAGS, BAG = 12, 100_000
TRUE = torch.tensor([1.0, -0.5, 0.25, -1.0], dtype=torch.float64)  # three weights and a bias


def algorithm_1(logits: Tensor, count: int) -> Tensor:
    """log P(S = count) by the recursion over instances, in log space: row[s] is log P(S = s) so far."""
    row, never = logits.new_zeros(1), logits.new_full((1,), -torch.inf)
    for yes, no in zip(logsigmoid(logits), logsigmoid(-logits), strict=True):
        row = torch.logaddexp(torch.cat([row + no, never]), torch.cat([never, row + yes]))[: count + 1]
    return row[count]


def cost(size: int, recursion: bool) -> tuple[float, float]:
    """Seconds of the processor (the best of several) and peak megabytes of one value and its gradient."""
    torch.set_num_threads(1)
    logits = torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    kofn.log_count_prob(logits[:8], 4)  # what is loaded once is not counted
    before, seconds = peak(), []
    for _ in range(1 if recursion else 5):
        start = time.process_time()
        value = algorithm_1(logits, size // 2) if recursion else kofn.log_count_prob(logits, size // 2)
        value.backward()
        seconds.append(time.process_time() - start)
    return min(seconds), peak() - before


def peak() -> float:
    """The most memory that this process ever had, in megabytes; macOS counts in bytes, Linux in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def measured(sizes: tuple[int, ...], recursion: bool) -> list[tuple[float, float]]:
    """The cost for each size, each in a process of its own."""
    results = []
    for size in sizes:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            results.append(pool.apply(cost, (size, recursion)))
    return results


def learn(*, size: int = BAG, bags: int = BAGS) -> Tensor:
    """The weights that a logistic model finds from the counts of the bags, and nothing else."""
    generator = torch.Generator().manual_seed(1)
    centres = torch.randn(bags, 1, 3, generator=generator, dtype=torch.float64)  # alike bags could not teach a thing
    features = centres + torch.randn(bags, size, 3, generator=generator, dtype=torch.float64)
    chances = torch.sigmoid(features @ TRUE[:3] + TRUE[3])
    counts = (torch.rand(bags, size, generator=generator, dtype=torch.float64) < chances).sum(1)
    weights = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=30, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = kofn.count_loss(features @ weights[:3] + weights[3], kofn.Exactly(counts))
        loss.backward()
        return loss

    optimiser.step(closure)
    return weights.detach()


def draw(ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> None:
    """Time and memory against n."""
    figure, axes = plt.subplots(2, 1, figsize=(5.2, 5.6))
    for panel, column, title in zip(axes, (0, 1), ("seconds", "megabytes"), strict=True):
        for sizes, results, colour, name in ((SIZES, ours, BLUE, "kofn"), (SMALL, theirs, ORANGE, "Algorithm 1")):
            panel.loglog(sizes, [result[column] for result in results], "o-", color=colour, label=name)
        panel.set(xlabel="instances in the bag, n", title=f"{title} for log P(S = n / 2) and its gradient")
        panel.grid()
    axes[0].legend()
    save(figure, "large_bag")


def main() -> None:
    """Measure, learn, print, draw."""
    ours, theirs = measured(SIZES, False), measured(SMALL, True)  # before this process computes anything: it is forked
    print(f"{'':<12}{'n':>10}{'seconds':>12}{'megabytes':>12}")
    for name, sizes, results in (("kofn", SIZES, ours), ("Algorithm 1", SMALL, theirs)):
        for size, (seconds, megabytes) in zip(sizes, results, strict=True):
            print(f"{name:<12}{size:>10,}{seconds:>12.4f}{megabytes:>12.1f}")
    torch.set_num_threads(1)
    start = time.process_time()
    weights = learn()
    print(f"\nlearnt from {BAGS} counts of {BAG:,} instances, in {time.process_time() - start:.0f} s of one core")
    for name, values in (("weights that made the labels", TRUE), ("weights found", weights)):
        print(f"{name:<30}" + "".join(f"{value:>8.3f}" for value in values))
    draw(ours, theirs)


if __name__ == "__main__":
    main()
