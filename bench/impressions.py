"""Simulated impressions of advertisements: memory, time and AUC of fits to noisy counts of conversions.

``python -m bench.impressions`` fits each learner in a process of its own, whose peak memory is measured, and writes
bench/impressions.md and bench/impressions.json after each, beside what earlier runs found of other learners. ``--rows
20000`` is a quick try, of two days.

Of 28 campaigns over 30 days, each cell of campaign and day releases its number of conversions with discrete Laplace
noise (epsilon 1); releases below 10 are suppressed, and their rows left out of the fit. An impression has 12 columns,
among them 3,000 sites and 771 creatives as text. The test is of later days, with all labels.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import kofn
from bench.record import commit, machine, markdown, write

Array = NDArray[Any]
ROWS, TEST_ROWS = 287_395, 100_905
CAMPAIGNS, DAYS, LATER_DAYS = 28, 30, 10
SITES, CREATIVES = 3000, 771
RATE, LEAST = 0.015, 10  # of conversions; the smallest release
LEARNERS = ("trees", "linear", "network")
OPTIONS: dict[str, Any] = {"label": "count", "noise": "discrete-laplace:1", "max_categories": 4000}


class Impressions(NamedTuple):
    """Rows that were shown to somebody, some of which converted."""

    X: pd.DataFrame  # 12 columns
    cell: Array  # (n,) campaign and day
    probability: Array  # (n,) the true one
    converted: Array  # (n,) bool


def impressions(rows: int, days: int, seed: int) -> Impressions:
    """Rows of so many days; the effects of sites, creatives and all else are the same for every seed."""
    world, rng = np.random.default_rng(0), np.random.default_rng(seed)
    popular = world.lognormal(0, 1.2, SITES)
    size = world.lognormal(0, 1.3, CAMPAIGNS)
    of_site, of_creative = world.normal(0, 0.7, SITES), world.normal(0, 0.4, CREATIVES)
    of_campaign, of_country, of_format = (
        world.normal(0, 0.5, CAMPAIGNS),
        world.normal(0, 0.4, 40),
        world.normal(0, 0.3, 8),
    )
    campaign = rng.choice(CAMPAIGNS, rows, p=size / size.sum())
    own = (CREATIVES - 1 - campaign) // CAMPAIGNS + 1  # creatives of the campaign
    creative = campaign + CAMPAIGNS * rng.integers(0, own)
    site, country = rng.choice(SITES, rows, p=popular / popular.sum()), rng.integers(0, 40, rows)
    device, system, browser = rng.integers(0, 4, rows), rng.integers(0, 6, rows), rng.integers(0, 9, rows)
    form, hour, day = rng.integers(0, 8, rows), rng.integers(0, 24, rows), rng.integers(0, days, rows)
    seen, recency, position = rng.random(rows), rng.exponential(5, rows), rng.integers(1, 6, rows)
    logits = (
        of_site[site]
        + of_creative[creative]
        + of_campaign[campaign]
        + of_country[country]
        + of_format[form]
        + 0.4 * np.sin(hour / 24 * 2 * np.pi)
        + np.where(device == 0, 0.5, 0.0) * np.where(form < 3, 1.0, -1.0)
        + 1.2 * seen
        - 0.08 * recency
    )
    probability = 1 / (1 + np.exp(-(logits + _intercept(logits))))
    X = pd.DataFrame(
        {
            "site": _names("site", SITES)[site],
            "creative": _names("creative", CREATIVES)[creative],
            "country": _names("country", 40)[country],
            "device": _names("device", 4)[device],
            "system": _names("system", 6)[system],
            "browser": _names("browser", 9)[browser],
            "format": _names("format", 8)[form],
            "hour": hour,
            "weekday": day % 7,
            "position": position,
            "seen": seen,
            "recency": recency,
        }
    )
    return Impressions(X, campaign * days + day, probability, rng.random(rows) < probability)


def _names(kind: str, number: int) -> Array:
    return np.array([f"{kind}-{place}" for place in range(number)], dtype=object)


def _intercept(logits: Array) -> float:
    """With which the mean probability is the rate of conversions, by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-(logits + middle)))).mean() < RATE else (low, middle)
    return low


