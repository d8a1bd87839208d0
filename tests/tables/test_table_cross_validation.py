"""Cross-validation on tables: every bag is held out once, by models that had not seen it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import table_data

from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.learners import Linear, Network, Trees
from kofn.tables import cross_validate_table, evaluate_bags, fit_table

pytestmark = pytest.mark.filterwarnings("error:this fit is no better")  # it is told by the numbers beside it

FEATURES = "x,colour"
QUICK: dict[str, Any] = {
    "trees": Trees(rounds=10),
    "linear": Linear(l2=0.01),
    "network": Network(hidden=(4,), epochs=3),
}
TASKS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "count": (LLPClassifier, {}, {"bag": "bag", "label": "count"}),
    "interval": (LLPClassifier, {}, {"bag": "bag", "label": "low,high"}),
    "noisy": (LLPClassifier, {"noise": "laplace:0.5"}, {"bag": "bag", "label": "noisy"}),
    "mil": (MILClassifier, {}, {"bag": "bag", "label": "some"}),
    "pu": (PUClassifier, {"mixture": 0.3}, {"label": "labelled"}),
}


@pytest.mark.parametrize("task", TASKS)
def test_learners_and_baselines_side_by_side(tmp_path: Path, task: str) -> None:
    data = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    kind, options, columns = TASKS[task]
    estimators = {name: kind(learner, random_state=0, **options) for name, learner in QUICK.items()}
    seen: list[int] = []
    found = cross_validate_table(
        data,
        estimators,
        n_folds=3,
        features=FEATURES,
        on_fold=lambda number, fold: seen.append(number),
        **columns,
    )
    assert seen == [0, 1, 2]
    assert (found["rows"], found["bags"]) == (240, None if task == "pu" else 60)
    names = ["no features", "bag means", *QUICK]
    for fold in found["folds"]:
        assert list(fold) == names
        assert all(np.isfinite(fold[name]["loss"]) for name in names)
    for name in names:
        losses = [fold[name]["loss"] for fold in found["folds"]]
        assert found["summary"][name]["loss"]["mean"] == pytest.approx(np.mean(losses))
        assert found["summary"][name]["loss"]["spread"] == pytest.approx(np.std(losses, ddof=1))
    assert ("bag_auc" in found["summary"]["linear"]) == (task == "mil")
    assert found["summary"]["linear"]["loss"]["mean"] < found["summary"]["no features"]["loss"]["mean"]
    assert not hasattr(next(iter(estimators.values())), "fitted_")  # what was given is left alone


def test_a_fold_is_a_fit_to_the_others(tmp_path: Path) -> None:
    """Two folds: each is what `fit_table` on the one half and `evaluate_bags` on the other give."""
    frame = table_data.make_table()
    data = table_data.write(frame, tmp_path / "t.csv")
    estimator = LLPClassifier(Linear(l2=0.01), random_state=0)
    columns: dict[str, Any] = {"bag": "bag", "label": "count", "features": FEATURES}
    parts: list[Any] = []

    class Seeing(Linear):
        def fit(self, problem: Any, **options: Any) -> Any:
            parts.append(problem)
            return super().fit(problem, **options)

    found = cross_validate_table(data, {"linear": LLPClassifier(Seeing(l2=0.01), random_state=0)}, n_folds=2, **columns)
    assert [len(part.bags) for part in parts] == [30, 30]
    x = frame["x"].to_numpy(np.float32)
    for part, fold in zip(parts, found["folds"], strict=True):
        bags = set(frame.loc[np.isin(x, part.instances[:, 0]), "bag"])
        assert len(bags) == 30
        one = table_data.write(frame[frame["bag"].isin(bags)], tmp_path / "one.csv")
        other = table_data.write(frame[~frame["bag"].isin(bags)], tmp_path / "other.csv")
        measured = evaluate_bags(fit_table(one, estimator, **columns), other)
        assert fold["linear"]["loss"] == pytest.approx(-measured["log_likelihood"], rel=1e-6)
        for name in ("expected_count_error", "calibration_error"):
            assert fold["linear"][name] == pytest.approx(measured[name], rel=1e-6)


def test_attention_is_judged_by_its_own_score_of_bags(tmp_path: Path) -> None:
    data = table_data.write(table_data.make_table(bag_size=2), tmp_path / "t.csv")
    estimator = MILClassifier(QUICK["network"], loss="attention", random_state=0)
    columns: dict[str, Any] = {"bag": "bag", "label": "some", "features": FEATURES}
    found = cross_validate_table(data, {"network": estimator}, n_folds=2, **columns)
    assert 0.5 < found["summary"]["network"]["bag_auc"]["mean"] <= 1
    assert np.isfinite(found["summary"]["network"]["loss"]["mean"])


def test_folds_are_stratified_and_come_from_the_seed(tmp_path: Path) -> None:
    frame = table_data.make_table(bag_size=2)
    data = table_data.write(frame, tmp_path / "t.csv")
    columns: dict[str, Any] = {"bag": "bag", "label": "some", "features": FEATURES}
    estimators: dict[str, Any] = {"linear": MILClassifier(Linear(l2=0.1), random_state=0)}
    losses = [
        [fold["no features"]["loss"] for fold in cross_validate_table(data, estimators, seed=seed, **columns)["folds"]]
        for seed in (0, 0, 1)
    ]
    assert losses[0] == losses[1]
    # With as many bags of each label in every fold, a model without features has the same loss in all, whatever the
    # seed, if the numbers divide.
    negatives = int((frame.groupby("bag")["some"].first() == 0).sum())
    assert len(set(np.round(losses[0], 9))) <= (1 if negatives % 5 == 0 else 2)


@pytest.mark.parametrize(
    ("task", "rows", "n_folds", "message"),
    [
        ("count", 40, 11, "`n_folds` must be at most the number of bags; got 11, and there are 10"),
        ("pu", 40, 20, "each label must be that of at least 20 rows"),
        ("mil", 40, 1, "`n_folds` must be at least 2"),
    ],
)
def test_too_many_folds(tmp_path: Path, task: str, rows: int, n_folds: int, message: str) -> None:
    data = table_data.write(table_data.make_table(rows), tmp_path / "t.csv")
    kind, options, columns = TASKS[task]
    with pytest.raises(ValueError, match=message):
        cross_validate_table(data, {"linear": kind("linear", **options)}, n_folds=n_folds, features=FEATURES, **columns)


def test_progress_says_which_fold_and_learner(tmp_path: Path) -> None:
    data = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    said: list[str] = []
    estimators: dict[str, Any] = {"trees": LLPClassifier(QUICK["trees"], random_state=0)}
    columns: dict[str, Any] = {"bag": "bag", "label": "count", "features": FEATURES}
    cross_validate_table(data, estimators, n_folds=2, progress=lambda what, *_: said.append(what), **columns)
    assert sorted(set(said)) == ["fold 1 of 2, trees: all bags", "fold 2 of 2, trees: all bags"]


def test_baselines_learn_the_effect_of_bags_where_models_do(tmp_path: Path) -> None:
    """Bags whose common shift no feature tells: models and baselines are all judged with the effect that they found."""
    rng = np.random.default_rng(0)
    bag, x = np.repeat(np.arange(80), 20), rng.normal(size=1600)
    chance = 1 / (1 + np.exp(-x - np.repeat(rng.normal(size=80) * 1.5, 20)))
    count = (rng.random(1600) < chance).reshape(80, 20).sum(1).repeat(20)
    data = table_data.write(pd.DataFrame({"bag": bag, "count": count, "x": x}), tmp_path / "t.csv")
    without, with_effect = (
        cross_validate_table(
            data,
            {"linear": LLPClassifier(Linear(l2=0.01), bag_effect=effect, random_state=0)},
            n_folds=2,
            bag="bag",
            label="count",
        )["summary"]
        for effect in (None, "fit")
    )
    for name in ("no features", "bag means", "linear"):
        assert with_effect[name]["loss"]["mean"] < without[name]["loss"]["mean"] - 0.3
    assert with_effect["linear"]["loss"]["mean"] == pytest.approx(with_effect["bag means"]["loss"]["mean"], abs=0.15)
