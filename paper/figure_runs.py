"""What the paper's figures show, as numbers: a worked example, a test bag, a distribution of counts."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import torch

from kofn.counts import log_count_distribution
from paper import mil_runs, pu_runs
from paper.outcome import Outcome
from paper.recipes import Recipe

EXAMPLE = (0.1, 0.2, 0.3)  # probabilities of the paper's three instances
TRAINING_BAGS = 500
BAGS, SIZE = 5, 100  # test bags whose distributions are averaged


def run(cell: Mapping[str, Any], method: str, recipe: Recipe, seed: int) -> Outcome:
    """The numbers of one figure."""
    runners = {"dynamic-programming": example, "test-bag": nines_in_a_bag, "count-distribution": count_distribution}
    return runners[cell["figure"]](recipe, seed)


def protocol(cell: Mapping[str, Any]) -> dict[str, Any]:
    """What is drawn."""
    return {"example": list(EXAMPLE), "training_bags": TRAINING_BAGS, "bags": BAGS, "size": SIZE}


def example(recipe: Recipe, seed: int) -> Outcome:
    """P(S = s) of the first 0, 1, 2, 3 instances: a row each."""
    logits = torch.logit(torch.tensor(EXAMPLE, dtype=torch.float64))
    pmfs = [log_count_distribution(logits[:n]).exp().tolist() for n in range(len(EXAMPLE) + 1)]
    return Outcome({"probabilities": list(EXAMPLE), "pmfs": pmfs})


def nines_in_a_bag(recipe: Recipe, seed: int) -> Outcome:
    """The first positive test bag with two nines: its images, digits and probabilities to be a nine."""
    model, test = mil_runs.fitted({"setting": "N(10,2)", "bags": TRAINING_BAGS}, recipe, seed)
    nines = test.bags.sum(test.instance_labels)
    bag = int((nines == 2).nonzero()[0, 0])
    start, end = test.bags.offsets[bag : bag + 2].tolist()
    which = test.bags.index[start:end]
    digits = mil_runs.load().test
    images = (digits.instances[which] * 255).round().to(torch.uint8)
    shown = {
        "images": base64.b64encode(zlib.compress(images.numpy().tobytes(), 9)).decode(),
        "digits": digits.labels[which].tolist(),
        "probabilities": model.predict_proba(digits.instances[which])[:, 1].tolist(),
    }
    return Outcome(shown, model.history_)


def count_distribution(recipe: Recipe, seed: int) -> Outcome:
    """The mean over five test bags of 100 images of the distribution of the number of positives."""
    model, test, chosen, _ = pu_runs.fitted("mnist17", recipe, seed)
    bags = test.instances[chosen[: BAGS * SIZE]]
    logits = torch.from_numpy(model.decision_function(bags)).reshape(BAGS, SIZE)
    pmf = log_count_distribution(logits).exp().mean(0)
    found = {"pmf": pmf.tolist(), "positives": test.labels[chosen[: BAGS * SIZE]].reshape(BAGS, SIZE).sum(1).tolist()}
    return Outcome(found, model.history_)
