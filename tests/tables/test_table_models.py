"""From a table to a model and back to tables: in memory, on disk, from CSV and from Parquet."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import table_data
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_file_cases import forge

from kofn._io.model_file import read_model
from kofn.counts import CountDistribution
from kofn.estimators import LLPClassifier, MILClassifier, PUClassifier
from kofn.learners import Linear, Network, Trees
from kofn.tables import TableModel, count_summaries, evaluate_bags, evaluate_rows, fit_table, predict_bags, predict_rows

NETWORK = Network(hidden=(8,), epochs=3, lr=0.05)
QUICK: dict[str, Any] = {"learner": NETWORK, "random_state": 0}
LEARNERS = {"trees": Trees(max_rounds=20), "linear": Linear(), "network": NETWORK}
# What is fitted in a moment may be no better than nothing at all.
pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")
FEATURES = "x,colour"

FITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "proportion": (LLPClassifier, {"bag": "bag", "label": "proportion"}),
    "count": (LLPClassifier, {"bag": "bag", "label": "count"}),
    "interval": (LLPClassifier, {"bag": "bag", "label": "low,high"}),
    "noisy": (LLPClassifier, {"bag": "bag", "label": "noisy"}),
    "mil": (MILClassifier, {"bag": "bag", "label": "some"}),
    "attention": (MILClassifier, {"bag": "bag", "label": "some"}),
    "pu": (PUClassifier, {"label": "labelled"}),
}
MORE: dict[str, dict[str, Any]] = {
    "noisy": {"noise": "laplace:0.5"}, "attention": {"loss": "attention"}, "pu": {"prior": 0.5}
}  # fmt: skip


def fit(case: str, path: Path, learner: Any = NETWORK) -> TableModel:
    kind, options = FITS[case]
    return fit_table(path, kind(learner, random_state=0, **MORE.get(case, {})), features=FEATURES, **options)


@pytest.mark.parametrize(
    ("case", "learner"), [*((case, "network") for case in FITS), ("count", "trees"), ("mil", "linear"), ("pu", "trees")]
)
def test_saved_model_predicts_as_the_one_in_memory(tmp_path: Path, case: str, learner: str) -> None:
    data = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    model = fit(case, data, LEARNERS[learner])
    model.save(tmp_path / "m")
    loaded = TableModel.load(tmp_path / "m")
    for one, name in ((model, "a"), (loaded, "b")):
        assert predict_rows(one, data, tmp_path / f"{name}.parquet") == 240
        assert predict_bags(one, data, tmp_path / f"{name}-bags.parquet", bag="bag") == 60
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), pd.read_parquet(tmp_path / "b.parquet"))
    bags = pd.read_parquet(tmp_path / "a-bags.parquet")
    pd.testing.assert_frame_equal(bags, pd.read_parquet(tmp_path / "b-bags.parquet"))
    assert (loaded.task, loaded.bag, loaded.labels) == (model.task, model.bag, model.labels)
    assert loaded.validation == model.validation
    assert loaded.data == model.data
    assert loaded.estimator.held_out_.tolist() == model.estimator.held_out_.tolist()
    # The estimator's own loader reads the same file, and scores a DataFrame alike.
    alone = type(model.estimator).load(tmp_path / "m")
    new = table_data.make_table(seed=3)
    np.testing.assert_array_equal(alone.predict_proba(new), model.estimator.predict_proba(new))


def test_csv_and_parquet_give_the_same_model(tmp_path: Path) -> None:
    frame = table_data.make_table()
    models = [fit("count", table_data.write(frame, tmp_path / name)) for name in ("t.csv", "t.parquet")]
    assert models[0].columns.to_facts() == models[1].columns.to_facts()
    assert models[0].estimator.history_ == models[1].estimator.history_


def test_count_and_proportion_are_the_same_labels(tmp_path: Path) -> None:
    data = table_data.write(table_data.make_table(), tmp_path / "t.parquet")
    assert fit("count", data).estimator.history_ == fit("proportion", data).estimator.history_


def test_bags_and_labels_are_no_features(tmp_path: Path) -> None:
    data = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    others = ["proportion", "count", "noisy", "some", "labelled", "truth"]
    model = fit_table(data, LLPClassifier(**QUICK), bag="bag", label="low,high", drop=["proportion,count", *others[2:]])
    assert model.data["columns"] == ["x", "colour"]
    assert model.columns.categories == {"colour": ["green", "red"]}


def test_validation_is_on_held_out_bags(tmp_path: Path) -> None:
    frame = table_data.make_table()
    data = table_data.write(frame, tmp_path / "t.csv")
    model = fit("count", data)
    held = set(frame["bag"].unique()[model.estimator.held_out_])
    assert len(held) == 6
    rest = table_data.write(frame[frame["bag"].isin(held)], tmp_path / "held.csv")
    again = evaluate_bags(model, rest)
    assert model.validation["on"] == "held-out data"
    assert model.validation["bags"] == again["bags"] == 6
    for name in ("log_likelihood", "expected_count_error", "calibration_error"):
        assert model.validation[name] == pytest.approx(again[name], rel=1e-6)
    best = min(entry["val_loss"] for entry in model.estimator.history_)
    assert model.validation["log_likelihood"] == pytest.approx(-best, rel=1e-5)


@pytest.mark.parametrize("learner", ["trees", "linear"])
def test_what_was_fitted_again_to_all_bags_is_measured_by_models_that_had_not_seen_them(
    tmp_path: Path, learner: str
) -> None:
    data = table_data.write(table_data.make_table(), tmp_path / "t.csv")
    model = fit("count", data, LEARNERS[learner])
    assert (model.validation["on"], model.validation["bags"]) == ("held-out data (5-fold cross-validation)", 60)
    assert model.validation["log_likelihood"] == pytest.approx(-model.estimator.validation_loss_, rel=1e-6)
    assert model.validation["log_likelihood"] < evaluate_bags(model, data)["log_likelihood"]  # which has seen them


@pytest.mark.parametrize("case", ["mil", "pu"])
def test_other_tasks_are_measured_by_models_that_had_not_seen_them(tmp_path: Path, case: str) -> None:
    frame = table_data.make_table()
    model = fit(case, table_data.write(frame, tmp_path / "t.csv"), Linear())
    logits = model.estimator.held_out_logits_
    assert not np.allclose(logits, model.estimator.decision_function(frame))
    if case == "pu":
        labelled = frame["labelled"].notna().to_numpy()
        assert model.validation["recall"] == pytest.approx((logits[labelled] > 0).mean())
        return
    some = pd.Series(np.logaddexp(0, logits)).groupby(frame["bag"]).sum()  # -log P(S = 0)
    right = (some > np.log(2)) == frame.groupby("bag")["some"].first()
    assert model.validation["bag_accuracy"] == pytest.approx(right.mean())


@pytest.mark.parametrize(("label", "rounding"), [("count", "error"), ("proportion", "error"), ("proportion", "spread")])
def test_rows_that_are_all_alike(tmp_path: Path, label: str, rounding: str) -> None:
    frame = table_data.make_table(40)
    data = table_data.write(frame, tmp_path / "t.csv")
    estimator = LLPClassifier(NETWORK, rounding=rounding, random_state=0)  # type: ignore[arg-type]
    model = fit_table(data, estimator, bag="bag", label=label, features=FEATURES)
    bags = frame.groupby("bag").agg(size=("count", "size"), count=("count", "first"))
    share = bags["count"].sum() / bags["size"].sum()
    expected = scipy.stats.binom.logpmf(bags["count"], bags["size"], share).mean()
    assert evaluate_bags(model, data)["log_likelihood_baseline"] == pytest.approx(expected, rel=1e-9)


def test_without_held_out_bags_training_data_are_measured(tmp_path: Path) -> None:
    data = table_data.write(table_data.make_table(40), tmp_path / "t.csv")
    model = fit("count", data, Trees(rounds=3))
    assert model.validation["on"] == "training data"
    assert model.validation["bags"] == 10


def test_predictions_beside_kept_columns(tmp_path: Path) -> None:
    frame = table_data.make_table()
    data = table_data.write(frame, tmp_path / "t.csv")
    model = fit("count", data)
    predict_rows(model, data, tmp_path / "out.csv", keep="bag,x")
    out = pd.read_csv(tmp_path / "out.csv")
    assert list(out) == ["bag", "x", "probability"]
    pd.testing.assert_series_equal(out["bag"], frame["bag"])
    np.testing.assert_allclose(out["x"], frame["x"])
    expected = model.estimator.predict_proba(frame)[:, 1]
    np.testing.assert_allclose(out["probability"], expected, rtol=1e-5)


def test_rows_are_measured_against_the_truth(tmp_path: Path) -> None:
    frame = table_data.make_table()
    data = table_data.write(frame, tmp_path / "t.csv")
    model = fit("count", data)
    seen = evaluate_rows(model, data, truth="truth", positive="pos")
    right = (model.estimator.predict(frame) == 1) == (frame["truth"] == "pos")
    assert seen["accuracy"] == pytest.approx(right.mean())
    assert {"auc", "f1", "balanced_accuracy", "log_loss"} <= set(seen)


def test_a_model_from_python_has_no_columns(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    LLPClassifier(**QUICK).fit(x, (x[:, 0] > 0).astype(int)).save(tmp_path / "m")
    with pytest.raises(ValueError, match="was saved from Python, without the columns of a table"):
        TableModel.load(tmp_path / "m")


def test_a_table_is_loaded_in_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two readings one could be of the model that another process has just put there."""
    fit("count", table_data.write(table_data.make_table(), tmp_path / "t.csv")).save(tmp_path / "m")
    opened = []
    real = Path.open

    def counting(self: Path, *args: Any) -> Any:
        opened.append(self)
        return real(self, *args)

    monkeypatch.setattr(Path, "open", counting)
    TableModel.load(tmp_path / "m")
    assert opened == [tmp_path / "m"]


