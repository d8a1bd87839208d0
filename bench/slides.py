"""Simulated slides: which patches of a slide are positive, learned from whether the slide has any.

``python -m bench.slides`` runs the cells that bench/slides.jsonl does not have, each written at once, then writes
bench/slides.md. ``--methods "kofn, trees" --again`` runs those of a method anew.

A slide has 200 to 3,000 patches of 128 numbers. Half of the slides are positive; of a positive slide 5 % of the patches
are, and are shifted by `signal` in one direction that all slides have in common. All patches of a slide are shifted by
its own normal vector, the slide effect, which is what mean pooling sees instead. The sizes of signal and effect were
chosen on seeds from 100 on, by the scores of mean pooling and of attention, before kofn was tried.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import kofn
from bench.record import commit, machine, markdown
from kofn._io.atomic_write import atomic_write

Array = NDArray[Any]
TRAIN, TEST, COLUMNS, SHARE = 80, 100, 128, 0.05
SMALLEST, LARGEST = 200, 3000
SETTINGS = {"easy": (5.0, 0.25), "harder": (3.5, 0.25)}  # signal, standard deviation of the slide effect
SEEDS = (0, 1, 2)
EPOCHS = 60


class Slides(NamedTuple):
    """Patches one slide after the other."""

    patches: Array  # (n, 128) float32
    slide: Array  # (n,)
    truth: Array  # (n,) whether a patch is positive, which nothing is trained on
    labels: Array  # (slides,) 0 or 1

    def parts(self) -> list[Array]:
        """The patches of each slide."""
        return np.split(self.patches, np.flatnonzero(np.diff(self.slide)) + 1)


class Scores(NamedTuple):
    """Of test data: larger for positive ones."""

    slides: Array
    patches: Array


def slides(number: int, signal: float, effect: float, rng: np.random.Generator, direction: Array) -> Slides:
    """Slides of which every second one is positive."""
    labels = np.arange(number) % 2
    slide = np.repeat(np.arange(number), rng.integers(SMALLEST, LARGEST + 1, number))
    truth = (labels[slide] == 1) & (rng.random(len(slide)) < SHARE)
    patches = rng.standard_normal((len(slide), COLUMNS), dtype=np.float32)
    patches += (effect * rng.standard_normal((number, COLUMNS), dtype=np.float32))[slide]
    patches[truth] += np.float32(signal) * direction.astype(np.float32)
    return Slides(patches, slide, truth, labels)


def task(setting: str, seed: int) -> tuple[Slides, Slides]:
    """Training and test slides."""
    rng, (signal, effect) = np.random.default_rng(seed), SETTINGS[setting]
    direction = rng.normal(size=COLUMNS)
    direction /= np.linalg.norm(direction)
    return slides(TRAIN, signal, effect, rng, direction), slides(TEST, signal, effect, rng, direction)


def mean_pooling(train: Slides, test: Slides, seed: int) -> Scores:
    """Logistic regression of the label on the mean patch; a patch is scored as a slide of its own."""
    means = np.stack([part.mean(0) for part in train.parts()])
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": np.logspace(-4, 4, 9)}
    model = GridSearchCV(regression, grid, scoring="neg_log_loss", cv=folds).fit(means, train.labels)
    of_slides = model.decision_function(np.stack([part.mean(0) for part in test.parts()]))
    return Scores(of_slides, model.decision_function(test.patches))


class GatedAttention(nn.Module):
    """Ilse, Tomczak, Welling, 2018: a slide is the mean of its embedded patches, weighted by gated attention."""

    def __init__(self, columns: int, *, width: int = 128, hidden: int = 64) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(columns, width), nn.ReLU())
        self.tanh = nn.Sequential(nn.Linear(width, hidden), nn.Tanh())
        self.gate = nn.Sequential(nn.Linear(width, hidden), nn.Sigmoid())
        self.weigh = nn.Linear(hidden, 1)
        self.classify = nn.Linear(width, 1)

    def forward(self, patches: Tensor) -> tuple[Tensor, Tensor]:
        """The log-odds of a slide, (), and the logits of the attention to its patches, (n,)."""
        embedded = self.embed(patches)
        attention = self.weigh(self.tanh(embedded) * self.gate(embedded)).squeeze(-1)
        return self.classify(attention.softmax(0) @ embedded).squeeze(-1), attention


def attention_by_hand(train: Slides, test: Slides, seed: int) -> Scores:
    """Gated attention in plain torch: Adam, a slide a step. Patches are scored by attention.

    The epoch is that with the smallest loss of a fifth of the slides, of all sixty: with a patience of 15 it stopped
    before it had learned anything in two of 23 fits, one of them with a seed of the table.
    """
    torch.manual_seed(seed)
    mean, sd = train.patches.mean(0), train.patches.std(0)

    def tensors(of: Slides) -> list[Tensor]:
        return [torch.from_numpy((part - mean) / sd) for part in of.parts()]

    bags, labels = tensors(train), torch.from_numpy(train.labels).float()
    order = torch.randperm(TRAIN).tolist()
    held, learned = order[: TRAIN // 5], order[TRAIN // 5 :]
    model = GatedAttention(COLUMNS)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    best, kept = float("inf"), copy.deepcopy(model.state_dict())
    for _ in range(EPOCHS):
        for place in torch.randperm(len(learned)).tolist():
            slide = learned[place]
            optimizer.zero_grad()
            binary_cross_entropy_with_logits(model(bags[slide])[0], labels[slide]).backward()
            optimizer.step()
        with torch.no_grad():
            scores = torch.stack([model(bags[slide])[0] for slide in held])
        loss = float(binary_cross_entropy_with_logits(scores, labels[held]))
        if loss < best:
            best, kept = loss, copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    with torch.no_grad():
        found = [model(part) for part in tensors(test)]
    return Scores(
        torch.stack([slide for slide, _ in found]).numpy(), torch.cat([patches for _, patches in found]).numpy()
    )


def with_kofn(learner: Any) -> Callable[[Slides, Slides, int], Scores]:
    """`MILClassifier` with a learner; a slide is scored by its log-odds of at least one positive patch."""

    def fit(train: Slides, test: Slides, seed: int) -> Scores:
        model = kofn.MILClassifier(learner, random_state=seed)
        model.fit(train.patches, train.labels[train.slide], groups=train.slide)
        of_slides = model.bag_decision_function(test.patches, test.slide)
        return Scores(of_slides, model.decision_function(test.patches))

    return fit


METHODS: dict[str, Callable[[Slides, Slides, int], Scores]] = {
    "mean pooling, logistic regression": mean_pooling,
    "gated attention by hand": attention_by_hand,
    "kofn, auto": with_kofn("auto"),
    "kofn, trees": with_kofn("trees"),
    "kofn, linear": with_kofn("linear"),
    "kofn, network, one-cycle": with_kofn(kofn.Network(schedule="one-cycle")),
}


def run(setting: str, seed: int, method: str) -> dict[str, Any]:
    """The record of one cell."""
    train, test = task(setting, seed)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", kofn.estimators.FitWarning)
        scores = METHODS[method](train, test, seed)
    return {
        "setting": setting,
        "seed": seed,
        "method": method,
        "slide_auc": round(float(roc_auc_score(test.labels, scores.slides)), 4),
        "patch_auc": round(float(roc_auc_score(test.truth, scores.patches)), 4),
        "seconds": round(time.perf_counter() - start, 1),
        "warnings": [str(each.message) for each in warned if issubclass(each.category, kofn.estimators.FitWarning)],
        "threads": torch.get_num_threads(),
    }


def page(records: list[dict[str, Any]]) -> str:
    """The records as Markdown: means over seeds, and each seed."""
    rows = [["setting", "method", "slide AUC", "patch AUC", "seconds", "seeds"]]
    for setting, method in product(SETTINGS, METHODS):
        found = [each for each in records if (each["setting"], each["method"]) == (setting, method)]
        if found:
            seconds = f"{np.mean([each['seconds'] for each in found]):.0f}"
            rows.append(
                [setting, method, *(_auc(found, name) for name in ("slide_auc", "patch_auc")), seconds, str(len(found))]
            )
    sizes = "; ".join(
        f"{name}: signal {signal:g}, slide effect {effect:g}" for name, (signal, effect) in SETTINGS.items()
    )
    text = (
        f"{TRAIN} slides for training and {TEST} for testing, half of them positive, of {SMALLEST} to {LARGEST:,} "
        f"patches with {COLUMNS} columns; {SHARE:.0%} of the patches of a positive slide are positive ({sizes}). "
        f"Mean over seeds, and each seed in brackets. Attention scores patches by its weights before the softmax."
    )
    return f"{machine()}.\n\n{text}\n\n{markdown(rows)}\n"


def _auc(found: list[dict[str, Any]], name: str) -> str:
    values = [each[name] for each in sorted(found, key=lambda each: each["seed"])]
    return f"{np.mean(values):.3f} ({', '.join(f'{value:.3f}' for value in values)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--again", action="store_true", help="run cells anew that have a record")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench/slides"))
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    kept = asked.out.with_suffix(".jsonl")
    records = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for seed, setting, method in product(asked.seeds, asked.settings, asked.methods):
        cell = (setting, seed, method)
        others = [each for each in records if (each["setting"], each["seed"], each["method"]) != cell]
        if len(others) < len(records) and not asked.again:
            continue
        records = [*others, run(setting, seed, method) | {"commit": commit()}]
        print(records[-1], flush=True)
        for path, text in (
            (kept, "".join(json.dumps(each) + "\n" for each in records)),
            (asked.out.with_suffix(".md"), page(records)),
        ):
            with atomic_write(path) as part:
                part.write_text(text)


if __name__ == "__main__":
    main()
