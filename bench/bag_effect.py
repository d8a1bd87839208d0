"""Estimates of the bag effect and intervals with it, on simulated votes where it is known; and what it costs.

``python -m bench.bag_effect`` simulates bags that differ by more than their instances explain, fits
``LLPClassifier("linear", bag_effect="fit")`` and the model of independent labels to half of them, and asks both about
the other half. In the first design the means of the columns vary between bags, more than the values do within them, so
that coefficients are well known. In the second they vary little, and in the third (`bench/simulated_votes.py`) there
are age groups and districts: there large effects leave coefficients uncertain, the penalty shrinks them, and with the
scale of the logits the estimated effect shrinks too. (The first design was added after the others had shown this.)
Each run is written to bench/bag_effect.jsonl at once, and none is run twice;
bench/bag_effect.md and .json have the summary.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import kofn
from bench.record import Rows, commit, machine, markdown, write
from bench.simulated_votes import Election, election
from kofn.metrics import count_calibration

EFFECTS, BOXES, LEVEL = (0.0, 0.2, 0.5, 1.0), 200, 0.9
RUNS = {"features that vary": 200, "features that vary little": 30, "votes": 30}
FIRST = 20_000  # seed: those below were used while the method was chosen


def bags_of_features(seed: int, *, boxes: int, bag_effect: float, spread: float) -> Election:
    """Bags of 40 to 80, with three standard normal columns whose means vary over bags with this standard deviation."""
    rng = np.random.default_rng([seed, boxes, 1])
    box = np.repeat(np.arange(boxes), rng.integers(40, 81, boxes))
    x = rng.normal(size=(len(box), 3)) + spread * rng.normal(size=(boxes, 3))[box]
    logits = x @ np.array([0.8, -0.5, 0.0]) - 0.3
    shift = bag_effect * rng.normal(size=boxes)[box]
    positive = rng.random(len(box)) < 1 / (1 + np.exp(-logits - shift))
    votes = np.bincount(box, positive).astype(int)[box]
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    return Election(frame, box, np.ones(len(box), dtype=int), votes, 1 / (1 + np.exp(-logits)))


def run(design: str, seed: int, effect: float) -> dict[str, Any]:
    """One sample: the estimate and its standard error, and both models on bags that they have not seen."""
    draws: dict[str, Callable[..., Election]] = {
        "features that vary": partial(bags_of_features, spread=1.5),
        "features that vary little": partial(bags_of_features, spread=0.5),
        "votes": election,
    }
    votes = draws[design](seed, boxes=2 * BOXES, bag_effect=effect)
    seen = votes.box < BOXES
    start = time.process_time()
    alone = _model(seed, None, votes, seen)
    between = time.process_time()
    model = _model(seed, "fit", votes, seen)
    end = time.process_time()
    return {
        "estimate": model.bag_effect_,
        "error": model.bag_effect_error_,
        "with": _judge(model, votes, ~seen),
        "without": _judge(alone, votes, ~seen),
        "seconds": [end - between, between - start],
    }


def _model(seed: int, bag_effect: Any, votes: Election, rows: Any) -> kofn.LLPClassifier:
    model = kofn.LLPClassifier("linear", label="count", bag_effect=bag_effect, random_state=seed)
    return model.fit(votes.X[rows], votes.votes[rows], groups=votes.box[rows], copies=votes.voters[rows])


def _judge(model: kofn.LLPClassifier, votes: Election, rows: Any) -> dict[str, float]:
    """The mean log-likelihood of boxes, and the share of them that 90 % intervals hold."""
    logits, bags = model._bag_logits(votes.X[rows], votes.box[rows], votes.voters[rows])
    counts = torch.from_numpy(votes.votes[rows])[torch.from_numpy(np.unique(votes.box[rows], return_index=True)[1])]
    seen = count_calibration(logits[0], counts, offsets=bags.offsets, bag_effect=model.bag_effect_, levels=[LEVEL])
    return {"log_likelihood": float(seen.here.log().mean()), "coverage": seen.coverage[0]}


def summary(runs: list[dict[str, Any]], effect: float) -> dict[str, Any]:
    """Over the runs of one true effect."""
    estimate, error = (np.array([run[key] for run in runs]) for key in ("estimate", "error"))
    judged = {
        model: {key: np.array([run[model][key] for run in runs]) for key in ("log_likelihood", "coverage")}
        for model in ("with", "without")
    }
    gain = judged["with"]["log_likelihood"].mean() / judged["without"]["log_likelihood"].mean() - 1
    seconds = np.array([run["seconds"] for run in runs])
    return {
        "runs": len(runs),
        "mean": float(estimate.mean()),
        "spread": float(estimate.std()),
        "error": float(error.mean()),
        "within_two_errors": float((np.abs(estimate - effect) <= 2 * error).mean()),
        "coverage": float(judged["with"]["coverage"].mean()),
        "coverage_without": float(judged["without"]["coverage"].mean()),
        "log_likelihood": float(judged["with"]["log_likelihood"].mean()),
        "log_likelihood_without": float(judged["without"]["log_likelihood"].mean()),
        "loss_relative": float(gain),
        "times": float(np.median(seconds[:, 0] / seconds[:, 1])),
    }


def cost() -> Rows:
    """Time of the loss of 128 bags, forward and backward, as multiples of the independent one, in one process."""
    rows: Rows = [["bags", *(f"bag effect {effect:g}" for effect in EFFECTS[1:])]]
    for size in (8, 32, 128):
        x = torch.randn(128, size, generator=torch.Generator().manual_seed(0)).requires_grad_()
        counts = kofn.CountDistribution(x).sample(generator=torch.Generator().manual_seed(1))
        effects = [None, *(torch.tensor(effect, dtype=torch.float64, requires_grad=True) for effect in EFFECTS[1:])]
        steps = [partial(_step, x, kofn.Exactly(counts), effect) for effect in effects]
        taken = [[_seconds(step) for step in steps] for _ in range(30)]  # they take turns
        ratios = np.median([[part / turn[0] for part in turn[1:]] for turn in taken], axis=0)
        rows.append([f"128 x {size}", *(f"{ratio:.1f}" for ratio in ratios)])
    return rows


def cost_of_trees() -> Rows:
    """Time of the processor of a fit of trees that estimates the effect, as a multiple of one of independent labels."""
    rows: Rows = [["true effect", "independent, s", "bag_effect='fit', times", "rounds", "rounds with the effect"]]
    for effect in (0.2, 0.5):
        bags = bags_of_features(FIRST, boxes=BOXES, bag_effect=effect, spread=1.5)
        seconds, rounds = [], []
        for option in (None, "fit"):
            start = time.process_time()
            model = kofn.LLPClassifier("trees", label="count", bag_effect=option, random_state=0)
            model.fit(bags.X, bags.votes, groups=bags.box)
            seconds.append(time.process_time() - start)
            rounds.append(str(model.best_step_))
        rows.append([f"{effect:g}", f"{seconds[0]:.1f}", f"{seconds[1] / seconds[0]:.1f}", *rounds])
    return rows


def _step(x: torch.Tensor, target: kofn.Exactly, bag_effect: torch.Tensor | None) -> None:
    kofn.count_loss(x, target, bag_effect=bag_effect).backward()


def _seconds(step: Callable[[], Any], repeats: int = 20) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench/bag_effect"), help="where .jsonl, .md and .json go")
    parser.add_argument("--runs", type=int, default=10**6, help="of each effect, at most")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", kofn.estimators.FitWarning)
    lines = options.out.with_suffix(".jsonl")
    done = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    there = {(entry["design"], entry["effect"], entry["seed"]) for entry in done}
    for design, number in RUNS.items():
        for seed, effect in product(range(FIRST, FIRST + min(number, options.runs)), EFFECTS):
            if (design, effect, seed) in there:
                continue
            entry = {"design": design, "effect": effect, "seed": seed, "commit": commit()} | run(design, seed, effect)
            done.append(entry)
            with lines.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")
    found = {
        f"{design}, {effect:g}": summary(runs, effect)
        for design, effect in product(RUNS, EFFECTS)
        if (runs := [one for one in done if (one["design"], one["effect"]) == (design, effect)])
    }
    about = "design and true effect, runs, estimate, standard error, within two of them, 90 % intervals hold, without"
    table: Rows = [[*about.split(", "), "log-likelihood of a bag", "without", "times the fit"]]
    for name, one in found.items():
        table.append(
            [
                name,
                str(one["runs"]),
                f"{one['mean']:.3f} ± {one['spread']:.3f}",
                f"{one['error']:.3f}",
                f"{100 * one['within_two_errors']:.1f} %",
                f"{100 * one['coverage']:.1f} %",
                f"{100 * one['coverage_without']:.1f} %",
                f"{one['log_likelihood']:.4f}",
                f"{one['log_likelihood_without']:.4f}",
                f"{one['times']:.1f}",
            ]
        )
    costs, trees = cost(), cost_of_trees()
    text = "\n\n".join(
        [
            f"{machine()}.",
            f"`LLPClassifier('linear', bag_effect='fit')` on {BOXES} simulated bags, asked about as many others; "
            "'without' is the model of independent labels. Estimates are means ± standard deviations over runs.",
            markdown(table),
            "The loss, forward and backward, as a multiple of that of independent labels (medians, one thread):",
            markdown(costs),
            f"A fit of trees to {BOXES} bags of 40 to 80, time of the processor:",
            markdown(trees),
        ]
    )
    facts = {"machine": machine(), "level": LEVEL, "effects": found, "cost": costs, "cost_of_trees": trees}
    for target in write(options.out, facts, text + "\n"):
        print(f"wrote {target}")


if __name__ == "__main__":
    main()
