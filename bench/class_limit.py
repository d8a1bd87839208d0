"""Joint counts of classes by the local limit: how far from the exact ones, and how fast.

``python -m bench.class_limit`` writes bench/class_limit.md and .json, and fails if a bound is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

import kofn
from bench.record import Rows, machine, markdown, write
from bench.speed import backward, medians

#: Largest error of log P, in nats, of bags of so many instances with at least five of each of three to five classes.
BOUNDS = {50: 5e-3, 200: 1e-4, 500: 1e-5}
Bag = tuple[Tensor, Tensor]
Draw = Callable[[int, int, float, torch.Generator], Bag]


def calibrated(n: int, classes: int, scale: float, g: torch.Generator) -> Bag:
    """Labels drawn from what the logits say, but for a shift of each class; at least five of each."""
    while True:
        x = torch.randn(n, classes, generator=g, dtype=torch.float64) * scale
        shifted = x + 0.5 * torch.randn(classes, generator=g, dtype=torch.float64)
        labels = torch.multinomial(shifted.softmax(1), 1, generator=g).flatten()
        counts = torch.bincount(labels, minlength=classes)
        if int(counts.min()) >= min(5, n // (2 * classes)):
            return x, counts


def small(n: int, classes: int, scale: float, g: torch.Generator) -> Bag:
    """Counts of 0 to 4 but for one class, which the logits say little about or much."""
    while int((few := torch.randint(0, 5, (classes - 1,), generator=g)).sum()) >= n:
        pass
    counts = torch.cat([n - few.sum(0, keepdim=True), few])
    labels = torch.arange(classes).repeat_interleave(counts)
    x = torch.randn(n, classes, generator=g, dtype=torch.float64) * scale
    x = x + scale * torch.rand(1, generator=g, dtype=torch.float64) * one_hot(labels, classes)
    x[:, 0] += 2
    return x, counts


def confident(n: int, classes: int, scale: float, g: torch.Generator) -> Bag:
    """A trained classifier: logits that know the label, and up to two labels that are not what they say."""
    labels = torch.multinomial(torch.rand(classes, generator=g) + 0.05, n, replacement=True, generator=g)
    x = torch.randn(n, classes, generator=g, dtype=torch.float64) + scale * one_hot(labels, classes)
    wrong = torch.randperm(n, generator=g)[: int(torch.randint(0, 3, (1,), generator=g))]
    labels[wrong] = torch.randint(0, classes, (len(wrong),), generator=g)
    return x, torch.bincount(labels, minlength=classes)


def errors(draw: Draw, n: int, classes: int, scale: float, bags: int, seed: int = 0) -> dict[str, float]:
    """Mean and largest error of log P, and of the gradients by the logits, which are those of posteriors."""
    g = torch.Generator().manual_seed(seed)
    of_value, of_gradient, highest = [], [], -torch.inf
    for _ in range(bags):
        x, counts = draw(n, classes, scale, g)
        x.requires_grad_()
        exact, limit = (kofn.log_class_count_prob(x, counts, method=method) for method in ("exact", "limit"))
        by_exact, by_limit = (torch.autograd.grad(value, x)[0] for value in (exact, limit))
        of_value.append(float((limit - exact).detach().abs()))
        of_gradient.append(float((by_limit - by_exact).abs().max()))
        highest = max(highest, float(limit.detach()))
    assert highest <= 0.0, "a probability above 1"
    return {
        "mean": sum(of_value) / bags,
        "largest": max(of_value),
        "gradient": sum(of_gradient) / bags,
        "largest of gradient": max(of_gradient),
    }


def accuracy(bags: int) -> tuple[dict[str, Rows], dict[str, Any]]:
    """Tables by kind of bag, and the record."""
    sizes = {3: (20, 50, 200, 500), 4: (20, 50, 200, 500), 5: (20, 50, 200, 500), 10: (20, 30)}
    plans: dict[str, tuple[Draw, tuple[float, ...]]] = {
        "at least five of each class": (calibrated, (1.0, 3.0, 6.0)),
        "counts of 0 to 4 but for one class": (small, (1.0, 3.0, 6.0, 12.0)),
        "confident predictions": (confident, (3.0, 6.0, 12.0, 50.0)),
    }
    tables, record = {}, {}
    for name, (draw, scales) in plans.items():
        tables[name] = [["classes", "instances", *(f"logits of scale {scale:g}" for scale in scales)]]
        for classes, ns in sizes.items():
            for n in ns:
                cells = []
                for scale in scales:
                    few = bags if classes < 5 or n < 200 else max(3, bags // 5)
                    found = errors(draw, n, classes, scale, few)
                    record[f"{name}, {classes} classes, {n} instances, scale {scale:g}"] = found
                    cells.append(f"{found['mean']:.0e} / {found['largest']:.0e} / {found['gradient']:.0e}")
                tables[name].append([str(classes), str(n), *cells])
                print(name, tables[name][-1], flush=True)
    return tables, record


def speed(seconds: float) -> tuple[Rows, dict[str, Any]]:
    """Milliseconds for a bag, value and gradient, of batches of 16."""
    rows, record = [["case", "limit, ms a bag", "marginal, ms a bag"]], {}
    for n, classes in ((128, 3), (128, 10), (512, 10), (2000, 10)):
        g = torch.Generator().manual_seed(n)
        x = torch.randn(16, n, classes, generator=g).requires_grad_()
        counts = one_hot(torch.randint(0, classes, (16, n), generator=g), classes).sum(1)
        targets = {"limit": kofn.ClassCounts(counts, method="limit"), "marginal": kofn.MarginalClassCounts(counts)}
        runs = {name: backward(x, partial(kofn.count_loss, x, target)) for name, target in targets.items()}
        times = {name: ms / 16 for name, ms in medians(runs, seconds=seconds).items()}
        record[f"{n} instances, {classes} classes"] = times
        rows.append([f"{n} instances, {classes} classes", f"{times['limit']:.2f}", f"{times['marginal']:.2f}"])
        print(rows[-1], flush=True)
    for classes in (3, 10):
        g = torch.Generator().manual_seed(classes)
        x = torch.randn(200, classes, generator=g, dtype=torch.float64).requires_grad_()
        copies = torch.randint(500, 2500, (200,), generator=g)
        counts = (x.detach().softmax(1) * copies.unsqueeze(1)).sum(0).long()
        counts[0] += copies.sum() - counts.sum()
        run = partial(kofn.count_loss, x, kofn.ClassCounts(counts), copies=copies)
        times = medians({"limit": backward(x, run)}, seconds=seconds)
        name = f"200 rows for {int(copies.sum()):,} people, {classes} classes"
        record[name] = times
        rows.append([name, f"{times['limit']:.2f}", "-"])
    return rows, record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=20, help="bags for each entry of a table of errors")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds for each case of the speed")
    parser.add_argument("--out", type=Path, default=Path("bench/class_limit"), help="without the suffix")
    options = parser.parse_args()
    torch.set_num_threads(1)
    times, timed = speed(options.seconds)
    tables, checked = accuracy(options.bags)
    text = [
        f"{machine()}.",
        f"Errors of log P in nats against the exact probability, mean / largest of {options.bags} bags (5 classes, 200 "
        f"or more instances: of {max(3, options.bags // 5)}), and the mean of the largest error of a posterior:",
        *(f"**{name[0].upper() + name[1:]}**\n\n{markdown(rows)}" for name, rows in tables.items()),
        f"Time of value and gradient:\n\n{markdown(times)}",
    ]
    write(options.out, {"machine": machine(), "speed": timed, "accuracy": checked}, "\n\n".join(text) + "\n")
    for classes in (3, 4, 5):
        for n, bound in BOUNDS.items():
            for scale in (1.0, 3.0):
                found = checked[f"at least five of each class, {classes} classes, {n} instances, scale {scale:g}"]
                if not found["largest"] <= bound:
                    sys.exit(f"a bound is broken: {classes} classes, {n} instances, scale {scale:g}: {found}")


if __name__ == "__main__":
    main()