@pytest.mark.parametrize("changes", [{"depth": 1}, {"task": ...}])
def test_a_forged_description_of_a_table(tmp_path: Path, changes: dict[str, Any]) -> None:
    fit("count", table_data.write(table_data.make_table(), tmp_path / "t.csv")).save(tmp_path / "m")
    facts = read_model(tmp_path / "m").facts
    table = {key: value for key, value in (facts["extra"]["table"] | changes).items() if value is not ...}
    forge(tmp_path / "m", facts=facts | {"extra": {"table": table}})
    with pytest.raises(ValueError, match=r"/m must describe a table as kofn fit does; .* Fit again"):
        TableModel.load(tmp_path / "m")


def test_a_table_without_a_column_of_the_model(tmp_path: Path) -> None:
    frame = table_data.make_table()
    model = fit("count", table_data.write(frame, tmp_path / "t.csv"))
    other = table_data.write(frame.drop(columns="colour"), tmp_path / "other.csv")
    with pytest.raises(ValueError, match=r"other.csv has no column 'colour'"):
        predict_rows(model, other, tmp_path / "out.csv")
    table_data.write(frame.assign(x="much"), tmp_path / "text.csv")
    with pytest.raises(ValueError, match="column 'x' must be numbers, as it was in training"):
        predict_rows(model, tmp_path / "text.csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    frame = table_data.make_table()
    data = table_data.write(frame, tmp_path / "t.csv")
    network = Network(hidden=(8,), epochs=3, checkpoint=tmp_path / "checkpoint")
    fit("count", data, network)
    frame.loc[0, "x"] = 17.0
    table_data.write(frame, data)
    with pytest.raises(ValueError, match="`checkpoint` must be of the same fit; it is of another: data was"):
        fit("count", data, network)


def enumerated(probs: list[float]) -> list[float]:
    law = [0.0] * (len(probs) + 1)
    for labels in itertools.product((0, 1), repeat=len(probs)):
        law[sum(labels)] += float(np.prod([p if y else 1 - p for p, y in zip(probs, labels, strict=True)]))
    return law


@given(st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=5), min_size=1, max_size=4))
def test_distributions_of_bags_by_enumeration(bags: list[list[float]]) -> None:
    logits = torch.tensor([x for bag in bags for x in bag], dtype=torch.float64)
    offsets = torch.tensor([0, *itertools.accumulate(map(len, bags))])
    seen = count_summaries(CountDistribution(logits, offsets=offsets))
    for j, bag in enumerate(bags):
        law = enumerated(torch.tensor(bag, dtype=torch.float64).sigmoid().tolist())
        below, above = np.cumsum([0.0, *law]), np.cumsum([0.0, *law[::-1]])[::-1]  # P(S < s), P(S >= s)
        low, high = int(seen["low"][j]), int(seen["high"][j])
        assert max(below[low], above[high + 1]) <= 0.05 + 1e-9
        assert min(below[low + 1], above[high]) >= 0.05 - 1e-9  # no narrower one
        assert seen["mean"][j] == pytest.approx(sum(s * p for s, p in enumerate(law)))
        assert seen["at_least_one"][j] == pytest.approx(1 - law[0])
        assert seen["size"][j] == len(bag)
