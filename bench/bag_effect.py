"""Estimates of the bag effect and intervals with it, on simulated votes where it is known; and what it costs.

``python -m bench.bag_effect`` simulates elections whose ballot boxes differ by more than their voters explain
(`bench/simulated_votes.py`), fits ``LLPClassifier("linear", bag_effect="fit")`` and the model of independent labels to
half of the boxes, and asks both about the other half. Each election is written to bench/bag_effect.jsonl at once, and
none is run twice; bench/bag_effect.md and .json have the summary.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import kofn
from bench.record import Rows, machine, markdown, write
from bench.simulated_votes import Election, election
from kofn.metrics import count_calibration

EFFECTS, RUNS, BOXES, LEVEL = (0.0, 0.2, 0.5, 1.0), 200, 200, 0.9
FIRST = 20_000  # seed: those below were used while the method was chosen


def run(seed: int, effect: float) -> dict[str, Any]:
    """One election: the estimate and its standard error, and both models on boxes that they have not seen."""
    votes = election(seed, boxes=2 * BOXES, bag_effect=effect)
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
    """Over the elections of one true effect."""
    estimate, error = (np.array([run[key] for run in runs]) for key in ("estimate", "error"))
    judged = {
        model: {key: np.array([run[model][key] for run in runs]) for key in ("log_likelihood", "coverage")}
        for model in ("with", "without")
    }
    gain = judged["with"]["log_likelihood"].mean() / judged["without"]["log_likelihood"].mean() - 1
    seconds = np.array([run["seconds"] for run in runs])
    return {
        "elections": len(runs),
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
    parser.add_argument("--runs", type=int, default=RUNS, help="elections of each effect")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", kofn.estimators.FitWarning)
    lines = options.out.with_suffix(".jsonl")
    done = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    there = {(entry["effect"], entry["seed"]) for entry in done}
    for seed in range(FIRST, FIRST + options.runs):
        for effect in EFFECTS:
            if (effect, seed) in there:
                continue
            entry = {"effect": effect, "seed": seed} | run(seed, effect)
            done.append(entry)
            with lines.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")
    found = {f"{effect:g}": summary([e for e in done if e["effect"] == effect], effect) for effect in EFFECTS}
    about = "true effect, elections, estimate, standard error, within two of them, 90 % intervals hold, without"
    table: Rows = [[*about.split(", "), "log-likelihood of a box", "without", "times the fit"]]
    for name, one in found.items():
        table.append(
            [
                name,
                str(one["elections"]),
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
    costs = cost()
    text = "\n\n".join(
        [
            f"{machine()}.",
            f'`LLPClassifier("linear", bag_effect="fit")` on simulated votes, {BOXES} ballot boxes of 60 to 140 '
            f'voters, asked about as many others; "without" is the model of independent labels. Estimates are means '
            f"± standard deviations over elections.",
            markdown(table),
            "The loss, forward and backward, as a multiple of that of independent labels (medians, one thread):",
            markdown(costs),
        ]
    )
    facts = {"machine": machine(), "level": LEVEL, "effects": found, "cost": costs}
    for target in write(options.out, facts, text + "\n"):
        print(f"wrote {target}")


if __name__ == "__main__":
    main()
