"""One short run of each kind of task, on the real data where they are; the same seed gives the same record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from kofn import counts
from kofn.datasets import Labelled, Splits
from paper import mil_runs, one_run, recipes, sum_runs
from paper.cells import Run
from paper.one_run import run_cell
from paper.outcome import auc_rounded
from paper.records import KEYS

MNIST = {"data": "mnist", "setting": "N(5,1)", "bags": 10}
SUMS = {"data": "mnist", "setting": "sum of digits", "bag_size": 10}
PU = {"data": "mnist17", "setting": "mixture 0.5"}
LLP = {"data": "magic", "setting": "[0,1/2]", "bag_size": 512}
KINDS = [
    ("magic", Run("llp", LLP, "CL", "fast", 1), {"auc", "auc_rounded"}),
    ("magic", Run("llp", LLP | {"setting": "[1/2,1]"}, "PL", "paper", 1), {"auc", "auc_rounded", "best_epoch"}),
    ("magic", Run("llp", LLP, "CL-trees", "fast", 1), {"auc", "auc_rounded", "rounds"}),
    ("magic", Run("llp", LLP, "LMMCM", "fast", 1), {"auc", "auc_rounded", "penalty", "landmarks"}),
    ("MNIST/raw", Run("mil-small", MNIST, "Gated Attention", "fast", 1), {"auc", "auc_rounded", "accuracy"}),
    (
        "MNIST/raw",
        Run("mil-instance", MNIST, "Instance-Max", "fast", 1),
        {"auc", "auc_rounded", "accuracy", "bag_auc", "bag_auc_rounded", "bag_accuracy"},
    ),
    ("MNIST/raw", Run("sums", SUMS, "Sum", "fast", 1), {"accuracy", "cross_entropy"}),
    ("MNIST/raw", Run("pu", PU, "CL", "fast", 1), {"accuracy", "accuracy_all"}),
    ("MNIST/raw", Run("pu", PU, "CL-expect", "paper", 1), {"accuracy", "accuracy_all", "best_epoch"}),
    ("MNIST/raw", Run("pu", PU, "CVIR", "fast", 1), {"accuracy", "accuracy_all"}),
    (
        "CRCHistoPhenotypes_2016_04_28",
        Run("colon", {"data": "colon", "setting": "10-fold", "fold": 9}, "CL", "fast", 1),
        {"accuracy", "auc", "auc_rounded", "f1", "precision", "recall"},
    ),
]


def small(table: str, cell: Any, method: str, preset: str) -> dict[str, Any]:
    """The recipe with few epochs and small networks."""
    options = recipes.recipe(table, cell, method, preset)
    if "epochs" in options:
        options["epochs"] = 2 if table != "colon" else 1
    if "average" in options:
        options["average"] = 2
    if "hidden" in options:
        options["hidden"] = [16]
    if options.get("module") == "pu_mnist_mlp":
        options |= {"module": "mlp", "hidden": [16]}
    if options.get("landmarks"):
        options["landmarks"] = 64
    return options


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_run, "recipe", small)
    monkeypatch.setattr(mil_runs, "TEST_BAGS", 20)


@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore:this fit is no better")  # after two epochs
@pytest.mark.filterwarnings(
    "ignore:the distributions of counts are too narrow"
)  # the proportions of bags are drawn wide
@pytest.mark.parametrize(
    ("run", "names"),
    [
        pytest.param(run, names, marks=pytest.mark.data(folder), id=f"{run.table} {run.method}")
        for folder, run, names in KINDS
    ],
)
def test_kinds(run: Run, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if run.table == "colon":  # a few images are enough
        shrink_colon(monkeypatch)
    if run.table == "sums":
        some = [part.select(torch.arange(200)) for part in mil_runs.load("standardised")]
        monkeypatch.setattr(sum_runs, "load", lambda pixels: Splits(*some))
    found = run_cell(run)
    assert set(KEYS) <= set(found)
    assert set(found["metrics"]) == names
    assert all(0 <= value <= 1 for name, value in found["metrics"].items() if name.startswith(("a", "f", "p", "rec")))
    assert {key: found[key] for key in run.facts} == run.facts
    if "rounds" in names:  # some more were tried on held-out bags
        curve = [step["val_loss"] for step in found["curve"]]
        assert found["metrics"]["rounds"] == 1 + curve.index(min(curve))
    else:
        assert len(found["curve"]) == small(run.table, run.cell, run.method, run.preset).get("epochs", 0)
    assert found["machine"]["counts"] == counts.backend()
    again = run_cell(run)
    for record in (found, again):
        del record["seconds"], record["cpu_seconds"]
    assert again == found


@pytest.mark.parametrize("loss", sum_runs.LOSSES)
def test_the_losses_of_sums(loss: str) -> None:
    """Each knows the right digits from wrong ones, and trains a network, the same with the same seed."""
    digits = torch.tensor([[3, 1, 4], [1, 5, 9]])
    sure = 20 * torch.nn.functional.one_hot(digits, 10).float()
    right, wrong = (float(sum_runs.LOSSES[loss](sure, digits.sum(-1) + off)) for off in (0, 3))
    assert right < wrong
    images = Labelled(torch.rand(40, 1, 28, 28), torch.arange(40) % 10, (), tuple("0123456789"))
    recipe = {"loss": loss, "epochs": 2, "batch_size": 3, "lr": 1e-3, "precision": "float32"}
    (network, curve), (_, again) = (sum_runs.fit(images, 10, recipe, 5) for _ in range(2))
    assert curve == again
    assert len(curve) == 2
    assert set(sum_runs.score(network, images)) == {"accuracy", "cross_entropy"}


def shrink_colon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten nuclei of each of the images."""
    from kofn.bags import Bags
    from paper import colon_runs

    instances, bags, labels = colon_runs.load()
    few = torch.cat([bags[i][:10] for i in range(len(bags))])
    sizes = bags.sizes.clamp(max=10)
    monkeypatch.setattr(colon_runs, "load", lambda: (instances, Bags(few, Bags.from_sizes(sizes).offsets), labels))


