"""Whether `validation_loss_` is the loss of new bags: 40 fits of each learner, each on fresh simulated data.

``python -m bench.honest`` runs the fits that bench/honest.json does not have and writes bench/honest.md.
``--learners linear --again`` runs those of a learner anew.

A fit has 60 to 100 bags of 8 to 16 rows with six columns, of which two decide, weakly or clearly, and four are noise;
the label of a bag is its count of positives. What the learner says is the mean loss of held-out bags at the step that
was chosen on them. What is true is the loss of 2,000 new bags by the same models: those of the folds, fitted again to
their bags up to that step, averaged over folds by weight; of a network and of EM, which have one split, the model.
Each fit is repeated to know these models, and the loss of its held-out bags must be the same as before.

Some held-out bags are harder than others by chance, which hides a small bias. The true probabilities find them as hard:
their loss on the held-out bags less that on the new ones is this chance, has the mean 0, and is subtracted in the
columns "without chance".
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import kofn
from bench.record import machine, markdown, write
from kofn.learners import Problem
from kofn.learners._best_rate import at_its_own_rate
from kofn.learners._boosting import Boosting
from kofn.learners._design import Design
from kofn.learners._linear import FoldOfPenalties, linear_logits
from kofn.learners._linear import Path as Penalties

Array = NDArray[Any]
FITS, NEW_BAGS = 40, 2000
COLUMNS = 6
SAME = 1e-6  # relative difference of two losses that are the same

LEARNERS: dict[str, Callable[[], Any]] = {
    "trees": kofn.Trees,
    "linear": kofn.Linear,
    "network": lambda: kofn.Network(hidden=(16,), epochs=60),
    "em": lambda: kofn.EM(LogisticRegression()),
}
TITLES = {
    "trees": "Trees()",
    "linear": "Linear()",
    "network": "Network(hidden=(16,), epochs=60)",
    "em": "EM(LogisticRegression())",
}


class Data(NamedTuple):
    """Rows, the count of each row's bag, and the bags."""

    X: Array
    y: Array
    groups: Array


class World:
    """Where the bags of a fit come from, old and new ones."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.bags = int(self.rng.integers(60, 101))
        self.weights = np.zeros(COLUMNS)
        self.weights[:2] = self.rng.uniform(0.3, 1.5) * self.rng.choice([-1, 1], 2)
        self.intercept = self.rng.uniform(-2, 0.5)

    def draw(self, bags: int) -> Data:
        sizes = self.rng.integers(8, 17, bags)
        groups = np.repeat(np.arange(bags), sizes)
        X = self.rng.normal(size=(len(groups), COLUMNS))
        positive = self.rng.random(len(groups)) < 1 / (1 + np.exp(-self.logits(X)))
        return Data(X, np.bincount(groups, positive).astype(int)[groups], groups)

    def logits(self, X: Array) -> Array:
        """The true log-odds of rows."""
        found: Array = self.intercept + X @ self.weights
        return found


def one(learner: str, seed: int) -> dict[str, Any]:
    """A fit: what it says and what is true."""
    world = World(seed)
    train, fresh = world.draw(world.bags), world.draw(NEW_BAGS)
    model = kofn.LLPClassifier(LEARNERS[learner](), label="count", random_state=seed, diagnostics=False)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kofn.estimators.FitWarning)  # the signal may be too weak
        model.fit(*train)
    seconds, said = time.perf_counter() - start, model.validation_loss_
    assert said is not None
    problem, new = (model._problem(*data)[0] for data in (train, fresh))
    chance = float(problem.losses(torch.from_numpy(world.logits(train.X)))[torch.from_numpy(model.held_out_)].mean())
    chance -= float(new.mean_loss(torch.from_numpy(world.logits(fresh.X))))
    if learner in ("network", "em"):
        true = float(new.mean_loss(torch.from_numpy(model.fitted_.logits(new.instances))))
    else:
        again, true = (of_trees if learner == "trees" else of_linear)(model, problem, new)
        if abs(again - said) > SAME * abs(again):
            raise RuntimeError(f"{learner}, seed {seed}: {again} is not the loss that the fit said.")
    return {
        "learner": learner,
        "seed": seed,
        "bags": world.bags,
        "step": model.best_step_,
        "said": round(said, 6),
        "true": round(true, 6),
        "chance": round(chance, 6),
        "without_features": round(model.baselines_["no features"], 6),
        "seconds": round(seconds, 2),
    }


def of_trees(model: Any, problem: Problem, new: Problem) -> tuple[float, float]:
    """The loss of held-out bags and that of new ones by the folds' trees, grown again up to the chosen round."""
    learner, rounds = model.fitted_learner_, model.best_step_
    params = learner.params(problem, model.seed_, threads=learner._threads())
    boosting = Boosting(problem, params, None)
    folds = boosting.folds(
        model.fitted_.splits, [at_its_own_rate(problem.take(train)).rate for train, _ in model.fitted_.splits]
    )
    losses = []
    for fold in folds:
        fold.advance(rounds)
        trees = fold._booster.predict(new.instances, raw_score=True, num_iteration=rounds)
        losses.append(float(new.mean_loss(torch.from_numpy(boosting.start + trees))))
    weights = [fold.weight for fold in folds]
    return _mean([fold.losses[-1] for fold in folds], weights), _mean(losses, weights)