def released(train: Impressions, seed: int = 0) -> tuple[Array, Array]:
    """Rows of cells whose release is not suppressed, as a mask, and the release of each row's cell."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(train.cell, train.converted, minlength=int(train.cell.max()) + 1).astype(np.int64)
    q = 1 - np.exp(-1.0)  # the difference of two geometric numbers is discrete Laplace of scale 1
    noisy = counts + rng.geometric(q, len(counts)) - rng.geometric(q, len(counts))
    return (noisy >= LEAST)[train.cell], noisy[train.cell]


def peak_gb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def days_of(rows: int) -> int:
    """Fewer rows are those of fewer days, so that as many cells are suppressed."""
    return max(round(DAYS * rows / ROWS), 1)


def fit(learner: str, rows: int, test_rows: int, seed: int) -> dict[str, Any]:
    """What a process of its own measures."""
    train, test = impressions(rows, days_of(rows), 10 * seed), impressions(test_rows, LATER_DAYS, 10 * seed + 1)
    kept, counts = released(train, seed)
    before = peak_gb()
    model, start = kofn.LLPClassifier(learner, random_state=seed, **OPTIONS), time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", kofn.estimators.FitWarning)
        model.fit(train.X[kept], counts[kept], groups=train.cell[kept])
    seconds = time.perf_counter() - start
    p = model.predict_proba(test.X)[:, 1]
    return {
        "learner": learner,
        "seed": seed,
        "rows": int(kept.sum()),
        "cells": len(np.unique(train.cell[kept])),
        "peak_gb": round(peak_gb(), 2),
        "peak_gb_before": round(before, 2),
        "seconds": round(seconds, 1),
        "auc": round(float(roc_auc_score(test.converted, p)), 4),
        "auc_of_true_probability": round(float(roc_auc_score(test.converted, test.probability)), 4),
        "predicted_per_converted": round(float(p.sum() / test.converted.sum()), 3),
        "commit": commit(),
        "warnings": [str(each.message) for each in warned if issubclass(each.category, kofn.estimators.FitWarning)],
    }


def measured(learner: str, arguments: list[str], limit: float) -> dict[str, Any]:
    """The same, from a new process that may have so many GB; or how it failed."""
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({int(limit * 1e9)},) * 2); "
        f"from bench.impressions import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--only", learner, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"learner": learner, "error": (done.stderr.strip().splitlines() or ["killed"])[-1], "limit_gb": limit}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def recorded(out: Path, sizes: dict[str, int]) -> list[dict[str, Any]]:
    """What earlier runs of the same sizes found."""
    record = json.loads(out.with_suffix(".json").read_text()) if out.with_suffix(".json").exists() else {}
    same = record.get("rows") == sizes["--rows"]
    return [each for each in record.get("results", ()) if same and each.get("seed") == sizes["--seed"]]


def page(found: list[dict[str, Any]], rows: int) -> str:
    """The record as Markdown."""
    table = [["learner", "peak memory", "of which before the fit", "seconds", "test AUC", "sum p / sum y"]]
    for each in found:
        if "error" in each:
            table.append([each["learner"], each["error"], *["-"] * 4])
        else:
            memory = [f"{each[name]:.2f} GB" for name in ("peak_gb", "peak_gb_before")]
            numbers = [f"{each['seconds']:.0f}", f"{each['auc']:.3f}", f"{each['predicted_per_converted']:.2f}"]
            table.append([each["learner"], *memory, *numbers])
    about = [
        f"{rows:,} impressions in {CAMPAIGNS * days_of(rows)} cells, {RATE:.1%} conversions, counts with discrete",
        f"Laplace noise (epsilon 1), releases below {LEAST} suppressed. 12 columns, {SITES:,} sites and {CREATIVES}",
        f"creatives as text (`max_categories={OPTIONS['max_categories']}`). Peak memory is that of the process.",
    ]
    for each in [each for each in found if "error" not in each][:1]:
        about.append(f"The {each['cells']} cells that are released have {each['rows']:,} of the rows.")
        about.append(f"The test AUC of the true probabilities is {each['auc_of_true_probability']:.3f}.")
    return f"{machine()}.\n\n{' '.join(about)}\n\n{markdown(table)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--test-rows", type=int, default=TEST_ROWS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=20.0, help="GB of address space for each process")
    parser.add_argument("--only", choices=LEARNERS, help="fit this learner here, and print its measurements")
    parser.add_argument("--out", type=Path, default=Path("bench/impressions"))
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(fit(asked.only, asked.rows, asked.test_rows, asked.seed)))
        return
    sizes = {"--rows": asked.rows, "--test-rows": asked.test_rows, "--seed": asked.seed}
    arguments = [text for name, value in sizes.items() for text in (name, str(value))]
    found = [each for each in recorded(asked.out, sizes) if each["learner"] not in asked.learners]
    for learner in asked.learners:
        found.append(measured(learner, arguments, asked.limit))
        found.sort(key=lambda each: LEARNERS.index(each["learner"]))
        print(found[-1], flush=True)
        write(asked.out, {"machine": machine(), "rows": asked.rows, "results": found}, page(found, asked.rows))


if __name__ == "__main__":
    main()