@pytest.mark.usefixtures("quick")
@pytest.mark.data("magic")
def test_another_seed_is_another_run() -> None:
    first, second = (run_cell(Run("llp", LLP, "CL", "fast", seed)) for seed in (1, 2))
    assert first["metrics"]["auc"] != second["metrics"]["auc"]


@pytest.mark.data("MNIST/raw")
def test_standardised_pixels() -> None:
    plain, standardised = (mil_runs.load(pixels).train.instances for pixels in (None, "standardised"))
    assert (float(plain.min()), float(plain.max())) == (0.0, 1.0)
    assert float(standardised.mean()) == pytest.approx(0, abs=1e-3)
    assert float(standardised.std()) == pytest.approx(1, abs=1e-3)


def test_every_kind_of_metric_changes_level_and_back() -> None:
    both = {"auc": 0.9, "accuracy": 0.7, "instance_auc": 0.8, "instance_accuracy": 0.6}
    instance = one_run._of_level(both, "instance")
    assert instance == {"bag_auc": 0.9, "bag_accuracy": 0.7, "auc": 0.8, "accuracy": 0.6}
    assert one_run._of_level(instance, "bag") == both
    assert one_run._of_level(instance, "instance") == instance
    assert one_run._of_level({"auc": 0.5}, "instance") == {"auc": 0.5}


def test_auc_rounded_is_that_of_the_papers_code() -> None:
    """Taken of rounded probabilities, not of scores: the balanced accuracy."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels, logits = np.resize([0, 1, 1], 50), rng.normal(size=50)
        rounded = (1 / (1 + np.exp(-logits))).round()
        assert auc_rounded(labels, logits) == roc_auc_score(labels, rounded)
        assert auc_rounded(labels, logits) == pytest.approx(balanced_accuracy_score(labels, rounded), abs=1e-15)
    with pytest.raises(ValueError, match="`labels` must hold a 0"):
        auc_rounded([1, 1], [0.5, -0.5])