def of_linear(model: Any, problem: Problem, new: Problem) -> tuple[float, float]:
    """The same by the folds' linear models, down the penalties to the chosen one."""
    learner = model.fitted_learner_
    design = Design.learn(problem.instances, problem.categories, problem.row_weights)
    features = design.features(problem.instances)
    penalties = Penalties(problem, features, learner.max_steps).penalties()
    held, true, weights = [], [], []
    for split in model.fitted_.splits:
        fold = FoldOfPenalties(problem, features, split, penalties, learner.max_steps)
        fold.advance(model.best_step_)
        held.append(fold.losses[-1])
        true.append(float(new.mean_loss(linear_logits(design.features(new.instances), fold._path.weights))))
        weights.append(fold.weight)
    return _mean(held, weights), _mean(true, weights)


def _mean(values: list[float], weights: list[float]) -> float:
    return float(np.average(values, weights=weights))


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What a learner's fits say on average, what is true, and whether the two agree within two standard errors."""
    names = ("said", "true", "chance", "without_features")
    said, true, chance, without = (np.array([each[name] for each in records]) for name in names)
    return {
        "fits": len(records),
        "said": float(said.mean()),
        "true": float(true.mean()),
        **_difference(said - true),
        "without_chance": _difference(said - true - chance),
        "without_features": float(without.mean()),
    }


def _difference(of: Array) -> dict[str, Any]:
    mean, error = float(of.mean()), float(of.std(ddof=1) / np.sqrt(len(of)))
    return {"difference": mean, "standard_error": error, "within_two": abs(mean) <= 2 * error}


def page(records: list[dict[str, Any]]) -> str:
    head = "learner, fits, said, true, said - true, within two, without chance, within two, no features"
    rows = [head.split(", ")]
    for name, title in TITLES.items():
        of = [each for each in records if each["learner"] == name]
        if len(of) > 1:
            found = summary(of)
            differences = [
                text
                for each in (found, found["without_chance"])
                for text in (
                    f"{each['difference']:+.4f} ± {each['standard_error']:.4f}",
                    "yes" if each["within_two"] else "no",
                )
            ]
            losses = [f"{found[key]:.4f}" for key in ("said", "true")]
            rows.append([f"`{title}`", str(len(of)), *losses, *differences, f"{found['without_features']:.4f}"])
    text = (
        f"Mean over fits of `validation_loss_` (said) and of the loss of {NEW_BAGS:,} new bags by the fold models at "
        f"the same step (true), each fit on fresh data: 60 to 100 bags of 8 to 16 rows, labelled with their counts, "
        f"two columns that decide and four of noise. Differences have their standard error over fits, and are within "
        f"two of it or not; without chance, the loss of the true probabilities on the held-out bags less that on the "
        f"new ones is subtracted. The last column is the loss of the held-out bags by a model without features."
    )
    return f"{machine()}.\n\n{text}\n\n{markdown(rows)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--fits", type=int, default=FITS)
    parser.add_argument("--again", action="store_true", help="run fits anew that have a record")
    parser.add_argument("--out", type=Path, default=Path("bench/honest"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    kept = asked.out.with_suffix(".json")
    records = json.loads(kept.read_text())["fits"] if kept.exists() else []
    if asked.again:
        records = [each for each in records if each["learner"] not in asked.learners]
    there = {(each["learner"], each["seed"]) for each in records}
    for learner in asked.learners:
        records += [one(learner, seed) for seed in range(asked.fits) if (learner, seed) not in there]
        of = {name: [each for each in records if each["learner"] == name] for name in LEARNERS}
        found = {name: summary(fits) for name, fits in of.items() if len(fits) > 1}
        write(asked.out, {"machine": machine(), "summary": found, "fits": records}, page(records))
        print(learner, found[learner], flush=True)


if __name__ == "__main__":
    main()
